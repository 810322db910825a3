# SPDX-License-Identifier: BSD-3-Clause
"""The kernel's TCP and uwarp through the same bad network: two namespaces, and between them a third in which
uwarp-impair hands frames on. Both use the same interfaces with the same addresses, and meet the same losses."""

from .goals import LEAST, MOST, Goal, judge
from .peers import Veth, json_lines
from .process import Failed, Group, need, wait_until
from .rig import START, helper, tool, until_up, uwarp_run
from .rounds import probe

NETWORK = "10.79.0"
MACS = {"server": "02:00:00:00:79:01", "client": "02:00:00:00:79:02"}
ENDS = {"server": ("uwb-a", "uwb-ia"), "client": ("uwb-b", "uwb-ib")}
RTT_MS = (0.1, 1.0, 20.0)
DROP = (0.0, 0.01, 0.1, 1.0, 5.0)  # per cent of frames, each way
FLOW_SIZE, ECHO_SIZE = 65_536, 1000
# What a measurement counts at least. A run of few round trips shows slow start and the luck of its first losses, no more.
SECONDS, ROUND_TRIPS = 3.0, 600
KERNEL, CUBIC, DELAY = "kernel", "cubic", "delay"
SCHEMES = (KERNEL, CUBIC, DELAY)


class Path(Veth):
    """Three namespaces in a row. Offloads are off, as the one in the middle hands on frames of the wire."""

    name = "impaired path"
    server, client = NETWORK + ".1", NETWORK + ".2"

    def __init__(self, rig):
        super().__init__(rig, 1500, False)

    def cable(self, mtu, _offloads):
        need("ethtool"), need("sysctl")
        self.pids["middle"] = self.hold(["--net"], self.at("server"))
        addresses = {"server": self.server, "client": self.client}
        for role, (end, inner) in ENDS.items():
            other = "client" if role == "server" else "server"
            self.do(role, f"ip link add {end} mtu {mtu} type veth peer name {inner} mtu {mtu} netns {self.pids['middle']}")
            self.do(role, "sysctl -qw net.ipv6.conf.all.disable_ipv6=1")
            self.do(role, f"ip link set {end} address {MACS[role]} up")
            self.do(role, "ip link set lo up")
            self.do(role, f"ip address add {addresses[role]}/24 dev {end}")
            self.do(role, f"ip neighbour add {addresses[other]} lladdr {MACS[other]} dev {end} nud permanent")
            self.do(role, f"ethtool -K {end} tx off tso off gso off")
            # what one connection has learnt about the path is not the next one's
            self.do(role, "sysctl -qw net.ipv4.tcp_no_metrics_save=1")
            self.do("middle", f"sysctl -qw net.ipv6.conf.{inner}.disable_ipv6=1")
            self.do("middle", f"ip link set {inner} up")

    def impair(self, group, rtt_ms, drop, seed):
        words = [tool("uwarp-impair"), "--seed", str(seed), "--delay", f"{rtt_ms / 2:g}ms"]
        words += ["--drop", f"{drop:g}%"] if drop else []
        forwarder = group.start([*self.at("middle"), *words, *(inner for _, inner in ENDS.values())])
        if not wait_until(lambda: "between" in forwarder.out() or not forwarder.running(), START) or not forwarder.running():
            raise Failed(f"uwarp-impair has not started{forwarder.last_words()}")
        return forwarder


def path(rig):
    return rig.once("impaired path", lambda: Path(rig))


def seconds(options, flow, rtt_ms):
    once = options.seconds or max(SECONDS, ROUND_TRIPS * rtt_ms / 1000)
    return once if flow else 2 * once


def tcp(rig, where, group, words):
    port = rig.new_port()  # the last one's connections may not be over yet
    argv = [helper("tcp_bench"), "-a", where.server, "-p", port, "-C", "cubic"]
    server = group.start([*where.at("server"), *argv[:1], "-S", *argv[1:]], cwd=rig.folder)
    wait_until(lambda: not server.running(), 0.2)
    return group.start([*where.at("client"), *argv, *words], cwd=rig.folder)


def link(rig, end):
    return {"packet": end, "af_packet": f"af_packet:{end}"}[rig.options.link]


