# SPDX-License-Identifier: BSD-3-Clause
"""The stock qperf, over uwarp or any other RDMA device, and its own tests of the kernel's TCP."""

import os
import re

from .process import Failed, Group, need
from .rig import HERE, THERE

# What a user would compare: the tests wait for events unless they are told to poll.
LATENCY = ("rc_lat", "rc_rdma_write_lat", "rc_rdma_read_lat")
BANDWIDTH = ("rc_bw", "rc_rdma_write_bw", "rc_rdma_read_bw")
TCP_LATENCY, TCP_BANDWIDTH = "tcp_lat", "tcp_bw"
FIGURE = re.compile(r"^\s+(latency|bw)\s+=\s+([0-9.e+]+) (ns|bytes/sec)$", re.MULTILINE)
SECONDS = 1  # the shortest that it takes
WAIT = 10  # seconds until its server listens
LOOPBACK = "127.0.0.1"


def value(text):
    """Microseconds or Gb/s."""
    found = FIGURE.search(text)
    if not found:
        raise Failed("qperf printed no figures")
    figure = float(found[2])
    return figure / 1000 if found[1] == "latency" else figure * 8 / 1e9


def ports():
    """One for each of the two: what the two sides agree on goes over the kernel's TCP."""
    first = 21000 + os.getpid() % 5000 * 2
    return str(first), str(first + 1)


def client_words(port, host, test, size, more):
    words = [need("qperf"), "-lp", port, "-ws", str(WAIT), host, "-uu", "-e", "6", "-t", str(SECONDS)]
    return [*words, "-m", str(size), *more, test]


def measured(rig, server, client):
    """What the client says; its server serves until it is stopped."""
    with Group() as group:
        group.start(server[0], **server[1])
        return {"value": value(group.start(client[0], **client[1]).wait(rig.limit))}


def verbs(rig, test, size, poll=False, mtu=None):
    port, o = ports()[0], rig.options
    more = ["-cm", "1", *(["-cp", "1"] if poll else [])]
    if o.device:
        return at_peer(rig, port, client_words(port, o.peer, test, size, [*more, "-i", f"{o.device}:1"]))
    how = {"env": rig.env, "cwd": rig.folder}
    server = rig.uwarp(THERE, [need("qperf"), "-lp", port], mtu)
    return measured(rig, (server, how), (rig.uwarp(HERE, client_words(port, THERE, test, size, more), mtu), how))


def tcp(rig, test, size):
    """Over the loopback, or to the host where the device's peer is."""
    port, o = ports()[1], rig.options
    if o.device:
        return at_peer(rig, port, client_words(port, o.peer, test, size, []))
    how = {"env": rig.env, "cwd": rig.folder}
    return measured(rig, ([need("qperf"), "-lp", port], how), (client_words(port, LOOPBACK, test, size, []), how))


def at_peer(rig, port, words):
    """The server at the other host is told to quit: what started it there may not end it."""
    o, how = rig.options, {"env": rig.env, "cwd": rig.folder}
    with Group() as group:
        server = group.start([*rig.at_peer(WAIT + rig.limit), "qperf", "-lp", port], **how)
        try:
            return {"value": value(group.start(words, **how).wait(rig.limit))}
        except Failed as e:
            raise Failed(f"{e}; the server{server.last_words() or ' said nothing'}") from None
        finally:
            group.start([need("qperf"), "-lp", port, o.peer, "quit"], **how).finish(WAIT)
