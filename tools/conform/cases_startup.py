# SPDX-License-Identifier: BSD-3-Clause
"""Start-up with the tester as initiator: RFC 5044 §7.1, RFC 6581."""

import socket
import time

from . import codec, judge, program, stream
from .case import Table
from .codec import C, M, NO_NEGOTIATION, R, REPLY_KEY, REQUEST_KEY, S
from .verdict import Failure, Inconclusive, NotApplicable

TABLE = Table()
# How long the target has to stay silent before we believe that it does.
SILENCE = 0.4
PLAIN_DATA = codec.enhanced(8, 8)


# ---- Requests that must be accepted -------------------------------------------------------


def accepted(**how):
    def run(t):
        s = t.open(**how)
        reply_in_order(t, s.reply)
        t.alive(s)
        t.check(t.case.requirements[0], True, "accepted, and the stream works", s.reply)

    return run


def reply_in_order(t, f):
    t.check("M23", f.key == REPLY_KEY, "the Reply's key", f.key)
    t.check("M27", not f.flags & 0x0F, "reserved bits zero", f)
    t.check("M24", len(f.data) <= 512, "at most 512 octets of private data", len(f.data))


def plain_rev2(t):
    """S=0 at revision 2: the private data is the ULP's alone."""
    s = raw_request(t, C, 2, b"")
    s.reply = s.take_start()
    reply_in_order(t, s.reply)
    t.check("E2", not s.reply.flags & S, "S=0 in the Reply to S=0", s.reply)


def rev1(t):
    s = t.open(rev=1)
    reply_in_order(t, s.reply)
    t.check("M25", s.reply.rev in (0, 1), "a Reply of revision 1", s.reply)
    t.check("E2", not s.reply.flags & S, "S=0 in the Reply to revision 1", s.reply)
    t.alive(s)


def rev2(t):
    try:
        s = t.open()
    except stream.Ended as e:
        t.check("E4", not e.how.startswith("silence"), "the end, where RFC 6581 is not known", e.how)
        raise NotApplicable("the target does not take revision 2") from None
    reply_in_order(t, s.reply)
    if s.reply.rev < 2:
        raise NotApplicable("the target answers with revision 1: no RFC 6581")
    t.not_applicable("E4", "the target does RFC 6581")
    t.check("M25", s.reply.rev == 2, "a Reply of revision 2", s.reply)
    t.check("E1", len(s.reply.data) >= 4, "the IRD/ORD word in the private data", s.reply)
    t.check("E2", bool(s.reply.flags & S), "S=1 in the Reply to S=1", s.reply)
    t.alive(s)


def raw_request(t, flags, rev, data, key=REQUEST_KEY, length=None, glue=b""):
    s = t.raw()
    frame = codec.start_frame(key, flags, rev, data, length)
    s.put(frame + glue, f"start-up frame key={key!r} flags={flags:#x} rev={rev} PD_Length={length or len(data)}, {len(glue)} octets behind")
    return s


TABLE.add("startup/rev-1", "M25 E2 M23 M27 M24", rev1)
TABLE.add("startup/rev-2", "E1 E4 M25 E2 M23 M27 M24", rev2)
TABLE.add("startup/rev-2-without-s", "E2 M23 M27 M24", plain_rev2)
TABLE.add("startup/reserved-bits", "M27 M23 M24", accepted(flags=C | 0x0F))
TABLE.add("startup/reject-bit-in-request", "M26 M23 M27 M24", accepted(flags=C | R))


@TABLE.case("startup/rev-0", "M25")
def rev0(t):
    """An RDMA Consortium peer: answered in kind, or the connection ends."""
    s = raw_request(t, C, 0, b"")
    refused_or(t, s, "M25", lambda f: f.rev == 0, "revision 0 in the Reply, or the end")


@TABLE.case("startup/rev-3", "M25")
def rev3(t):
    s = raw_request(t, C | S, 3, PLAIN_DATA)
    refused_or(t, s, "M25", lambda f: f.rev < 3, "a lower revision in the Reply, or the end")


@TABLE.case("startup/rev-255", "M25")
def rev255(t):
    s = raw_request(t, C, 255, b"")
    refused_or(t, s, "M25", lambda f: f.rev < 3, "a lower revision in the Reply, or the end")


