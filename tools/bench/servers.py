# SPDX-License-Identifier: BSD-3-Clause
"""Servers that sleep in epoll or on a completion channel, beside the same ones over TCP: Valkey with
RDMA, qperf without polling, and rstream, a program on rsockets."""

import csv
import io
import os
import subprocess

from . import cores, peers, qperf, verbs
from .goals import LEAST, MOST, Goal, judge
from .process import Failed, Group, Unavailable, need, wait_until
from .rig import HERE, START, THERE, helper, tool, until_up, uwarp_run
from .rounds import probe

CLIENTS = (1, 4, 16, 50)
K64 = 65_536
# (operation, octets of a value, requests of one run: enough that the first use of each client's buffers, a
# megabyte at each end, is a small part of it)
LOADS = (("get", 64, 40_000), ("get", K64, 30_000), ("set", K64, 30_000))
IDLE_PAIRS, IDLE_SECONDS = 4, 30
MEMIF, PACKET = "memif", "packet link"
MTU = 1500
ENDS = {"server": "uwb-a", "client": "uwb-b"}  # of peers.Veth
RSTREAM_SIZES = (64, K64)


# ---- where ------------------------------------------------------------------------------


class Memif:
    """Two processes of this machine, and TCP over loopback."""

    name, server = MEMIF, THERE
    tcp_name, tcp_server = "loopback", "127.0.0.1"

    def __init__(self, rig):
        self.rig = rig

    def uwarp(self, role, words):
        return self.rig.uwarp(THERE if role == "server" else HERE, words)

    def tcp(self, _role, words):
        return words


class Packet:
    """Two namespaces with a cable between them, the kernel's TCP on the same one."""

    name, server = PACKET, peers.Veth.server
    tcp_name, tcp_server = "veth", peers.Veth.server

    def __init__(self, rig):
        self.rig = rig

    def place(self):
        return peers.place(self.rig, MTU)

    def uwarp(self, role, words, more=()):
        return [*self.place().at(role), uwarp_run(), "--quiet", "--link", ENDS[role], *more, "--", *words]

    def tcp(self, role, words):
        return [*self.place().at(role), *words]


def start(rig, group, words):
    return group.start(words, env=rig.env, cwd=rig.folder)


# ---- Valkey -----------------------------------------------------------------------------


def valkey(program):
    """One that was built with RDMA; Debian's is not."""
    missing = Unavailable("no Valkey with RDMA is built (tools/setup bench, or tools/lib/valkey-rdma)")
    try:
        where = subprocess.run([tool("lib/valkey-rdma"), "--where"], capture_output=True, text=True, check=False)
    except Unavailable:  # installed, where it is not
        raise missing from None
    path = os.path.join(where.stdout.strip(), program)
    if where.returncode or not os.access(path, os.X_OK):
        raise missing
    return path


def figures(text):
    rows = [r for r in csv.DictReader(io.StringIO(text[text.find('"test"') :])) if r.get("rps")]
    if '"test"' not in text or not rows:
        raise Failed("valkey-benchmark printed no figures")
    row = rows[-1]
    return {"value": float(row["rps"]) / 1000, "p50": float(row["p50_latency_ms"]) * 1000, "p99": float(row["p99_latency_ms"]) * 1000}


def serve_valkey(rig, group, at, over_tcp, port):
    listen = ["--port", port, "--bind", at.tcp_server] if over_tcp else ["--port", "0", "--rdma-bind", at.server, "--rdma-port", port]
    words = [valkey("valkey-server"), *listen, "--save", "", "--appendonly", "no", "--protected-mode", "no", "--dir", rig.folder]
    server = start(rig, group, (at.tcp if over_tcp else at.uwarp)("server", words))
    if not wait_until(lambda: "Ready to accept" in server.out() or not server.running(), START) or not server.running():
        raise Failed(f"valkey-server does not get ready{server.last_words()}")


def ask_valkey(rig, group, at, over_tcp, port, words):
    to = ["-h", at.tcp_server] if over_tcp else ["--rdma", "-h", at.server]
    argv = [valkey("valkey-benchmark"), *to, "-p", port, "--csv", *words]
    return start(rig, group, (at.tcp if over_tcp else at.uwarp)("client", argv)).wait(rig.limit)


