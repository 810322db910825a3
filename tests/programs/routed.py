# SPDX-License-Identifier: BSD-3-Clause
"""Links with routers in between: each router is a network namespace of the kernel's."""

import os
import subprocess

from harness import die_with_parent
from links import Veth, until_isolated


class Routed(Veth):
    """Two hosts in networks of their own, and a router between them. The packet link shares each interface's IPv4
    address and its routes with the kernel; IPv6 addresses are the program's own, and --gateway names the router."""

    name = "routed"
    addresses = {
        "server": "10.77.1.1", "client": "10.77.2.1", "third": "10.77.2.1",
        "server6": "fd77:1::1", "client6": "fd77:2::1", "third6": "fd77:2::1", "local6": "fd77:1::1",
    }  # fmt: skip
    mtus = (1500, 1500)  # of each cable, from the server to the client

    def build(self):
        self.routers = []
        super().build()
        for _ in range(len(self.mtus) - 1):
            self.routers.append(subprocess.Popen(["unshare", "--net", "--", "sleep", "3600"], preexec_fn=die_with_parent))
        for router in self.routers:
            until_isolated(router, "a router")
        self.there("server", [self.ip, "link", "del", "veth-a"])
        self.lay_cables()
        self.give_addresses()

    def pid_of(self, place):
        """Places 0 to n: the server, the routers, the client."""
        if place == 0:
            return os.getpid()
        return self.holder.pid if place > len(self.routers) else self.routers[place - 1].pid

    def at(self, place, words):
        argv = ["nsenter", f"--net=/proc/{self.pid_of(place)}/ns/net", "--", *words.split()]
        subprocess.run(argv, check=True, stderr=subprocess.DEVNULL)

    def ends_of(self, cable):
        left = "veth-a" if cable == 0 else f"right{cable}"
        right = "veth-b" if cable == len(self.mtus) - 1 else f"left{cable}"
        return left, right

    def lay_cables(self):
        for cable, mtu in enumerate(self.mtus):
            left, right = self.ends_of(cable)
            self.at(cable, f"{self.ip} link add {left} type veth peer name {right} netns {self.pid_of(cable + 1)}")
            for place, end in ((cable, left), (cable + 1, right)):
                self.at(place, f"{self.ip} link set {end} mtu {mtu} up")

    def give_addresses(self):
        last = len(self.mtus)
        for place in (0, last):  # getaddrinfo of IPv6 addresses needs a host that has one
            self.at(place, "sysctl -qw net.ipv6.conf.all.disable_ipv6=0")
        for place in range(1, last):
            self.at(place, f"{self.ip} link set lo up")
            self.at(place, "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1 net.ipv4.icmp_ratelimit=0")
        for cable in range(last):
            left, right = self.ends_of(cable)
            # network 1 is the server's, network 2 the client's, the others are between routers
            net = 1 if cable == 0 else 2 if cable == last - 1 else 10 + cable
            for place, end, host in ((cable, left, 1 if cable == 0 else 253), (cable + 1, right, 1 if cable == last - 1 else 254)):
                self.at(place, f"{self.ip} address add 10.77.{net}.{host}/24 dev {end}")
                if 0 < place < last:
                    self.at(place, f"{self.ip} address add fd77:{net}::{host}/64 dev {end} nodad")
        self.at(0, f"{self.ip} route add default via 10.77.1.254")
        self.at(last, f"{self.ip} route add default via 10.77.2.253")
        for place in range(1, last):
            for v, prefix, bits in (("-4", "10.77.{}.{}", 24), ("-6", "fd77:{}::{}", 64)):
                if place > 1:  # towards the server
                    self.at(place, f"{self.ip} {v} route add {prefix.format(1, 0)}/{bits} via {prefix.format(9 + place, 253)}")
                if place < last - 1:  # towards the client
                    self.at(place, f"{self.ip} {v} route add {prefix.format(2, 0)}/{bits} via {prefix.format(10 + place, 254)}")

    def options(self, role):
        net, router = (1, 254) if role == "server" else (2, 253)
        own = f"{self.addresses[role]}/24,fd77:{net}::1/64"
        return ["--link", self.ends[role], "--ip", own, "--gateway", f"fd77:{net}::{router}"]

    def close(self):
        super().close()
        for router in self.routers:
            router.kill()
            router.wait()


class Narrow(Routed):
    """The same through two routers, with a cable between them that takes smaller packets than the hosts'."""

    name = "narrow"
    mtus = (1500, 1300, 1500)
