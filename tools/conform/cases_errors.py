# SPDX-License-Identifier: BSD-3-Clause
"""One wrong segment each, and the Terminate that has to follow. As a table: what is wrong, what
is sent, which layer/type/code may come back. Where the RFCs leave a choice, each is listed."""

from . import codec, judge, program
from .case import EITHER, Table
from .codec import (ATOMIC_REQUEST, IMMEDIATE, READ_REQUEST, READ_RESPONSE, SEND, SEND_INV, SEND_SE, SEND_SE_INV,
                    TERMINATE, WRITE)  # fmt: skip
from .judge import ANY_RDMAP_OR_DDP
from .verdict import Inconclusive

TABLE = Table()
NOWHERE = 0x12345600  # an STag that nobody has
TOP = (1 << 64) - 4
EIGHT = b"8 octets"


def send(t, s, payload=None, op=SEND, msn=None, qn=0, **how):
    payload = (t.program.good_send or b"x" * 16) if payload is None else payload
    return codec.untagged(op, qn, s.msn[0] if msn is None else msn, payload, **how)


def rreq(t, s, size, stag, to, msn=None, **how):
    return codec.untagged(READ_REQUEST, 1, s.msn[1] if msn is None else msn, codec.read_body(0x33, 0, size, stag, to), **how)


def write(stag, to, payload=EIGHT, **how):
    return codec.tagged(WRITE, stag, to, payload, **how)


def at(name, offset=0):
    """The STag and TO of a region."""

    def place(t):
        r = t.region(name)
        return r.stag, r.to + offset

    return place


