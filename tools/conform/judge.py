# SPDX-License-Identifier: BSD-3-Clause
"""What has to follow an error: one Terminate with the right contents, silence, the close."""

from . import codec

# Layer and type -> do DDP header and segment length go along (RFC 5040 §4.8, figure 10)
WITH_DDP = ((0, 1), (0, 2), (1, 1), (1, 2))
ANY_RDMAP_OR_DDP = "any of RDMAP or DDP"


def code_fits(t, codes):
    if codes == ANY_RDMAP_OR_DDP:
        return t.layer in (0, 1)
    return t.triple in codes.split()


def read_terminate(payload, codes):
    """Some words mean something in either order (2/0/06, 0/2/06): what was to be expected decides."""
    t = codec.parse_terminate(payload)
    if not code_fits(t, codes) and not t.siw_order and not payload[2] & 0xE0:
        swapped = codec.parse_terminate(payload, siw=True)
        if code_fits(swapped, codes):
            return swapped
    return t


def header_fits(seg):
    return not seg.tagged and seg.qn == 2 and seg.msn == 1 and seg.mo == 0 and seg.last and not seg.inv


def control_word(trial, t):
    if t.siw_order:
        trial.check("P25", False, "layer, type, code, M, D, R from the first octet's top down",
                    "the bit order of Linux siw: type and layer swapped, flags in the low bits")  # fmt: skip
    else:
        trial.check("P25", t.reserved == 0 and (t.m or not t.d), "reserved bits zero, D only with M", f"{t}, reserved {t.reserved:#x}")


def headers(trial, t, bad, read):
    """Which headers go along, and that they are the bad segment's."""
    with_ddp = (t.layer, t.etype) in WITH_DDP and bad is not None and len(bad) >= 14
    with_rdmap = with_ddp and (t.layer, t.etype) == (0, 1) and read
    want = "".join(n if on else "-" for n, on in zip("MDR", (with_ddp, with_ddp, with_rdmap)))
    seen = "".join(n if on else "-" for n, on in zip("MDR", (t.m, t.d, t.r)))
    if not trial.check("P24", want == seen, f"flags {want} for {t.triple}", seen) or not with_ddp:
        return
    size = 14 if bad[0] & 0x80 else 18
    trial.check("P24", t.ddp == bad[:size], f"DDP header {bad[:size].hex()}", t.ddp.hex())
    trial.check("D13", t.length == len(bad), f"DDP segment length {len(bad)}", t.length)
    if with_rdmap:
        trial.check("P24", t.rdmap == bad[18:46], f"Read Request header {bad[18:46].hex()}", t.rdmap.hex())
    trial.check("P24", not t.rest, "nothing behind the headers", t.rest.hex() or "nothing")


def ending(trial, how, expect_close):
    if how == "FIN":
        trial.check("P27", True, "a graceful close", how)
    elif how.startswith("silence"):
        trial.check("P27", not expect_close, "a graceful close", "the connection stays open")
    else:
        trial.check("P27", False, "a graceful close", how)


def no_terminate(trial, req, codes, how):
    if how.startswith("silence"):
        trial.check(req, False, f"Terminate {codes}", "nothing: the error went unnoticed")
        return
    trial.check("P27", False, f"Terminate {codes}, then a close", f"{how} without a Terminate")
    trial.doubt(req, f"Terminate {codes}", f"noticed, but not told apart: {how} without a Terminate")


def terminated(trial, s, req, codes, bad=None, read=False):
    """Take everything until the end and judge it; returns the Terminate or None. `bad`: the ULPDU
    in error; `read`: it is a Read Request."""
    segments, how = s.drain()
    at = next((i for i, x in enumerate(segments) if x.op == codec.TERMINATE), None)
    if at is None:
        no_terminate(trial, req, codes, how)
        return None
    seg = segments[at]
    t = read_terminate(seg.payload, codes)
    trial.check(req, code_fits(t, codes), f"Terminate {codes}", t)
    trial.check("P22", header_fits(seg), "Terminate on QN 2, MSN 1, MO 0, one segment", seg)
    control_word(trial, t)
    headers(trial, t, bad, read)
    rest = segments[at + 1 :]
    trial.check("P23", not rest, "nothing after the Terminate", "; ".join(map(str, rest)) or "nothing")
    ending(trial, how, expect_close=True)
    frames(trial, s)
    return t


def frame_faults(r, crc):
    """(requirement, expected, seen) for what is wrong with one FPDU."""
    seg = r.segment
    if crc and r.crc != r.crc_wanted:
        yield "M13", f"CRC {r.crc_wanted.hex()} of {seg}", r.crc.hex()
    if any(r.pad):
        yield "M9", "pad octets zero", r.pad.hex()
    if seg.dv != 1 or seg.reserved >> 2:
        yield "D2", "DV 1, reserved bits zero", f"{seg}, reserved {seg.reserved >> 2:#x}"
    # opcode 0xF is for experiments: its bits and fields are its own
    if seg.rv != 1 or (seg.reserved & 3 and seg.op != 0xF):
        yield "P2", "RV 1, reserved bits zero", f"{seg}, reserved {seg.reserved & 3:#x}"
    if seg.tagged != (seg.op in codec.TAGGED) or (not seg.tagged and seg.qn != codec.QUEUE.get(seg.op, 0)):
        yield "P4", f"T and queue of {seg.name}", f"{seg}"
    if seg.inv and seg.op not in (codec.SEND_INV, codec.SEND_SE_INV, 0xF):
        yield "P3", "Invalidate STag field zero", f"{seg.inv:#x} in {seg}"


def frames(trial, s):
    """What holds for every FPDU that came."""
    if not s.received:
        return
    faults = [f for r in s.received for f in frame_faults(r, s.crc)]
    for fault in faults:
        trial.check(fault[0], False, *fault[1:])
    for req in ("M9", "D2", "P2", "P3", "P4") + (("M13",) if s.crc else ()):
        if not any(f[0] == req for f in faults):
            trial.check(req, True, "", f"{len(s.received)} FPDUs")
    if s.stripper:
        m = s.stripper
        trial.check("M20", not m.faults, "every FPDUPTR fits", m.faults[0] if m.faults else f"{m.count} markers")
