# SPDX-License-Identifier: BSD-3-Clause
"""What each subcommand measures: lists of probes in the order of a round. A probe's neighbours are
what it is compared with."""

from . import peers, perftest, qperf, verbs
from .rounds import probe
from .settings import CRC, RATE, THREADS, TRANSPORT, with_setting

LATENCY_SIZES = (64, 1000, 10_000, 100_000, 500_000)
THROUGHPUT_SIZES = (1024, 10_000, 65_536, 100_000, 1 << 20)
QPERF_SIZES = (64, 65_536)
POST_LISTS = (1, 4, 16, 32)
MANY = (1, 1000, 10_000)
MODELS = ("c1", "c2", "c3", "adaptive")
TEN_GIGABIT = "10G"
CRC_SIZE = VERIFIED_SIZE = 65_536
MTU_SMALL, MTU_JUMBO, MTU_MOST = 1500, 9000, 65280
STREAM_FROM = 1024  # octets: throughput of less is a message rate
OPS = ("send", "write", "read")
PEERS, BESIDE_DEVICE = ("wire", "tcp", "libfabric", "ucx"), ("tcp",)


def own(rig):
    """What the verbs programs run over, as a scheme's name."""
    return rig.options.device or "uwarp"


def ways(rig):
    """(scheme, place) of what the verbs programs run over: a device, and beside it uwarp to the same peer."""
    beside = [("uwarp", perftest.AT_PEER)] if rig.options.device and rig.options.uwarp_link else []
    return [(own(rig), None), *beside]


def wants(rig, scheme):
    o = rig.options
    return scheme in (o.against or (BESIDE_DEVICE if o.device else PEERS))


def tcp_way(rig):
    return "to the peer" if rig.options.device else "loopback"


# ---- latency ----------------------------------------------------------------------------


def wire_latency(rig, size, mtu=None):
    if not wants(rig, "wire"):
        return
    yield probe("latency", "wire", "echo", size, "us", lambda: peers.wire_echo(rig, size, mtu))
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


def verbs_latency(rig, op, size, way=None):
    spread, (scheme, where) = size <= 64, way or (own(rig), None)
    return probe("latency", scheme, op, size, "us", lambda: perftest.latency(rig, op, size, rig.options.mtu, distribution=spread, where=where))


def latency(rig):
    for size in rig.options.sizes or LATENCY_SIZES:
        yield from wire_latency(rig, size, rig.options.mtu)
        for op in rig.options.ops:
            yield from (verbs_latency(rig, op, size, way) for way in ways(rig))
        yield from tcp_latency(rig, size)
        yield from other_latency(rig, size)


# ---- throughput -------------------------------------------------------------------------


def verbs_throughput(rig, op, size, mtu, way=None):
    scheme, where = way or (own(rig), None)
    return probe("throughput", scheme, op, size, "Gb/s", lambda: perftest.throughput(rig, op, size, mtu=mtu, where=where), mtu=mtu)


def wire_throughput(rig, mtu):
    for mode in ("raw", "copied"):
        yield probe("throughput", "wire", mode, 0, "Gb/s", lambda m=mode: peers.wire_stream(rig, mtu, m), mtu=mtu)


def tcp_places(mtu):
    """(name, arguments of peers.place) of what TCP runs over beside a link of that MTU."""
    if mtu is None:
        return [("to the peer", {})]
    if mtu > MTU_JUMBO:
        return [("loopback", {})]
    return [("veth, offloads off", {"mtu": mtu, "offloads": False}), ("veth", {"mtu": mtu})]


def tcp_throughput(rig, size, mtu):
    for name, how in tcp_places(mtu):
        yield probe("throughput", "tcp", name, size, "Gb/s", lambda h=how: peers.tcp_stream(rig, size, peers.place(rig, **h)), mtu=mtu)


def link_mtus(rig):
    """A device has the one that it has."""
    if rig.options.device or rig.options.mtu:
        return [rig.options.mtu]
    return [MTU_SMALL, MTU_JUMBO, MTU_MOST]


def throughput(rig):
    for mtu in link_mtus(rig):
        if wants(rig, "wire"):
            yield from wire_throughput(rig, mtu)
        for size in rig.options.sizes or THROUGHPUT_SIZES:
            for op in rig.options.ops:
                yield from (verbs_throughput(rig, op, size, mtu, way) for way in ways(rig))
            if wants(rig, "tcp"):
                yield from tcp_throughput(rig, size, mtu)


# ---- message rate -----------------------------------------------------------------------


def verbs_rate(rig, op, size, post_list, qps=1, way=None):
    facts, (scheme, where) = {"post_list": post_list, "qps": qps}, way or (own(rig), None)
    return probe("rate", scheme, op, size, "M/s", lambda: perftest.rate(rig, op, size, mtu=rig.options.mtu, where=where, **facts), **facts)


def wire_rate(rig, size):
    return probe("rate", "wire", "raw", size, "M/s", lambda: peers.wire_rate(rig, size))


