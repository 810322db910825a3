# SPDX-License-Identifier: BSD-3-Clause
"""The program behind the RNIC under test: what it offers to the tester. uwarp-conform-target
offers everything; rping's server a little; of any other only that it accepts connections."""

import struct
from dataclasses import dataclass

from . import codec
from .verdict import NotApplicable

MAGIC = b"uwct"
DONE = b"uwcd"
READ, WRITE, ATOMIC, OTHER_PD = 1, 2, 4, 8
HELLO, REJECT, KEEP, NO_MORE = 1, 2, 4, 8
DEFAULT = 0xFFFF
TOLD = 2  # the program was told that the connection before was over
(CMD_SEND, CMD_WRITE, CMD_READ, CMD_FETCH_ADD, CMD_CMP_SWAP, CMD_DISCONNECT, CMD_WRITE_IMM, CMD_SEND_INV,
 CMD_REPORT, CMD_RECVS) = range(1, 11)  # fmt: skip
SOLICITED, QUIET = 1, 2
REGION_SIZE = 4096
ADVERT = struct.Struct(">4sBBBBIHHHBBHH")
REGION = struct.Struct(">IQIII")
# In the order of advertisement: what the cases call them.
REGION_NAMES = ("rw", "read-only", "write-only", "local", "other-pd", "atomic")


def wish(flags=0, recvs=DEFAULT, recv_size=0, ird=DEFAULT, ord_=DEFAULT, delay_ms=0):
    return struct.pack(">4sBBHIHHHH", MAGIC, 1, flags, recvs, recv_size, ird, ord_, delay_ms, 0)


def command(op, count=1, length=0, stag=0, to=0, arg=0, arg2=0, flags=0):
    return struct.pack(">4sBBHIIQQQ", MAGIC, op, flags, count, length, stag, to, arg, arg2)


def pattern(start, n):
    """What uwarp-conform-target fills its memory with, from octet `start` on."""
    return bytes((i * 7 + (i >> 8)) & 0xFF for i in range(start, start + n))


def fnv(data):
    h = 2166136261
    for octet in data:
        h = (h ^ octet) * 16777619 & 0xFFFFFFFF
    return h


@dataclass
class Region:
    name: str
    index: int
    stag: int
    to: int
    length: int
    rights: int
    sum: int

    def content(self, start=0, n=REGION_SIZE):
        """The octets that a fresh region holds."""
        return pattern(self.index * 3 * REGION_SIZE + REGION_SIZE + start, n)

    def fresh_sum(self):
        return fnv(pattern(self.index * 3 * REGION_SIZE, 3 * REGION_SIZE))


@dataclass
class Done:
    op: int
    status: int
    count: int
    sum: int
    value: int


def parse_done(payload):
    if len(payload) != 20 or payload[:4] != DONE:
        raise codec.Malformed(f"not the target's report of a command: {payload[:24].hex()}")
    return Done(*struct.unpack(">BBHIQ", payload[4:]))


class Regions(dict):
    """Region by name, of those that the target has."""

    def __missing__(self, name):
        raise NotApplicable(f"the target advertises no region '{name}'")


class Program:
    """One that is not known: a zero-length Read is all that it needs no part in."""

    name = "unknown"
    has_regions = has_commands = has_wishes = False
    recv_size = recvs = None
    good_send = None  # a Send that does not disturb it

    def __init__(self):
        self.regions = Regions()
        self.atomics = False


class Rping(Program):
    """rping -s: takes Sends of 16 octets {address, key, size}, then reads there."""

    name = "rping"
    recv_size, recvs = 16, 1
    stag, to, size = 0x11AA00, 0x10000, 64
    good_send = struct.pack(">QII", to, stag, size)


class Conform(Program):
    """uwarp-conform-target."""

    name = "uwarp-conform-target"
    has_regions = has_commands = has_wishes = True
    good_send = b"an octet string that comes back"

    def __init__(self, advert):
        super().__init__()
        (_, _, n, flags, self.prior, self.recv_size, self.recvs, self.ird, self.ord, self.prior_status,
         self.prior_event, self.prior_flushed, self.prior_done) = ADVERT.unpack_from(advert)  # fmt: skip
        if len(advert) < ADVERT.size + n * REGION.size:
            raise codec.Malformed(f"an advertisement of {n} regions in {len(advert)} octets instead of {ADVERT.size + n * REGION.size}")
        self.atomics = bool(flags & 1)
        for i in range(min(n, len(REGION_NAMES))):
            row = REGION.unpack_from(advert, ADVERT.size + i * REGION.size)
            self.regions[REGION_NAMES[i]] = Region(REGION_NAMES[i], i, *row)


def advertised(private_data):
    """The Conform that a start-up frame's private data shows, or None."""
    if len(private_data) < ADVERT.size or private_data[:4] != MAGIC:
        return None
    return Conform(private_data)


def parse_report(payload):
    """What the target's memory holds, as it says when asked during a connection."""
    found = advertised(payload)
    if not found:
        raise codec.Malformed(f"not the target's report of its memory: {payload[:24].hex()}")
    return found
