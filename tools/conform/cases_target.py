# SPDX-License-Identifier: BSD-3-Clause
"""What the target sends of its own accord, asked for by commands: its segments, its limits, and
how it takes our answers and our end of the connection."""

import socket
import struct

from . import codec, judge, program
from .case import EITHER, Table
from .codec import (ATOMIC_REQUEST, ATOMIC_RESPONSE, IMMEDIATE, IMMEDIATE_SE, READ_REQUEST, READ_RESPONSE, SEND, SEND_INV,
                    SEND_SE, TERMINATE, WRITE)  # fmt: skip
from .program import (CMD_CMP_SWAP, CMD_DISCONNECT, CMD_FETCH_ADD, CMD_READ, CMD_SEND, CMD_SEND_INV, CMD_WRITE,
                      CMD_WRITE_IMM, QUIET, SOLICITED)  # fmt: skip
from .verdict import Failure, Inconclusive, NotApplicable

TABLE = Table()
COMMANDS = ("commands",)
STAG, TO = 0x00C0FFEE, 0x0123456789ABCD01
# A remark on time: how long a forbidden message is waited for.
SILENCE = 0.3


def message(t, s, *ops):
    """All segments of the next message."""
    out = [t.recv(s, *ops)]
    while not out[-1].last:
        out.append(t.recv(s, *ops))
    return out


def payload(segments):
    return b"".join(x.payload for x in segments)


# ---- Send ---------------------------------------------------------------------------------


@TABLE.case("target/send-numbers", "D4 P1 P4 D2 P2 P3 M9 M13", role=EITHER, needs=COMMANDS)
def send_numbers(t):
    s = t.open()
    first = max((r.segment.msn for r in s.received if r.segment.op == SEND), default=0)
    t.command(s, CMD_SEND, count=8, length=33, flags=QUIET)
    msns = [message(t, s, SEND)[0].msn for _ in range(8)]
    t.check("D4", msns == list(range(first + 1, first + 9)), f"MSN {first + 1} to {first + 8}", msns)
    judge.frames(t, s)


def send_of(size):
    def run(t):
        s = t.open()
        t.command(s, CMD_SEND, length=size, flags=QUIET)
        segments = message(t, s, SEND)
        mo_ok = all(x.mo == sum(len(y.payload) for y in segments[:i]) for i, x in enumerate(segments))
        t.check("D5", mo_ok, "MO counts the octets in front", [x.mo for x in segments][:6])
        t.check("D1", [x.last for x in segments] == [False] * (len(segments) - 1) + [True], "L on the last only", f"{len(segments)} segments")
        t.check("D3", len({(x.qn, x.msn, x.inv) for x in segments}) == 1, "QN, MSN, RsvdULP the same in all", segments[-1])
        t.check("P1", payload(segments) == program.pattern(0, size), f"{size} octets", f"{len(payload(segments))} octets")
        within_mulpdu(t, s)
        judge.frames(t, s)

    return run


def within_mulpdu(t, s):
    emss = s.mss()
    largest = max(r.size for r in s.received)
    t.check("M3", largest <= max(emss, 140), f"FPDUs of at most {emss} octets (EMSS)", largest)
    t.check("M2", all(r.size <= 64776 for r in s.received), "ULPDUs up to 64768", largest)


for size in (0, 1, 1400, 5000, 100000):
    TABLE.add(f"target/send-{size}", "P1 D1 D3 D5 M3 M2", send_of(size), role=EITHER, needs=COMMANDS)


def small_mss(mss, req):
    def run(t):
        """Our MSS is small: no FPDU is larger (but MULPDU is never below 128)."""
        s = t.open(mss=mss)
        t.command(s, CMD_WRITE, length=6000, stag=STAG, to=TO, flags=QUIET)
        segments = message(t, s, WRITE)
        largest = max(r.size for r in s.received)
        limit = s.mss()
        t.check("M3", largest <= max(limit, 140), f"FPDUs of at most {max(limit, 140)} octets", largest)
        if limit < 140:
            ulpdus = [len(x.raw) for x in segments[:-1]]
            t.check("M4", max(ulpdus) >= 128, "ULPDUs of 128 octets", f"{min(ulpdus)} to {max(ulpdus)}")
        t.check(req, payload(segments) == program.pattern(0, 6000), "6000 octets", f"{len(segments)} segments")

    return run


