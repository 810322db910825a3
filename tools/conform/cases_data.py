# SPDX-License-Identifier: BSD-3-Clause
"""Segments in order: what the target has to take, place, deliver and answer."""

import random
import struct

from . import codec, judge, program
from .case import EITHER, Table
from .codec import (ATOMIC_REQUEST, ATOMIC_RESPONSE, CMP_SWAP, FETCH_ADD, IMMEDIATE, IMMEDIATE_SE, READ_RESPONSE, SEND,
                    SEND_SE, TERMINATE, WRITE)  # fmt: skip
from .verdict import Failure, Inconclusive, NotApplicable

TABLE = Table()
WHOLE = program.REGION_SIZE


# ---- framing: RFC 5044 §5, §6 -------------------------------------------------------------


def pieces(t, data, sizes):
    out = []
    for n in sizes:
        out.append(data[:n])
        data = data[n:]
    return [p for p in [*out, data] if p]


def in_pieces(cut, payload=b"cut where it hurts"):
    """A Send FPDU whose octets arrive in TCP segments of their own."""

    def run(t):
        s = t.open()
        u = codec.untagged(SEND, 0, s.next_msn(0), payload)
        s.put_slowly(s.frame(u), f"Send in pieces of {cut}", step=cut, pause=0.002)
        seg = t.recv(s, SEND)
        t.check("M5", seg.payload == payload, "the Send comes back", seg)
        t.check("M16", True, "taken when whole", seg)
        judge.frames(t, s)

    return run


for cut in (1, 2, 3, 5, 7, 19, 37, 41):
    TABLE.add(f"framing/pieces-of-{cut}", "M5 M16", in_pieces(cut), role=EITHER, needs=("commands",))


@TABLE.case("framing/coalesced", "M5 M1 D8", role=EITHER, needs=("commands",))
def coalesced(t):
    """Many FPDUs in one TCP write."""
    s = t.open()
    payloads = [b"%d" % i * (i + 1) for i in range(10)]
    s.send(*(codec.untagged(SEND, 0, s.next_msn(0), p) for p in payloads))
    for p in payloads:
        seg = t.recv(s, SEND)
        t.check("D8", seg.payload == p, f"{p[:8]} in its turn", seg.payload[:8])
    t.check("M5", True, "every FPDU found", f"{len(payloads)} Sends came back")
    judge.frames(t, s)


@TABLE.case("framing/straddling", "M5 M16", role=EITHER, needs=("commands",))
def straddling(t):
    """Ten Sends as one run of octets, cut at places that have nothing to do with them."""
    s = t.open()
    rnd = random.Random(5044)
    payloads = [bytes([i]) * rnd.randrange(1, 200) for i in range(10)]
    data = b"".join(s.frame(codec.untagged(SEND, 0, s.next_msn(0), p)) for p in payloads)
    while data:
        n = rnd.randrange(1, 90)
        s.put(data[:n], f"{min(n, len(data))} octets")
        data = data[n:]
    for p in payloads:
        if t.recv(s, SEND).payload != p:
            raise Failure("the Sends as they were sent", "other octets")
    t.check("M5", True, "every FPDU found", "ten Sends came back")


@TABLE.case("framing/pad-not-zero", "M9", role=EITHER)
def pad_not_zero(t):
    """Pad octets that are not zero, under a right CRC, are ignored."""
    s = t.open()
    if t.program.has_commands:
        u = codec.untagged(SEND, 0, s.next_msn(0), b"x")
        s.send(u, pad=b"\xaa" * codec.pad_of(len(u)))
        t.check("M9", t.recv(s, SEND).payload == b"x", "delivered", "delivered")
    else:
        u = t.read_request(s, 0x33, 0, 0, 1, 0)
        s.send(u, pad=b"\xaa" * codec.pad_of(len(u)))
        t.take_response(s, 0x33, 0, 0)
        t.check("M9", True, "answered", "answered")


def every_length(t):
    """Every length modulo 4, so every pad."""
    s = t.open()
    for n in range(0, 18):
        t.echo(s, bytes(range(n)))
    t.check("M9", True, "every pad", "18 lengths came back")
    judge.frames(t, s)


