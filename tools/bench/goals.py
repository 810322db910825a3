# SPDX-License-Identifier: BSD-3-Clause
"""The numbers to reach, each a quotient of two things measured in the same round (or one thing
alone), and whether they were."""

import os

from .numbers import digits, median, size_name, spread
from .plan import LATENCY_SIZES, MTU_JUMBO, MTU_MOST, MTU_SMALL, SCHEMES, STREAM_FROM
from .rounds import ratio

PASS, MISS, NOT_AVAILABLE, FAILED = "pass", "MISS", "not available", "FAILED"
LEAST, MOST = ">=", "<="
K64, M1 = 65_536, 1 << 20
BARE_TCP = "veth, offloads off"


class Goal:
    def __init__(self, what, over, under, bound, limit, stretch=None, factor=1.0):
        self.what, self.over, self.under, self.factor = what, over, under, factor
        self.bound, self.limit, self.stretch = bound, limit, stretch

    def text(self):
        if self.limit == 0:
            return "every octet right"
        more = f", stretch {digits(self.stretch)}" if self.stretch else ""
        return f"{self.bound} {digits(self.limit)}{more}"


def lat(scheme, op, size):
    return f"latency/{scheme}/{op}/{size}"


def gbps(scheme, op, size, mtu):
    return f"throughput/{scheme}/{op}/{size}/{mtu}"


def rates(op, post_list):
    return f"rate/uwarp/{op}/64/{post_list}/1"


def latency_goals():
    send, read, write = (lat("uwarp", op, 64) for op in ("send", "read", "write"))
    peers = (
        ("wire", lat("wire", "echo", 64), 2.0, 1.5), ("spinning TCP", lat("tcp", "spinning", 64), 0.45, None),
        ("blocking TCP", lat("tcp", "blocking", 64), 0.22, None), ("libfabric tcp", lat("libfabric", "tcp", 64), 0.35, None),
    )  # fmt: skip
    for name, key, limit, stretch in peers:
        yield Goal(f"64 B SEND / {name}", send, key, MOST, limit, stretch)
        # READ is a whole round trip, the others are half ones
        yield Goal(f"64 B READ / {name}, round trips", read, key, MOST, limit, stretch, factor=0.5)
    yield Goal("64 B WRITE / blocking TCP", write, lat("tcp", "blocking", 64), MOST, 1.0)
    if len(os.sched_getaffinity(0)) >= 4:
        yield Goal("64 B WRITE / wire, a core per thread", write, lat("wire", "echo", 64), MOST, 2.0)
    else:
        yield Goal("64 B WRITE / wire, a core per thread", None, "needs 4 cores", MOST, 2.0)
    for size in (1000, 10_000, 100_000, 500_000):
        yield Goal(f"{size_name(size)} SEND / wire", lat("uwarp", "send", size), lat("wire", "echo", size), MOST, 2.0)
    for size, limit in ((1000, 1.5), (10_000, 1.3), (100_000, 1.1), (500_000, 1.05)):
        yield Goal(f"{size_name(size)} SEND / wire at 10 Gb/s", f"limited/uwarp/send/{size}", f"limited/wire/echo/{size}", MOST, limit)


def throughput_goals():
    for size in (K64, M1):
        name = size_name(size)
        for mtu, peer, limit, stretch in (
            (MTU_SMALL, gbps("tcp", BARE_TCP, size, MTU_SMALL), 3.0, None),
            (MTU_JUMBO, gbps("wire", "copied", 0, MTU_JUMBO), 0.65, 0.8),
            (MTU_MOST, gbps("tcp", "loopback", size, MTU_MOST), 0.8, 1.0),
        ):
            told = {MTU_SMALL: "TCP, veth, offloads off", MTU_JUMBO: "wire with copies", MTU_MOST: "TCP over loopback"}[mtu]
            yield Goal(f"{name} throughput / {told}, MTU {mtu}", gbps("uwarp", "send", size, mtu), peer, LEAST, limit, stretch)
    yield Goal("64 KiB throughput at 10 Gb/s, of the rate", f"limited/uwarp/throughput/{K64}", None, LEAST, 0.93, factor=0.1)
    yield Goal("throughput, 10 KB / 100 KB", gbps("uwarp", "send", 10_000, MTU_JUMBO), gbps("uwarp", "send", 100_000, MTU_JUMBO), LEAST, 0.9)
    yield Goal("CRC on / off, 64 KiB", f"crc/uwarp/on/{K64}", f"crc/uwarp/off/{K64}", LEAST, 0.85)