for mss, req in ((536, "M3"), (1000, "M3"), (216, "M3"), (100, "M4")):
    TABLE.add(f"target/mss-{mss}", f"{req} M5 D6", small_mss(mss, req), needs=COMMANDS)


def no_nudge(s):
    """The next segment but for empty Writes to nowhere, which a target may send at any time."""
    seg = s.recv()
    while seg.op == WRITE and not seg.payload and seg.stag != STAG:
        seg = s.recv()
    return seg


@TABLE.case("target/send-solicited", "P4", role=EITHER, needs=COMMANDS)
def send_solicited(t):
    s = t.open()
    t.command(s, CMD_SEND, length=10, flags=QUIET | SOLICITED)
    t.check("P4", message(t, s, SEND, SEND_SE)[0].op == SEND_SE, "Send with SE", s.received[-1].segment)


@TABLE.case("target/send-invalidate", "P3", role=EITHER, needs=COMMANDS)
def send_invalidate(t):
    s = t.open()
    t.command(s, CMD_SEND_INV, length=10, stag=STAG)
    seg = no_nudge(s)
    if seg.op == SEND:
        raise NotApplicable(f"the target's device cannot: {program.parse_done(seg.payload)}")
    t.check("P3", seg.op == SEND_INV and seg.inv == STAG, f"Send with Invalidate of {STAG:#x}", seg)


# ---- RDMA Write ---------------------------------------------------------------------------


def write_of(size):
    def run(t):
        s = t.open()
        t.command(s, CMD_WRITE, length=size, stag=STAG, to=TO)
        segments = message(t, s, WRITE) if size else [no_nudge(s)]
        to_ok = all(x.to == TO + sum(len(y.payload) for y in segments[:i]) for i, x in enumerate(segments))
        t.check("D5", to_ok, "TO grows by what was sent", [hex(x.to) for x in segments][:4])
        t.check("D3", {x.stag for x in segments} == {STAG}, "the STag in all segments", segments[0])
        t.check("D1", [x.last for x in segments] == [False] * (len(segments) - 1) + [True], "L on the last only", f"{len(segments)} segments")
        t.check("P7", payload(segments) == program.pattern(0, size), f"{size} octets", f"{len(payload(segments))} octets")
        if not size:
            t.check("D7", len(segments) == 1 and segments[0].op == WRITE, "one segment", segments[0])
        t.check("P6", t.done(s).status == 0, "then the report of its completion", "done")
        within_mulpdu(t, s)
        judge.frames(t, s)

    return run


for size in (0, 1, 1500, 100000):
    TABLE.add(f"target/write-{size}", "P7 P6 D1 D3 D5 M3", write_of(size), role=EITHER, needs=COMMANDS)


@TABLE.case("target/writes-in-order", "P6 D6", role=EITHER, needs=COMMANDS)
def writes_in_order(t):
    s = t.open()
    t.command(s, CMD_WRITE, count=5, length=4000, stag=STAG, to=TO)
    for _ in range(5):
        segments = message(t, s, WRITE)
        if segments[0].to != TO or len(payload(segments)) != 4000:
            raise Failure("one Write whole before the next begins", segments[0])
    t.done(s)
    t.check("P6", True, "five Writes, each whole, then the Send", "in order")
    t.check("D6", True, "each message whole before the next", "in order")


@TABLE.case("target/write-with-immediate", "A12 A11", role=EITHER, needs=COMMANDS)
def write_immediate(t):
    s = t.open()
    t.command(s, CMD_WRITE_IMM, length=2000, stag=STAG, to=TO, arg=0xA1B2C3D4)
    seg = no_nudge(s)
    if seg.op == SEND:
        raise NotApplicable(f"the target's device cannot: {program.parse_done(seg.payload)}")
    while seg.op == WRITE and not seg.last:
        seg = s.recv()
    seg = s.recv()
    t.check("A12", seg.op in (IMMEDIATE, IMMEDIATE_SE), "Immediate Data behind the Write", seg)
    t.check("A11", len(seg.payload) == 8, "8 octets", seg.payload.hex())
    t.check("A12", b"\xa1\xb2\xc3\xd4" in seg.payload, "the verbs' four octets among them", seg.payload.hex())
    judge.frames(t, s)


