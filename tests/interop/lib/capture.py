# SPDX-License-Identifier: BSD-3-Clause
"""What tshark, which shares no code with either side, thinks of a capture."""

import os
import re
import struct
import subprocess

# These two guess at what the messages carry, and guess wrong.
TSHARK = ["tshark", "-n", "--disable-protocol", "rpcordma", "--disable-protocol", "smb_direct"]
C_LOCALE = {**os.environ, "LC_ALL": "C"}
# MPA: the flags' octet; revision 2's word of IRD and of ORD (RFC 6581 §4)
FLAG_CRC, FLAG_REJECT, FLAG_ENHANCED, IRD_P2P = 0x40, 0x20, 0x10, 0x8000


class Unreadable(Exception):
    pass


def tshark(path, *args):
    command = [*TSHARK, "-r", path, *args]
    r = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", env=C_LOCALE)
    if r.returncode:
        raise Unreadable(f"tshark cannot read {path}: {r.stderr.strip()}")
    return r.stdout


def last_frames(path, port, lines):
    """One line for each of the last frames of that TCP port, while the capture may go on: its end may be cut."""
    fields = ("frame.time_relative", "ip.src", "tcp.stream", "tcp.seq", "tcp.ack", "tcp.window_size", "tcp.len", "_ws.col.Info")
    command = [*TSHARK, "-r", path, "-Y", f"tcp.port == {port}", "-T", "fields", *(word for name in fields for word in ("-e", name))]
    r = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", env=C_LOCALE)
    return [line.replace("\t", "  ") for line in r.stdout.splitlines()[-lines:]]


class Tally:
    """How many FPDUs there are, and what is wrong with them."""

    def __init__(self, path, streams):
        """streams: the connections to look at."""
        these = f"tcp.stream in {{{','.join(map(str, streams))}}}"
        text = tshark(path, "-Y", these, "-O", "iwarp_mpa,iwarp_ddp_rdmap") if streams else ""
        self.fpdus = len(re.findall(r"^ +ULPDU length: ", text, re.M))
        self.good_crc = text.count("(Good CRC32)")
        self.bad_crc = text.count("(Bad CRC32")
        self.empty = text.count("ULPDU length: 14 bytes")  # Writes without payload: RTRs and nudges
        self.malformed = len(re.findall(r"^\[Malformed Packet", text, re.M))
        self.terminates = len(re.findall(r"OpCode: Terminate", text))

    def complaints(self, crc):
        if not self.fpdus:
            yield f"no FPDU with CRC {'on' if crc else 'off'}"
        if self.malformed:
            yield f"{self.malformed} malformed"
        if self.bad_crc:
            yield f"{self.bad_crc} bad CRCs"
        if self.terminates:
            yield f"{self.terminates} Terminates"
        if crc and self.good_crc != self.fpdus:
            yield f"{self.good_crc} good CRCs"
        if not crc and self.good_crc:
            yield f"{self.good_crc} CRCs though it is off"


class Startup:
    """A Request or Reply frame."""

    def __init__(self, line):
        stream, self.source, request, payload = line.split("\t")
        octets = bytes.fromhex(payload.split(",")[0].replace(":", ""))
        self.stream, self.is_request = int(stream), bool(request)
        self.flags = octets[16]
        ird = struct.unpack_from(">H", octets, 20)[0] if self.flags & FLAG_ENHANCED else 0
        self.crc, self.p2p = bool(self.flags & FLAG_CRC), bool(ird & IRD_P2P)


def startups(path):
    """stream -> (Request, Reply) of every connection that got so far."""
    fields = ["-e", "tcp.stream", "-e", "ip.src", "-e", "iwarp_mpa.key.req", "-e", "tcp.payload"]
    text = tshark(path, "-Y", "iwarp_mpa.key.req || iwarp_mpa.key.rep", "-T", "fields", *fields)
    requests, pairs = {}, {}
    for frame in map(Startup, text.splitlines()):
        if frame.is_request:
            requests[frame.stream] = frame
        elif frame.stream in requests:
            pairs[frame.stream] = (requests[frame.stream], frame)
    return pairs