def refused_or(t, s, req, fits, expected):
    try:
        f = s.take_start()
    except stream.Ended as e:
        t.check(req, not e.how.startswith("silence"), expected, e.how)
        return
    t.check(req, bool(f.flags & R) or fits(f), expected, f)


# ---- Requests that must not be accepted ---------------------------------------------------


def refused(req, **how):
    """No Reply, or one that rejects; then TCP is closed."""

    def run(t):
        must_end(t, raw_request(t, **how), req)

    return run


def must_end(t, s, req, reject_fits=True, patience=None):
    try:
        f = s.take_start(patience)
    except stream.Ended as e:
        t.check(req, not e.how.startswith("silence"), "the connection ends", e.how)
        return
    if not f.flags & R or not reject_fits:
        t.check(req, False, "no accepting Reply", f)
        return
    t.check(req, True, "refused", f)


for position in (0, 4, 8, 11, 13, 14, 15):
    key = REQUEST_KEY[:position] + bytes([REQUEST_KEY[position] ^ 0x20]) + REQUEST_KEY[position + 1 :]
    TABLE.add(f"startup/key-octet-{position}", "M23 M36", refused("M23", flags=C | S, rev=2, data=PLAIN_DATA, key=key))
TABLE.add("startup/reply-key", "M23", refused("M23", flags=C | S, rev=2, data=PLAIN_DATA, key=REPLY_KEY))
TABLE.add("startup/key-of-zeros", "M23", refused("M23", flags=C | S, rev=2, data=PLAIN_DATA, key=bytes(16)))
TABLE.add("startup/pd-513", "M24 M36", refused("M24", flags=C, rev=1, data=bytes(513)))
TABLE.add("startup/pd-65535-announced", "M24 M36", refused("M24", flags=C, rev=1, data=bytes(16), length=65535))


@TABLE.case("startup/s-without-word", "E1 M24", dangerous=True)
def s_without_word(t):
    """S=1 with an empty private data field."""
    must_end(t, raw_request(t, C | S, 2, b""), "E1")


@TABLE.case("startup/s-with-half-a-word", "E1", dangerous=True)
def s_with_half(t):
    must_end(t, raw_request(t, C | S, 2, b"\0\4"), "E1")


@TABLE.case("startup/octets-behind-request", "M31 M36")
def behind(t):
    """An FPDU glued to the Request."""
    wish = program.wish(delay_ms=300) if t.program.has_wishes else b""
    glue = codec.fpdu(codec.untagged(codec.SEND, 0, 1, b"too early"), True)
    must_end(t, raw_request(t, C | S, 2, PLAIN_DATA + wish, glue=glue), "M31", reject_fits=False)


@TABLE.case("startup/octets-before-reply", "M31", needs=("wish",))
def before_reply(t):
    """An FPDU in a segment of its own, while the program still thinks about its answer."""
    s = raw_request(t, C | S, 2, PLAIN_DATA + program.wish(delay_ms=500))
    time.sleep(0.15)
    s.put(codec.fpdu(codec.untagged(codec.SEND, 0, 1, b"too early"), True), "FPDU before the Reply")
    must_end(t, s, "M31", reject_fits=False)


# ---- private data -------------------------------------------------------------------------


def private_data(n, rev=2):
    def run(t):
        """`n` octets of the ULP's; what the program makes of them is its own affair."""
        data = (PLAIN_DATA if rev == 2 else b"") + bytes(n)
        s = raw_request(t, C | (S if rev == 2 else 0), rev, data)
        f = s.take_start()
        t.check("M24", not f.flags & R and f.key == REPLY_KEY, f"{len(data)} octets of private data are accepted", f)

    return run


for n in (0, 1, 255, 256, 257, 508):
    TABLE.add(f"startup/private-data-{n}", "M24", private_data(n))
TABLE.add("startup/private-data-512-rev-1", "M24", private_data(512, rev=1))


# ---- time ---------------------------------------------------------------------------------


@TABLE.case("startup/responder-waits-for-request", "M22")
def waits(t):
    s = t.raw()
    t.silent("M22", s, SILENCE, "silence before the Request")


