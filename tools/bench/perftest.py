# SPDX-License-Identifier: BSD-3-Clause
"""The stock perftest programs, over uwarp or over any other RDMA device."""

import re

from .process import Failed, Group, need
from .rig import LIMIT, THERE, echoes, last_row, uwarp_pair, uwarp_pair_at

LATENCY_COLUMNS, RATE_COLUMNS = 9, 5
COPIED = re.compile(r"payload sent: \d+ octets, copied ([0-9.]+) times; received: \d+ octets, copied ([0-9.]+) times")
SAMPLE = re.compile(r"^\s*(\d+)\s*,\s*([0-9.]+)\s*$", re.MULTILINE)
PERCENTS = (0, 1, 5, 10, 20, 30, 40, 50, 60, 70, 80, 85, 90, 95, 97, 98, 99, 99.5, 99.9, 99.99, 100)
# What a bandwidth run moves: enough to last some tenths of a second.
STREAM_OCTETS, STREAM_MESSAGES = 1 << 30, 100_000


def stream_messages(size, post_list):
    n = max(500, min(STREAM_MESSAGES * (3 if post_list > 8 else 1), STREAM_OCTETS // size))
    return -(-n // post_list) * post_list


def pair(rig, words, mtu, env, where=None):
    """The same words at both ends; the client's also say where the server is. What the client
    printed, and the CPU seconds of both."""
    device = rig.options.device
    if device:
        return device_pair(rig, words)
    if where:
        return uwarp_pair_at(rig, where, words, env)
    return uwarp_pair(rig, words, [*words, THERE], mtu, env)


def device_pair(rig, words):
    """Over a device of the kernel's: the server's host is reached by a command such as `ssh host`."""
    o = rig.options
    words = [*words, "-d", o.device]
    with Group() as group:
        server = group.start([*o.remote, *words], env=rig.env, cwd=rig.folder)
        for _ in range(5):  # it says nowhere that it listens
            client = group.start([*words, o.peer], env=rig.env, cwd=rig.folder)
            try:
                return client.wait(LIMIT), client.cpu + server.cpu_seconds()
            except Failed:
                if not server.running():
                    raise
        raise Failed(f"no connection to {o.peer}{client.last_words()}")


def cdf(samples):
    samples = sorted(samples)
    return [[p, samples[int((len(samples) - 1) * p / 100)]] for p in PERCENTS]


def latency(rig, op, size, mtu=None, env=None, distribution=False, where=None):
    """Half a round trip of SEND and WRITE, a whole one of READ, as perftest counts: the median."""
    # two programs that spin without calling anything, on few cores: each echo may cost a time slice
    n = echoes(size) // 5 if op == "write" else echoes(size)
    words = [need(f"ib_{op}_lat"), "-R", "-F", "-s", str(size), "-n", str(n)]
    out, _ = pair(rig, words + (["-U"] if distribution else []), mtu, env, where)
    row = last_row(out, LATENCY_COLUMNS)
    sample = {"value": row[4], "min": row[2], "mean": row[5], "p99": row[7], "p999": row[8]}
    if distribution:
        sample["cdf"] = cdf([float(v) for _, v in SAMPLE.findall(out)])
    return sample


def stream(rig, op, size, post_list=1, qps=1, mtu=None, env=None, n=None, where=None):
    """Gb/s of payload, millions of messages per second, and CPU seconds of it all."""
    n = n or stream_messages(size, post_list)
    words = [need(f"ib_{op}_bw"), "-R", "-F", "-N", "--report_gbits", "-s", str(size), "-n", str(n)]
    words += ["-l", str(post_list)] if post_list > 1 else []
    words += ["-q", str(qps)] if qps > 1 else []
    out, cpu = pair(rig, words, mtu, env, where)
    row = last_row(out, RATE_COLUMNS)
    return {"gbps": row[3], "mps": row[4], "messages": n, "cpu_s": cpu}


def throughput(rig, op, size, **how):
    sample = stream(rig, op, size, **how)
    return {**sample, "value": sample["gbps"]}


def rate(rig, op, size, **how):
    sample = stream(rig, op, size, **how)
    return {**sample, "value": sample["mps"]}


def copied(rig, op, size, mtu=None, env=None):
    """How often an octet of payload is copied, by sender and receiver together, as the two of them count it."""
    words, said = [need(f"ib_{op}_bw"), "-R", "-F", "-N", "-s", str(size), "-n", "500"], []
    uwarp_pair(rig, words, [*words, THERE], mtu, {**(env or {}), "UWARP_VERBOSE": "1"}, said)
    found = [COPIED.search(text) for text in said]
    if not all(found):
        raise Failed("uwarp did not say how often it copied")
    sending, receiving = float(found[0][1]), float(found[1][2])
    return {"value": sending + receiving, "sending": sending, "receiving": receiving}


def cpu(rig, op, size, **how):
    """CPU nanoseconds of both sides for an octet: a long run less a short one, so that starting and
    ending do not count."""
    n = stream_messages(size, 1)
    short, long = stream(rig, op, size, n=n // 4, **how), stream(rig, op, size, n=n * 2, **how)
    octets = (long["messages"] - short["messages"]) * size
    return {"value": (long["cpu_s"] - short["cpu_s"]) * 1e9 / octets, "gbps": long["gbps"]}
