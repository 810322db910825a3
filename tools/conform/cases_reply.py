# SPDX-License-Identifier: BSD-3-Clause
"""Start-up with the tester as responder: the target connects to us."""

import socket
import time

from . import codec, judge, stream
from .case import RESPONDER, Table
from .codec import C, M, NO_NEGOTIATION, R, REPLY_KEY, REQUEST_KEY, S
from .verdict import Failure, NotApplicable

TABLE = Table()


def take_request(t):
    s = t.raw()
    s.request = s.take_start()
    t.agreed(s, C, s.request)
    return s, s.request


def reply(s, flags=C, data=None, ird=8, ord_=8, rtr=None, key=REPLY_KEY, rev=None, length=None):
    """The Reply that fits the Request, but for what is named."""
    q = s.request
    rtr = q.rtr if rtr is None else rtr
    if q.enhanced and data is None:
        flags |= S
        data = codec.enhanced(ird, ord_, q.p2p, (rtr & -rtr) if q.p2p else 0)
    frame = codec.start_frame(key, flags, q.rev if rev is None else rev, data or b"", length)
    s.put(frame, f"start-up frame key={key!r} flags={flags:#x} {(data or b'').hex()}")
    s.agree(flags, q.flags)


def enhanced_only(q):
    if not q.enhanced:
        raise NotApplicable("the target does not offer RFC 6581")


@TABLE.case("request/fields", "M23 M25 M26 M27 M24 E1 E10 E11", role=RESPONDER)
def fields(t):
    s, q = take_request(t)
    t.check("M23", q.key == REQUEST_KEY, "the Request's key", q.key)
    t.check("M25", q.rev in (0, 1, 2), "revision 1 or 2", q)
    t.check("M26", not q.flags & R, "R=0 in a Request", q)
    t.check("M27", not q.flags & 0x0F, "reserved bits zero", q)
    t.check("M24", len(q.data) <= 512, "at most 512 octets of private data", len(q.data))
    t.check("M11", bool(q.flags & C), "C=1 by default", q)
    if q.enhanced:
        t.check("E1", len(q.data) >= 4, "the IRD/ORD word", q)
        t.check("E10", q.p2p or not q.rtr, "no RTR bits without A", q)
        t.check("E11", not q.p2p or q.rtr, "with A at least one RTR kind", q)


@TABLE.case("reply/accept", "M29 E12 M28", role=RESPONDER)
def accept(t):
    s = t.answer(first=False)
    seg = s.recv()
    if s.request.p2p:
        empty = (seg.op == codec.WRITE or seg.op == codec.SEND) and not seg.payload
        asked = seg.op == codec.READ_REQUEST and codec.parse_read(seg.payload).size == 0
        t.check("E12", empty or asked, "a zero-length RTR first", seg)
    t.check("M29", True, "FPDUs behind the Reply", seg)


@TABLE.case("reply/silent-until-reply", "M22 M29", role=RESPONDER)
def silent(t):
    s, _ = take_request(t)
    t.silent("M29", s, 0.4, "nothing between Request and Reply")
    reply(s)
    s.recv()


def rtr_kind(kind):
    def run(t):
        s, q = take_request(t)
        if not q.p2p:
            raise NotApplicable("the target does not ask for peer-to-peer")
        if not q.rtr & kind:
            raise NotApplicable(f"the target does not offer a {codec.RTR_NAMES[kind]}")
        reply(s, rtr=kind)
        seg = s.recv()
        op = {codec.RTR_SEND: codec.SEND, codec.RTR_WRITE: codec.WRITE, codec.RTR_READ: codec.READ_REQUEST}[kind]
        t.check("E12", seg.op == op and (kind == codec.RTR_READ or not seg.payload), f"a {codec.RTR_NAMES[kind]} first", seg)
        if kind == codec.RTR_READ:
            r = codec.parse_read(seg.payload)
            t.check("E13", r.size == 0, "size 0", r)
            s.send(codec.tagged(codec.READ_RESPONSE, r.sink, r.sink_to))
        t.check("E12", s.recv().op == codec.SEND, "then the program's Send", "it came")

    return run


for kind, name in codec.RTR_NAMES.items():
    TABLE.add(f"reply/rtr-{name.split()[-1].lower()}", "E12 E13", rtr_kind(kind), role=RESPONDER)