TABLE.add("framing/every-pad", "M9 M6 P18", every_length, role=EITHER, needs=("commands",))


@TABLE.case("framing/large-fpdu", "M6 M5", role=EITHER, needs=("regions",))
def large_fpdu(t):
    """An FPDU larger than a TCP segment: no sender should, every receiver must."""
    s = t.open()
    r = t.region("rw")
    data = bytes(random.Random(1).randrange(256) for _ in range(WHOLE))
    s.send(codec.tagged(WRITE, r.stag, r.to, data))
    t.check("M6", t.read_region(s, r) == data, "4096 octets placed from one FPDU", "the same")


@TABLE.case("control/reserved-bits", "D2 P2", role=EITHER)
def reserved_bits(t):
    """Reserved bits of both control fields are not looked at."""
    s = t.open()
    s.send(codec.tagged(WRITE, 1, 0, rsvd=15, rsv=3))
    s.send(t.read_request(s, 0x33, 0, 0, 1, 0, rsvd=15, rsv=3))
    t.take_response(s, 0x33, 0, 0)
    t.check("D2", True, "not looked at", "answered")
    t.check("P2", True, "not looked at", "answered")


@TABLE.case("control/invalidate-field-of-send", "P3", role=EITHER, needs=("commands",))
def invalidate_field(t):
    """The field means nothing in a plain Send."""
    s = t.open()
    t.send(s, b"plain", inv=0xDEADBEEF)
    t.check("P3", t.recv(s, SEND).payload == b"plain", "delivered", "delivered")


# ---- Send ---------------------------------------------------------------------------------


@TABLE.case("send/segments", "D5 P18 D9", role=EITHER, needs=("commands",))
def send_segments(t):
    s = t.open()
    data = program.pattern(99, 1000)
    msn = s.next_msn(0)
    s.send(*(codec.untagged(SEND, 0, msn, data[o : o + 100], mo=o, last=o == 900) for o in range(0, 1000, 100)))
    seg = t.recv(s, SEND)
    t.check("D5", seg.payload == data, "one message of 1000 octets from ten segments", f"{len(seg.payload)} octets")
    t.check("D9", len(seg.payload) == 1000, "its length", len(seg.payload))


@TABLE.case("send/empty", "P18 D7", role=EITHER, needs=("commands",))
def send_empty(t):
    s = t.open()
    t.echo(s, b"")
    t.check("P18", True, "an empty Send is delivered", "it came back")
    t.check("D7", True, "as one segment", "one segment")


@TABLE.case("send/exactly-the-buffer", "P19", role=EITHER, needs=("commands",))
def exactly(t):
    s = t.open()
    data = program.pattern(0, t.program.recv_size)
    t.send(s, data)
    got = collect(t, s, SEND)
    t.check("P19", got == data, f"{len(data)} octets delivered", f"{len(got)} octets")


@TABLE.case("send/with-solicited-event", "P18", role=EITHER, needs=("commands",))
def with_se(t):
    s = t.open()
    t.send(s, b"wake up", op=SEND_SE)
    t.check("P18", t.recv(s, SEND).payload == b"wake up", "delivered as any Send", "it came back")


@TABLE.case("send/behind-writes", "P30 P5 P6", role=EITHER, needs=("regions",))
def behind_writes(t):
    """A Send is delivered behind the Writes in front of it: the target's report, made when the
    Send arrives, has seen them."""
    s = t.open()
    r = t.region("rw")
    data = bytes(WHOLE)
    for i in range(5):
        parts = [codec.tagged(WRITE, r.stag, r.to + o, data[o : o + 1024], last=o == 3072) for o in range(0, WHOLE, 1024)]
        command = codec.untagged(SEND, 0, s.next_msn(0), program.command(program.CMD_REPORT))
        s.send(*parts, command)
        seen = program.parse_report(t.recv(s, SEND).payload).regions["rw"].sum
        guard = r.index * 3 * WHOLE
        want = program.fnv(program.pattern(guard, WHOLE) + data + program.pattern(guard + 2 * WHOLE, WHOLE))
        t.check("P30", seen == want, "the Writes in front are placed", f"round {i}")
        data = bytes([i + 1]) * WHOLE
    t.check("P5", True, "placed, not delivered", "only the Sends came back")


