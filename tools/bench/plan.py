# SPDX-License-Identifier: BSD-3-Clause
"""What each subcommand measures: lists of probes in the order of a round. A probe's neighbours are
what it is compared with."""

from . import peers, perftest
from .rounds import probe

LATENCY_SIZES = (64, 1000, 10_000, 100_000, 500_000)
THROUGHPUT_SIZES = (1024, 10_000, 65_536, 100_000, 1 << 20)
POST_LISTS = (1, 4, 16, 32)
MTU_SMALL, MTU_JUMBO, MTU_MOST = 1500, 9000, 65280
OPS = ("send", "write", "read")


def own(rig):
    """What the verbs programs run over, as a scheme's name."""
    return rig.options.device or "uwarp"


def wants(rig, scheme):
    return scheme in rig.options.against


# ---- latency ----------------------------------------------------------------------------


def wire_latency(rig, size, mtu=None):
    if not wants(rig, "wire"):
        return
    yield probe("latency", "wire", "half", size, "us", lambda: peers.wire_echo(rig, size, mtu))
    yield probe("latency", "wire", "whole", size, "us", lambda: peers.wire_echo(rig, size, mtu, half=False))
    yield probe("latency", "wire", "copied", size, "us", lambda: peers.wire_echo(rig, size, mtu, mode="moved"))


def tcp_latency(rig, size):
    if not wants(rig, "tcp"):
        return
    yield probe("latency", "tcp", "spinning", size, "us", lambda: peers.tcp_echo(rig, "spin", size, peers.place(rig)))
    yield probe("latency", "tcp", "blocking", size, "us", lambda: peers.tcp_echo(rig, "echo", size, peers.place(rig)))


def other_latency(rig, size):
    if wants(rig, "libfabric"):
        yield probe("latency", "libfabric", "tcp", size, "us", lambda: peers.ofi_latency(rig, size))
    if wants(rig, "ucx"):
        yield probe("latency", "ucx", "tcp", size, "us", lambda: peers.ucx_latency(rig, size))


def verbs_latency(rig, op, size):
    spread = size <= 64
    return probe("latency", own(rig), op, size, "us", lambda: perftest.latency(rig, op, size, rig.options.mtu, distribution=spread))


def latency(rig):
    for size in rig.options.sizes or LATENCY_SIZES:
        yield from wire_latency(rig, size, rig.options.mtu)
        for op in rig.options.ops:
            yield verbs_latency(rig, op, size)
        yield from tcp_latency(rig, size)
        yield from other_latency(rig, size)


# ---- throughput -------------------------------------------------------------------------


def verbs_throughput(rig, op, size, mtu):
    return probe("throughput", own(rig), op, size, "Gb/s", lambda: perftest.throughput(rig, op, size, mtu=mtu), mtu=mtu)


def wire_throughput(rig, mtu):
    for mode in ("raw", "copied"):
        yield probe("throughput", "wire", mode, 0, "Gb/s", lambda m=mode: peers.wire_stream(rig, mtu, m), mtu=mtu)


def tcp_places(mtu):
    """(name, arguments of peers.place) of what TCP runs over beside a link of that MTU."""
    if mtu > MTU_JUMBO:
        return [("loopback", {})]
    return [("veth, offloads off", {"mtu": mtu, "offloads": False}), ("veth", {"mtu": mtu})]


def tcp_throughput(rig, size, mtu):
    for name, how in tcp_places(mtu):
        yield probe("throughput", "tcp", name, size, "Gb/s", lambda h=how: peers.tcp_stream(rig, size, peers.place(rig, **h)), mtu=mtu)


def throughput(rig):
    for mtu in [rig.options.mtu] if rig.options.mtu else (MTU_SMALL, MTU_JUMBO, MTU_MOST):
        if wants(rig, "wire"):
            yield from wire_throughput(rig, mtu)
        for size in rig.options.sizes or THROUGHPUT_SIZES:
            for op in rig.options.ops:
                yield verbs_throughput(rig, op, size, mtu)
            if wants(rig, "tcp"):
                yield from tcp_throughput(rig, size, mtu)


# ---- message rate -----------------------------------------------------------------------


def verbs_rate(rig, op, size, post_list, qps=1):
    facts = {"post_list": post_list, "qps": qps}
    return probe("rate", own(rig), op, size, "M/s", lambda: perftest.rate(rig, op, size, mtu=rig.options.mtu, **facts), **facts)


def wire_rate(rig, size):
    return probe("rate", "wire", "raw", size, "M/s", lambda: peers.wire_rate(rig, size))


def tcp_rate(rig, size):
    return probe("rate", "tcp", "loopback", size, "M/s", lambda: peers.tcp_rate(rig, size, peers.place(rig)))


def rate(rig):
    for size in rig.options.sizes or (64,):
        if wants(rig, "wire"):
            yield wire_rate(rig, size)
        for op in rig.options.ops:
            for post_list in (1, 32) if op == "read" else POST_LISTS:
                yield verbs_rate(rig, op, size, post_list)
            yield verbs_rate(rig, op, size, 32, qps=4)
        if wants(rig, "tcp"):
            yield tcp_rate(rig, size)


TESTS = {"latency": latency, "throughput": throughput, "rate": rate}