def rate_goals():
    for op, limit in (("send", 0.2), ("write", 0.25), ("read", 0.1)):
        yield Goal(f"64 B {op.upper()}, post list 32 / wire's packets", rates(op, 32), "rate/wire/raw/64", LEAST, limit)
    for op in ("send", "write"):
        yield Goal(f"64 B {op.upper()}, post list 32 / TCP's messages", rates(op, 32), "rate/tcp/loopback/64", LEAST, 4.0)
    for op in ("send", "write", "read"):
        yield Goal(f"64 B {op.upper()}, post list 32 / 1", rates(op, 32), rates(op, 1), LEAST, 1.5)


def scale_goals():
    for n, limit in ((1000, 1.3), (10_000, 1.6)):
        for window in (1, 32):
            echo = "connections/uwarp/echo/64/{}/" + str(window)
            yield Goal(f"message at {n} QPs / at 1, {window} under way", echo.format(n), echo.format(1), MOST, limit)
    yield Goal("KiB for an idle connection", "connections/uwarp/memory of an idle one/0", None, MOST, 16)
    yield Goal("kept by 99 while a hundredth is stopped", f"connections/uwarp/kept while one stops/{K64}", None, LEAST, 0.95)
    yield Goal("% of a core, idle process", "connections/uwarp/CPU of an idle process/0", None, MOST, 2)
    yield Goal("connections per second, cmtime / TCP", "connections/uwarp/set up by cmtime/0", "connections/tcp/set up, 16 at a time/0", LEAST, 1.0)


def scheme_goals():
    """Each before the next, at every size, in latency and where messages fill segments in throughput."""
    pairs = [("raw", "seq"), *(("seq", s) for s in SCHEMES if s.startswith("socket"))]
    for what, bound in (("latency", MOST), ("throughput", LEAST)):
        for size in (n for n in LATENCY_SIZES if what == "latency" or n >= STREAM_FROM):
            at = "schemes/{}/" + f"{what}/{size}"
            for a, b in pairs:
                yield Goal(f"{what}, {size_name(size)}: {a} / {b}", at.format(a), at.format(b), bound, 1.0)


def verified_goals():
    for op in ("send", "write", "read"):
        yield Goal(f"{op.upper()} checked where it arrives, Gb/s", f"verified/uwarp/{op}/{K64}", None, LEAST, 0)


def every_goal():
    from .ethernet import goals as ethernet_goals
    from .programs import goals as program_goals

    for part in (latency_goals, throughput_goals, rate_goals, scale_goals, scheme_goals, verified_goals, ethernet_goals, program_goals):
        yield from part()


def missing(series, keys):
    """Why there is nothing to judge: (verdict, reason)."""
    for key in keys:
        s = series.get(key)
        if not s:
            return NOT_AVAILABLE, "not measured"
        if not s.available:
            return NOT_AVAILABLE, s.problem
        if not s.values():
            return FAILED, s.problem or "no round came to an end"
    return FAILED, "never measured in the same round"


def values_of(series, goal):
    if goal.under:
        found = ratio(series, goal.over, goal.under)
    else:
        found = series[goal.over].values() if goal.over in series else []
    return [v * goal.factor for v in found]


def judge(series, goal):
    row = {"what": goal.what, "goal": goal.text()}
    if goal.over is None:
        return {**row, "verdict": NOT_AVAILABLE, "why": goal.under}
    found = values_of(series, goal)
    if not found:
        verdict, why = missing(series, [k for k in (goal.over, goal.under) if k])
        return {**row, "verdict": verdict, "why": why}
    value, (low, high) = median(found), spread(found)
    good = value <= goal.limit if goal.bound == MOST else value >= goal.limit
    return {**row, "verdict": PASS if good else MISS, "value": value, "low": low, "high": high, "rounds": len(found)}


def verdicts(series):
    return [judge(series, g) for g in every_goal()]


def figure(row):
    if "value" not in row:
        return row["why"]
    return f"{digits(row['value'])} ({digits(row['low'])} to {digits(row['high'])})"


def summary(rows):
    count = {v: sum(r["verdict"] == v for r in rows) for v in (PASS, MISS, FAILED, NOT_AVAILABLE)}
    return ", ".join(f"{n} {v.lower()}" for v, n in count.items())