def collect(t, s, *ops):
    got = b""
    while True:
        seg = t.recv(s, *ops)
        got += seg.payload
        if seg.last:
            return got


# ---- RDMA Write ---------------------------------------------------------------------------


@TABLE.case("write/placed-to-the-octet", "P5 D5 P16", role=EITHER, needs=("regions",))
def placed(t):
    s = t.open()
    r = t.region("rw")
    want = bytearray(r.content())
    for offset, data in ((0, b"A"), (4095, b"Z"), (1001, b"odd" * 33), (2048, bytes(513))):
        s.send(codec.tagged(WRITE, r.stag, r.to + offset, data))
        want[offset : offset + len(data)] = data
    t.check("P5", t.read_region(s, r) == bytes(want), "those octets and no others", "as read back")
    t.check("P16", t.read_region(s, r, 1001, 99) == b"odd" * 33, "99 octets from an odd TO", "as read back")


@TABLE.case("write/segments", "D5 D3 D1", role=EITHER, needs=("regions",))
def write_segments(t):
    s = t.open()
    r = t.region("rw")
    data = program.pattern(7777, WHOLE)
    s.send(*(codec.tagged(WRITE, r.stag, r.to + o, data[o : o + 700], last=o + 700 >= WHOLE) for o in range(0, WHOLE, 700)))
    t.check("D5", t.read_region(s, r) == data, "the message as a whole", "as read back")


@TABLE.case("write/empty-with-any-stag", "D7 P8", role=EITHER)
def write_empty(t):
    s = t.open()
    s.send(codec.tagged(WRITE, 0x12345600, 0x1000), codec.tagged(WRITE, 0, (1 << 64) - 1), codec.tagged(WRITE, 0xFFFFFFFF, 0))
    t.alive(s)
    t.check("D7", True, "STag and TO not checked", "the stream works")
    t.check("P8", True, "allowed", "the stream works")


@TABLE.case("write/empty-with-forbidden-stag", "D7", role=EITHER, needs=("regions",))
def write_empty_forbidden(t):
    s = t.open()
    for name in ("read-only", "local", "other-pd"):
        s.send(codec.tagged(WRITE, t.region(name).stag, t.region(name).to))
    t.alive(s)
    t.check("D7", True, "not checked", "the stream works")


@TABLE.case("write/write-only-region", "P5", role=EITHER, needs=("regions",))
def write_only(t):
    s = t.open()
    r = t.region("write-only")
    s.send(codec.tagged(WRITE, r.stag, r.to, b"into the dark"))
    t.alive(s)
    t.check("P5", t.sums()["write-only"].sum != r.fresh_sum(), "placed", "the region changed")


# ---- RDMA Read ----------------------------------------------------------------------------


@TABLE.case("read/whole-region", "P9 P4 D5", role=EITHER, needs=("regions",))
def read_whole(t):
    s = t.open()
    for name in ("rw", "read-only"):
        r = t.region(name)
        t.check("P9", t.read_region(s, r) == r.content(), f"the content of {name}", "the same")
    judge.frames(t, s)


@TABLE.case("read/odd-places", "P16", role=EITHER, needs=("regions",))
def read_odd(t):
    s = t.open()
    r = t.region("read-only")
    for start, n in ((1, 1), (3, 5), (4095, 1), (1023, 2047)):
        got = t.read(s, 0x7F000001, 0xFFFFFFFF00000001 + start, n, r.stag, r.to + start)
        t.check("P16", got == r.content(start, n), f"{n} octets from {start}", f"{len(got)} octets")


@TABLE.case("read/empty-with-any-stag", "P13", role=EITHER)
def read_empty(t):
    s = t.open()
    for source, to in ((0x12345600, 0x1000), (0, 0), (0xFFFFFFFF, (1 << 64) - 1)):
        t.read(s, 0xABCD, 0x4321, 0, source, to)
    t.check("P13", True, "empty Read Responses to the sink", "three of them")
    judge.frames(t, s)