def uwarp(rig, where, group, words, control):
    """uwarp on the interface's own address, as a user would."""
    env = {**rig.env, "UWARP_CC": control}
    run = lambda role: [*where.at(role), uwarp_run(), "--quiet", "--link", ENDS[role][0], "--"]
    port = rig.new_port()
    argv = [helper("verbs_bench"), "-a", where.server, "-p", port]
    server = group.start([*run("server"), argv[0], "-S", *argv[1:]], env=env, cwd=rig.folder)
    until_up(server)
    return group.start([*run("client"), *argv, *words], env=env, cwd=rig.folder)


class Seeds:
    """Every scheme meets the same losses in one round, others in the next. first: that of the first round."""

    def __init__(self, first):
        self.n = first - 1

    def next(self):
        self.n += 1
        return self.n


def measure(rig, scheme, mode, rtt_ms, drop, seeds):
    flow = mode == "flow"
    last = seconds(rig.options, flow, rtt_ms)
    words = ["-t", str(last), f"{mode}:{FLOW_SIZE if flow else ECHO_SIZE}"]
    where = path(rig)
    with Group() as group:
        where.impair(group, rtt_ms, drop, seeds.next())
        client = tcp(rig, where, group, words) if scheme == KERNEL else uwarp(rig, where, group, words, scheme)
        sample = json_lines(client.wait(last + rig.limit), "the client")[0]
    if flow:
        return {"value": sample["gbps"] * 1000 / 8, "seconds": last}
    return {"value": sample["p999"] / 1000, "p50": sample["p50"], "p99": sample["p99"], "seconds": last}


def cell(rig, mode, unit, rtt_ms, drop):
    for scheme in rig.options.schemes or SCHEMES:
        seeds = Seeds(rig.options.seed)
        yield probe("loss", scheme, mode, FLOW_SIZE if mode == "flow" else ECHO_SIZE, unit,
                    lambda s=scheme, n=seeds: measure(rig, s, mode, rtt_ms, drop, n), rtt_ms=rtt_ms, drop=drop)  # fmt: skip


def flows(rig):
    o = rig.options
    for rtt_ms in o.rtt or RTT_MS:
        for drop in DROP if o.drop is None else o.drop:
            yield from cell(rig, "flow", "MB/s", rtt_ms, drop)


def echoes(rig):
    yield from cell(rig, "echo", "ms", 0.1, 0.1)


def loss(rig):
    yield from flows(rig)
    yield from echoes(rig)


PARTS = {"flow": flows, "echo": echoes}


def goals():
    """With CUBIC at least what the kernel has; the control that follows the delay is for networks that lose
    without congestion."""
    key = lambda scheme, rtt_ms, drop, mode="flow", size=FLOW_SIZE: f"loss/{scheme}/{mode}/{size}/{rtt_ms}/{drop}"
    for rtt_ms in RTT_MS:
        for drop in DROP:
            yield Goal(f"64 KiB, {rtt_ms:g} ms, {drop:g}% lost: CUBIC / kernel", key(CUBIC, rtt_ms, drop), key(KERNEL, rtt_ms, drop), LEAST, 1.0)
    yield Goal("64 KiB, 0.1 ms, delay: 1% lost / none", key(DELAY, 0.1, 1.0), key(DELAY, 0.1, 0.0), LEAST, 0.6)
    echo = [key(scheme, 0.1, 0.1, "echo", ECHO_SIZE) for scheme in (CUBIC, KERNEL)]
    yield Goal("1 KB to and fro, 0.1% lost, p99.9: CUBIC / kernel", *echo, MOST, 1.0)


def note(series):
    """How long each measurement was; nothing of files that do not have it."""
    found = {}
    for s in series.values():
        if s.facts["op"] == "flow":
            found.setdefault(s.facts["rtt_ms"], set()).update(x["seconds"] for x in s.samples if "seconds" in x)
    told = [f"{' or '.join(f'{n:g} s' for n in sorted(found[rtt]))} at {rtt:g} ms" for rtt in sorted(found) if found[rtt]]
    return f"Of each flow {', '.join(told)} of round trip were measured." if told else ""


def verdicts(series):
    """Of the cells that were measured."""
    return [judge(series, g) for g in goals() if g.over in series and g.under in series]
