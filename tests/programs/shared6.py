# SPDX-License-Identifier: BSD-3-Clause
"""IPv6 addresses that the kernel has, too, while its ping and TCP use them."""

import os
import sys

from bridge import TCP_PORT, TRAFFIC
from harness import START, UWARP_RUN, check, kernel_listens, wait_until

RPING_PORT = 7174
HERE = os.path.dirname(os.path.abspath(__file__))


def resets(stage, role):
    """Segments with RST that the kernel of that end has sent."""
    cat = stage.start_plain(role, ["cat", "/proc/net/snmp"])
    check(cat.wait(10) == 0, "no /proc/net/snmp")
    names, values = [line.split() for line in cat.out.splitlines() if line.startswith("Tcp:")]
    return int(values[names.index("OutRsts")])


class BothWays:
    """A server and a client at either end, by the kernel's address; between the same two a ping and a TCP transfer of the
    kernel's."""

    program, needs = "rping", ["rping"]

    def __init__(self, address, count=300):
        self.address, self.count, self.flags = address, count, f"both ways at the kernel's {address}, ping, TCP"

    def at(self, stage, role):
        other = "client" if role == "server" else "server"
        if self.address == "global":
            return stage.address(role + "6")
        return f"{stage.link.local[role]}%{stage.link.ends[other]}"

    def __call__(self, stage):
        roles, flags = ("server", "client"), f"-V -C {self.count} -S 4000"
        before = [resets(stage, role) for role in roles]
        servers = [stage.start(role, f"rping -s -a :: {flags}") for role in roles]
        # Until the uwarpd has the port, the kernel refuses what comes to it.
        check(wait_until(lambda: all(kernel_listens(RPING_PORT, s.pid) for s in servers), START), "a server does not listen")
        kernel = [stage.start_with_rights(role, [*TRAFFIC, "ping", self.at(stage, other), "100"]) for role, other in zip(roles, roles[::-1])]
        sink = stage.start_plain("server", [*TRAFFIC, "serve", str(TCP_PORT)])
        check(wait_until(lambda: kernel_listens(TCP_PORT), START), "the kernel's program does not listen")
        source = stage.start_plain("client", [*TRAFFIC, "send", self.at(stage, "server"), str(TCP_PORT), "32"])
        clients = [stage.start(role, f"rping -c -a {self.at(stage, other)} {flags}") for role, other in zip(roles, roles[::-1])]
        for program in [*clients, *servers, *kernel, sink, source]:
            rc = program.wait(60)
            check(rc == 0, f"{program.role}: {' '.join(program.argv[-4:])} ended with exit code {rc}")
            check(not program.our_lines(), f"{program.role} complains: {program.our_lines()}")
        check(sink.out and sink.out == source.out, "the kernel's transfer came wrong")
        refused = sum(resets(stage, role) for role in roles) - sum(before)
        check(not refused, f"the kernels sent {refused} resets")


class PortOfTheKernels:
    """A port that another program of the host has is refused, and stays its own."""

    program, needs, flags = "rping", ["rping"], "a port that the kernel's program has over IPv6"

    def __call__(self, stage):
        kernel = stage.start_plain("server", [*TRAFFIC, "serve", "7400"])
        check(wait_until(lambda: kernel_listens(7400), START), "the kernel's program does not listen")
        server = stage.start("server", "rping -s -a {server6} -p 7400 -V")
        check(server.wait(20) not in (0, None), "two programs have one port")
        source = stage.start_plain("client", [*TRAFFIC, "send", stage.address("server6"), "7400", "1"])
        check(source.wait(20) == 0 and kernel.wait(20) == 0 and kernel.out == source.out, "the kernel's program was disturbed")


class Answered:
    """A program of this host that uses the kernel's TCP is answered at once, and others go on."""

    program, needs, flags = "kernel_peer", ["rping"], "kernel's TCP on the same host over IPv6"

    def __call__(self, stage):
        server = stage.start("server", "rping -s -P -a :: -p 7300 -V -S 2000")
        server.until_link_up()
        where = [stage.address("server6"), "7300", "http", stage.link.ends["server"]]
        peer = stage.start_plain("client", [sys.executable, os.path.join(HERE, "kernel_peer.py"), "connect", *where])
        rc = peer.wait(15)
        check(rc == 0 and "closed after" in peer.out, f"the kernel's TCP is not answered: exit code {rc}")
        client = stage.run("client", "rping -c -a {server6} -p 7300 -V -S 2000 -C 10", 20)
        check(client.poll() == 0, "an honest client is not served")
        check(server.poll() is None, "the server ended")
        server.stop()


class Mixed:
    """Of the addresses asked for the kernel has some: one line says so."""

    program, needs, flags = "rping", ["rping"], "--ip with an address of the kernel's and another"

    def __call__(self, stage):
        words = [UWARP_RUN, "--quiet", "--link", stage.link.ends["client"], "--ip", stage.address("client6"), "--ip", "fd77::77", "--", "rping", "-c", "-a", stage.address("server6"), "-C", "1"]
        program = stage.start_plain("client", words)
        rc, said = program.wait(30), program.our_lines()
        check(rc != 0 and len(said) == 1 and "unused ones alone" in said[0], f"exit code {rc}, it says {said}")


CASES = [BothWays("global"), BothWays("link-local"), PortOfTheKernels(), Mixed()]
LOCAL = [Answered()]