@TABLE.case("read/empty-behind-a-send", "P13", role=EITHER)
def read_empty_behind_send(t):
    """What the target sent before has no part in the answer."""
    s = t.open()
    t.alive(s)
    t.read(s, 0xABCD, 0x4321, 0, 0x12345600, 0x1000)
    t.check("P13", True, "an empty Read Response", "one")


@TABLE.case("read/empty-with-forbidden-stag", "P13", role=EITHER, needs=("regions",))
def read_empty_forbidden(t):
    s = t.open()
    for name in ("write-only", "local", "other-pd"):
        t.read(s, 0xABCD, 0, 0, t.region(name).stag, t.region(name).to)
    t.check("P13", True, "not checked", "answered")


@TABLE.case("read/two-in-order", "P10 P11", role=EITHER, needs=("regions",))
def read_two(t):
    s = t.open(ird=8, ord_=8)
    r = t.region("rw")
    s.send(t.read_request(s, 1, 0, 3000, r.stag, r.to), t.read_request(s, 2, 0, 10, r.stag, r.to + 50))
    t.take_response(s, 1, 0, 3000)
    t.take_response(s, 2, 0, 10)
    t.check("P10", True, "the first answered first", "in order")


@TABLE.case("read/as-many-as-ird", "P11 P10", role=EITHER, needs=("regions",))
def read_ird(t):
    """IRD Reads in one TCP write are all held and answered in order."""
    s = t.open(ird=8, ord_=8)
    n = s.reply.ird if s.reply and s.reply.enhanced else 1
    n = min(n, 8) or 1
    r = t.region("rw")
    s.send(*(t.read_request(s, 100 + i, 0, 64, r.stag, r.to + i) for i in range(n)))
    for i in range(n):
        t.take_response(s, 100 + i, 0, 64)
    t.check("P11", True, f"{n} Reads held", "all answered")


@TABLE.case("read/beyond-ird", "P14", role=EITHER, needs=("regions",))
def read_beyond(t):
    """Far more Reads at once than the target has room for."""
    s = t.open(ird=1, ord_=1)
    r = t.region("rw")
    first = s.msn[1]
    bad = [t.read_request(s, i, 0, WHOLE, r.stag, r.to) for i in range(1, 400)]
    s.send(*bad)
    segments, how = s.drain()
    got = next((x for x in segments if x.op == TERMINATE), None)
    if got is None and how.startswith("silence"):
        raise Inconclusive(f"all {len(bad)} answered, one after the other: the limit was perhaps never reached")
    if got is None:
        raise Inconclusive(f"{how} without a Terminate after {sum(x.last for x in segments)} answers")
    term = codec.parse_terminate(got.payload)
    t.check("P14", term.triple in ("0/2/07", "1/2/02", "1/2/03"), "Terminate 1/2/02 (or 1/2/03, 0/2/07)", term)
    answered = sum(1 for x in segments if x.op == READ_RESPONSE and x.last)
    t.log(f"{answered} answered, first MSN {first}")


@TABLE.case("read/behind-write", "P10", role=EITHER, needs=("regions",))
def read_behind_write(t):
    """A Read sees the Writes in front of it."""
    s = t.open()
    r = t.region("rw")
    for i in range(20):
        word = struct.pack(">Q", i * 0x0101010101010101 & codec.ALL_ONES)
        s.send(codec.tagged(WRITE, r.stag, r.to + 8 * i, word), t.read_request(s, 9, 0, 8, r.stag, r.to + 8 * i))
        if t.take_response(s, 9, 0, 8) != word:
            raise Failure("what the Write in front brought", f"other octets in round {i}")
    t.check("P10", True, "the Write in front is placed", "20 times")


# ---- atomics ------------------------------------------------------------------------------


