# SPDX-License-Identifier: BSD-3-Clause
"""What tshark makes of a run: every octet of every TCP stream is part of a start-up frame or of an
FPDU with a good CRC, and nothing is malformed."""

import collections
import os
import re
import subprocess
import xml.etree.ElementTree as ElementTree

import lifecycle
from harness import check, need
from pairs import judge, run_pair
from tcpdump import Tcpdump

WRITE, READ_REQUEST, READ_RESPONSE, SEND, TERMINATE, ATOMIC_REQUEST, ATOMIC_RESPONSE = 0, 1, 2, 3, 7, 10, 11
# The heuristic for RPC-over-RDMA takes short Sends for its own and then calls them malformed; MPA is
# known by a heuristic, too, which must come before what the (arbitrary) ports may be registered for.
# Its analysis of sequence numbers is off: see Ranges.
TSHARK = ["-l", "-T", "pdml", "--disable-protocol", "rpcordma", "-o", "tcp.try_heuristic_first:TRUE", "-o", "tcp.analyze_sequence_numbers:FALSE"]
TCP = ("tcp.stream", "tcp.srcport", "tcp.seq", "tcp.len")
HALF = 1 << 31  # of the sequence numbers
STARTUP_LENGTH = 20
MTU, ETHER = 1500, 14
# More than a frame; the ring has slots of this size.
SNAP = "2048"


def recording(path):
    """With the CRC that tshark checks; between processes there is none by default (doc/adr/0043)."""
    return {"UWARP_PCAP": path, "UWARP_CRC": "1"}


class Ranges:
    """Which octets of a direction were seen: disjoint ranges in order. tshark's own word on what comes
    again is not taken: in a capture merged from two interfaces it calls a segment that its
    acknowledgement seems to precede a retransmission, and does not look into it."""

    def __init__(self):
        self.have, self.first = [], None

    def add(self, seq, octets):
        """False if all of it was there before."""
        self.first = seq if self.first is None else self.first
        start = (seq - self.first + HALF) % (2 * HALF)  # the first need not be the lowest
        end = start + octets
        if any(a <= start and end <= b for a, b in self.have):
            return False
        touched = [r for r in self.have if r[0] <= end and start <= r[1]]
        apart = [r for r in self.have if r not in touched]
        joined = (min([start, *(a for a, _ in touched)]), max([end, *(b for _, b in touched)]))
        self.have = sorted([*apart, joined])
        return True


class Judgement:
    """What tshark says of one capture file."""

    def __init__(self):
        self.messages = collections.Counter()  # opcode -> FPDUs with the Last flag
        self.fpdus = self.startups = 0
        self.tcp_octets = self.mpa_octets = 0
        self.streams = set()
        self.seen = collections.defaultdict(Ranges)  # stream and sender -> octets
        self.repeated = 0  # segments that came again
        self.longest = 0  # octets of a frame
        self.faults = []  # the first ones

    def fault(self, number, text):
        if len(self.faults) < 5:
            self.faults.append(f"frame {number}: {text}")

    def take_mpa(self, number, proto):
        fields = collections.defaultdict(list)
        for f in proto.iter("field"):
            fields[f.get("name")].append(f)
        for f in fields["iwarp_mpa.pdlength"]:
            self.startups += 1
            self.mpa_octets += STARTUP_LENGTH + int(f.get("show"))
        for f in fields["iwarp_mpa.ulpdulength"]:
            self.fpdus += 1
            self.mpa_octets += (2 + int(f.get("show")) + 3) // 4 * 4 + 4
        checks = fields["iwarp_mpa.crc_check"]
        if len(checks) != len(fields["iwarp_mpa.ulpdulength"]):
            self.fault(number, "an FPDU without a CRC check")
        for f in checks:
            if "Good CRC32" not in f.get("showname"):
                self.fault(number, f.get("showname"))

    def take_rdmap(self, number, proto):
        show = {f.get("name"): f.get("show") for f in proto.iter("field")}
        if "iwarp_rdma.opcode" not in show:
            self.fault(number, "DDP without RDMAP")
            return
        if show["iwarp_ddp.last_flag"] in ("1", "True"):  # as tshark 4.0 and 4.4 say it
            self.messages[int(show["iwarp_rdma.opcode"], 16)] += 1

    def take_tcp(self, show):
        """False: a segment that came again."""
        seq, octets = int(show["tcp.seq"]), int(show["tcp.len"])
        if octets and not self.seen[show["tcp.stream"], show["tcp.srcport"]].add(seq, octets):
            return False
        if octets:  # else it may have been refused: the client tries again
            self.streams.add(show["tcp.stream"])
        self.tcp_octets += octets
        return True

    def take(self, packet):
        protos = collections.defaultdict(list)
        for proto in packet.iter("proto"):
            protos[proto.get("name")].append(proto)
        fields = {f.get("name"): f for f in packet.iter("field")}
        number = fields["num"].get("show")
        self.longest = max(self.longest, int(fields["frame.len"].get("show")))
        if protos["_ws.malformed"] or "_ws.malformed" in fields:
            self.fault(number, "malformed")
        for name in ("iwarp_mpa", "iwarp_ddp_rdmap"):
            for proto in protos[name]:
                self.fault_of_expert(number, proto)
        if "tcp.stream" in fields and not self.take_tcp({n: fields[n].get("show") for n in TCP}):
            self.repeated += 1
            return
        for proto in protos["iwarp_mpa"]:
            self.take_mpa(number, proto)
        for proto in protos["iwarp_ddp_rdmap"]:
            self.take_rdmap(number, proto)

    def fault_of_expert(self, number, proto):
        for f in proto.iter("field"):
            if f.get("name") == "_ws.expert.message":
                self.fault(number, f.get("show"))