# ---- RDMA Read ----------------------------------------------------------------------------


def answer(s, r, data, step=1000):
    segments = [codec.tagged(READ_RESPONSE, r.sink, r.sink_to + o, data[o : o + step], last=o + step >= len(data))
                for o in range(0, max(1, len(data)), step)]  # fmt: skip
    s.send(*segments)


@TABLE.case("target/read", "P9 P4 P15 P32", role=EITHER, needs=COMMANDS)
def read(t):
    s = t.open()
    t.command(s, CMD_READ, length=5000, stag=STAG, to=TO)
    seg = t.recv(s, READ_REQUEST)
    r = codec.parse_read(seg.payload)
    t.check("P9", (r.size, r.source, r.source_to) == (5000, STAG, TO), f"5000 octets from {STAG:#x} {TO:#x}", r)
    t.check("P4", (seg.qn, seg.msn, seg.mo, seg.last) == (1, 1, 0, True), "QN 1, MSN 1, one segment", seg)
    t.silent("P32", s, SILENCE, "no completion before the Response")
    data = program.pattern(12345, 5000)
    answer(s, r, data[:4000] + data[4000:])
    done = t.done(s)
    t.check("P15", done.status == 0 and done.sum == program.fnv(data), "the Read completes with these octets", done)
    judge.frames(t, s)


@TABLE.case("target/read-empty", "P13 P9", role=EITHER, needs=COMMANDS)
def read_empty(t):
    s = t.open()
    t.command(s, CMD_READ, length=0, stag=STAG, to=TO)
    r = codec.parse_read(t.recv(s, READ_REQUEST).payload)
    t.check("P13", r.size == 0, "size 0", r)
    answer(s, r, b"")
    t.check("P9", t.done(s).status == 0, "the Read completes", "done")


@TABLE.case("target/read-split-response", "P15 D5", role=EITHER, needs=COMMANDS)
def read_split(t):
    """A Response in segments of one octet and of odd sizes."""
    s = t.open()
    t.command(s, CMD_READ, length=300, stag=STAG, to=TO)
    r = codec.parse_read(t.recv(s, READ_REQUEST).payload)
    data = program.pattern(4321, 300)
    answer(s, r, data, step=7)
    t.check("P15", t.done(s).sum == program.fnv(data), "the octets put together", "done")


def ord_limit(ours):
    def run(t):
        """Five Reads are posted; no more are outstanding than our IRD allows."""
        s = t.open(ird=ours, ord_=8)
        limit = min(ours, s.reply.ord) if s.reply and s.reply.enhanced else ours
        t.command(s, CMD_READ, count=5, length=16, stag=STAG, to=TO)
        waiting, answered = [], 0
        while answered < 5:
            while len(waiting) < limit and answered + len(waiting) < 5:
                waiting.append(codec.parse_read(t.recv(s, READ_REQUEST).payload))
            if not s.quiet(0.15):
                raise Failure(f"at most {limit} Reads outstanding", s.recv())
            answer(s, waiting.pop(0), bytes(16))
            answered += 1
        t.check("P14", t.done(s).count == 5, f"never more than {limit} outstanding", "five Reads done")

    return run


for n in (1, 2, 3):
    TABLE.add(f"target/reads-within-ord-{n}", "P14 E5 E6", ord_limit(n), needs=COMMANDS)


@TABLE.case("target/read-numbers", "D4 P10", role=EITHER, needs=COMMANDS)
def read_numbers(t):
    s = t.open(ird=8, ord_=8)
    msns = []
    for _ in range(4):
        t.command(s, CMD_READ, length=8, stag=STAG, to=TO)
        seg = t.recv(s, READ_REQUEST)
        msns.append(seg.msn)
        answer(s, codec.parse_read(seg.payload), bytes(8))
        t.done(s)
    t.check("D4", msns == [1, 2, 3, 4], "MSN 1 to 4 on QN 1", msns)