def tcp_rate(rig, size):
    return probe("rate", "tcp", tcp_way(rig), size, "M/s", lambda: peers.tcp_rate(rig, size, peers.place(rig)))


def rate(rig):
    for size in rig.options.sizes or (64,):
        if wants(rig, "wire"):
            yield wire_rate(rig, size)
        for op in rig.options.ops:
            for post_list in (1, 32) if op == "read" else POST_LISTS:
                yield from (verbs_rate(rig, op, size, post_list, way=way) for way in ways(rig))
            yield from (verbs_rate(rig, op, size, 32, qps=4, way=way) for way in ways(rig))
        if wants(rig, "tcp"):
            yield tcp_rate(rig, size)


# ---- connections ------------------------------------------------------------------------


def many(rig, connections, window):
    p = probe("connections", "uwarp", "echo", 64, "us", lambda: verbs.many(rig, connections, window), connections=connections, window=window)
    return few(p) if connections > 1000 else p


def few(p):
    """It takes long: in the first rounds alone."""
    p.most = 2
    return p


def connections(rig):
    for n in MANY:
        for window in (1, 32):
            yield many(rig, n, window)
    yield few(probe("connections", "uwarp", "memory of an idle one", 0, "KiB", lambda: verbs.memory(rig, 1000)))
    yield few(probe("connections", "uwarp", "kept while one stops", 65_536, "x", lambda: verbs.stopped(rig, 65_536)))
    yield few(probe("connections", "uwarp", "CPU of an idle process", 0, "%", lambda: verbs.idle(rig)))
    yield probe("connections", "uwarp", "set up by cmtime", 0, "/s", lambda: verbs.cmtime(rig))
    yield probe("connections", "tcp", "set up, 16 at a time", 0, "/s", lambda: verbs.tcp_connects(rig))


# ---- CPU --------------------------------------------------------------------------------


def verbs_cpu(rig, op, size):
    return probe("cpu", own(rig), op, size, "ns/B", lambda: perftest.cpu(rig, op, size, mtu=rig.options.mtu))


def tcp_cpu(rig, size):
    return probe("cpu", "tcp", "loopback", size, "ns/B", lambda: peers.tcp_cpu(rig, size, peers.place(rig)))


def cpu(rig):
    for size in rig.options.sizes or (10_000, 65_536, 1 << 20):
        for op in rig.options.ops:
            yield verbs_cpu(rig, op, size)
        if wants(rig, "tcp"):
            yield tcp_cpu(rig, size)


# ---- qperf ------------------------------------------------------------------------------


def qperf_verbs(rig, test, size, unit):
    yield probe("qperf", own(rig), test, size, unit, lambda: qperf.verbs(rig, test, size, mtu=rig.options.mtu))
    if unit == "us":
        yield probe("qperf", own(rig), f"{test}, polling", size, unit, lambda: qperf.verbs(rig, test, size, poll=True, mtu=rig.options.mtu))


def qperf_at(rig, size, tests, unit, tcp):
    """The tests of one kind at one size, beside TCP's of that kind."""
    for test in tests:
        yield from qperf_verbs(rig, test, size, unit)
    if wants(rig, "tcp"):
        yield probe("qperf", "tcp", tcp, size, unit, lambda: qperf.tcp(rig, tcp, size))


def qperfs(rig):
    for size in rig.options.sizes or QPERF_SIZES:
        yield from qperf_at(rig, size, qperf.LATENCY, "us", qperf.TCP_LATENCY)
        if size >= STREAM_FROM:
            yield from qperf_at(rig, size, qperf.BANDWIDTH, "Gb/s", qperf.TCP_BANDWIDTH)


# ---- settings turned --------------------------------------------------------------------


def model(rig, name, size):
    """Latency and throughput of SEND with a thread model."""

    def lat(env):
        return perftest.latency(rig, "send", size, rig.options.mtu, env)

    def bw(env):
        return perftest.throughput(rig, "send", size, mtu=rig.options.mtu, env=env)

    yield probe("threads", f"model {name}", "latency", size, "us", lambda: with_setting(rig, THREADS, name, lat))
    if size >= 1024:
        yield probe("threads", f"model {name}", "throughput", size, "Gb/s", lambda: with_setting(rig, THREADS, name, bw))


def wire_beside(rig, test, size):
    return probe(test, "wire", "latency", size, "us", lambda: peers.wire_echo(rig, size, rig.options.mtu))


# As the goals name them: UWARP_TRANSPORT, and whether the interface has offloads, if it is the kernel's.
SCHEMES = {"raw": ("raw", None), "seq": ("seq", None), "socket, offloads off": ("socket", False), "socket, offloads on": ("socket", True)}


def scheme(rig, name, size):
    """Latency and throughput of SEND over one of them. The kernel's TCP runs over a veth pair of the same MTU."""
    transport, offloads = SCHEMES[name]
    mtu = rig.options.mtu or MTU_JUMBO

    def over(measure):
        where = None if offloads is None else peers.place(rig, mtu, offloads)
        return with_setting(rig, TRANSPORT, transport, lambda env: measure(rig, "send", size, mtu=mtu, env=env, where=where))

    yield probe("schemes", name, "latency", size, "us", lambda: over(perftest.latency))
    if size >= STREAM_FROM:
        yield probe("schemes", name, "throughput", size, "Gb/s", lambda: over(perftest.throughput))


