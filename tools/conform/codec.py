# SPDX-License-Identifier: BSD-3-Clause
"""MPA start-up frames, FPDUs, DDP and RDMAP headers: octets to names and back. Builders take
wrong values as willingly as right ones."""

import struct
from dataclasses import dataclass

from . import crc32c

# ---- MPA start-up: RFC 5044 §7.1.1, RFC 6581 §9 -------------------------------------------

REQUEST_KEY = b"MPA ID Req Frame"
REPLY_KEY = b"MPA ID Rep Frame"
M, C, R, S = 0x80, 0x40, 0x20, 0x10
NO_NEGOTIATION = 0x3FFF
RTR_SEND, RTR_WRITE, RTR_READ = 1, 2, 4
RTR_NAMES = {RTR_SEND: "zero-length Send", RTR_WRITE: "zero-length Write", RTR_READ: "zero-length Read"}


class Malformed(Exception):
    """What the peer sent cannot be what it has to be."""


def enhanced(ird, ord_, p2p=False, rtr=0):
    """The IRD/ORD word."""
    high = ird & 0x3FFF | (0x8000 if p2p else 0) | (0x4000 if rtr & RTR_SEND else 0)
    low = ord_ & 0x3FFF | (0x8000 if rtr & RTR_WRITE else 0) | (0x4000 if rtr & RTR_READ else 0)
    return struct.pack(">HH", high, low)


def start_frame(key, flags, rev, data=b"", length=None):
    return key + struct.pack(">BBH", flags, rev, len(data) if length is None else length) + data


@dataclass
class Start:
    """A start-up frame as received."""

    raw: bytes
    key: bytes
    flags: int
    rev: int
    data: bytes  # all of the private data field
    ird: int = 0
    ord: int = 0
    p2p: bool = False
    rtr: int = 0  # as sent, whatever p2p says

    @property
    def enhanced(self):
        return bool(self.flags & S) and self.rev >= 2

    @property
    def ulp_data(self):
        return self.data[4:] if self.enhanced else self.data

    def __str__(self):
        kind = {REQUEST_KEY: "Request", REPLY_KEY: "Reply"}.get(self.key, f"frame with key {self.key!r}")
        text = f"{kind} rev={self.rev} " + " ".join(f"{n}={int(bool(self.flags & b))}" for n, b in zip("MCRS", (M, C, R, S)))
        if self.flags & 0x0F:
            text += f" Res={self.flags & 15:#x}"
        if self.enhanced:
            text += f" IRD={self.ird} ORD={self.ord} A={int(self.p2p)} RTR={self.rtr}"
        return text + f" private data {len(self.ulp_data)}"


def parse_start(raw):
    flags, rev, length = struct.unpack(">BBH", raw[16:20])
    f = Start(raw, raw[:16], flags, rev, raw[20:])
    if len(f.data) != length:
        raise Malformed(f"PD_Length {length} but {len(f.data)} octets")
    if f.enhanced:
        if length < 4:
            raise Malformed(f"S=1 but only {length} octets of private data")
        high, low = struct.unpack(">HH", f.data[:4])
        f.ird, f.ord, f.p2p = high & 0x3FFF, low & 0x3FFF, bool(high & 0x8000)
        f.rtr = (RTR_SEND if high & 0x4000 else 0) | (RTR_WRITE if low & 0x8000 else 0) | (RTR_READ if low & 0x4000 else 0)
    return f


# ---- DDP and RDMAP headers: RFC 5041 §4, RFC 5040 §4, RFC 7306 §4 -------------------------

(WRITE, READ_REQUEST, READ_RESPONSE, SEND, SEND_INV, SEND_SE, SEND_SE_INV, TERMINATE,
 IMMEDIATE, IMMEDIATE_SE, ATOMIC_REQUEST, ATOMIC_RESPONSE) = range(12)  # fmt: skip
NAMES = ("RDMA Write", "Read Request", "Read Response", "Send", "Send with Invalidate", "Send with SE",
         "Send with SE and Invalidate", "Terminate", "Immediate Data", "Immediate Data with SE", "Atomic Request",
         "Atomic Response", "opcode 0xC", "opcode 0xD", "opcode 0xE", "opcode 0xF")  # fmt: skip
TAGGED = (WRITE, READ_RESPONSE)
QUEUE = {READ_REQUEST: 1, ATOMIC_REQUEST: 1, TERMINATE: 2, ATOMIC_RESPONSE: 3}
FETCH_ADD, CMP_SWAP = 0, 2
ALL_ONES = (1 << 64) - 1


def control(op, tagged, last=True, dv=1, rv=1, rsvd=0, rsv=0):
    return bytes([tagged << 7 | last << 6 | rsvd << 2 | dv, rv << 6 | rsv << 4 | op])


def untagged(op, qn, msn, payload=b"", mo=0, inv=0, **bits):
    return control(op, False, **bits) + struct.pack(">IIII", inv, qn, msn, mo) + payload


def tagged(op, stag, to, payload=b"", **bits):
    return control(op, True, **bits) + struct.pack(">IQ", stag, to & ALL_ONES) + payload


def read_body(sink, sink_to, size, source, source_to):
    return struct.pack(">IQIIQ", sink, sink_to, size, source, source_to & ALL_ONES)


def atomic_body(aop, req_id, stag, to, value, mask=0, compare=0, compare_mask=ALL_ONES):
    return struct.pack(">IIIQQQQQ", aop, req_id, stag, to & ALL_ONES, value & ALL_ONES, mask, compare, compare_mask)


def terminate_body(layer, etype, code, headers=b"", flags=0):
    return bytes([layer << 4 | etype, code, flags, 0]) + headers