@TABLE.case("reply/no-rtr-in-common", "E12", role=RESPONDER)
def no_rtr(t):
    s, q = take_request(t)
    other = next((k for k in codec.RTR_NAMES if not q.rtr & k), 0)
    if not q.p2p:
        raise NotApplicable("the target does not ask for peer-to-peer")
    s.put(codec.start_frame(REPLY_KEY, C | S, q.rev, codec.enhanced(8, 8, True, other)), f"Reply with A and RTR {other}")
    s.agree(C, q.flags)
    judge.terminated(t, s, "E12", "2/0/07")


@TABLE.case("reply/a-not-answered", "E10", role=RESPONDER)
def a_unanswered(t):
    """A=0 in answer to A=1: not an answer that the RFC knows."""
    s, q = take_request(t)
    if not q.p2p:
        raise NotApplicable("the target does not ask for peer-to-peer")
    s.put(codec.start_frame(REPLY_KEY, C | S, q.rev, codec.enhanced(8, 8)), "Reply with A=0")
    s.agree(C, q.flags)
    segments, how = s.drain(1.5)
    good = [x for x in segments if x.op != codec.TERMINATE]
    t.check("E10", not good and not how.startswith("silence"), "the end", f"{good and good[0]} {how}")


# ---- Replies that end it ------------------------------------------------------------------


def ended(req, **how):
    def run(t):
        s, _ = take_request(t)
        reply(s, **how)
        must_end(t, s, req)

    return run


def must_end(t, s, req):
    try:
        octets = s.take(1)
    except stream.Ended as e:
        t.check(req, not e.how.startswith("silence"), "the end, without an FPDU", e.how)
        return
    t.check(req, False, "the end, without an FPDU", f"octets beginning {octets.hex()}")


for position in (0, 11, 14, 15):
    bad = REPLY_KEY[:position] + bytes([REPLY_KEY[position] ^ 0x20]) + REPLY_KEY[position + 1 :]
    TABLE.add(f"reply/key-octet-{position}", "M23 M36", ended("M23", key=bad), role=RESPONDER)
TABLE.add("reply/request-key", "M23", ended("M23", key=REQUEST_KEY), role=RESPONDER)
TABLE.add("reply/rejected", "M26", ended("M26", flags=C | R), role=RESPONDER)
TABLE.add("reply/pd-513", "M24 M36", ended("M24", data=bytes(513)), role=RESPONDER)
TABLE.add("reply/pd-65535-announced", "M24 M36", ended("M24", data=bytes(8), length=65535), role=RESPONDER)
TABLE.add("reply/rev-3", "M25", ended("M25", rev=3), role=RESPONDER)


@TABLE.case("reply/s-without-word", "E1", role=RESPONDER, dangerous=True)
def s_without_word(t):
    """S=1 with an empty private data field."""
    s, q = take_request(t)
    enhanced_only(q)
    reply(s, flags=C | S, data=b"")
    must_end(t, s, "E1")



@TABLE.case("reply/rejected-with-data", "M26 E8", role=RESPONDER)
def rejected_with_data(t):
    s, q = take_request(t)
    data = (codec.enhanced(1, 1) if q.enhanced else b"") + b"why"
    s.put(codec.start_frame(REPLY_KEY, C | R | (S if q.enhanced else 0), q.rev, data), "Reply with R=1 and private data")
    must_end(t, s, "M26")


@TABLE.case("reply/none", "M30", role=RESPONDER, slow=True)
def none(t):
    s, _ = take_request(t)
    start = time.monotonic()
    try:
        s.take(1, t.options.patience)
    except stream.Ended as e:
        t.check("M30", not e.how.startswith("silence"), f"the end within {t.options.patience} s", f"{e.how} after {time.monotonic() - start:.1f} s")
        return
    raise Failure("silence", "octets")


@TABLE.case("reply/fin-instead", "M37", role=RESPONDER)
def fin_instead(t):
    s, _ = take_request(t)
    s.sock.shutdown(socket.SHUT_WR)
    must_end(t, s, "M37")


# ---- Replies of other kinds ---------------------------------------------------------------


@TABLE.case("reply/octet-by-octet", "M38", role=RESPONDER)
def slowly(t):
    s, q = take_request(t)
    flags = C | (S if q.enhanced else 0)
    data = codec.enhanced(8, 8, q.p2p, (q.rtr & -q.rtr) if q.p2p else 0) if q.enhanced else b""
    frame = codec.start_frame(REPLY_KEY, flags, q.rev, data)
    s.put_slowly(frame, "Reply")
    s.agree(C, q.flags)
    t.check("M38", s.recv() is not None, "an FPDU", s.received[-1].segment)