def bad_response(req, codes, change):
    def run(t):
        s = t.open()
        t.command(s, CMD_READ, length=64, stag=STAG, to=TO)
        r = codec.parse_read(t.recv(s, READ_REQUEST).payload)
        bad = change(r)
        s.send(bad)
        judge.terminated(t, s, req, codes, bad)
        t.untouched("D13", "read-only", "local", "other-pd")

    return run


for name, req, codes, change in (
    ("wrong-stag", "D12", "1/1/00 1/1/02 0/1/00 0/1/03 0/1/02", lambda r: codec.tagged(READ_RESPONSE, r.sink ^ 0x40, r.sink_to, bytes(64))),
    ("too-long", "D12", "1/1/01", lambda r: codec.tagged(READ_RESPONSE, r.sink, r.sink_to + (1 << 21), bytes(8))),
    ("before-sink", "D12", "1/1/01 1/1/03", lambda r: codec.tagged(READ_RESPONSE, r.sink, r.sink_to - (1 << 21), bytes(8))),
    ("wraps", "D12", "1/1/03 1/1/01", lambda r: codec.tagged(READ_RESPONSE, r.sink, (1 << 64) - 8, bytes(64))),
):  # fmt: skip
    TABLE.add(f"target/read-response-{name}", f"{req} P24 D13", bad_response(req, codes, change), role=EITHER, needs=COMMANDS)


# ---- atomics ------------------------------------------------------------------------------


def atomic(op, want):
    def run(t):
        s = t.open()
        t.command(s, op, stag=STAG, to=0x1000, arg=5, arg2=6)
        seg = no_nudge(s)
        if seg.op == SEND:
            raise NotApplicable(f"the target's device cannot: {program.parse_done(seg.payload)}")
        a = codec.parse_atomic(seg.payload)
        t.check("A2", seg.op == ATOMIC_REQUEST and (seg.qn, seg.msn, seg.mo, seg.last) == (1, 1, 0, True), "Atomic Request on QN 1", seg)
        got = (a.aop, a.stag, a.to, a.value, a.mask, a.compare, a.compare_mask)
        t.check("A7", got == (want[0], STAG, 0x1000, *want[1:]), f"aop, stag, to, value, masks {want}", got)
        t.silent("P32", s, SILENCE, "no completion before the Response")
        body = struct.pack(">IQ", a.req_id, 0x1122334455667788)
        s.send(codec.untagged(ATOMIC_RESPONSE, 3, s.next_msn(3), body))
        done = t.done(s)
        t.check("A2", done.status == 0 and done.value in (0x1122334455667788, 0x8877665544332211), "the original value reaches the program", done)
        judge.frames(t, s)

    return run


ONES = codec.ALL_ONES
TABLE.add("target/fetch-add", "A7 A2", atomic(CMD_FETCH_ADD, (codec.FETCH_ADD, 5, 0, 0, ONES)), role=EITHER, needs=("commands", "atomics"))
TABLE.add("target/compare-and-swap", "A7 A2", atomic(CMD_CMP_SWAP, (codec.CMP_SWAP, 6, ONES, 5, ONES)), role=EITHER, needs=("commands", "atomics"))


# ---- the end ------------------------------------------------------------------------------


@TABLE.case("end/our-fin", "M37 D16", role=EITHER)
def our_fin(t):
    """A FIN between messages is a graceful close: no Terminate, a FIN back."""
    s = t.open()
    t.alive(s)
    s.sock.shutdown(socket.SHUT_WR)
    segments, how = s.drain()
    t.check("M37", not any(x.op == TERMINATE for x in segments), "no Terminate", "; ".join(map(str, segments)) or "none")
    t.check("D16", how == "FIN", "a FIN in answer", how)


