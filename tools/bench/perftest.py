# SPDX-License-Identifier: BSD-3-Clause
"""The stock perftest programs, over uwarp or over any other RDMA device."""

import os
import re
import time

from .process import Failed, Group, need
from .rig import THERE, echoes, last_row, uwarp_pair, uwarp_pair_at, uwarp_run

LATENCY_COLUMNS, RATE_COLUMNS = 9, 5
# What a device of unknown speed gets first: so many messages, or so many octets of large ones.
FEW, FEW_OCTETS, FEWEST, PAUSE = 200, 1 << 20, 16, 0.3
SAMPLE = re.compile(r"^\s*(\d+)\s*,\s*([0-9.]+)\s*$", re.MULTILINE)
PERCENTS = (0, 1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 85, 90, 95, 97, 98, 99, 99.5, 99.9, 99.99, 100)
# What a bandwidth run moves: enough to last some tenths of a second.
STREAM_OCTETS, STREAM_MESSAGES = 1 << 30, 100_000


# A place like those of peers.py: uwarp at both ends, to where the device's peer is.
AT_PEER = "uwarp to the peer"


def stream_messages(size, post_list):
    n = max(500, min(STREAM_MESSAGES * (3 if post_list > 8 else 1), STREAM_OCTETS // size))
    return -(-n // post_list) * post_list


def pair(rig, words, mtu, env, where=None):
    """The same words at both ends; the client's also say where the server is. What the client
    printed, and the CPU seconds of both."""
    device = rig.options.device
    if device:
        return device_pair(rig, words, where == AT_PEER)
    if where:
        return uwarp_pair_at(rig, where, words, env)
    return uwarp_pair(rig, words, [*words, THERE], mtu, env)


def device_pair(rig, words, uwarp=False):
    """Over a device of the kernel's, or uwarp beside it: the server's host is reached by a command such as
    `ssh host`. What is ended here may go on there: so each pair has a port of its own, and its server a limit."""
    o, how = rig.options, {"env": rig.env, "cwd": rig.folder}
    words = [*words, *([] if uwarp else ["-d", o.device]), "-p", rig.new_port()]
    front = [uwarp_run(), "--quiet", "--link", o.uwarp_link, "--"] if uwarp else []
    with Group() as group:
        server = group.start([*rig.at_peer(2 * rig.limit), *front, os.path.basename(words[0]), *words[1:]], **how)
        deadline = time.monotonic() + rig.limit
        while True:  # it says nowhere that it listens
            client = group.start([*front, *words, o.peer], **how)
            try:
                return client.wait(rig.limit), client.cpu + server.cpu_seconds()
            except Failed as e:
                if not server.running() or time.monotonic() > deadline or client.running():
                    raise Failed(f"{e}; the server at {o.peer}{server.last_words() or ' said nothing'}") from None
            time.sleep(PAUSE)


def few_of(size):
    return max(FEWEST, min(FEW, FEW_OCTETS // size))


def affordable(rig, key, most, per_second, few=FEW):
    """So many messages, or as many as a device of unknown speed does in half a second: a few tell, once."""
    if not rig.options.device:
        return most
    few = min(most, few)
    return max(few, min(most, int(rig.once(f"speed {key}", lambda: per_second(few)) / 2)))


def gigabits(row, size):
    """Two decimals are what it prints, and of the message rate six, which say more about a slow device."""
    return row[3] if row[3] >= 1 else row[4] * size * 8 / 1000


def cdf(samples):
    samples = sorted(samples)
    return [[p, samples[int((len(samples) - 1) * p / 100)]] for p in PERCENTS]


def latency(rig, op, size, mtu=None, env=None, distribution=False, where=None):
    """Half a round trip of SEND and WRITE, a whole one of READ, as perftest counts: the median."""
    # two programs that spin without calling anything, on few cores: each echo may cost a time slice
    most = echoes(size) // 5 if op == "write" else echoes(size)

    def run(n, *more):
        out, _ = pair(rig, [need(f"ib_{op}_lat"), "-R", "-F", "-s", str(size), "-n", str(n), *more], mtu, env, where)
        return out, last_row(out, LATENCY_COLUMNS)

    n = affordable(rig, f"{op}_lat {size} {where}", most, lambda n: 5e5 / run(n)[1][4], few_of(size))
    out, row = run(n, *(["-U"] if distribution else []))
    sample = {"value": row[4], "min": row[2], "mean": row[5], "p99": row[7], "p999": row[8]}
    if distribution:
        sample["cdf"] = cdf([float(v) for _, v in SAMPLE.findall(out)])
    return sample


def stream(rig, op, size, post_list=1, qps=1, mtu=None, env=None, n=None, where=None):
    """Gb/s of payload, millions of messages per second, and CPU seconds of it all."""
    words = [need(f"ib_{op}_bw"), "-R", "-F", "-N", "--report_gbits", "-s", str(size)]
    words += ["-l", str(post_list)] if post_list > 1 else []
    words += ["-q", str(qps)] if qps > 1 else []

    def run(n):
        n = -(-n // post_list) * post_list
        out, cpu = pair(rig, [*words, "-n", str(n)], mtu, env, where)
        row = last_row(out, RATE_COLUMNS)
        return {"gbps": gigabits(row, size), "mps": row[4], "messages": n, "cpu_s": cpu}

    key = f"{op}_bw {size} {post_list} {qps} {where}"
    return run(n or affordable(rig, key, stream_messages(size, post_list), lambda n: run(n)["mps"] * 1e6, few_of(size)))


def throughput(rig, op, size, **how):
    sample = stream(rig, op, size, **how)
    return {**sample, "value": sample["gbps"]}


def rate(rig, op, size, **how):
    sample = stream(rig, op, size, **how)
    return {**sample, "value": sample["mps"]}


def cpu(rig, op, size, **how):
    """CPU nanoseconds of both sides for an octet: a long run less a short one, so that starting and
    ending do not count."""
    n = stream_messages(size, 1)
    short, long = stream(rig, op, size, n=n // 4, **how), stream(rig, op, size, n=n * 2, **how)
    octets = (long["messages"] - short["messages"]) * size
    return {"value": (long["cpu_s"] - short["cpu_s"]) * 1e9 / octets, "gbps": long["gbps"]}