# name, requirement, what may come back, the segment: function of (trial, stream), needs
SEGMENTS = (
    # ---- DDP control field and queues
    ("untagged-dv-0", "D2", "1/2/06", lambda t, s: send(t, s, dv=0), ()),
    ("untagged-dv-3", "D2", "1/2/06", lambda t, s: send(t, s, dv=3), ()),
    ("tagged-dv-0", "D2", "1/1/04", lambda t, s: write(NOWHERE, 0, dv=0), ()),
    ("tagged-dv-2", "D2", "1/1/04", lambda t, s: write(NOWHERE, 0, dv=2), ()),
    ("queue-4", "D11", "1/2/01", lambda t, s: send(t, s, qn=4), ()),
    ("queue-max", "D11", "1/2/01", lambda t, s: send(t, s, qn=0xFFFFFFFF), ()),
    ("msn-0", "D11", "1/2/02 1/2/03", lambda t, s: send(t, s, msn=0), ()),
    ("msn-far-ahead", "D11", "1/2/02 1/2/03", lambda t, s: send(t, s, msn=100000), ()),
    ("msn-max", "D4", "1/2/02 1/2/03", lambda t, s: send(t, s, msn=0xFFFFFFFF), ()),
    ("read-msn-0", "D11", "1/2/02 1/2/03", lambda t, s: rreq(t, s, 0, 1, 0, msn=0), ()),
    ("read-msn-far-ahead", "D11", "1/2/02 1/2/03", lambda t, s: rreq(t, s, 0, 1, 0, msn=100000), ()),
    ("mo-beyond-buffer", "D11", "1/2/04", lambda t, s: send(t, s, EIGHT, mo=t.program.recv_size + 64), ("send",)),
    ("mo-max", "D11", "1/2/04 1/2/05", lambda t, s: send(t, s, EIGHT, mo=0xFFFFFFFC), ("send",)),
    ("send-too-long", "P19", "1/2/05", lambda t, s: send(t, s, bytes(t.program.recv_size + 1)[:60000]), ("send",)),
    ("send-too-long-with-se", "P19", "1/2/05", lambda t, s: send(t, s, bytes(t.program.recv_size + 1), op=SEND_SE), ("send",)),
    # ---- RDMAP control field
    ("rv-0", "P35", "0/2/05", lambda t, s: send(t, s, rv=0), ()),
    ("rv-2", "P35", "0/2/05", lambda t, s: send(t, s, rv=2), ()),
    ("rv-3-on-zero-length-write", "P35", "0/2/05", lambda t, s: write(1, 0, b"", rv=3), ()),
    ("opcode-12", "P35", "0/2/06", lambda t, s: send(t, s, op=0xC), ()),
    ("opcode-13", "P35", "0/2/06", lambda t, s: send(t, s, op=0xD), ()),
    ("opcode-14", "P35", "0/2/06", lambda t, s: send(t, s, op=0xE), ()),
    ("send-on-queue-1", "P4", "0/2/06 1/2/01", lambda t, s: send(t, s, qn=1, msn=1), ()),
    ("send-on-queue-2", "P4", "0/2/06 1/2/01", lambda t, s: send(t, s, qn=2, msn=1), ()),
    ("send-on-queue-3", "P4", "0/2/06 1/2/01 1/2/02", lambda t, s: send(t, s, qn=3, msn=1), ()),
    ("read-request-on-queue-0", "P4", "0/2/06 1/2/01",
     lambda t, s: send(t, s, codec.read_body(0x33, 0, 0, 1, 0), op=READ_REQUEST), ()),
    ("terminate-on-queue-0", "P4", "0/2/06 1/2/01", lambda t, s: send(t, s, codec.terminate_body(0, 0, 0), op=TERMINATE), ()),
    ("tagged-send", "P4", "0/2/06", lambda t, s: codec.tagged(SEND, 1, 0), ()),
    ("tagged-read-request", "P4", "0/2/06", lambda t, s: codec.tagged(READ_REQUEST, 1, 0), ()),
    ("untagged-write", "P4", "0/2/06", lambda t, s: send(t, s, op=WRITE), ()),
    ("untagged-read-response", "P4", "0/2/06", lambda t, s: send(t, s, op=READ_RESPONSE), ()),
    ("read-request-of-24-octets", "P4", ANY_RDMAP_OR_DDP,
     lambda t, s: codec.untagged(READ_REQUEST, 1, s.msn[1], codec.read_body(0x33, 0, 0, 1, 0)[:24]), ()),
    ("read-request-with-payload", "P4", ANY_RDMAP_OR_DDP,
     lambda t, s: codec.untagged(READ_REQUEST, 1, s.msn[1], codec.read_body(0x33, 0, 0, 1, 0) + b"more"), ()),
    ("response-nobody-asked-for", "P9", "0/2/06 1/1/00", lambda t, s: codec.tagged(READ_RESPONSE, NOWHERE, 0, EIGHT), ()),
    ("atomic-response-nobody-asked-for", "A2", "0/2/06 1/2/01 1/2/02",
     lambda t, s: codec.untagged(codec.ATOMIC_RESPONSE, 3, 1, bytes(12)), ()),
    ("ulpdu-of-4-octets", "M16", ANY_RDMAP_OR_DDP, lambda t, s: send(t, s)[:4], ()),
    ("ulpdu-of-0-octets", "M16", ANY_RDMAP_OR_DDP, lambda t, s: b"", ()),
    # ---- RDMA Write
    ("write-invalid-stag", "D12", "1/1/00", lambda t, s: write(NOWHERE, 0x1000), ()),
    ("write-stag-0", "D12", "1/1/00", lambda t, s: write(0, 0x1000), ()),
    ("write-neighbour-stag", "D12", "1/1/00 1/1/02", lambda t, s: write(at("rw")(t)[0] ^ 1, at("rw")(t)[1]), ("regions",)),
    ("write-behind-end", "D12", "1/1/01", lambda t, s: write(*at("rw", 4096)(t)), ("regions",)),
    ("write-across-end", "D12", "1/1/01", lambda t, s: write(*at("rw", 4092)(t)), ("regions",)),
    ("write-one-octet-too-far", "D12", "1/1/01", lambda t, s: write(*at("rw", 4089)(t)), ("regions",)),
    ("write-before-start", "D12", "1/1/01", lambda t, s: write(*at("rw", -1)(t)), ("regions",)),
    ("write-wraps", "D12", "1/1/03 1/1/01", lambda t, s: write(at("rw")(t)[0], TOP), ("regions",)),
    ("write-without-right", "D12", "0/1/02 1/1/00", lambda t, s: write(*at("read-only")(t)), ("regions",)),
    ("write-local-memory", "D12", "0/1/02 1/1/00", lambda t, s: write(*at("local")(t)), ("regions",)),
    ("write-other-pd", "D14", "1/1/02 1/1/00 0/1/03", lambda t, s: write(*at("other-pd")(t)), ("regions",)),
    # ---- RDMA Read
    ("read-invalid-stag", "P12", "0/1/00", lambda t, s: rreq(t, s, 64, NOWHERE, 0x1000), ()),
    ("read-stag-0", "P12", "0/1/00", lambda t, s: rreq(t, s, 64, 0, 0x1000), ()),
    ("read-behind-end", "P12", "0/1/01", lambda t, s: rreq(t, s, 8, *at("rw", 4096)(t)), ("regions",)),
    ("read-one-octet-too-far", "P12", "0/1/01", lambda t, s: rreq(t, s, 4097, *at("rw")(t)), ("regions",)),
    ("read-before-start", "P12", "0/1/01", lambda t, s: rreq(t, s, 8, *at("rw", -1)(t)), ("regions",)),
    ("read-4-gigabytes", "P12", "0/1/01 0/1/04", lambda t, s: rreq(t, s, 0xFFFFFFFF, *at("rw")(t)), ("regions",)),
    ("read-wraps", "P12", "0/1/04 0/1/01", lambda t, s: rreq(t, s, 8, at("rw")(t)[0], TOP), ("regions",)),
    ("read-without-right", "P12", "0/1/02", lambda t, s: rreq(t, s, 8, *at("write-only")(t)), ("regions",)),
    ("read-local-memory", "P12", "0/1/02 0/1/00", lambda t, s: rreq(t, s, 8, *at("local")(t)), ("regions",)),
    ("read-other-pd", "D14", "0/1/03 0/1/00", lambda t, s: rreq(t, s, 8, *at("other-pd")(t)), ("regions",)),
    # ---- Send with Invalidate
    ("invalidate-invalid-stag", "P20", "0/1/09 0/2/09 0/1/00", lambda t, s: send(t, s, op=SEND_INV, inv=NOWHERE), ("send",)),
    ("invalidate-with-se-invalid-stag", "P20", "0/1/09 0/2/09 0/1/00",
     lambda t, s: send(t, s, op=SEND_SE_INV, inv=NOWHERE), ("send",)),
    ("invalidate-shared-stag", "P21", "0/1/09 0/2/09", lambda t, s: send(t, s, op=SEND_INV, inv=at("rw")(t)[0]), ("regions",)),
    ("invalidate-other-pd", "P20", "0/1/09 0/2/09 0/1/03 0/1/00",
     lambda t, s: send(t, s, op=SEND_INV, inv=at("other-pd")(t)[0]), ("regions",)),
)  # fmt: skip