class Word:
    """A 64-bit word of the target, as its own program would see it."""

    def __init__(self, t, s, offset=0, order="little"):
        self.t, self.s, self.r, self.offset, self.order = t, s, t.region("atomic"), offset, order

    def set(self, value):
        self.s.send(codec.tagged(WRITE, self.r.stag, self.r.to + self.offset, value.to_bytes(8, self.order)))

    def get(self):
        return int.from_bytes(self.t.read_region(self.s, self.r, self.offset, 8), self.order)

    def atomic(self, aop, value, **how):
        """Ask, take the response, return the original value."""
        req_id = 0x1000 + self.s.msn[1]
        body = codec.atomic_body(aop, req_id, self.r.stag, self.r.to + self.offset, value, **how)
        self.s.send(codec.untagged(ATOMIC_REQUEST, 1, self.s.next_msn(1), body))
        return take_atomic(self.t, self.s, req_id)


def take_atomic(t, s, req_id):
    seg = s.recv()
    if seg.op != ATOMIC_RESPONSE:
        raise Failure("Atomic Response", seg)
    if (seg.qn, seg.msn, len(seg.payload)) != (3, s.next_msn(3), 12):
        raise Failure("Atomic Response on QN 3 in sequence, 12 octets", seg)
    got, original = struct.unpack(">IQ", seg.payload)
    if got != req_id:
        raise Failure(f"request identifier {req_id:#x}", f"{got:#x}")
    return original


def word(t, s, offset=0):
    """Find out which end the target's memory begins with."""
    w = Word(t, s, offset)
    w.set(0x0102030405060708)
    original = w.atomic(FETCH_ADD, 0)
    if original == 0x0807060504030201:
        w.order = "big"
    elif original != 0x0102030405060708:
        raise Failure("the word in one octet order or the other", f"{original:#x}")
    return w


@TABLE.case("atomic/fetch-add", "A1 A2 A6", role=EITHER, needs=("atomics",))
def fetch_add(t):
    s = t.open()
    w = word(t, s)
    t.check("A2", True, "Response on QN 3, MSN from 1, identifier", "as asked")
    for start, add in ((5, 7), (codec.ALL_ONES, 1), (1 << 63, 1 << 63), (0x00FF, 0x0001)):
        w.set(start)
        want = (start + add) & codec.ALL_ONES
        original = w.atomic(FETCH_ADD, add)
        after = w.get()
        t.check("A1", (original, after) == (start, want), f"{start:#x}, then {want:#x}", f"{original:#x}, then {after:#x}")
    t.check("A6", True, "big-endian on the wire, the target's order in memory", w.order)
    judge.frames(t, s)


def masked_sum(a, b, mask):
    out, carry = 0, 0
    for bit in range(64):
        x = (a >> bit & 1) + (b >> bit & 1) + carry
        out |= (x & 1) << bit
        carry = 0 if mask >> bit & 1 else x >> 1
    return out


@TABLE.case("atomic/fetch-add-with-mask", "A5", role=EITHER, needs=("atomics",))
def fetch_add_mask(t):
    s = t.open()
    w = word(t, s)
    rnd = random.Random(7306)
    masks = [0, codec.ALL_ONES, 1 << 63, 0x8000000080000000, 0x8080808080808080, rnd.getrandbits(64)]
    for mask in masks:
        a, b = rnd.getrandbits(64), rnd.getrandbits(64)
        w.set(a)
        original, after, want = w.atomic(FETCH_ADD, b, mask=mask), w.get(), masked_sum(a, b, mask)
        t.check("A5", (original, after) == (a, want), f"{a:#x} + {b:#x} under {mask:#x} = {want:#x}", f"{original:#x}, then {after:#x}")


@TABLE.case("atomic/compare-and-swap", "A1", role=EITHER, needs=("atomics",))
def compare_swap(t):
    s = t.open()
    w = word(t, s, 64)
    for start, compare, swap, want in ((9, 9, 11, 11), (9, 10, 11, 9), (0, 0, codec.ALL_ONES, codec.ALL_ONES)):
        w.set(start)
        original = w.atomic(CMP_SWAP, swap, mask=codec.ALL_ONES, compare=compare)
        after = w.get()
        t.check("A1", (original, after) == (start, want), f"{start:#x}, then {want:#x}", f"{original:#x}, then {after:#x}")