@TABLE.case("startup/request-octet-by-octet", "M38")
def slowly(t):
    s = t.raw()
    wish = program.wish() if t.program.has_wishes else b""
    frame = codec.start_frame(REQUEST_KEY, C | S, 2, PLAIN_DATA + wish)
    s.put_slowly(frame, codec.parse_start(frame))
    s.reply = s.take_start()
    t.agreed(s, C | S, s.reply)
    t.check("M38", not s.reply.flags & R, "an accepting Reply", s.reply)
    t.settle(s)
    t.alive(s)


def timed_out(t, s, sent):
    start = time.monotonic()
    try:
        s.take(1, t.options.patience)
    except stream.Ended as e:
        if e.how.startswith("silence"):
            t.check("M30", False, f"the end within {t.options.patience} s after {sent}", "still open")
        else:
            t.check("M30", True, "the end", f"{e.how} after {time.monotonic() - start:.1f} s")
        return
    raise Failure("the end", "octets")


@TABLE.case("startup/no-request", "M30", slow=True)
def no_request(t):
    timed_out(t, t.raw(), "nothing")


@TABLE.case("startup/half-a-key", "M30", slow=True)
def half_a_key(t):
    s = t.raw()
    s.put(REQUEST_KEY[:10], "10 octets of the key")
    timed_out(t, s, "half a key")


@TABLE.case("startup/private-data-missing", "M30 M24", slow=True)
def data_missing(t):
    timed_out(t, raw_request(t, C, 1, bytes(4), length=16), "a part of the private data")


@TABLE.case("startup/responder-silent", "M28", needs=("wish",))
def responder_silent(t):
    """The program posts a Send at once; the wire stays silent until our first FPDU."""
    s = t.open(wish=program.wish(program.HELLO))
    t.silent("M28", s, SILENCE, "silence until our first FPDU")
    s.send(codec.tagged(codec.WRITE, 1, 0))
    seg = t.recv(s, codec.SEND)
    t.check("M28", seg.payload.startswith(b"hello"), "then the Send that was waiting", seg)


# ---- CRC and markers ----------------------------------------------------------------------


def crc_use(ours):
    def run(t):
        s = t.open(flags=C if ours else 0)
        theirs = bool(s.reply.flags & C)
        t.alive(s)
        if ours or theirs:
            bad = [r for r in s.received if r.crc != r.crc_wanted]
            t.check("M12", not bad, "a right CRC in what the target sends", f"{len(bad)} wrong of {len(s.received)}")
        if not ours:
            t.check("M11", theirs, "C=1 in the Reply (the default)", s.reply)
            if not theirs:
                t.check("M10", True, "a CRC field even with CRC off", "frames of the right size")

    return run


TABLE.add("crc/asked-by-us", "M12", crc_use(True))
TABLE.add("crc/not-asked-by-us", "M11 M12 M10", crc_use(False))


@TABLE.case("markers/asked", "M17 M18 M19 M20 M32")
def markers_asked(t):
    """We ask for markers: the target puts them into what it sends, every 512 octets."""
    s = t.request(flags=C | M)
    if s.reply.flags & R:
        raise Failure("an accepting Reply: every sender can do markers", "a rejection")
    t.check("M32", True, "the Reply's own M and C", s.reply)
    t.settle(s)
    t.alive(s)
    if t.program.has_commands:
        for size in (1, 470, 471, 472, 473, 1000, 3000):
            t.command(s, program.CMD_SEND, length=size, flags=program.QUIET)
            whole(t, s, size)
    t.check("M17", s.stripper.count > 0, "markers", f"{s.stripper.count} markers")
    seen = f"{s.stripper.count} markers, {s.stripper.faults[:2]}"
    t.check("M19", not s.stripper.faults, "one in front of the first FPDU and one every 512 octets", seen)
    judge.frames(t, s)


def whole(t, s, size):
    got = b""
    while True:
        seg = t.recv(s, codec.SEND)
        got += seg.payload
        if seg.last:
            break
    if got != program.pattern(0, size):
        raise Failure(f"{size} octets as in the target's memory", f"{len(got)} octets, other ones")