def valkey_once(rig, at, over_tcp, load, clients):
    op, size, requests = load
    port = rig.new_port()
    with Group() as group:
        serve_valkey(rig, group, at, over_tcp, port)
        ask_valkey(rig, group, at, over_tcp, port, ["-t", "set", "-c", "1", "-d", str(size), "-n", "10"])
        words = ["-t", op, "-c", str(clients), "-d", str(size), "-n", str(requests)]
        return figures(ask_valkey(rig, group, at, over_tcp, port, words))


def valkey_rows(rig, at):
    for load in LOADS:
        for clients in CLIENTS:
            for scheme in ("uwarp", "tcp"):
                over_tcp = scheme == "tcp"
                op = f"{load[0].upper()}, {at.name}"
                yield probe("servers", scheme, op, load[1], "k/s", lambda o=over_tcp, n=load, c=clients: valkey_once(rig, at, o, n, c),
                            clients=clients)  # fmt: skip


# ---- qperf ------------------------------------------------------------------------------


def qperf_once(rig, at, test, size):
    over_tcp = test.startswith("tcp")
    port = rig.new_port()
    way, host = (at.tcp, at.tcp_server) if over_tcp else (at.uwarp, at.server)
    more = [] if over_tcp else ["-cm", "1"]
    with Group() as group:
        start(rig, group, way("server", [need("qperf"), "-lp", port]))
        client = start(rig, group, way("client", qperf.client_words(port, host, test, size, more)))
        return {"value": qperf.value(client.wait(rig.limit))}


def qperf_rows(rig, at):
    for size, tests, unit in ((64, ("rc_lat", "rc_rdma_write_lat", "tcp_lat"), "us"), (K64, ("rc_rdma_write_bw", "rc_rdma_read_bw", "tcp_bw"), "Gb/s")):
        for test in tests:
            scheme = "tcp" if test.startswith("tcp") else "uwarp"
            yield probe("servers", scheme, f"{test}, {at.name}", size, unit, lambda t=test, n=size: qperf_once(rig, at, t, n))


# ---- rstream ----------------------------------------------------------------------------


def rstream_once(rig, at, over_tcp, size):
    """Half a round trip of blocking calls."""
    port = rig.new_port()
    way, host = (at.tcp, at.tcp_server) if over_tcp else (at.uwarp, at.server)
    words = [need("rstream"), "-T", "b", *(["-T", "s"] if over_tcp else []), "-p", port, "-S", str(size), "-C", "1", "-I", "4000"]
    with Group() as group:
        server = start(rig, group, way("server", [*words, "-b", host]))
        for _ in range(20):
            client = start(rig, group, way("client", [*words, "-s", host]))
            client.finish(rig.limit)
            if "usec/xfer" in client.out() and len(client.out().strip().splitlines()) > 1:
                return {"value": float(client.out().split()[-1])}
            wait_until(lambda: not server.running(), 0.1)
        raise Failed(f"rstream printed no figures{client.last_words()}")


def rstream_rows(rig, at):
    for size in RSTREAM_SIZES:
        for scheme in ("uwarp", "tcp"):
            yield probe("servers", scheme, f"rstream, {at.name}", size, "us", lambda o=scheme == "tcp", n=size: rstream_once(rig, at, o, n))


# ---- idle -------------------------------------------------------------------------------


def idle(rig):
    """Percent of a core that 8 connected processes take together while nothing happens."""
    with Group() as group:
        programs = []
        for n in range(IDLE_PAIRS):
            ip, seconds = f"127.0.1.{n + 2}", str(IDLE_SECONDS + 10)
            programs.append(verbs.server(rig, group, ip, None))
            programs.append(start(rig, group, rig.uwarp(f"127.0.2.{n + 2}", [helper("verbs_bench"), "-a", ip, "-t", seconds, "idle:64"])))
            until_up(programs[-1])
        wait_until(lambda: False, 2.0)
        before = sum(p.cpu_seconds() for p in programs)
        wait_until(lambda: False, IDLE_SECONDS)
        if not all(p.running() for p in programs):
            raise Failed("a process that should be idle has ended")
        return {"value": (sum(p.cpu_seconds() for p in programs) - before) / IDLE_SECONDS * 100}