def one_wrong(req, codes, make):
    def run(t):
        s = t.open()
        bad = make(t, s)
        s.send(bad)
        judge.terminated(t, s, req, codes, bad, read=len(bad) >= 46 and bad[1] & 15 == READ_REQUEST)
        t.untouched("D13")

    return run


for name, req, codes, make, needs in SEGMENTS:
    TABLE.add(f"error/{name}", f"{req} P22 P23 P24 P25 P27 D13", one_wrong(req, codes, make), needs=needs, role=EITHER)


@TABLE.case("error/no-receive-posted", "D11 P18 P22 P24", needs=("wish",))
def no_receive(t):
    """Two Sends, one receive: the second has no buffer."""
    s = t.open(wish=program.wish(program.NO_MORE, recvs=1))
    t.send(s, b"the first one fits")
    bad = send(t, s, b"the second does not")
    s.send(bad)
    judge.terminated(t, s, "D11", "1/2/02", bad)


@TABLE.case("error/no-receive-at-all", "D11 P18 P22 P24", needs=("wish",))
def no_receive_at_all(t):
    """Even an empty Send takes a buffer."""
    s = t.open(wish=program.wish(recvs=0))
    bad = send(t, s, b"")
    s.send(bad)
    judge.terminated(t, s, "P18", "1/2/02", bad)


