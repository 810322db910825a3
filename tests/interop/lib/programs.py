# SPDX-License-Identifier: BSD-3-Clause
"""The stock programs that talk to each other, and what they must have printed."""

import re

RPING_FAILED = 255
# rping ends by closing a channel on which its other thread may be about to wait; that thread then
# ends the program with RPING_FAILED. Newer ones wait for it.
RPING_RACE = "rdma_get_cm_event: Bad file descriptor"


def ended_well(status, said):
    """rping, which may have lost the race of its own threads after all its work."""
    return status == 0 or (status == RPING_FAILED and RPING_RACE in said)


class Program:
    """A server and a client of one program."""

    name = verified = ""
    slow_siw = 0  # ms by which siw's frames are held back, see Perftest

    def server(self, addr, port):
        raise NotImplementedError

    def client(self, addr, port):
        raise NotImplementedError

    def complaint(self, server_said, client_said):
        """What is wrong with the output of a run whose exit codes were good, or None."""
        raise NotImplementedError


class Rping(Program):
    """Send, RDMA Read and RDMA Write by turns; the client compares what came back."""

    verified = "data"

    def __init__(self, size, count=5):
        self.name, self.size, self.count = f"rping {size} B", size, count

    def _common(self, addr, port):
        return ["-a", addr, "-p", str(port), "-C", str(self.count), "-S", str(self.size), "-V", "-v"]

    def server(self, addr, port):
        return ["rping", "-s", *self._common(addr, port)]

    def client(self, addr, port):
        return ["rping", "-c", *self._common(addr, port)]

    def one_sided(self, who, said):
        pings = len(re.findall(r"^(?:server )?ping data: rdma-ping-\d+: ", said, re.M))
        return None if pings == self.count else f"the {who} saw {pings} pings, not {self.count}"

    def complaint(self, server_said, client_said):
        return self.one_sided("server", server_said) or self.one_sided("client", client_said)


class Ucmatose(Program):
    """Several connections at once, with messages in both directions, the server's first."""

    verified = "counts"

    def __init__(self, connections=3, messages=10, size=3000):
        self.name = f"ucmatose {connections} x {messages} x {size} B"
        self.connections, self.messages, self.size = connections, messages, size

    def _common(self, port):
        return ["-p", str(port), "-c", str(self.connections), "-C", str(self.messages), "-S", str(self.size)]

    def server(self, addr, port):
        return ["ucmatose", "-b", addr, *self._common(port)]

    def client(self, addr, port):
        return ["ucmatose", "-s", addr, *self._common(port)]

    def complaint(self, server_said, client_said):
        for who, said in (("server", server_said), ("client", client_said)):
            if "test complete" not in said or "return status 0" not in said:
                return f"the {who} did not complete"
        return None


class Perftest(Program):
    """One of perftest's six, connected by the connection manager.

    They count on two ends of the same speed, and an emulated CPU is slower than a native one by
    far. The server listens for the second connection only after it has told the client to make it.
    And siw completes a Send with an error if the peer's answer and FIN are there before its own
    sendmsg has returned. So what the VM sends leaves it a little later."""

    verified = "counts"
    slow_siw = 25

    def __init__(self, name, size, count):
        self.program, self.size, self.count = name, size, count
        self.name = f"{name} {count} x {size} B"

    def _common(self, port):
        return [self.program, "-R", "-F", "-p", str(port), "-s", str(self.size), "-n", str(self.count)]

    def server(self, addr, port):
        return self._common(port)

    def client(self, addr, port):
        return [*self._common(port), addr]

    def complaint(self, server_said, client_said):
        _, heading, rest = client_said.partition("#bytes")
        for line in rest.splitlines()[1:] if heading else []:
            words = line.split()
            if words[:2] == [str(self.size), str(self.count)]:
                # its deviation is no number when one round was much longer than the others
                return None if all(re.fullmatch(r"[\d.]+|-nan", w) for w in words) else f"odd result: {line.strip()}"
        return "the client printed no result"


# The sizes: less than an FPDU, several with an odd rest, many.
RPING = [Rping(64), Rping(4001), Rping(40000, 3)]
UCMATOSE = Ucmatose()
PERFTEST = [
    Perftest(f"ib_{verb}_{kind}", size, count)
    for verb in ("send", "write", "read")
    for kind, size, count in (("bw", 20000, 50), ("lat", 2000, 40))
]
ALL = [*RPING, UCMATOSE, *PERFTEST]
SOME = [RPING[1], UCMATOSE, *(p for p in PERFTEST if p.program in ("ib_send_bw", "ib_write_lat", "ib_read_lat"))]
