# SPDX-License-Identifier: BSD-3-Clause
"""Five hosts on a bridge. Each shares its interface's address with its kernel, whose ping and TCP go on meanwhile."""

import os
import subprocess
import sys

from harness import Skipped, check, die_with_parent, need, wait_until
from links import Veth, until_isolated

HOSTS = 5
TRAFFIC = [sys.executable, os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernel_traffic.py")]
TCP_PORT = 5999


class Bridge(Veth):
    name = "bridge"
    addresses = {f"host{i}": f"10.77.3.{i}" for i in range(1, HOSTS + 1)}

    def __init__(self):
        if self.unavailable:
            raise Skipped(self.unavailable)
        self.ip = need("ip")
        need("nsenter")
        self.holders = {}
        try:
            self.build()
        except BaseException:
            self.close()
            raise

    kind = "mcast_snooping 0"

    def build(self):
        subprocess.run([self.ip, *f"link add bridge type bridge {self.kind}".split()], check=True)
        subprocess.run([self.ip, *"link set bridge up".split()], check=True)
        for role, address in self.addresses.items():
            holder = subprocess.Popen(["unshare", "--net", "--", "sleep", "3600"], preexec_fn=die_with_parent)
            self.holders[role] = holder
            until_isolated(holder, "a host")
            for where, words in (
                ([], f"link add {role} type veth peer name eth0 netns {holder.pid}"),
                ([], f"link set {role} master bridge up"),
                (self.prefix(role), "link set lo up"),
                (self.prefix(role), "link set eth0 up"),
                *self.more(role, address),
            ):
                subprocess.run([*where, self.ip, *words.split()], check=True)

    def more(self, role, address):
        return [(self.prefix(role), f"address add {address}/24 dev eth0")]

    def options(self, _role):
        return ["--link", "eth0"]

    def prefix(self, role):
        return ["nsenter", f"--net=/proc/{self.holders[role].pid}/ns/net", "--"]

    def close(self):
        subprocess.run([self.ip, "link", "del", "bridge"], check=False, stderr=subprocess.DEVNULL)
        for holder in self.holders.values():
            holder.kill()
            holder.wait()


class Snooping(Bridge):
    """The bridge asks who is in which group, and sends to the members alone. The kernels have no address, so they tell
    it nothing; the programs have a DPDK port."""

    name = "snooping"
    kind = "mcast_snooping 1 mcast_query_response_interval 100 mcast_last_member_interval 50"  # hundredths of a second
    addresses = {"server": "10.77.4.1", "client": "10.77.4.2", "third": "10.77.4.3"}

    def build(self):
        super().build()
        # It goes by what it hears from the response interval on that it had when it became the querier.
        subprocess.run([self.ip, *"link set bridge type bridge mcast_querier 1".split()], check=True)

    def more(self, role, _address):
        return [([], f"link set {role} type bridge_slave mcast_flood off")]

    def options(self, role):
        return ["--link", "af_packet:eth0", "--ip", f"{self.addresses[role]}/24"]


def ports_of(group):
    """Where the bridge has seen members of it."""
    out = subprocess.run([need("bridge"), "mdb", "show"], capture_output=True, text=True, check=True).stdout
    return {line.split(" port ")[1].split()[0] for line in out.splitlines() if f" grp {group} " in line}


class Members:
    """mckey joins on two of three hosts; the bridge knows both, and neither when they have left."""

    program, group = "mckey", "239.1.2.3"
    flags = f"-m {group}, snooped"

    def __call__(self, stage):
        both = f"mckey -m {self.group} -C 20 -S 500"
        server = stage.start("server", f"{both} -b {{server}}")
        check(wait_until(lambda: ports_of(self.group) == {"server"}, 20), f"members: {ports_of(self.group)}")
        client = stage.start("client", f"{both} -s -b {{client}}")
        check(wait_until(lambda: ports_of(self.group) == {"server", "client"}, 20), f"members: {ports_of(self.group)}")
        for program in (client, server):
            rc = program.wait(60)
            check(rc == 0, f"the {program.role} ended with exit code {rc}")
            check(not program.our_lines(), f"the {program.role} complains: {program.our_lines()}")
        check("data transfers completed" in server.out or "receiving data transfers" in server.out, "nothing was received")
        check(wait_until(lambda: not ports_of(self.group), 20), f"who has left is a member: {ports_of(self.group)}")


class Ring:
    """Every host runs the program's server, and its client to the next host, all at the same time; beside each pair
    a ping, and beside the first a TCP transfer of the kernel's, between the same two addresses."""

    def __init__(self, program, server, client, seconds=60):
        self.program, self.server, self.client, self.seconds = program, server, client, seconds
        self.flags = f"5 hosts, ping, TCP: {client}"

    def __call__(self, stage):
        hosts = list(stage.link.addresses)
        pairs = list(zip(hosts, hosts[1:] + hosts[:1]))
        servers = [stage.start(role, self.server) for role in hosts]
        for server in servers:
            server.until_link_up()
        kernel = [stage.start_plain(a, [*TRAFFIC, "ping", stage.address(b), "100"]) for a, b in pairs]
        sink = stage.start_plain(hosts[0], [*TRAFFIC, "serve", str(TCP_PORT)])
        source = stage.start_plain(hosts[1], [*TRAFFIC, "send", stage.address(hosts[0]), str(TCP_PORT), "32"])
        clients = [stage.start(a, self.client.replace("NEXT", stage.address(b))) for a, b in pairs]
        for program in [*clients, *servers, *kernel, sink, source]:
            rc = program.wait(self.seconds)
            check(rc == 0, f"{program.role}: {' '.join(program.argv[-4:])} ended with exit code {rc}")
            check(not program.our_lines(), f"{program.role} complains: {program.our_lines()}")
        check(sink.out and sink.out == source.out, "the kernel's transfer came wrong")


CASES = [
    Ring("rping", "rping -s -V -C 300 -S 4000", "rping -c -a NEXT -V -C 300 -S 4000"),
    *(Ring(f"ib_{name}", f"ib_{name} -R -n 300", f"ib_{name} -R -n 300 NEXT") for name in ("send_bw", "write_lat", "read_bw")),
]
SNOOPED = [Members()]
