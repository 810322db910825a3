# SPDX-License-Identifier: BSD-3-Clause
"""A hostile neighbour on the same network (hostile_network.py), while a server serves: connections live on, clients get in,
and memory does not grow (doc/security.md)."""

import json
import os
import signal
import subprocess

from flood_cases import SLACK, memory, read_mac
from harness import START, check, wait_until
from stat_cases import TOOL

PROGRAM = os.path.join(os.path.dirname(os.path.abspath(__file__)), "hostile_network.py")
FRAMES, SECONDS = "20000", "5"
PORT = "7175"
SOON = 5.0  # seconds that the attack may cost a client, on a busy machine


class Hostile:
    program, needs = "rping", ["rping"]

    def __init__(self, what, counter):
        self.what, self.flags = what, f"20,000 frames of a hostile neighbour: {what}"
        self.counter = counter  # goes on with these frames; None: the kernel drops them before us

    def client(self, stage, count, role="client"):
        return stage.start(role, f"rping -c -a {{server6}} -p {PORT} -C {count} -S 64 -v -V")

    def client_seconds(self, stage):
        client = self.client(stage, 1)
        check(wait_until(lambda: "ping data: rdma-ping-0" in client.out or client.poll() is not None, 30), "a client does not get in")
        client.wait(30)
        check("ping data: rdma-ping-0" in client.out, "a client does not get in")
        seconds = client.seconds()
        stage.forget(client)
        return seconds

    def seen(self, stage, server):
        r = subprocess.run([TOOL, "--json", str(server.pid)], env=stage.env, capture_output=True, text=True, timeout=30)
        return json.loads(r.stdout)[0]["counters"].get(self.counter, 0)

    def attacked(self, stage, server):
        link = stage.link
        words = [self.what, link.ends["client"], read_mac(link), stage.address("server"), stage.address("server6"), FRAMES, SECONDS]
        hostile = stage.start_plain("client", ["/usr/bin/python3", PROGRAM, *words])
        check(wait_until(lambda: "begun" in hostile.out, START), "nothing hostile is sent")
        took = max(self.client_seconds(stage) for _ in range(2))
        check(hostile.poll() is None, "the attack was over before the clients were")
        hostile.kill(signal.SIGTERM)  # with all its frames sent it ends
        check(hostile.wait(60) == 0, "the attack has failed")
        check(server.poll() is None, "the server has ended")
        return took, memory(server)

    def __call__(self, stage):
        server = stage.start("server", f"rping -s -P -a :: -p {PORT} -v")
        server.until_link_up()
        usual = min(self.client_seconds(stage) for _ in range(2))
        lasting = self.client(stage, 1000000, "third")  # where each process has its own address
        check(wait_until(lambda: "rdma-ping-1" in lasting.out, START), "no lasting connection")
        before = self.seen(stage, server)
        took, first = self.attacked(stage, server)
        check(took < usual + SOON, f"a client takes {took:.2f} s under the attack, {usual:.2f} s without")
        check(not self.counter or self.seen(stage, server) > before, f"{self.counter} stands still: the frames do not come so far")
        took, second = self.attacked(stage, server)
        check(took < usual + SOON, f"a client takes {took:.2f} s under the second attack, {usual:.2f} s without")
        check(second < first + SLACK, f"the server has {first >> 10} KiB after the first attack and {second >> 10} KiB after the second")
        check(lasting.poll() is None, "the lasting connection has ended")
        said = lasting.out.count("ping data")
        check(wait_until(lambda: lasting.out.count("ping data") > said, 10), "the lasting connection stands still")
        lasting.kill()
        lasting.wait(10)
        server.kill()
        server.wait(10)


CASES = [Hostile("fragments", None), Hostile("neighbours", "ip_conflicts"), Hostile("routers", "icmp_rx_refused")]
SHARED = CASES[2:]  # of the others the kernel hears, which has the address too
UNFILTERED = [Hostile("fragments", "ip_rx_fragments")]  # over a link that gives us every frame