@TABLE.case("error/send-in-segments-too-long", "P19 D11 P24", needs=("wish",))
def segments_too_long(t):
    """Each segment is small; together they are longer than the buffer."""
    s = t.open(wish=program.wish(recv_size=64))
    first = send(t, s, bytes(48), last=False)
    bad = send(t, s, bytes(48), mo=48)
    s.send(first, bad)
    judge.terminated(t, s, "P19", "1/2/05", bad)


@TABLE.case("error/msn-repeated", "D8 D11 P24", needs=("send", "commands"), role=EITHER)
def msn_repeated(t):
    """A message is delivered once: its number does not come again."""
    s = t.open()
    t.echo(s)
    bad = send(t, s, msn=s.msn[0] - 1)
    s.send(bad)
    judge.terminated(t, s, "D8", "1/2/02 1/2/03", bad)


@TABLE.case("error/msn-skipped", "D4 D8", needs=("send", "commands"), role=EITHER)
def msn_skipped(t):
    """The number after the next: an error, or at least no delivery before its turn."""
    s = t.open()
    bad = send(t, s, b"not yet", msn=s.msn[0] + 1)
    s.send(bad)
    segments, how = s.drain(1.0)
    delivered = [x for x in segments if x.op == SEND]
    t.check("D8", not delivered, "no delivery before the message in front", f"{delivered and delivered[0]} {how}")
    ends = [x for x in segments if x.op == TERMINATE]
    if not ends:
        raise Inconclusive("held back rather than refused; both are possible")
    got = codec.parse_terminate(ends[0].payload)
    t.check("D4", got.triple in ("1/2/02", "1/2/03"), "Terminate 1/2/03", got)


@TABLE.case("error/first-wins", "P24 P22 P23", role=EITHER)
def first_wins(t):
    """Two errors in one TCP segment: the Terminate is about the first."""
    s = t.open()
    bad = send(t, s, rv=0)
    s.send(bad, send(t, s, dv=0), send(t, s, qn=9))
    judge.terminated(t, s, "P24", "0/2/05", bad)


@TABLE.case("error/silence-afterwards", "M34 D13 P23", role=EITHER, needs=("regions",))
def silence_afterwards(t):
    """What follows an error in the same TCP segment is dropped: no placement, no answer."""
    s = t.open()
    bad = send(t, s, rv=0)
    s.send(bad, write(*at("rw")(t)), send(t, s), rreq(t, s, 8, *at("rw")(t)))
    judge.terminated(t, s, "D13", "0/2/05", bad)
    t.untouched("M34")


@TABLE.case("error/program-learns", "P28 P27", needs=("wish",))
def program_learns(t):
    """The program hears of the error, and its receives come back."""
    s = t.open()
    s.send(send(t, s, rv=0))
    s.drain()
    t.sums()
    p = t.program
    told = p.prior == program.TOLD or p.prior_event or p.prior_status
    seen = f"{'a disconnect' if p.prior == program.TOLD else 'no disconnect'}, event {p.prior_event}, status {p.prior_status}"
    t.check("P28", bool(told), "a disconnect, an event or a failed work request", seen)
    t.check("P27", p.prior_flushed == p.recvs, f"all {p.recvs} receives flushed", p.prior_flushed)


# ---- CRC ----------------------------------------------------------------------------------


@TABLE.case("crc/damaged-field", "M14 M33 M35 P24", role=EITHER)
def crc_field(t):
    damaged(t, lambda s, u: s.frame(u, damage=1))


