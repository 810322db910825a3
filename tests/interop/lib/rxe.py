# SPDX-License-Identifier: BSD-3-Clause
"""Datagrams and unreliable connections with Linux's rxe: stock programs, in both directions."""

import re
import subprocess
import time

from ends import NET, SiwEnd, UwarpEnd

HOST_IP = f"{NET}.1"  # the kernel's address in the rig's namespace, for what programs tell each other over TCP
LIMIT, LISTEN, TRIES = 40, 20, 5
REFUSED = "RDMA_CM_EVENT_UNREACHABLE"


class RxeEnd(SiwEnd):
    """A program over rxe, in the VM."""

    name, tcp = "rxe", f"{NET}.11"

    def device(self):
        return ["-d", "rxe0", "-g", "1"]  # 0 is the link-local one

    def until_listening(self, port):
        return self.rig.vm(f"waitport {port} {LISTEN}", LISTEN + 10)[0] == 0

    def until_bound(self):
        return self.rig.vm("i=0; while [ $i -lt 50 ] && ! rdma resource show cm_id | grep -q LISTEN; do sleep 0.1; i=$((i+1)); done")[0] == 0


class RoceEnd(UwarpEnd):
    """A program over uwarp as a RoCE device."""

    tcp = HOST_IP

    def __init__(self, rig, run_dir):
        super().__init__(rig, run_dir)
        self.env = {"UWARP_IDENTITY": "roce"}

    def device(self):
        return ["-g", "0"]

    def until_listening(self, port):
        end = time.monotonic() + LISTEN
        while time.monotonic() < end:
            tcp = subprocess.run(self.rig.in_namespace(["cat", "/proc/net/tcp"]), capture_output=True, text=True).stdout
            if any(w[1].endswith(f":{port:04X}") and w[3] == "0A" for w in map(str.split, tcp.splitlines()[1:])):
                return True
            time.sleep(0.1)
        return False

    def until_bound(self):
        return True  # a client that is refused tries again


class Pingpong:
    """ibv_ud_pingpong, ibv_uc_pingpong: both ends compare what they get."""

    def __init__(self, name, size, count=20, more=()):
        self.program, self.size, self.count, self.more = name, size, count, list(more)
        self.name = f"{name} {count} x {size} B"

    def words(self, end, port):
        return [self.program, *end.device(), "-p", str(port), "-s", str(self.size), "-n", str(self.count), "-c", *self.more]

    def run(self, client, server, port):
        s = server.start(self.words(server, port), LIMIT)
        if not server.until_listening(port):
            s.end()
            return "the server does not listen", *s.finish(1), ""
        status, said = client.start([*self.words(client, port), server.tcp], LIMIT).finish(LIMIT + 5)
        s_status, s_said = s.finish(10)
        problem = f"exit codes {status}, {s_status}" if status or s_status else None
        for words in (said, s_said):
            if not problem and not re.search(rf"^{self.count} iters in ", words, re.M):
                problem = "not all iterations were done"
            if not problem and "invalid data" in words:
                problem = "other data came"
        return problem, s_status, s_said, said


class Udaddy:
    """rdma_cm's datagrams: SIDR and messages both ways."""

    def __init__(self, connections=2, count=5, size=500):
        self.words = ["udaddy", "-c", str(connections), "-C", str(count), "-S", str(size)]
        self.name = f"udaddy {connections} x {count} x {size} B"

    def run(self, client, server, _port):
        s = server.start([*self.words, "-b", server.ip], LIMIT)
        if not server.until_bound():
            s.end()
            return "the server does not listen", *s.finish(1), ""
        for _ in range(TRIES):
            status, said = client.start([*self.words, "-s", server.ip], LIMIT).finish(LIMIT + 5)
            if REFUSED not in said:
                break
            time.sleep(1)
        s_status, s_said = s.finish(10)
        problem = None
        if status or s_status or "return status 0" not in said or "return status 0" not in s_said:
            problem = f"exit codes {status}, {s_status}"
        return problem, s_status, s_said, said


class Mckey:
    """IP multicast: the server receives what the client sends to the group."""

    words = ["mckey", "-m", "239.1.2.3", "-C", "5", "-S", "500"]
    name = "mckey 5 x 500 B"

    def run(self, client, server, _port):
        s = server.start([*self.words, "-b", server.ip], LIMIT)
        status, said = client.start([*self.words, "-s", "-b", client.ip], LIMIT).finish(LIMIT + 5)
        s_status, s_said = s.finish(10)
        problem = None
        if status or s_status or "data transfers complete" not in s_said:
            problem = f"exit codes {status}, {s_status}"
        return problem, s_status, s_said, said


ALL = [Pingpong("ibv_ud_pingpong", 900), Pingpong("ibv_uc_pingpong", 1000), Pingpong("ibv_uc_pingpong", 20000), Udaddy(), Mckey()]


def run(bench, rig, run_dir, show):
    """Every program, each end once the client."""
    status, said = rig.vm("rxemod")
    if status:
        bench.score.row(NAMED, "both", "rxe", 0.0, f"rxe does not load: {said.strip()}")
        return
    uwarp, rxe = RoceEnd(rig, run_dir), RxeEnd(rig)
    for program in ALL:
        for client, server in ((uwarp, rxe), (rxe, uwarp)):
            start = time.monotonic()
            problem, _, s_said, c_said = program.run(client, server, bench.next_port())
            bench.score.row(NAMED, f"{client.name} -> {server.name}", program.name, time.monotonic() - start, problem)
            if problem:
                show(s_said, c_said)
    uwarp.end()
    rig.vm("rdma link delete rxe0; rmmod rdma_rxe")


class NAMED:  # as a Setting of the run
    name = "rxe"