@dataclass
class Segment:
    """A ULPDU as received."""

    raw: bytes
    op: int
    tagged: bool
    last: bool
    dv: int
    rv: int
    reserved: int  # DDP's Rsvd and RDMAP's Rsv bits
    payload: bytes
    stag: int = 0
    to: int = 0
    inv: int = 0
    qn: int = 0
    msn: int = 0
    mo: int = 0

    @property
    def name(self):
        return NAMES[self.op]

    def __str__(self):
        text = self.name + ("" if self.last else " (not last)")
        if (self.dv, self.rv) != (1, 1):
            text += f" DV={self.dv} RV={self.rv}"
        if self.tagged:
            return text + f" STag={self.stag:#x} TO={self.to:#x}, {len(self.payload)} octets"
        text += f" QN={self.qn} MSN={self.msn}" + (f" MO={self.mo}" if self.mo else "")
        if self.op == TERMINATE and len(self.payload) >= 4:
            return f"{text} {parse_terminate(self.payload)}"
        return text + f", {len(self.payload)} octets"


def parse_segment(raw):
    if len(raw) < 2:
        raise Malformed(f"ULPDU of {len(raw)} octets")
    is_tagged = bool(raw[0] & 0x80)
    size = 14 if is_tagged else 18
    if len(raw) < size:
        raise Malformed(f"ULPDU of {len(raw)} octets, its DDP header needs {size}")
    s = Segment(raw, raw[1] & 15, is_tagged, bool(raw[0] & 0x40), raw[0] & 3, raw[1] >> 6,
                (raw[0] >> 2 & 15) << 2 | raw[1] >> 4 & 3, raw[size:])  # fmt: skip
    if is_tagged:
        s.stag, s.to = struct.unpack(">IQ", raw[2:14])
    else:
        s.inv, s.qn, s.msn, s.mo = struct.unpack(">IIII", raw[2:18])
    return s


@dataclass
class ReadRequest:
    sink: int
    sink_to: int
    size: int
    source: int
    source_to: int


def parse_read(payload):
    if len(payload) != 28:
        raise Malformed(f"Read Request header of {len(payload)} octets instead of 28")
    return ReadRequest(*struct.unpack(">IQIIQ", payload))


@dataclass
class AtomicRequest:
    aop: int
    req_id: int
    stag: int
    to: int
    value: int
    mask: int
    compare: int
    compare_mask: int


def parse_atomic(payload):
    if len(payload) != 52:
        raise Malformed(f"Atomic Request header of {len(payload)} octets instead of 52")
    return AtomicRequest(*struct.unpack(">IIIQQQQQ", payload))


# ---- Terminate: RFC 5040 §4.8 --------------------------------------------------------------

LAYERS = ("RDMAP", "DDP", "LLP")
# layer, type -> codes that exist; None: any
CODES = {
    (0, 0): None, (0, 1): (0, 1, 2, 3, 4, 9, 0xFF), (0, 2): (5, 6, 7, 8, 9, 0xFF),
    (1, 0): (0,), (1, 1): (0, 1, 2, 3, 4), (1, 2): (1, 2, 3, 4, 5, 6), (1, 3): None,
    (2, 0): (1, 2, 3, 4, 5, 6, 7),
}  # fmt: skip


@dataclass
class Terminate:
    layer: int
    etype: int
    code: int
    m: bool
    d: bool
    r: bool
    reserved: int
    siw_order: bool
    length: int = None
    ddp: bytes = b""
    rdmap: bytes = b""
    rest: bytes = b""

    @property
    def triple(self):
        return f"{self.layer}/{self.etype}/{self.code:02x}"

    def __str__(self):
        flags = "".join(n if on else "-" for n, on in zip("MDR", (self.m, self.d, self.r)))
        return self.triple + " " + flags + (" (in the bit order of Linux siw)" if self.siw_order else "")


def known(layer, etype, code):
    codes = CODES.get((layer, etype), ())
    return codes is None or code in codes


def is_siw_order(first, code, flags):
    """Linux siw writes type and layer the other way round and the flags into bits 0 to 2."""
    if flags & 0xE0:
        return False
    if flags & 0x07:
        return True
    high, low = first >> 4, first & 15
    return not known(high, low, code) and known(low, high, code)


def parse_terminate(payload, siw=None):
    """`siw`: the order of the control word where the caller knows better."""
    if len(payload) < 4:
        raise Malformed(f"Terminate of {len(payload)} octets")
    first, code, flags, low = payload[:4]
    siw = is_siw_order(first, code, flags) if siw is None else siw
    layer, etype = (first & 15, first >> 4) if siw else (first >> 4, first & 15)
    bits = (1, 2, 4) if siw else (0x80, 0x40, 0x20)
    t = Terminate(layer, etype, code, *(bool(flags & b) for b in bits), (flags & ~sum(bits)) << 8 | low, siw)
    at = 4
    if t.m:
        t.length, at = int.from_bytes(payload[at : at + 2], "big"), at + 2
    if t.d and at < len(payload):
        size = 14 if payload[at] & 0x80 else 18
        t.ddp, at = payload[at : at + size], at + size
    if t.r:
        t.rdmap, at = payload[at : at + 28], at + 28
    t.rest = payload[at:]
    return t


# ---- FPDUs: RFC 5044 §4.1, §4.4 ------------------------------------------------------------


def pad_of(length):
    return -(2 + length) % 4


def fpdu(ulpdu, crc, length=None, pad=None, damage=0):
    """`crc`: whether the field is computed (else zero); `damage`: XORed into the field."""
    body = struct.pack(">H", len(ulpdu) if length is None else length) + ulpdu
    body += b"\0" * pad_of(len(ulpdu)) if pad is None else pad
    value = crc32c.crc32c(body) if crc else 0
    return body + (value ^ damage).to_bytes(4, "little")