@TABLE.case("crc/damaged-top-bit", "M14 M33 M35 P24", role=EITHER)
def crc_top(t):
    damaged(t, lambda s, u: s.frame(u, damage=0x80000000))


@TABLE.case("crc/damaged-payload", "M14 M33 M35 P24", role=EITHER)
def crc_payload(t):
    damaged(t, lambda s, u: flip(s.frame(u), 26))


@TABLE.case("crc/damaged-pad", "M13 M33 M35 P24", role=EITHER)
def crc_pad(t):
    """A 17-octet Send has one pad octet, which the CRC covers."""
    damaged(t, lambda s, u: flip(s.frame(u), -5), b"17 octets are odd")


@TABLE.case("crc/octets-swapped", "M13 M33", role=EITHER)
def crc_swapped(t):
    """The CRC most significant octet first is a wrong one."""
    damaged(t, lambda s, u: reverse_field(s.frame(u)))


@TABLE.case("crc/zero", "M14 M33", role=EITHER)
def crc_zero(t):
    damaged(t, lambda s, u: s.frame(u)[:-4] + bytes(4))


def reverse_field(data):
    return data[:-4] + data[:-5:-1]


def flip(data, i):
    out = bytearray(data)
    out[i] ^= 1
    return bytes(out)


def damaged(t, make, payload=None):
    s = t.open()
    t.alive(s)  # before its first valid FPDU a responder may not send a Terminate
    before = len(s.received)
    good = send(t, s, payload)
    s.put(make(s, good) + s.frame(good), "a damaged FPDU and a good one behind it")
    got = judge.terminated(t, s, t.case.requirements[0], "2/0/02")
    answers = [r.segment for r in s.received[before:] if r.segment.op not in (TERMINATE, WRITE)]
    t.check("M14", not answers, "nothing delivered from the damaged FPDU on", "; ".join(map(str, answers)) or "nothing")
    if got:
        t.check("M33", got.triple == "2/0/02", "told apart as a CRC error", got)
        t.check("M35", True, "TCP stays open for the Terminate", "it came")


@TABLE.case("crc/damaged-write", "M14 M34", role=EITHER, needs=("regions",))
def damaged_write(t):
    """Not one octet of a damaged FPDU is placed, nor of the one behind it."""
    s = t.open()
    t.alive(s)
    s.put(s.frame(write(*at("rw")(t)), damage=1) + s.frame(write(*at("write-only")(t))), "a damaged Write, a good one elsewhere")
    judge.terminated(t, s, "M33", "2/0/02")
    after = t.sums()
    for req, name, what in (("M14", "rw", "the damaged Write"), ("M34", "write-only", "the Write behind it")):
        placed = after[name].sum != after[name].fresh_sum()
        t.check(req, not placed, f"{what} is not placed", "placed" if placed else "not placed")


@TABLE.case("crc/damaged-first-fpdu", "M14 M28")
def damaged_first(t):
    """Before the responder has seen one valid FPDU it may send none: the end, and no Terminate."""
    s = t.open()
    s.send(send(t, s), damage=1)
    segments, how = s.drain()
    t.check("M14", not how.startswith("silence"), "the end", how)
    t.check("M28", not segments, "no FPDU before a valid one came", "; ".join(map(str, segments)) or "none")


@TABLE.case("crc/wrong-but-off", "M12 M10", role=EITHER)
def wrong_but_off(t):
    """With C=0 on both sides the field is not looked at."""
    s = t.open(flags=0)
    if s.crc:
        t.not_applicable("M12", "the target asks for CRC")
        return
    s.send(codec.tagged(WRITE, 1, 0), damage=0x5A5A5A5A)
    t.alive(s)
    t.check("M12", True, "not checked", "the stream works")


# ---- Terminate received -------------------------------------------------------------------