def at_place(rig, at):
    yield from valkey_rows(rig, at)
    yield from qperf_rows(rig, at)
    yield from rstream_rows(rig, at)


def idle_rows(rig):
    p = probe("servers", "uwarp", "CPU of 8 idle processes", 0, "%", lambda: idle(rig))
    p.most = 1
    yield p


PARTS = {"memif": lambda rig: at_place(rig, Memif(rig)), "packet": lambda rig: at_place(rig, Packet(rig)), "idle": idle_rows, "cores": cores.rows}


def servers(rig):
    for part in PARTS.values():
        yield from part(rig)


# ---- what is to be reached --------------------------------------------------------------


def pair(name, size, clients=None):
    more = f"/{clients}" if clients else ""
    return f"servers/uwarp/{name}/{size}{more}", f"servers/tcp/{name}/{size}{more}"


def goals():
    for at in (MEMIF, PACKET):
        for op, size, _ in LOADS:
            for clients in CLIENTS:
                over, under = pair(f"{op.upper()}, {at}", size, clients)
                yield Goal(f"Valkey {op.upper()} of {size}, {clients} clients, {at} / TCP", over, under, LEAST, 1.0, 1.5)
        most = 0.7 if at == MEMIF else 1.0
        for test in ("rc_lat", "rc_rdma_write_lat"):
            yield Goal(f"qperf {test} / tcp_lat, {at}", f"servers/uwarp/{test}, {at}/64", f"servers/tcp/tcp_lat, {at}/64", MOST, most)
        for test in ("rc_rdma_write_bw", "rc_rdma_read_bw"):
            yield Goal(f"qperf {test} / tcp_bw, {at}", f"servers/uwarp/{test}, {at}/{K64}", f"servers/tcp/tcp_bw, {at}/{K64}", LEAST, 1.0)
        for size in RSTREAM_SIZES:
            yield Goal(f"rstream {size} / over TCP, {at}", *pair(f"rstream, {at}", size), MOST, 1.0)
    yield from cores.goals()
    yield Goal("% of a core, 8 idle processes", "servers/uwarp/CPU of 8 idle processes/0", None, MOST, 10)


def verdicts(series):
    return [judge(series, g) for g in goals() if g.over in series and (not g.under or g.under in series)]


# ---- plots ------------------------------------------------------------------------------


def plot_of(place):
    """Rate and p99 against clients, a line for each load."""

    def draw(plt, series):
        found = [s for s in series.values() if s.values() and "clients" in s.facts and s.facts["op"].endswith(place)]
        if not found:
            return None
        figure, (rate, tail) = plt.subplots(1, 2, figsize=(12, 5))
        lines = {}
        for s in found:
            lines.setdefault((s.facts["scheme"], s.facts["op"].split(",")[0], s.facts["size"]), []).append(s)
        for (scheme, op, size), points in lines.items():
            points.sort(key=lambda s: s.facts["clients"])
            x = [s.facts["clients"] for s in points]
            look = {"color": "tab:blue" if scheme == "uwarp" else "tab:red", "label": f"{scheme} {op} {size}", "marker": "o",
                    "linestyle": {"GET": "-", "SET": ":"}[op] if size > 64 else "--"}  # fmt: skip
            rate.plot(x, [s.median() for s in points], **look)
            tail.plot(x, [sorted(v["p99"] for v in s.samples)[len(s.samples) // 2] for s in points], **look)
        rate.set_ylabel("thousand requests/s")
        tail.set_ylabel("us, p99")
        for ax in (rate, tail):
            ax.set_xlabel("clients")
            ax.set_yscale("log")
        tail.grid(visible=True, alpha=0.3)
        rate.set_title(f"Valkey, {place}, beside TCP")
        return figure

    return draw


PLOTS = {"servers-memif": plot_of(MEMIF), "servers-packet": plot_of(PACKET)}