@TABLE.case("markers/not-asked", "M21 M18", needs=("commands",))
def markers_not_asked(t):
    s = t.open()
    t.command(s, program.CMD_SEND, length=3000, flags=program.QUIET)
    whole(t, s, 3000)
    t.check("M21", True, "FPDUs without markers", "every FPDU parses, CRCs fit")
    judge.frames(t, s)


@TABLE.case("markers/target-asks", "M6 M16")
def markers_target_asks(t):
    """If the target wants markers: ours are taken."""
    s = t.open()
    if s.inserter is None:
        raise NotApplicable("the target does not ask for markers")
    for _ in range(30):
        t.alive(s)
    t.check("M6", True, "30 exchanges", "done")


# ---- RFC 6581: IRD and ORD ----------------------------------------------------------------


def rev2_reply(t, **how):
    s = t.request(**how)
    if s.reply.flags & R:
        raise Failure("an accepting Reply", s.reply)
    if not s.reply.enhanced:
        raise NotApplicable("the target answers without RFC 6581")
    return s


def negotiated(ird, ord_):
    def run(t):
        s = rev2_reply(t, ird=ird, ord_=ord_)
        f = s.reply
        t.check("E6", f.ord <= ird or f.ord == NO_NEGOTIATION, f"ORD at most {ird}", f)
        t.check("E6", f.ord != NO_NEGOTIATION, f"a number in answer to IRD {ird}", f)
        t.check("E5", f.ird <= NO_NEGOTIATION and (f.ird != NO_NEGOTIATION), "a number in answer to a number", f)

    return run


for ird, ord_ in ((0, 0), (1, 1), (4, 16), (16, 4), (300, 300), (0x3FFE, 0x3FFE)):
    TABLE.add(f"ird-ord/{ird}-{ord_}", "E6 E5", negotiated(ird, ord_))


@TABLE.case("ird-ord/no-negotiation", "E9")
def no_negotiation(t):
    f = rev2_reply(t, ird=NO_NEGOTIATION, ord_=NO_NEGOTIATION).reply
    t.check("E9", f.ord == NO_NEGOTIATION, "ORD 0x3FFF in answer to IRD 0x3FFF", f)
    t.check("E9", f.ird == NO_NEGOTIATION, "IRD 0x3FFF in answer to ORD 0x3FFF", f)


@TABLE.case("ird-ord/no-negotiation-of-ird", "E9 E6")
def no_negotiation_ird(t):
    f = rev2_reply(t, ird=NO_NEGOTIATION, ord_=4).reply
    t.check("E9", f.ord == NO_NEGOTIATION, "ORD 0x3FFF in answer to IRD 0x3FFF", f)
    t.check("E9", f.ird != NO_NEGOTIATION, "a number in answer to ORD 4", f)


@TABLE.case("ird-ord/no-negotiation-of-ord", "E9 E6")
def no_negotiation_ord(t):
    f = rev2_reply(t, ird=4, ord_=NO_NEGOTIATION).reply
    t.check("E9", f.ird == NO_NEGOTIATION, "IRD 0x3FFF in answer to ORD 0x3FFF", f)
    t.check("E6", f.ord <= 4, "ORD at most 4", f)


@TABLE.case("ird-ord/told-to-the-program", "E8", needs=("wish",))
def told(t):
    """What the program was told is what it takes over when it wishes nothing else."""
    rev2_reply(t, ird=3, ord_=5)
    p = t.program
    t.check("E8", (p.ird, p.ord) == (5, 3), "the program's IRD 5 and ORD 3, from our ORD 5 and IRD 3", f"IRD {p.ird} ORD {p.ord}")


@TABLE.case("ird-ord/limited-by-the-program", "E5", needs=("wish",))
def limited(t):
    f = rev2_reply(t, ird=8, ord_=8, wish=program.wish(ird=2, ord_=1)).reply
    t.check("E5", f.ird >= 2 and f.ord <= 1, "IRD 2 (or more) and ORD 1, as the program grants", f)