def peer_terminates(body):
    def run(t):
        s = t.open()
        s.send(codec.untagged(TERMINATE, 2, 1, body))
        segments, how = s.drain()
        got = [x for x in segments if x.op == TERMINATE]
        t.check("P23", not got, "no Terminate in answer to a Terminate", "; ".join(map(str, got)) or "none")
        t.check("P27", how == "FIN", "then a graceful close", how)

    return run


for name, body in (
    ("local", codec.terminate_body(0, 0, 0)),
    ("crc", codec.terminate_body(2, 0, 2)),
    ("with-headers", codec.terminate_body(1, 2, 5, bytes([0, 26]) + codec.untagged(SEND, 0, 1), flags=0xC0)),
    ("of-siw", bytes([0x21, 5, 3, 0, 0, 26]) + codec.untagged(SEND, 0, 1)),
    ("cut-short", codec.terminate_body(1, 2, 5, b"\0", flags=0xE0)),
):
    TABLE.add(f"terminate-from-us/{name}", "P23 P27", peer_terminates(body), role=EITHER)


@TABLE.case("terminate-from-us/nothing-behind", "P22 M34", role=EITHER, needs=("regions",))
def nothing_behind(t):
    """What comes behind a Terminate is not taken any more."""
    s = t.open()
    s.send(codec.untagged(TERMINATE, 2, 1, codec.terminate_body(0, 0, 0)), write(*at("rw")(t)))
    s.drain()
    t.untouched("P22")


# ---- atomics: their errors ----------------------------------------------------------------

ATOMICS = (
    ("misaligned-by-4", "A4", "0/2/07", "atomic", 4, 0),
    ("misaligned-by-1", "A4", "0/2/07", "atomic", 1, 0),
    ("aopcode-1", "A9", "0/2/06 0/2/07 0/2/ff", "atomic", 0, 1),
    ("aopcode-13", "A9", "0/2/06 0/2/07 0/2/ff", "atomic", 0, 13),
    ("without-right", "A10", "0/1/02", "rw", 0, 0),
    ("read-only", "A10", "0/1/02", "read-only", 0, 2),
    ("behind-end", "A10", "0/1/01", "atomic", 4096, 0),
    ("before-start", "A10", "0/1/01", "atomic", -8, 0),
    ("other-pd", "A10", "0/1/03 0/1/00", "other-pd", 0, 0),
)


def atomic_error(req, codes, name, offset, aop):
    def run(t):
        s = t.open()
        stag, to = at(name, offset)(t)
        bad = codec.untagged(ATOMIC_REQUEST, 1, s.msn[1], codec.atomic_body(aop, 7, stag, to, 1))
        s.send(bad)
        got = judge.terminated(t, s, req, codes, bad)
        if got:
            t.check("A14", not got.r, "no RDMAP header about an atomic", got)
        t.untouched("A4")

    return run


for name, req, codes, region, offset, aop in ATOMICS:
    TABLE.add(f"atomic-error/{name}", f"{req} A14 P24", atomic_error(req, codes, region, offset, aop), needs=("atomics",), role=EITHER)


@TABLE.case("atomic-error/invalid-stag", "A10 A14", needs=("atomics",), role=EITHER)
def atomic_invalid_stag(t):
    s = t.open()
    bad = codec.untagged(ATOMIC_REQUEST, 1, s.msn[1], codec.atomic_body(0, 7, NOWHERE, 0x1000, 1))
    s.send(bad)
    got = judge.terminated(t, s, "A10", "0/1/00", bad)
    if got:
        t.check("A14", not got.r, "no RDMAP header about an atomic", got)


def immediate_of(n):
    def run(t):
        """Other than 8 octets."""
        s = t.open()
        bad = send(t, s, bytes(n), op=IMMEDIATE)
        s.send(bad)
        got = judge.terminated(t, s, "A11", ANY_RDMAP_OR_DDP, bad)
        if got and got.triple == "0/2/06":
            t.not_applicable("A11", "the target does not know Immediate Data")

    return run


for n in (0, 4, 7, 9, 64):
    TABLE.add(f"immediate/{n}-octets", "A11 P24", immediate_of(n), role=EITHER)
