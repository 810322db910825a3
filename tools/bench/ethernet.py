# SPDX-License-Identifier: BSD-3-Clause
"""The packet link beside the kernel's TCP, over the same cable (veth) with the same addresses: throughput at two MTUs,
with the interface's offloads and without, CPU time for an octet, and the round trip of 64 octets."""

from . import perftest, peers
from .goals import LEAST, MOST, Goal, judge
from .process import Group, need
from .rig import LIMIT, echoes, helper, last_row, until_up, uwarp_run
from .rounds import probe

SIZES, MTUS = (65_536, 1 << 20), (1500, 9000)
SHORT = 4096  # a block of storage: a few segments
ENDS = {"server": "uwb-a", "client": "uwb-b"}
PACKET, TCP = "packet", "tcp"
# Of a run: a second or more at the rates that were seen, as the kernel TCP's side has. A quarter of it was for a good part the start.
OCTETS = 4 << 30


def run(where, role):
    return [*where.at(role), uwarp_run(), "--quiet", "--link", ENDS[role], "--"]


def pair(rig, where, words):
    """What the client printed. Both ends use the interface's own address, which the kernel keeps."""
    words = [need(words[0]), "-R", "-F", "-p", rig.new_port(), *words[1:]]
    with Group() as group:
        server = group.start([*run(where, "server"), *words], env=rig.env, cwd=rig.folder)
        until_up(server)
        client = group.start([*run(where, "client"), *words, where.server], env=rig.env, cwd=rig.folder)
        return client.wait(rig.limit)


def packet_throughput(rig, where, size):
    row = last_row(pair(rig, where, ["ib_send_bw", "-N", "--report_gbits", "-s", str(size), "-n", str(OCTETS // size)]), perftest.RATE_COLUMNS)
    return {"value": row[3], "mps": row[4]}


def packet_latency(rig, where, size):
    row = last_row(pair(rig, where, ["ib_send_lat", "-s", str(size), "-n", str(echoes(size))]), perftest.LATENCY_COLUMNS)
    return {"value": row[4], "p99": row[7], "p999": row[8]}


def packet_cpu(rig, where, size):
    """Both ends sleep while they wait, as the kernel's do. The client's start is not counted: it is as much for any
    number of octets."""
    argv = [helper("verbs_bench"), "-a", where.server, "-p", rig.new_port()]
    with Group() as group:
        server = group.start([*run(where, "server"), argv[0], "-S", *argv[1:]], env=rig.env, cwd=rig.folder)
        until_up(server)
        before = server.cpu_seconds()
        client = group.start([*run(where, "client"), *argv, "-t", "1", f"flow:{size}"], env=rig.env, cwd=rig.folder)
        sample = peers.json_lines(client.wait(LIMIT), "verbs_bench")[0]
        spent = sample["cpu_s"] + server.cpu_seconds() - before
    return {"value": spent * 1e9 / (sample["gbps"] * 1e9 / 8), "gbps": sample["gbps"]}


def place(rig, mtu, offloads):
    return peers.place(rig, mtu, offloads == "on")


def beside(rig, op, size, unit, ours, theirs, **facts):
    """Both, one after the other."""
    where = lambda: place(rig, facts["mtu"], facts["offloads"])  # noqa: E731
    yield probe("ethernet", PACKET, op, size, unit, lambda: ours(rig, where(), size), **facts)
    yield probe("ethernet", TCP, op, size, unit, lambda: theirs(rig, size, where()), **facts)


def spinning(rig, size, where):
    return peers.tcp_echo(rig, "spin", size, where)


def ethernet(rig):
    for mtu in MTUS:
        for offloads in ("on", "off"):
            for size in rig.options.sizes or (SHORT, *SIZES):
                yield from beside(rig, "throughput", size, "Gb/s", packet_throughput, peers.tcp_stream, mtu=mtu, offloads=offloads)
        yield from beside(rig, "CPU", SIZES[0], "ns/B", packet_cpu, peers.tcp_cpu, mtu=mtu, offloads="on")
    yield from beside(rig, "round trip", 64, "us", packet_latency, spinning, mtu=MTUS[0], offloads="on")


def goals():
    key = lambda scheme, op, size, mtu, offloads: f"ethernet/{scheme}/{op}/{size}/{mtu}/{offloads}"  # noqa: E731
    both = lambda *which: [key(scheme, *which) for scheme in (PACKET, TCP)]  # noqa: E731
    for mtu in MTUS:
        for offloads in ("on", "off"):
            for size in SIZES:
                name = "64 KiB" if size == SIZES[0] else "1 MiB"
                yield Goal(f"packet link, {name}, MTU {mtu}, offloads {offloads} / kernel TCP", *both("throughput", size, mtu, offloads), LEAST, 1.0, 2.0)
        yield Goal(f"packet link, CPU for an octet, MTU {mtu} / kernel TCP", *both("CPU", SIZES[0], mtu, "on"), MOST, 1.0)
    yield Goal("packet link, 64 B SEND / spinning TCP over veth", *both("round trip", 64, MTUS[0], "on"), MOST, 0.8)


def verdicts(series):
    return [judge(series, g) for g in goals()]
