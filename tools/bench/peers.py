# SPDX-License-Identifier: BSD-3-Clause
"""What uwarp stands beside: the raw link, the kernel's TCP, libfabric and UCX over it."""

import json
import os
import re
import socket
import time

from .process import Failed, Group, Unavailable, need, wait_until
from .rig import START, echoes, helper

FRAME_HEAD, SHORTEST = 14, 60
SECONDS = 0.25
OFFLOADS = ("tso", "gso", "gro", "lro", "tx", "rx")
VETH_NETWORK = "10.78.0"


def json_lines(text, what):
    lines = [line for line in text.splitlines() if line.startswith("{")]
    if not lines:
        raise Failed(f"{what} printed no figures")
    return [json.loads(line) for line in lines]


# ---- the raw link -----------------------------------------------------------------------


def wire(rig, mode, octets, mtu=None, rate=None):
    """One run of link_bench."""
    argv = [helper("link_bench"), "-j", "-n", "1", "-t", str(SECONDS)]
    argv += ["-m", str(mtu)] if mtu else []
    argv += ["-b", rate] if rate else []
    with Group() as group:
        out = group.start([*argv, f"{mode}:{octets}"], cwd=rig.folder).wait(rig.limit)
    return json_lines(out, "link_bench")[0]


def halved(sample):
    """Half of each round trip."""
    half = {k: sample[k] / 2 for k in ("mean", "p99", "p999")}
    return {"value": sample["p50"] / 2, **half, "cdf": [[p, t / 2] for p, t in sample["cdf"]]}


def wire_echo(rig, size, mtu=None, mode="echo", rate=None):
    """A message and its echo in raw frames: half the round trip."""
    return halved(wire(rig, mode, max(size, SHORTEST), mtu, rate))


def wire_stream(rig, mtu, mode):
    """Gb/s of full frames: as they come (raw), or windowed with a copy at each end (copied)."""
    sample = wire(rig, mode, mtu + FRAME_HEAD, mtu)
    return {"value": sample["gbps"], "mps": sample["mpps"]}


def wire_rate(rig, octets=64):
    sample = wire(rig, "raw", octets)
    return {"value": sample["mpps"], "gbps": sample["gbps"]}


# ---- the kernel's TCP -------------------------------------------------------------------


class Loopback:
    """Both ends where we are."""

    name, server, unwrap = "loopback", "127.0.0.1", []

    def at(self, _role):
        return []


class Peer:
    """From here to where the device's peer is. Our program must be there, too, at the same path."""

    name = "to the peer"

    def __init__(self, options):
        self.server, self.remote = options.peer, options.remote

    def at(self, role):
        return self.remote if role == "server" else []

    def listens(self, port):
        try:
            socket.create_connection((self.server, port), 1).close()
        except OSError:
            return False
        return True


class Veth:
    """Two namespaces with a cable between them. Works as root, and as a user where the kernel lets
    users make namespaces."""

    server, client = VETH_NETWORK + ".1", VETH_NETWORK + ".2"

    def __init__(self, rig, mtu, offloads):
        self.name = f"veth {mtu}{'' if offloads else ', offloads off'}"
        self.group = rig.closing.enter_context(Group())
        need("unshare"), need("nsenter"), need("ip")
        user = [] if os.getuid() == 0 else ["--user", "--map-root-user"]
        self.enter = [] if os.getuid() == 0 else ["--preserve-credentials"]
        self.pids = {"server": self.hold([*user, "--net"])}
        self.pids["client"] = self.hold(["--net"], self.at("server"))
        self.cable(mtu, offloads)

    def hold(self, how, prefix=()):
        """A process that keeps a new namespace; its id."""
        holder = self.group.start([*prefix, "unshare", *how, "--", "sleep", "3600"])
        if not wait_until(lambda: not holder.running() or self.sleeps(holder.pid), 5) or not holder.running():
            raise Unavailable(f"no network namespace can be made here{holder.last_words()}")
        return holder.pid

    @staticmethod
    def sleeps(pid):
        """Everything before it, the namespace above all, has been done."""
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                return f.read().strip() == "sleep"
        except OSError:
            return False

    def at(self, role):
        pid = self.pids[role]
        return ["nsenter", *self.enter, f"--net=/proc/{pid}/ns/net", *([f"--user=/proc/{pid}/ns/user"] if self.enter else []), "--"]

    def do(self, role, line):
        program = self.group.start([*self.at(role), *line.split()])
        try:
            program.wait(10)
        except Failed as e:
            raise Unavailable(f"no veth here: {e}") from None

    def cable(self, mtu, offloads):
        self.do("server", f"ip link add uwb-a mtu {mtu} type veth peer name uwb-b mtu {mtu} netns {self.pids['client']}")
        for n, (role, end) in enumerate((("server", "uwb-a"), ("client", "uwb-b")), 1):
            self.do(role, f"ip address add {VETH_NETWORK}.{n}/24 dev {end}")
            self.do(role, f"ip link set {end} up")
            self.do(role, "ip link set lo up")
            if not offloads:
                need("ethtool")
                self.do(role, f"ethtool -K {end} " + " ".join(f"{o} off" for o in OFFLOADS if o != "lro"))


