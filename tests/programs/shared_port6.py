# SPDX-License-Identifier: BSD-3-Clause
"""IPv6 through a uwarpd: a client that means harm, and a uwarpd that is killed."""

import os

from harness import check
from bench.process import wait_until
from hostile_client import IP6, Client, packet6, solicit, tcp6
from shared_port import AGAIN, NOTICED

TCP, ICMP6, FRAGMENT, HOP_BY_HOP = 6, 58, 44, 0
OTHER = "fd77::77"


class Hostile:
    """It forges segments, hides them, and asks for neighbours in another one's name; all of it is counted, an honest
    client of the same uwarpd goes on, and so does the kernel."""

    program, flags, needs = "hostile client", "forged IPv6", ["rping"]

    def counts(self, stage, pid):
        return [line for line in stage.link.status("client") if line.startswith(f"client {pid} ")]

    def forged(self, stage, c):
        us, peer = stage.address("client6"), stage.address("server6")
        segment = tcp6(7300, 7200)
        return [
            (packet6(c, TCP, tcp6(7250, 7200), us, peer), "source_port"),
            (packet6(c, TCP, segment, OTHER, peer), "source_addr"),
            (packet6(c, TCP, segment, us, peer, mac=b"\x02\0\0\0\0\x07"), "source_mac"),
            (packet6(c, TCP, segment, us, "ff02::1", to=b"\x33\x33\0\0\0\1"), "target"),
            (packet6(c, TCP, segment[:10], us, peer), "length"),
            (packet6(c, FRAGMENT, b"\x06\0\0\1" + bytes(4) + segment, us, peer), "fragment"),
            (packet6(c, HOP_BY_HOP, b"\x06\0\1\4" + bytes(4) + segment, us, peer), "protocol"),
            (packet6(c, ICMP6, b"\x80\0" + bytes(30), us, peer), "protocol"),  # an echo request
            (solicit(c, us, peer, kind=136), "protocol"),  # an advertisement
            (solicit(c, us, peer, mac=b"\x02\0\0\0\0\x07"), "source_mac"),
            (solicit(c, "::", OTHER), "source_addr"),  # as who wants that address (RFC 4862 5.4.2)
        ]

    def __call__(self, stage):
        server = stage.start("server", "rping -s -P -a :: -p 7200 -V -S 2000")
        server.until_link_up()
        listener = stage.start("client", "rping -s -P -a :: -p 7250 -V -S 2000")
        listener.until_link_up()
        good = stage.start("client", "rping -c -a {server6} -p 7200 -V -S 2000 -v")
        good.until_printed(1)
        c = Client(stage.link.path("client"))
        check(c.claim(7300, IP6) == 0, "it gets no port")
        check(c.claim(7250, IP6) != 0, "it gets another one's port")
        check(c.claim(80 if os.getuid() else 7250, IP6) != 0, "it gets a port below 1024")
        frames = self.forged(stage, c)
        for frame, _ in frames:
            c.put(frame)
        wanted = {name: sum(n == name for _, n in frames) for _, name in frames}
        done = wait_until(lambda: all(f" {name} {n}" in " ".join(self.counts(stage, os.getpid())) + " " for name, n in wanted.items()), 3)
        check(done, f"not all was counted: {self.counts(stage, os.getpid())}")
        before = os.stat(good.out_path).st_size
        check(wait_until(lambda: os.stat(good.out_path).st_size > before, NOTICED), "an honest client does not go on")
        c.close()
        for program in (good, listener, server):
            check(program.poll() is None, f"the {program.role} ended")
            program.stop()


class Renewed:
    """The next uwarpd gives a listener its port of IPv6 again."""

    program, flags, needs = "rping", "its uwarpd is killed, and another one comes, IPv6", ["rping"]

    def is_served(self, stage):
        client = stage.start("client", "rping -c -a {server6} -p 7200 -V -S 2000 -C 5")
        return client.wait(AGAIN) == 0

    def __call__(self, stage):
        server = stage.start("server", "rping -s -P -a {server6} -p 7200 -V -S 2000")
        server.until_link_up()
        check(self.is_served(stage), "no connection to the server")
        stage.link.kill("server")
        stage.link.start_uwarpd("server")
        check(wait_until(lambda: self.is_served(stage), AGAIN), "no connection to the server by the new uwarpd")
        check(server.poll() is None, "the server ended")
        server.stop()
