# SPDX-License-Identifier: BSD-3-Clause
"""A program of this host that uses the kernel's TCP, and a verbs program that shares the host's address: what they say
goes over lo."""

import os
import re
import sys

from harness import UWARP_RUN, check, need_tree

PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernel_peer.py")


class Answered:
    """It is answered at once, and hung up on for what is no iWARP; others go on."""

    program, needs = "kernel_peer", ["rping"]

    def __init__(self, talk):
        self.talk, self.flags = talk, f"kernel's TCP on the same host, {talk}"

    def __call__(self, stage):
        server = stage.start("server", "rping -s -P -p 7300 -V -S 2000")
        server.until_link_up()
        where = [stage.address("server"), "7300", self.talk, stage.link.ends["server"]]
        peer = stage.start_plain("client", [sys.executable, PEER, "connect", *where])
        rc = peer.wait(15)
        check(rc == 0 and "closed after" in peer.out, f"the kernel's TCP is not answered: exit code {rc}")
        client = stage.run("client", "rping -c -a {server} -p 7300 -V -S 2000 -C 10", 20)
        check(client.poll() == 0, "an honest client is not served")
        check(server.poll() is None, "the server ended")
        server.stop()


class Verbs:
    """The kernel's TCP carries verbs, too (--transport socket): all of an exchange."""

    program, needs = "rping", ["rping"]

    def __init__(self, size):
        self.size, self.flags = size, f"kernel's TCP at one end, -S {size}"

    def __call__(self, stage):
        server = stage.start("server", f"rping -s -P -p 7301 -V -S {self.size}")
        server.until_link_up()
        options = ["--transport", "socket", "--ip", stage.address("server")]
        client = stage.start("client", f"rping -c -a {{server}} -p 7301 -V -S {self.size} -C 200", options=options)
        check(client.wait(60) == 0, "the exchange does not come to its end")
        check(server.poll() is None, "the server ended")
        server.stop()


CASES = [Answered("http"), Answered("close"), Verbs(64), Verbs(65535)]


class Says:
    """A mistake with an interface by its name: one line that names the mend."""

    program, needs = "rping", ["rping", "setpriv"]

    def __init__(self, what, text, options=None, rights=()):
        self.flags, self.text, self.options, self.rights = what, text, options, rights

    def __call__(self, stage):
        options = self.options or stage.link.options("client")
        words = [UWARP_RUN, "--quiet", *options, "--", "rping", "-c", "-a", stage.address("server"), "-C", "1"]
        who = ["setpriv", *self.rights] if self.rights else []
        need_tree(who)
        program = stage.start_plain("client", [*who, *words])
        rc = program.wait(30)
        said = [x for x in program.our_lines() if re.search(self.text, x)]
        check(rc != 0 and len(said) == 1 and len(program.our_lines()) == 1, f"exit code {rc}, it says {program.our_lines()}")


class PortTaken:
    """Another program, on the kernel's TCP, listens on the port."""

    program, needs, flags = "rping", ["rping"], "-s, and the port is taken"

    def __call__(self, stage):
        address, said = stage.address("server"), r"^uwarp: TCP port 7471 of \S+ is a kernel socket's, of another program .*ss -tanp"
        listens = f"import socket, time; s = socket.create_server(('{address}', 7471)); print('up', flush=True); time.sleep(60)"
        other = stage.start_plain("server", [sys.executable, "-c", listens])
        other.until_printed(3)
        for options in (stage.link.options("server"), ["--transport", "socket", "--ip", address]):
            program = stage.start("server", f"rping -s -a {address} -p 7471", options=options)
            rc = program.wait(30)
            check(rc != 0 and len(program.our_lines()) == 1 and re.search(said, program.our_lines()[0]), f"exit code {rc}, it says {program.our_lines()}")
        other.stop()


MISTAKES = [
    PortTaken(),
    Says("no such interface", "no network interface 'veth-x'|no such interface|unknown link 'veth-x'", ["--link", "veth-x"]),
    Says("no right to packet sockets", "CAP_NET_RAW", rights=["--bounding-set=-all", "--inh-caps=-all"]),
    Says("no right to share an address", "CAP_NET_ADMIN", rights=["--bounding-set=-net_admin", "--inh-caps=-all"]),
]