def dissect(path):
    """Run tshark over the file."""
    result = Judgement()
    with subprocess.Popen([need("tshark"), "-r", path, *TSHARK], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
        for _, element in ElementTree.iterparse(p.stdout):
            if element.tag == "packet":
                result.take(element)
                element.clear()
    check(p.returncode == 0, f"tshark ended with exit code {p.returncode}")
    return result


def judge_capture(path, wanted):
    """wanted: opcode -> messages, a number or the least of a range given as (n,)."""
    name = os.path.basename(path)
    check(os.path.exists(path), f"{name} was not written")
    j = dissect(path)
    check(not j.faults, f"{name}: {'; '.join(j.faults)}")
    check(j.streams and j.startups == 2 * len(j.streams), f"{name}: {j.startups} start-up frames in {len(j.streams)} streams")
    check(j.mpa_octets == j.tcp_octets, f"{name}: {j.tcp_octets} octets of TCP, {j.mpa_octets} of them in start-up frames and FPDUs")
    for opcode, count in wanted.items():
        have = j.messages[opcode]
        good = have >= count[0] if isinstance(count, tuple) else have == count
        check(good, f"{name}: {have} messages with opcode {opcode} instead of {count}")
    check(set(j.messages) <= set(wanted), f"{name}: unexpected opcodes {sorted(set(j.messages) - set(wanted))}")
    return j


class Captured:
    """A pair whose processes write what they send and receive (UWARP_PCAP)."""

    needs = ["tshark"]

    def __init__(self, program, flags, server, client, wanted):
        self.program, self.flags, self.wanted = program, flags, wanted
        self.server, self.client = server, client

    def __call__(self, stage):
        paths = {role: os.path.join(stage.folder, f"{role}.pcap") for role in ("server", "client")}
        server, client = run_pair(stage, self.server, self.client, 30, env={r: recording(p) for r, p in paths.items()})
        judge(stage, server, client, self.client)
        both = [judge_capture(path, self.wanted) for path in paths.values()]
        check(both[0].messages == both[1].messages, f"the two ends saw different messages: {both[0].messages}, {both[1].messages}")


class Listened(Captured):
    """The same, captured from outside: on both interfaces, since what a packet socket sends past
    the queueing layer shows up only where it arrives."""

    needs = ["tshark", "tcpdump", "mergecap"]
    env = None

    def __call__(self, stage):
        words = ["-B", "16384", "--immediate-mode", "-s", SNAP, "-Q", "in"]
        listeners = [Tcpdump(stage, role, stage.link.ends[role], words) for role in ("server", "client")]
        server, client = run_pair(stage, self.server, self.client, 30, env=self.env)
        judge(stage, server, client, self.client)
        self.judge_more(server, client)
        for tcpdump in listeners:
            tcpdump.stop()
        both = os.path.join(stage.folder, "wire.pcapng")
        subprocess.run([need("mergecap"), "-w", both, *(t.path for t in listeners)], check=True)
        longest = judge_capture(both, self.wanted).longest
        check(longest <= MTU + ETHER, f"wire.pcapng: a frame of {longest} octets")

    def judge_more(self, server, client):
        pass


class Cut(Listened):
    """The same where the port cuts: whoever has sent much has sent it in chains, and on the wire is none of them."""

    env = {role: {"UWARP_VERBOSE": "1"} for role in ("server", "client")}
    counters = ("tx_frames", "tx_merged", "tx_chains", "tx_unmerged")

    def __init__(self, program, flags, server, client, wanted, cutters=("server", "client")):
        super().__init__(program, flags, server, client, wanted)
        self.cutters = cutters

    def judge_more(self, server, client):
        for program in (server, client):
            found = dict(re.findall(r" (\w+) (\d+)", program.err))
            check("tx_frames" in found, f"the {program.role} does not say what it sent")
            sent, merged, chains, singly = (int(found.get(name, 0)) for name in self.counters)
            check(not singly, f"the {program.role}'s port refused chains")
            check(sent >= merged >= 2 * chains, f"the {program.role}'s figures cannot be: {sent} {merged} {chains}")
            if program.role in self.cutters:
                check(merged > sent / 4, f"the {program.role} sent {merged} of {sent} frames in chains")


class Self(Captured):
    """One process that talks to itself, and once with an STag that nobody has (self.c)."""

    needs = ["tshark"]

    def __init__(self, wanted):
        self.program, self.flags, self.wanted = "self", "-x {server}", wanted

    def __call__(self, stage):
        path = os.path.join(stage.folder, "self.pcap")
        lifecycle.run_self(stage, self.flags, env=recording(path))
        judge_capture(path, self.wanted)


def rping(kind, pings, size, server="{server}"):
    """Each ping is four Sends, one Read and one Write; a zero-length Write opens the stream."""
    flags = f"-V -v -C {pings} -S {size}"
    wanted = {SEND: 4 * pings, READ_REQUEST: pings, READ_RESPONSE: pings, WRITE: pings + 1}
    return kind("rping", f"{flags} -a {server}", f"rping -s -a {server} {flags}", f"rping -c -a {server} {flags}", wanted)


def perftest(kind, name, flags, **more):
    """Sends and an opening Write are in all of them: the programs exchange their parameters."""
    opcodes = {"write": WRITE, "read": READ_REQUEST, "answer": READ_RESPONSE, "send": SEND}
    opcodes.update(atomic=ATOMIC_REQUEST, original=ATOMIC_RESPONSE)
    wanted = {SEND: (1,), WRITE: (1,), **{opcodes[k]: (n,) for k, n in more.items()}}
    return kind(name, flags, f"{name} {flags}", f"{name} {flags} {{server}}", wanted)


MEMIF = [
    rping(Captured, 30, 40000),
    rping(Captured, 30, 30000, "{server6}"),
    perftest(Captured, "ib_write_bw", "-R -n 20 -s 65536", write=20),
    perftest(Captured, "ib_send_lat", "-R -n 100 -s 100", send=200),
    perftest(Captured, "ib_read_bw", "-R -n 20 -s 65536", read=20, answer=20),
    perftest(Captured, "ib_atomic_lat", "-R -n 100", atomic=100, original=100),
    Self({SEND: (20,), WRITE: 4, READ_REQUEST: (1,), READ_RESPONSE: 1, TERMINATE: 1}),
]
VETH = [
    rping(Listened, 100, 23),
    rping(Listened, 50, 10001),
    rping(Listened, 50, 9000, "{server6}"),
    rping(Captured, 50, 3000),
    perftest(Listened, "ib_send_bw", "-R -n 50 -s 4096", send=50),
    perftest(Listened, "ib_read_lat", "-R -n 50 -s 5000", read=50, answer=50),
]
# Reads and Writes take turns; one-sided, the other side sends little. IPv6 goes uncut: the port can only IPv4.
TAP = [
    rping(Cut, 30, 60000),
    perftest(Cut, "ib_send_bw", "-R -n 30 -s 65536 -b", send=60),
    rping(Listened, 10, 9000, "{server6}"),
]