@TABLE.case("atomic/compare-and-swap-with-masks", "A5", role=EITHER, needs=("atomics",))
def compare_swap_masks(t):
    s = t.open()
    w = word(t, s, 4088)
    rnd = random.Random(2)
    for i in range(8):
        start, swap, mask, cmask = (rnd.getrandbits(64) for _ in range(4))
        compare = (start & cmask) | (rnd.getrandbits(64) & ~cmask) if i % 2 else rnd.getrandbits(64)
        hit = (compare ^ start) & cmask == 0
        want = (start & ~mask) | (swap & mask) if hit else start
        w.set(start)
        original = w.atomic(CMP_SWAP, swap, mask=mask, compare=compare & codec.ALL_ONES, compare_mask=cmask)
        after = w.get()
        t.check("A5", (original, after) == (start, want), f"{want:#x} ({'hit' if hit else 'miss'})", f"{original:#x}, then {after:#x}")


@TABLE.case("atomic/among-reads", "A3 P10", role=EITHER, needs=("atomics",))
def among_reads(t):
    """Read, atomic, Read in one TCP write: answered in that order, each seeing what was before."""
    s = t.open(ird=8, ord_=8)
    w = word(t, s)
    w.set(100)
    r = w.r
    s.send(t.read_request(s, 1, 0, 8, r.stag, r.to),
           codec.untagged(ATOMIC_REQUEST, 1, s.next_msn(1), codec.atomic_body(FETCH_ADD, 77, r.stag, r.to, 1)),
           t.read_request(s, 2, 0, 8, r.stag, r.to))  # fmt: skip
    before = int.from_bytes(t.take_response(s, 1, 0, 8), w.order)
    original = take_atomic(t, s, 77)
    after = int.from_bytes(t.take_response(s, 2, 0, 8), w.order)
    t.check("A3", original == 100 and after == 101, "100 fetched, then 101 read", f"{original} fetched, then {after}")
    t.check("P10", before in (100, 101), "the responses in order", f"{before}, {original}, {after}")


@TABLE.case("atomic/supported", "A1 A13", role=EITHER, needs=("regions",))
def supported(t):
    if not t.program.atomics:
        raise NotApplicable("the target's device offers no atomics")
    t.check("A1", True, "both atomics", "offered by the device")


# ---- Immediate Data -----------------------------------------------------------------------


def immediate(op):
    def run(t):
        s = t.open()
        t.send(s, b"\x11\x22\x33\x44\x55\x66\x77\x88", op=op)
        seg = s.recv()
        if seg.op == TERMINATE:
            raise NotApplicable(f"the target does not take Immediate Data: {seg}")
        t.check("A11", seg.op == SEND and seg.payload[:4] == b"imm ", "delivered as a receive with immediate data", seg)
        value = seg.payload[4:8]
        t.check("A11", value in (b"\x11\x22\x33\x44", b"\x55\x66\x77\x88"), "four of its octets", value.hex())
        t.echo(s, b"the next Send has its own receive")
        judge.frames(t, s)

    return run


TABLE.add("immediate/8-octets", "A11", immediate(IMMEDIATE), role=EITHER, needs=("commands",))
TABLE.add("immediate/8-octets-se", "A11", immediate(IMMEDIATE_SE), role=EITHER, needs=("commands",))


@TABLE.case("immediate/behind-write", "A12 P30", role=EITHER, needs=("regions",))
def immediate_behind_write(t):
    s = t.open()
    r = t.region("rw")
    s.send(codec.tagged(WRITE, r.stag, r.to, b"w" * 100), codec.untagged(IMMEDIATE, 0, s.next_msn(0), b"\x01\x02\x03\x04" * 2))
    seg = s.recv()
    if seg.op == TERMINATE:
        raise NotApplicable(f"the target does not take Immediate Data: {seg}")
    t.check("A12", seg.payload == b"imm \x01\x02\x03\x04" + (100).to_bytes(4, "big"), "immediate data and the Write's length", seg.payload.hex())
