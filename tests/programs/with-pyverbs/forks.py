# SPDX-License-Identifier: BSD-3-Clause
"""A program that forks, as pyverbs' users do it: forks.py HOW...

  opened   the parent has opened the device and registered memory; two children talk to each other
  running  the parent has been connected itself; its children talk to each other, and then one of
           them to the parent, which still uses what it made before
  deep     a child of a child talks to the parent"""

import ipaddress
import multiprocessing
import sys

import pyverbs.device as d
import traffic
from constants import e
from pyverbs.cq import CQ
from pyverbs.mr import MR
from pyverbs.pd import PD

ANY, ANYONE = "0.0.0.0", "127.0.0.1"
LIMIT = 60
forking = multiprocessing.get_context("fork")
ports = iter(range(7600, 7700))


def start(target, *args):
    child = forking.Process(target=target, args=args)
    child.start()
    return child


def await_all(*children):
    for child in children:
        child.join(LIMIT)
        assert child.exitcode == 0, f"a child ended with {child.exitcode}"


def server(port):
    return start(traffic.run, "server", "sync", ANY, port)


def client(port):
    return start(traffic.run, "client", "sync", ANYONE, port)


def own_address():
    with d.Context(name="uwarp0") as ctx:
        return str(ipaddress.IPv6Address(ctx.query_gid(1, 0).gid).ipv4_mapped)


def async_server(told, port):
    """On an address of its own: pyverbs takes an id that is bound to no device for one that is."""
    address = own_address()
    told.put(address)
    traffic.run("server", "async", address, port)


def client_of(told, port):
    traffic.run("client", "sync", told.get(), port)


def two_children():
    port = str(next(ports))
    await_all(server(port), client(port))
    port, told = str(next(ports)), forking.SimpleQueue()
    await_all(start(async_server, told, port), start(client_of, told, port))


def parent_with_a_child():
    port = str(next(ports))
    child = server(port)
    traffic.run("client", "sync", ANYONE, port)
    await_all(child)
    port = str(next(ports))
    child = client(port)
    traffic.run("server", "sync", ANY, port)
    await_all(child)


class Parent:
    """What it has before it forks, and uses afterwards."""

    def __init__(self):
        self.ctx = d.Context(name="uwarp0")
        self.pd = PD(self.ctx)
        self.mr = MR(self.pd, 5000, e.IBV_ACCESS_LOCAL_WRITE)
        self.cq = CQ(self.ctx, 10)
        self.mr.write("parent", 6)

    def check(self):
        assert self.mr.read(6, 0) == b"parent" and self.cq.poll() == (0, [])
        self.ctx.close()


def grandchild(port):
    await_all(client(port))


def deep():
    port = str(next(ports))
    child = start(grandchild, port)
    traffic.run("server", "sync", ANY, port)
    await_all(child)


WAYS = {
    "opened": [two_children],
    "running": [parent_with_a_child, two_children, parent_with_a_child],
    "deep": [deep],
}


def main(ways):
    for how in ways:
        parent = Parent()
        for step in WAYS[how]:
            step()
        parent.check()
        print(f"{how}: done", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