def place(rig, mtu=None, offloads=True):
    """Where TCP runs: the loopback, or a veth pair of that MTU."""
    if rig.options.device:
        return rig.once("peer", lambda: Peer(rig.options))
    if not mtu:
        return rig.once("loopback", Loopback)
    return rig.once(f"veth {mtu} {offloads}", lambda: Veth(rig, mtu, offloads))


def tcp_server(rig, where):
    """A server that stays for the whole run; it sleeps while nobody talks to it."""

    def start():
        group = rig.closing.enter_context(Group())
        port = 18600 + os.getpid() % 1000
        program = group.start([*where.at("server"), helper("tcp_bench"), "-S", "-a", where.server, "-p", str(port)], cwd=rig.folder)
        if isinstance(where, Peer):
            wait_until(lambda: not program.running() or where.listens(port), START)
        else:
            wait_until(lambda: not program.running(), 0.3)
        if not program.running():
            raise Unavailable(f"no TCP server{program.last_words()}")
        return port, program

    return rig.once(f"tcp server {where.name}", start)


def tcp(rig, mode, octets, where, *more):
    port, server = tcp_server(rig, where)
    argv = [*where.at("client"), helper("tcp_bench"), "-a", where.server, "-p", str(port), "-t", str(SECONDS), *more]
    before = server.cpu_seconds()
    with Group() as group:
        client = group.start([*argv, f"{mode}:{octets}"], cwd=rig.folder)
        out = client.wait(rig.limit)
    return {**json_lines(out, "tcp_bench")[0], "cpu_s": client.cpu + server.cpu_seconds() - before}


def tcp_echo(rig, mode, size, where):
    """Half a round trip; mode is echo (blocking) or spin."""
    return halved(tcp(rig, mode, size, where))


def tcp_stream(rig, size, where, verify=False):
    sample = tcp(rig, "stream", size, where, *(["-v"] if verify else []))
    return {"value": sample["gbps"], "mps": sample["mps"]}


def tcp_cpu(rig, size, where):
    """CPU nanoseconds of both sides for an octet."""
    sample = tcp(rig, "stream", size, where)
    return {"value": sample["cpu_s"] * 1e9 / (sample["messages"] * size), "gbps": sample["gbps"]}


def tcp_rate(rig, size, where):
    """Messages per second, one send() each: with Nagle's algorithm or without, whichever is faster."""
    samples = [tcp(rig, "stream", size, where, *more) for more in ([], ["-k"])]
    best = max(samples, key=lambda s: s["mps"])
    return {"value": best["mps"], "gbps": best["gbps"]}


# ---- libfabric and UCX ------------------------------------------------------------------

FI_ROW = re.compile(r"^([\d.]+[kmg]?)\s+(\S+)\s+.*?\s([0-9.]+)\s+([0-9.]+)\s*$", re.MULTILINE)


def repeat_until_there(rig, server, start):
    """The client's output; it is started again while the server is not yet listening."""
    last = time.monotonic() + START
    while True:
        client = start()
        try:
            return client.wait(rig.limit)
        except Failed:
            if not server.running() or time.monotonic() > last:
                raise
            wait_until(lambda: False, 0.1)


def ofi_latency(rig, size):
    """fi_pingpong over libfabric's tcp provider, connected endpoints: half a round trip, the mean."""
    n = echoes(size)
    port = str(20000 + os.getpid() % 10000)
    words = [need("fi_pingpong"), "-p", "tcp", "-e", "msg", "-I", str(n), "-S", str(size)]
    with Group() as group:
        server = group.start([*words, "-B", port], cwd=rig.folder)
        out = repeat_until_there(rig, server, lambda: group.start([*words, "-P", port, "127.0.0.1"], cwd=rig.folder))
    rows = FI_ROW.findall(out)
    if not rows:
        raise Failed("fi_pingpong printed no figures")
    return {"value": float(rows[-1][2])}


def ucx(rig, test, size, n):
    port = str(30000 + os.getpid() % 10000)
    env = {**rig.env, "UCX_TLS": "tcp,self", "UCX_NET_DEVICES": "lo", "UCX_WARN_UNUSED_ENV_VARS": "n"}
    words = [need("ucx_perftest"), "-p", port]
    more = ["-t", test, "-s", str(size), "-n", str(n), "-w", str(max(10, n // 20)), "-f"]
    with Group() as group:
        server = group.start(words, env=env, cwd=rig.folder)
        out = repeat_until_there(rig, server, lambda: group.start([*words, "127.0.0.1", *more], env=env, cwd=rig.folder))
    return ucx_figures(out)


def ucx_figures(out):
    """The last row: half round trips in us and MiB a second, those of the whole run where it has both."""
    rows = re.findall(r"^(?:Final:)?\s*\d+\s+([0-9. ]+)$", out, re.MULTILINE)
    columns = [float(x) for x in rows[-1].split()] if rows else []
    if len(columns) < 5:
        raise Failed("ucx_perftest printed no figures")
    return {"p50": columns[0], "mean": columns[2], "mbytes": columns[4]}


def ucx_latency(rig, size):
    """UCX tag messages over TCP: half a round trip, the median."""
    return {"value": ucx(rig, "tag_lat", size, echoes(size))["p50"]}