@TABLE.case("ird-ord/program-wants-more", "E6", needs=("wish",))
def wants_more(t):
    """The program asks for more outbound Reads than our IRD: the Reply does not."""
    try:
        f = rev2_reply(t, ird=2, ord_=8, wish=program.wish(ord_=100)).reply
    except stream.Ended as e:
        raise NotApplicable(f"the RNIC refuses the program's wish: {e.how}") from None
    t.check("E6", f.ord <= 2, "ORD at most 2", f)


# ---- RFC 6581: peer to peer ---------------------------------------------------------------


def send_rtr(t, s, kind):
    if kind == codec.RTR_WRITE:
        s.send(codec.tagged(codec.WRITE, 1, 0))
    elif kind == codec.RTR_READ:
        if t.read(s, 0x99, 0x1234, 0, 1, 0):
            raise Failure("a zero-length Read Response", "octets")
    else:
        t.send(s, b"")


def peer_to_peer(offer):
    def run(t):
        s = rev2_reply(t, p2p=True, rtr=offer)
        f = s.reply
        t.check("E10", f.p2p, "A=1 in answer to A=1", f)
        t.check("E11", f.rtr != 0, "at least one RTR kind in the Reply", f)
        common = [k for k in codec.RTR_NAMES if k & f.rtr & offer]
        if not common:
            t.not_applicable("E12", f"no RTR kind in common: offered {offer}, answered {f.rtr}")
            return
        t.settle(s)
        send_rtr(t, s, common[0])
        t.alive(s)
        t.check("E12", True, f"a {codec.RTR_NAMES[common[0]]} opens the stream", "it does")
        t.check("E13", True, "the RTR takes nothing from the ULP", "the exchange behind it works")

    return run


for offer in range(1, 8):
    TABLE.add(f"p2p/offer-{'-'.join(n.split()[-1].lower() for k, n in codec.RTR_NAMES.items() if k & offer)}",
              "E10 E11 E12 E13", peer_to_peer(offer))  # fmt: skip


@TABLE.case("p2p/bits-without-a", "E10")
def bits_without_a(t):
    """B, C and D without A mean nothing."""
    f = rev2_reply(t, p2p=False, rtr=7).reply
    t.check("E10", not f.p2p and not f.rtr, "A, B, C and D zero in answer to A=0", f)


@TABLE.case("p2p/bits-without-a-ird", "E10")
def bits_without_a_ird(t):
    f = rev2_reply(t, ird=2, ord_=2, p2p=False, rtr=codec.RTR_WRITE).reply
    t.check("E10", not f.p2p and not f.rtr, "A, B, C and D zero in answer to A=0", f)


@TABLE.case("p2p/read-rtr-with-ord-0", "E12", dangerous=True)
def read_rtr_ord_0(t):
    """A responder that names the Read RTR takes it, though our ORD was 0: it may raise its IRD."""
    s = rev2_reply(t, ird=0, ord_=0, p2p=True, rtr=codec.RTR_READ)
    if not s.reply.rtr & codec.RTR_READ:
        raise Inconclusive(f"no Read RTR in the Reply: {s.reply}")
    t.settle(s)
    send_rtr(t, s, codec.RTR_READ)
    t.check("E12", True, "the Read RTR that the Reply names", "answered")


@TABLE.case("p2p/fin-before-rtr", "M37", dangerous=True)
def fin_before_rtr(t):
    """The initiator goes away between Reply and RTR; the target takes the next connection."""
    s = rev2_reply(t, p2p=True, rtr=codec.RTR_WRITE)
    t.settle(s)
    s.sock.shutdown(socket.SHUT_WR)
    segments, how = s.drain()
    t.check("M37", not segments and how == "FIN", "a FIN in answer, nothing else", f"{len(segments)} FPDUs, {how}")
    t.alive(t.open())


# ---- rejection ----------------------------------------------------------------------------


@TABLE.case("startup/program-rejects", "M26 E8", needs=("wish",))
def rejects(t):
    s = t.request(wish=program.wish(program.REJECT))
    f = s.reply
    t.check("M26", bool(f.flags & R), "R=1 in the Reply", f)
    t.check("M24", f.ulp_data.startswith(b"rejected as asked"), "the program's private data", f.ulp_data[:32])
    segments, how = s.drain()
    t.check("M26", not segments, "no FPDU after a rejection", f"{len(segments)} FPDUs, {how}")