@TABLE.case("end/our-fin-in-an-fpdu", "M16 M34", role=EITHER)
def fin_within(t):
    """Half an FPDU, then the FIN: not delivered."""
    s = t.open()
    t.alive(s)
    u = codec.untagged(SEND, 0, s.msn[0], b"only half of this arrives")
    s.put(s.frame(u)[:30], "30 octets of an FPDU")
    s.sock.shutdown(socket.SHUT_WR)
    segments, how = s.drain()
    got = [x for x in segments if x.op == SEND]
    t.check("M16", not got, "not delivered", "; ".join(map(str, got)) or "not delivered")
    t.check("M34", not how.startswith("silence"), "the end", how)


@TABLE.case("end/our-fin-before-any-fpdu", "M37")
def fin_first(t):
    s = t.open()
    s.sock.shutdown(socket.SHUT_WR)
    segments, how = s.drain()
    t.check("M37", not segments and how == "FIN", "a FIN in answer, nothing else", f"{len(segments)} FPDUs, {how}")


@TABLE.case("end/our-reset", "M33", role=EITHER)
def our_reset(t):
    """After a reset the target takes the next connection."""
    s = t.open()
    t.alive(s)
    s.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()
    again = t.open()
    t.alive(again)
    t.check("M33", True, "the next connection works", "it does")


@TABLE.case("end/program-disconnects", "P27 D16", role=EITHER, needs=COMMANDS)
def program_disconnects(t):
    s = t.open()
    t.echo(s)
    t.command(s, CMD_DISCONNECT)
    segments, how = s.drain()
    t.check("P27", not any(x.op == TERMINATE for x in segments), "no Terminate without an error", "; ".join(map(str, segments)) or "none")
    t.check("D16", how == "FIN", "a graceful close", how)


@TABLE.case("end/many-connections", "M29", role=EITHER)
def many(t):
    for _ in range(8):
        s = t.open()
        t.alive(s)
        s.close()
    t.check("M29", True, "eight connections, one after the other", "all work")


# ---- a program that is not ours: rping -s -------------------------------------------------


def rping_round(t, s):
    """Advertise, serve its Read, take its go-ahead, advertise, take its Write."""
    p = t.program
    data = b"rdma-ping-0: " + bytes(65 + i % 26 for i in range(50)) + b"\0"
    t.send(s, p.good_send)
    r = codec.parse_read(t.recv(s, READ_REQUEST).payload)
    t.check("P9", (r.source, r.source_to, r.size) == (p.stag, p.to, p.size), "a Read of what was advertised", r)
    answer(s, r, data, step=60)
    t.recv(s, SEND)
    t.send(s, p.good_send)
    got, seg = b"", s.recv()
    while seg.op == WRITE:
        got += seg.payload
        seg = s.recv()
    t.check("P6", got == data and seg.op == SEND, "its Write, then its Send", seg)
    judge.frames(t, s)


@TABLE.case("rping/round", "P9 P6 M13")
def one_round(t):
    if t.program.name != "rping":
        raise NotApplicable("the program is not rping")
    rping_round(t, t.open())


@TABLE.case("rping/markers", "M17 M20")
def markers_round(t):
    if t.program.name != "rping":
        raise NotApplicable("the program is not rping")
    s = t.open(flags=codec.C | codec.M)
    rping_round(t, s)
    t.check("M17", s.stripper.count > 0, "markers", s.stripper.count)


@TABLE.case("rping/no-receive-posted", "D11")
def rping_flood(t):
    """rping posts one receive at a time; now and then it is quick enough for all of these."""
    if t.program.name != "rping":
        raise NotApplicable("the program is not rping")
    for _ in range(8):
        s = t.open()
        s.send(*(codec.untagged(SEND, 0, i, t.program.good_send) for i in range(1, 40)))
        segments, how = s.drain(0.5)
        got = next((x for x in segments if x.op == TERMINATE), None)
        if got is not None:
            t.check("D11", codec.parse_terminate(got.payload).triple == "1/2/02", "Terminate 1/2/02", got)
            return
        s.close()
    raise Inconclusive(f"{how}: 39 Sends at a time, and there was always a receive")