def schemes(rig):
    for size in rig.options.sizes or LATENCY_SIZES:
        yield wire_beside(rig, "schemes", size)
        for name in SCHEMES:
            yield from scheme(rig, name, size)


def threads(rig):
    for size in rig.options.sizes or (64, 65_536):
        yield wire_beside(rig, "threads", size)
        for name in MODELS:
            yield from model(rig, name, size)


# ---- all of the goals -------------------------------------------------------------------


def crc(rig, on):
    def measure():
        return with_setting(rig, CRC, int(on), lambda env: perftest.throughput(rig, "send", CRC_SIZE, env=env))

    return probe("crc", "uwarp", "on" if on else "off", CRC_SIZE, "Gb/s", measure)


def limited_latency(rig, size):
    """Over a link of 10 Gb/s: the wire, and SEND."""
    yield probe("limited", "wire", "echo", size, "us",
                lambda: with_setting(rig, RATE, TEN_GIGABIT, lambda _: peers.wire_echo(rig, size, rate=TEN_GIGABIT)))  # fmt: skip
    yield probe("limited", "uwarp", "send", size, "us",
                lambda: with_setting(rig, RATE, TEN_GIGABIT, lambda env: perftest.latency(rig, "send", size, env=env)))  # fmt: skip


def limited_throughput(rig, size):
    return probe("limited", "uwarp", "throughput", size, "Gb/s",
                 lambda: with_setting(rig, RATE, TEN_GIGABIT, lambda env: perftest.throughput(rig, "send", size, env=env)))  # fmt: skip


def verified(rig, op):
    return probe("verified", "uwarp", op, VERIFIED_SIZE, "Gb/s", lambda: verbs.verified(rig, op, VERIFIED_SIZE))


def goal_latency(rig):
    for size in LATENCY_SIZES:
        yield from wire_latency(rig, size)
        for op in OPS if size == 64 else ("send",):
            yield verbs_latency(rig, op, size)
        yield from tcp_latency(rig, size)
        yield from other_latency(rig, size)
        if size > 64:
            yield from limited_latency(rig, size)


def goal_throughput(rig):
    for mtu in (MTU_SMALL, MTU_JUMBO, MTU_MOST):
        yield from wire_throughput(rig, mtu)
        for size in (10_000, 65_536, 100_000, 1 << 20) if mtu == MTU_JUMBO else (65_536, 1 << 20):
            yield verbs_throughput(rig, "send", size, mtu)
            yield from tcp_throughput(rig, size, mtu)
    yield limited_throughput(rig, 65_536)
    yield crc(rig, True)
    yield crc(rig, False)
    for op in OPS:
        yield verified(rig, op)


def goal_qperf(rig):
    """Each test lasts a second, and its start one more."""
    at_small = qperf_at(rig, QPERF_SIZES[0], qperf.LATENCY, "us", qperf.TCP_LATENCY)
    at_large = qperf_at(rig, QPERF_SIZES[1], qperf.BANDWIDTH, "Gb/s", qperf.TCP_BANDWIDTH)
    for p in (*at_small, *at_large):
        yield few(p)


def goal_cpu(rig):
    yield verbs_cpu(rig, "send", 65_536)
    yield tcp_cpu(rig, 65_536)


def goal_schemes(rig):
    for size in LATENCY_SIZES:
        for name in SCHEMES:
            for p in scheme(rig, name, size):
                yield few(p)


def wires(rig):
    from . import ethernet

    yield from ethernet.ethernet(rig)


def other_programs(rig):
    from . import programs

    yield from programs.programs(rig)


def few_programs(rig):
    for p in other_programs(rig):
        yield few(p)


PARTS = {
    "latency": goal_latency, "throughput": goal_throughput, "rate": rate, "connections": connections,
    "cpu": goal_cpu, "schemes": goal_schemes, "qperf": goal_qperf, "ethernet": wires,
    "programs": few_programs,
}  # fmt: skip


def everything(rig):
    """What the goals need, and the plots."""
    for part in PARTS.values():
        yield from part(rig)


def applications(rig):
    """Not part of everything: they have peers and goals of their own."""
    from . import apps

    yield from apps.apps(rig)


def losses(rig):
    """Nor these: they need root, and quarter of an hour."""
    from . import lossy

    yield from lossy.loss(rig)


def sleeping_servers(rig):
    from . import servers

    yield from servers.servers(rig)


TESTS = {
    "latency": latency, "throughput": throughput, "rate": rate, "connections": connections, "cpu": cpu,
    "schemes": schemes, "threads": threads, "qperf": qperfs, "apps": applications, "servers": sleeping_servers, "ethernet": wires, "programs": other_programs, "loss": losses, "all": everything,
}  # fmt: skip
