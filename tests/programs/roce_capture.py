# SPDX-License-Identifier: BSD-3-Clause
"""What tshark makes of packets of RoCEv2: nothing is malformed or deserves a remark, and each is of an opcode that the case
expects. tshark does not check the ICRC, so that is done here (IBA volume 1, annex A17: the fields that routers change count as ones)."""

import collections
import os
import struct
import subprocess
import zlib

from cmless import CmLess
from harness import check, need
from pairs import Pair

ROCE_PORT = 4791
ETHER, IP4, IP6, UDP, BTH, CRC = 14, 20, 40, 8, 12, 4
FIELDS = ["frame.number", "frame.protocols", "infiniband.bth.opcode", "_ws.malformed", "_ws.expert.message"]
# opcodes of the base transport header
UC_SEND, UC_WRITE, UD_SEND = {0x20, 0x21, 0x22, 0x23, 0x24, 0x25}, {0x26, 0x27, 0x28, 0x29, 0x2A, 0x2B}, {0x64, 0x65}


def frames(path):
    """The octets of each frame of a pcap file."""
    with open(path, "rb") as f:
        data = f.read()
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"
    at = 24
    while at < len(data):
        size = struct.unpack(order + "I", data[at + 8 : at + 12])[0]
        yield data[at + 16 : at + 16 + size]
        at += 16 + size


def icrc(ip):
    """Of a packet from its IP header on, without its last four octets."""
    p = bytearray(ip)
    if p[0] >> 4 == 4:
        length = IP4
        for at in (1, 8, 10, 11):  # TOS, TTL, checksum
            p[at] = 0xFF
    else:
        length = IP6
        p[0] |= 0x0F  # traffic class, flow label
        p[1:4] = b"\xff\xff\xff"
        p[7] = 0xFF  # hop limit
    p[length + 6 : length + 8] = b"\xff\xff"  # UDP's checksum
    p[length + UDP + 4] = 0xFF  # resv8a of the BTH
    return struct.pack("<I", zlib.crc32(b"\xff" * 8 + p))


def check_icrcs(path):
    """How many packets there are."""
    count = 0
    for frame in frames(path):
        kind, ip = struct.unpack(">H", frame[12:14])[0], frame[ETHER:]
        length = {0x0800: IP4, 0x86DD: IP6}.get(kind)
        if not length or ip[9 if length == IP4 else 6] != 17 or struct.unpack(">H", ip[length + 2 : length + 4])[0] != ROCE_PORT:
            continue
        end = length + struct.unpack(">H", ip[length + 4 : length + 6])[0]
        count += 1
        check(icrc(ip[: end - CRC]) == ip[end - CRC : end], f"{os.path.basename(path)}: packet {count} has a wrong ICRC")
    return count


def judge_capture(path, wanted):
    """wanted: sets of opcodes, of each of which there is one packet at least."""
    name = os.path.basename(path)
    check(os.path.exists(path), f"{name} was not written")
    argv = [need("tshark"), "-r", path, "-d", f"udp.port=={ROCE_PORT},infiniband", "-o", "udp.ignore_ipv6_zero_checksum:TRUE", "-T", "fields"]
    argv += [word for field in FIELDS for word in ("-e", field)]
    out = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    seen = collections.Counter()
    for row in out.splitlines():
        number, protocols, opcode, malformed, remark = (row.split("\t") + [""] * len(FIELDS))[: len(FIELDS)]
        if "infiniband" not in protocols:
            check("udp" not in protocols, f"{name}: frame {number} is UDP and nothing more: {protocols}")
            continue
        check(not malformed and not remark, f"{name}: frame {number} is malformed: {malformed} {remark}")
        seen[int(opcode, 0)] += 1
    packets = check_icrcs(path)
    check(packets == sum(seen.values()), f"{name}: {packets} packets, of which tshark knows {sum(seen.values())}")
    for opcodes in wanted:
        check(opcodes & set(seen), f"{name}: no packet with an opcode of {sorted(opcodes)}: {dict(seen)}")
    extra = set(seen) - set().union(*wanted)
    check(not extra, f"{name}: unexpected opcodes {sorted(extra)}")


class CapturedPair(Pair):
    """By rdma_cm: requests and replies on QP 1 are in it."""

    def __init__(self, program, flags, server, client, wanted):
        super().__init__(program, flags, server, client)
        self.wanted = wanted

    def __call__(self, stage):
        paths = {role: os.path.join(stage.folder, f"{role}.pcap") for role in ("server", "client")}
        self.env = {role: {"UWARP_PCAP": path, "UWARP_IDENTITY": "roce"} for role, path in paths.items()}
        super().__call__(stage)
        for path in paths.values():
            judge_capture(path, self.wanted)


class CapturedCmLess(CmLess):
    def __init__(self, program, flags, wanted):
        super().__init__(program, flags, "roce")
        self.wanted = wanted

    def path(self, stage, role):
        return os.path.join(stage.folder, f"{role}.pcap")

    def start(self, stage, role, command):
        return stage.start(role, command, env={"UWARP_PCAP": self.path(stage, role)}, options=self.options(stage, role))

    def __call__(self, stage):
        super().__call__(stage)
        for role in ("server", "client"):
            judge_capture(self.path(stage, role), self.wanted)


def udaddy(server, more=""):
    return CapturedPair("udaddy", f"{server} -c 3 -C 10 -S 333", f"udaddy -c 3 -C 10 -S 333{more}", f"udaddy -s {server} -c 3 -C 10 -S 333", [UD_SEND])


MEMIF = [
    udaddy("{server}"),
    udaddy("{server6}", " -b ::"),
    CapturedPair("mckey", "-m 239.1.2.3 -C 5 -S 99", "mckey -m 239.1.2.3 -C 5 -S 99 -b {server}", "mckey -m 239.1.2.3 -C 5 -S 99 -s -b {client}", [UD_SEND]),
    CapturedCmLess("ibv_uc_pingpong", "-g 0 -m 1024 -s 5001 -n 20", [UC_SEND]),
    CapturedCmLess("ib_write_lat", "-c UC -x 0 -s 3333 -n 20", [UC_WRITE]),
]
VETH = [udaddy("{server}")]