@TABLE.case("reply/reserved-bits", "M27", role=RESPONDER)
def reserved(t):
    s, _ = take_request(t)
    reply(s, flags=C | 0x0F)
    t.check("M27", s.recv() is not None, "not looked at", s.received[-1].segment)


@TABLE.case("reply/private-data-508", "M24", role=RESPONDER)
def much_data(t):
    s, q = take_request(t)
    data = codec.enhanced(8, 8, q.p2p, (q.rtr & -q.rtr) if q.p2p else 0) if q.enhanced else b""
    frame = codec.start_frame(REPLY_KEY, C | (S if q.enhanced else 0), q.rev, data + bytes(508))
    s.put(frame, codec.parse_start(frame))
    s.agree(C, q.flags)
    t.check("M24", s.recv() is not None, "accepted", s.received[-1].segment)


@TABLE.case("reply/crc-wanted-by-us-alone", "M12", role=RESPONDER)
def crc_ours(t):
    s, q = take_request(t)
    reply(s, flags=C)
    s.recv()
    bad = [r for r in s.received if r.crc != r.crc_wanted]
    t.check("M12", not bad, "a right CRC in the first FPDU", "a wrong one" if bad else f"right (the target asked: {bool(q.flags & C)})")


@TABLE.case("reply/crc-wanted-by-the-target-alone", "M12", role=RESPONDER)
def crc_theirs(t):
    s, q = take_request(t)
    if not q.flags & C:
        raise NotApplicable("the target does not ask for CRC")
    reply(s, flags=0)
    s.recv()
    t.check("M12", s.received[-1].crc == s.received[-1].crc_wanted, "a right CRC", s.received[-1].crc.hex())


@TABLE.case("reply/markers", "M17 M18 M19 M20", role=RESPONDER)
def markers(t):
    s, _ = take_request(t)
    reply(s, flags=C | M)
    try:
        t.take_first(s)
        for _ in range(3):
            t.read(s, 0x33, 0, 0, 1, 0)
    except stream.Ended as e:
        raise Failure("every sender can do markers", f"{e.how} after the Reply") from None
    t.check("M17", s.stripper.count > 0, "markers", s.stripper.count)
    t.check("M19", not s.stripper.faults, "in their places", s.stripper.faults[:2] or "as they should be")
    judge.frames(t, s)


@TABLE.case("reply/plain-to-enhanced", "E2", role=RESPONDER)
def plain(t):
    """A Reply of revision 1 to a Request of revision 2: taken, or the end."""
    s, q = take_request(t)
    enhanced_only(q)
    s.put(codec.start_frame(REPLY_KEY, C, 1, b""), "Reply of revision 1")
    s.agree(C, q.flags)
    try:
        seg = s.recv()
    except stream.Ended as e:
        t.check("E2", not e.how.startswith("silence"), "FPDUs or the end", e.how)
        return
    t.check("E2", True, "FPDUs or the end", seg)


@TABLE.case("reply/ord-above-ird", "E7", role=RESPONDER)
def ord_above(t):
    """Our ORD is more than any IRD: Terminate 2/0/06, or the target has room for that many."""
    s, q = take_request(t)
    enhanced_only(q)
    reply(s, ord_=0x3FFE)
    segments, how = s.drain(1.5)
    got = next((x for x in segments if x.op == codec.TERMINATE), None)
    if got is None and how.startswith("silence"):
        t.check("E7", q.ird >= 0x3FFE, "Terminate 2/0/06", f"the stream goes on with IRD {q.ird} announced")
        return
    t.check("E7", got is not None and codec.parse_terminate(got.payload).triple == "2/0/06", "Terminate 2/0/06", got or how)


@TABLE.case("reply/ird-0", "E5 E7", role=RESPONDER)
def ird_0(t):
    """Our IRD is 0: the target may send no Read but goes on."""
    s, q = take_request(t)
    enhanced_only(q)
    reply(s, ird=0, rtr=q.rtr & ~codec.RTR_READ or q.rtr)
    seg = s.recv()
    t.check("E5", seg.op != codec.READ_REQUEST or q.p2p, "no Read Request", seg)


@TABLE.case("reply/no-negotiation", "E9", role=RESPONDER)
def no_negotiation(t):
    s, q = take_request(t)
    enhanced_only(q)
    reply(s, ird=NO_NEGOTIATION, ord_=NO_NEGOTIATION)
    seg = s.recv()
    t.check("E9", seg.op != codec.TERMINATE, "0x3FFF changes nothing", seg)
