# SPDX-License-Identifier: BSD-3-Clause
"""A listener under a flood of SYNs and among connections that never speak: who means it gets in, and memory does not
grow (doc/adr/0026)."""

import json
import os
import re
import signal
import subprocess

from harness import START, check, read_bytes, wait_until
from stat_cases import told

FLOOD = os.path.join(os.path.dirname(os.path.abspath(__file__)), "flood.py")
SERVER, CLIENT, PORT = "rping -s -P -v -a {server} -p 7174", "rping -c -a {server} -p 7174 -C 1 -S 64 -v -V", "7174"
SYNS, SECONDS, SILENT = "50000", "5", "2000"
SOON = 1.0  # seconds that the flood may cost a client
SLACK = 4 << 20  # octets by which a second flood may find the server larger than the first left it


def memory(program):
    found = re.search(rb"^RssAnon:\s+(\d+) kB", read_bytes(f"/proc/{program.pid}/status"), re.MULTILINE)
    return int(found[1]) * 1024


def turned_away(stage, program):
    """SYNs that found no place, and half-open connections that gave theirs to another."""
    counters = json.loads(told(stage, "--json", str(program.pid)))[0]["counters"]
    return counters["tcp_syn_dropped"] + counters["tcp_syn_recycled"]


class Flooded:
    program, flags, needs = "rping", "50,000 forged SYNs, 2,000 silent connections", ["rping"]

    def client_seconds(self, stage):
        # rping's thread for events may find the channel closed when all is over, and exit for that
        client = stage.run("client", CLIENT, 30)
        check("ping data: rdma-ping-0" in client.out, "a client does not get in")
        seconds = client.seconds()
        stage.forget(client)
        return seconds

    def flooded(self, stage, server, mac):
        """What a client takes meanwhile, and the server's memory afterwards."""
        before = turned_away(stage, server)
        silent = stage.start_plain("client", ["/usr/bin/python3", FLOOD, "silent", stage.address("server"), PORT, SILENT, "3"])
        check(wait_until(lambda: "connected" in silent.out or silent.poll() is not None, 60), "the silent connections do not come up")
        check(silent.out.split() == [SILENT, "connected"], f"of {SILENT} silent connections: {silent.out.strip()}")
        syns = stage.start_plain("client", ["/usr/bin/python3", FLOOD, "syns", "veth-b", mac, stage.address("server"), PORT, SYNS, SECONDS])
        check(wait_until(lambda: "begun" in syns.out, START), "no flood")
        took = sorted(self.client_seconds(stage) for _ in range(3))[1]  # one may have been late for another reason
        check(syns.poll() is None, "the flood was over before the clients were")
        syns.kill(signal.SIGTERM)  # with all its SYNs sent it ends
        check(syns.wait(60) == 0 and silent.wait(60) == 0, "the flood has failed")
        check(server.poll() is None, "the server has ended")
        check(turned_away(stage, server) > before, "the flood has filled nothing: no SYN was turned away")
        return took, memory(server)

    def __call__(self, stage):
        link = stage.link
        # the answers have a way out, and nobody there
        link.ip_do("server", f"route replace default via {link.addresses['client']}")
        mac = read_mac(link)
        server = stage.start("server", SERVER)
        server.until_link_up()
        usual = min(self.client_seconds(stage) for _ in range(2))
        took, first = self.flooded(stage, server, mac)
        check(took < usual + SOON, f"a client takes {took:.2f} s under the flood, {usual:.2f} s without")
        took, second = self.flooded(stage, server, mac)
        check(took < usual + SOON, f"a client takes {took:.2f} s under the second flood, {usual:.2f} s without")
        check(second < first + SLACK, f"the server has {first >> 10} KiB after the first flood and {second >> 10} KiB after the second")
        server.kill()
        server.wait(10)


def read_mac(link):
    words = [*link.prefix("server"), link.ip, "-o", "link", "show", "veth-a"]
    return re.search(r"link/ether (\S+)", subprocess.run(words, capture_output=True, text=True, check=True).stdout)[1]


CASES = [Flooded()]
