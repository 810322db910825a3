# SPDX-License-Identifier: BSD-3-Clause
"""What verbs_bench measures: streams whose data is checked, many connections, a peer that stops; and
the time of rdma_cm's steps, by the stock cmtime."""

import re
import time

from . import peers
from .process import Failed, Group, need, read_text, wait_until
from .rig import HERE, THERE, helper, until_up

SECONDS = 0.4
MANY_LIMIT = 60.0
THIRD = "127.0.0.4"
IDLE_SECONDS = 2.0
CMTIME_CONNECTIONS = 1000
TCP_AT_A_TIME = 16
KEPT_WHILE_STOPPED = 99


def server(rig, group, ip, mtu, env=None):
    program = rig.start_uwarp(group, ip, [helper("verbs_bench"), "-S", "-a", ip], mtu, env)
    until_up(program)
    return program


def run(rig, words, mtu=None, env=None):
    with Group() as group:
        server(rig, group, THERE, mtu, env)
        client = rig.start_uwarp(group, HERE, [helper("verbs_bench"), "-a", THERE, *words], mtu, env)
        return peers.json_lines(client.wait(MANY_LIMIT), "verbs_bench")[0]


def verified(rig, op, size, mtu=None, env=None):
    """Gb/s of a stream of which every octet was checked where it arrived."""
    sample = run(rig, ["-t", str(SECONDS), f"{op}:{size}"], mtu, env)
    if sample["bad"] or not sample["messages"]:
        raise Failed(f"{sample['bad']} words of {sample['messages']} messages arrived wrong")
    return {"value": sample["gbps"], "messages": sample["messages"]}


def many(rig, connections, window):
    """Microseconds for a message to and fro, on each connection in turn."""
    sample = run(rig, ["-t", str(SECONDS), "-c", str(connections), "-w", str(window), "echo:64"])
    if not sample["mps"]:
        raise Failed("no message came back")
    return {"value": 1 / sample["mps"], "up_s": sample["up_s"]}


def resident(program):
    found = re.search(r"^RssAnon:\s+(\d+) kB", read_text(f"/proc/{program.pid}/status"), re.MULTILINE)
    return int(found[1]) * 1024 if found else 0


def memory(rig, connections):
    """KiB for an idle connection, of both processes; each holds one end."""
    with Group() as group:
        programs = [server(rig, group, THERE, None)]
        size = {}
        for n in (1, connections):
            words = [helper("verbs_bench"), "-a", THERE, "-c", str(n), "-t", "4", "idle:64"]
            client = rig.start_uwarp(group, HERE, words)
            until_up(client)
            until_still(client)
            size[n] = [resident(client), resident(programs[0])]
            client.wait(MANY_LIMIT)
        per_end = [(b - a) / (connections - 1) for a, b in zip(size[1], size[connections])]
        return {"value": max(per_end) / 1024, "client": per_end[0] / 1024, "server": per_end[1] / 1024}


def until_still(program):
    """Its connections are up: it has used no CPU for a while."""
    before, since = program.cpu_seconds(), time.monotonic()
    start = since
    while time.monotonic() - since < 0.5 and time.monotonic() - start < MANY_LIMIT:
        time.sleep(0.05)
        now = program.cpu_seconds()
        if now > before:
            before, since = now, time.monotonic()


def idle(rig):
    """Percent of a core that each of two connected processes takes while nothing happens."""
    with Group() as group:
        serving = server(rig, group, THERE, None)
        words = [helper("verbs_bench"), "-a", THERE, "-t", str(IDLE_SECONDS + 2), "idle:64"]
        client = rig.start_uwarp(group, HERE, words)
        until_up(client)
        wait_until(lambda: False, 1.0)
        before = [p.cpu_seconds() for p in (serving, client)]
        wait_until(lambda: False, IDLE_SECONDS)
        used = [p.cpu_seconds() - b for p, b in zip((serving, client), before)]
        return {"value": max(used) / IDLE_SECONDS * 100}


def stopped(rig, size):
    """What 99 connections keep of their throughput while the receiver of a hundredth is stopped."""
    with Group() as group:
        server(rig, group, THERE, None)
        victim = server(rig, group, THIRD, None)
        words = ["-a", THERE, "-b", THIRD, "-k", str(victim.pid), "-c", str(KEPT_WHILE_STOPPED), "-t", "2", f"plain:{size}"]
        client = rig.start_uwarp(group, HERE, [helper("verbs_bench"), *words])
        sample = peers.json_lines(client.wait(MANY_LIMIT), "verbs_bench")[0]
    if not sample["first"]:
        raise Failed("nothing was sent before the stop")
    return {"value": sample["second"] / sample["first"], "gbps": sample["gbps"]}


# ---- setting up connections -------------------------------------------------------------

CMTIME_STEPS = "create id|bind addr|resolve addr|resolve route|create qp|connect|disconnect|destroy"
CMTIME_ROW = re.compile(rf"^({CMTIME_STEPS})\s*:\s+([0-9.]+)\s+([0-9.]+)", re.MULTILINE)


def cmtime(rig):
    """Connections per second, all steps counted. A process starts its link once, in its first bind: that one
    is told apart, as start_ms."""
    many = ["-c", str(CMTIME_CONNECTIONS)]
    with Group() as group:
        program = rig.start_uwarp(group, THERE, [need("cmtime"), "-b", THERE, *many])
        until_up(program)
        client = rig.start_uwarp(group, HERE, [need("cmtime"), "-b", HERE, "-s", THERE, *many])
        out = client.wait(MANY_LIMIT)
    return cmtime_rate(out)


def cmtime_rate(out):
    rows = {step: (float(total), float(longest)) for step, total, longest in CMTIME_ROW.findall(out)}
    if len(rows) != 8 or "error" in out.lower():
        raise Failed("cmtime: not every connection was made")
    start_ms = rows["bind addr"][1]
    taken_ms = sum(total for total, _ in rows.values()) - start_ms
    return {"value": CMTIME_CONNECTIONS / (taken_ms / 1000), "start_ms": start_ms, "steps_ms": {step: total for step, (total, _) in rows.items()}}


def tcp_connects(rig):
    where = peers.place(rig)
    return {"value": peers.tcp(rig, "connect", 64, where, "-c", str(TCP_AT_A_TIME))["rate"]}
