# SPDX-License-Identifier: BSD-3-Clause
"""Frames of the packet link that the host's IP stack does not get (doc/adr/0046), and what the host is left with."""

import sys

from bridge import TCP_PORT, TRAFFIC
from harness import UWARP_RUN, Skipped, check, wait_until

PORT = 7410
WITHOUT_ADMIN = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-all"]
# What becomes of a connection by the kernel's TCP.
CONNECT = """import socket, sys
try:
    socket.create_connection((sys.argv[1], int(sys.argv[2])), 1).close()
    print("connected")
except ConnectionRefusedError:
    print("refused")
except TimeoutError:
    print("silence")
"""
# Can this namespace have a chain at the ingress of an interface? It goes with the socket. The words are the kernel's
# (linux/netfilter/nf_tables.h), not those of the stack, which are what is tested.
CHAIN = """import os, socket, struct, sys
def attribute(kind, octets):
    return struct.pack("=HH", 4 + len(octets), kind) + octets + bytes(-len(octets) % 4)
def message(kind, flags, octets=b"", family=5, resource=0):
    return struct.pack("=IHHIIBBH", 20 + len(octets), kind, 1 | flags, 0, 0, family, 0, socket.htons(resource)) + octets
name, interface = b"probe-%d\\0" % os.getpid(), sys.argv[1].encode() + b"\\0"
number = lambda n: struct.pack("!i", n)
hook = attribute(1, number(0)) + attribute(2, number(0)) + attribute(3, interface)
chain = attribute(1, name) + attribute(3, b"probe\\0") + attribute(4 | 1 << 15, hook) + attribute(7, b"filter\\0")
with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) as s:
    s.send(
        message(16, 0, family=0, resource=10) + message(10 << 8, 0x400, attribute(1, name) + attribute(2, number(2)))
        + message(10 << 8 | 3, 0x404, chain) + message(17, 0, family=0, resource=10)
    )
    error = -struct.unpack_from("=i", s.recv(4096), 16)[0]
print(os.strerror(error) if error else "yes")
"""


def segments(stage, role):
    """TCP segments that the host's stack has had there, and what it has refused."""
    cat = stage.start_plain(role, ["cat", "/proc/net/snmp"])
    check(cat.wait(10) == 0, "no /proc/net/snmp")
    names, values = [line.split() for line in cat.out.splitlines() if line.startswith("Tcp:")]
    return [int(values[names.index(name)]) for name in ("InSegs", "OutRsts")]


def connect(stage):
    program = stage.start_plain("client", [sys.executable, "-c", CONNECT, stage.address("server"), str(PORT)])
    check(program.wait(20) == 0, "no answer of Python's")
    return program.out.strip()


def need_ingress(stage):
    """The kernel may have no nf_tables; whether it does, the link is not asked."""
    probe = stage.start_plain("server", [sys.executable, "-c", CHAIN, stage.link.ends["server"]])
    rc = probe.wait(20)
    if probe.out.strip() != "yes":
        raise Skipped(f"no chain can be made at an interface's ingress here: {probe.out.strip() or f'exit code {rc}'}")


def keeps(server):
    said = [line for line in server.err.splitlines() if "IP stack" in line]
    check(len(said) == 1 and "kept from" in said[0], f"the link says of the host's IP stack: {said}")


class Kept:
    """No segment of a long exchange comes to the host's TCP, at either end, and its own traffic does."""

    program, needs, flags = "rping", ["rping"], "-C 300 -S 4000: none of it comes to the host's TCP"

    def __call__(self, stage):
        need_ingress(stage)
        roles, words = ("server", "client"), f"-p {PORT} -V -C 300 -S 4000"
        server = stage.start("server", f"rping -s {words}", env={"UWARP_VERBOSE": "1"})
        server.until_link_up()
        keeps(server)
        before = [segments(stage, role) for role in roles]
        client = stage.start("client", f"rping -c -a {{server}} {words}")
        check(client.wait(40) == 0 and server.wait(20) == 0, "the exchange fails")
        after = [segments(stage, role) for role in roles]
        check(before == after, f"the hosts had TCP segments: {before}, then {after}")
        sink = stage.start_plain("server", [*TRAFFIC, "serve", str(TCP_PORT)])
        source = stage.start_plain("client", [*TRAFFIC, "send", stage.address("server"), str(TCP_PORT), "4"])
        check(source.wait(40) == 0 and sink.wait(20) == 0 and sink.out == source.out, "the kernel's transfer came wrong")


class Killed:
    """After SIGKILL the port is the host's at once: it refuses, and a program of the kernel's TCP can have it."""

    program, needs, flags = "rping", ["rping"], "killed in the middle: the port is the host's again"

    def __call__(self, stage):
        words = f"-p {PORT} -V -S 4000"
        server = stage.start("server", f"rping -s {words}")
        server.until_link_up()
        client = stage.start("client", f"rping -c -a {{server}} {words}")
        client.until_busy(0.2)
        server.kill()
        server.wait(10)
        check(wait_until(lambda: connect(stage) == "refused", 20), f"after SIGKILL a connection meets {connect(stage)}")
        client.kill()
        sink = stage.start_plain("server", [*TRAFFIC, "serve", str(PORT)])
        source = stage.start_plain("client", [*TRAFFIC, "send", stage.address("server"), str(PORT), "1"])
        check(source.wait(40) == 0 and sink.wait(20) == 0 and sink.out == source.out, "the port is not to be had")


class WithoutAdmin:
    """With an address of its own a program needs no right but that to the packet socket."""

    program, needs, flags = "rping", ["rping", "setpriv"], "without CAP_NET_ADMIN: frames go to the host, too"

    def __call__(self, stage):
        words = "-V -C 20 -S 4000"
        server = stage.start("server", f"rping -s {words}")
        server.until_link_up()
        argv = [*WITHOUT_ADMIN, UWARP_RUN, *stage.link.options("client"), "--", "rping", "-c", "-a", stage.address("server"), *words.split()]
        client = stage.start_plain("client", argv, {"UWARP_VERBOSE": "1"})
        check(client.wait(40) == 0 and server.wait(20) == 0, "the exchange fails")
        check("sees our frames, too" in client.err, f"it says {client.our_lines()}")


CASES, OWN = [Kept(), Killed()], [WithoutAdmin()]
