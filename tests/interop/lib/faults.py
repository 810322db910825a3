# SPDX-License-Identifier: BSD-3-Clause
"""What is known to be wrong with Linux's siw (6.1): the faults by name, and which of uwarp-conform's
findings show each. READ: known from siw's source or from captures before the tool ran; the others
the tool found."""

from dataclasses import dataclass
from fnmatch import fnmatchcase

READ, FOUND = "known before", "found by uwarp-conform"


@dataclass(frozen=True)
class Fault:
    name: str
    cite: str
    origin: str
    text: str
    shows: tuple  # (requirement or *, pattern of the case's name, what the finding says) each
    always: bool = True  # False: a race, which need not show

    def explains(self, requirement, case, seen):
        return any(r in (requirement, "*") and fnmatchcase(case, c) and words in seen for r, c, words in self.shows)


FAULTS = (
    # ---- start-up
    Fault("first FPDU unread", "RFC 5044 §7.1.2", READ, "FPDUs that come soon behind the start-up are acknowledged and stay unread until more comes"
          " (a race; uwarp's nudge helps, as the 50 connections of `tests/interop/run` show).",
          (("*", "*", "it ended with silence"),), always=False),
    Fault("CRC not asked for", "RFC 5044 §4.4", READ, "siw never sets C; CRC is on only if the peer asks.",
          (("M11", "*", ""),)),
    Fault("no markers", "RFC 5044 §4.3", READ, "A peer that asks for markers is refused; every sender has to be able to.",
          (("M17", "*", ""), ("M18", "reply/markers", ""), ("M19", "reply/markers", ""), ("M20", "reply/markers", ""))),
    Fault("Reply echoes the Request's bits", "RFC 5044 §7.1.1", READ, "Reserved bits and R come back as they came.",
          (("M27", "startup/*", ""), ("M26", "startup/*", ""))),
    Fault("256 octets of private data", "RFC 5044 §7.1.1", READ, "More, the IRD/ORD word included, is answered by RST; 512 are allowed.",
          (("M24", "startup/private-data-*", ""), ("M24", "reply/private-data-*", ""))),
    Fault("Reply's key not checked", "RFC 5044 §7.1.1", FOUND, "As initiator siw goes on with whatever frame comes as the Reply, even a Request.",
          (("M23", "reply/*", ""), ("M36", "reply/key*", ""))),
    Fault("octets behind the Request taken", "RFC 5044 §7.1.2", FOUND, "What comes before the Reply is kept and later read as FPDUs.",
          (("M31", "startup/*", ""),)),
    Fault("speaks before the first FPDU", "RFC 5044 §7.1.2", READ, "As responder siw sends when its program does, and answers a damaged first FPDU.",
          (("M28", "*", ""),)),
    Fault("no-negotiation value capped", "RFC 6581 §9.1", READ, "0x3FFF is taken for a number and answered with 128.",
          (("E9", "*", ""),)),
    Fault("ORD exceeded", "RFC 5040 §6.1", FOUND, "An ORD of 3 is rounded up to 4: one Read too many is sent.",
          (("P14", "target/reads-within-ord-*", ""),)),
    # ---- FPDUs
    Fault("segment boundary inside pad and CRC", "RFC 5044 §5", READ, "Pad and CRC that come in two parts are taken for a CRC error.",
          (("M5", "framing/*", "2/0/02"),)),
    Fault("pad octets not zero", "RFC 5044 §4.1", FOUND, "Pads are sent with whatever is there (the CRC covers it).",
          (("M9", "*", "octets") , ("M9", "*", ""))),
    Fault("MULPDU below 128", "RFC 5044 §4.5", FOUND, "With a TCP MSS of 100 the ULPDUs shrink to 82 octets.",
          (("M4", "target/mss-100", ""), ("M3", "target/mss-*", ""))),
    Fault("FPDUs shorter than their headers unnoticed", "RFC 5044 §6", FOUND, "A ULPDU of 0 or 4 octets makes the stream wait for ever.",
          (("M16", "error/ulpdu-of-*", ""),)),
    Fault("headers used before the CRC is checked", "RFC 5044 §4.4", FOUND, "A damaged Write is answered as an invalid STag, not as a CRC error.",
          (("M33", "crc/damaged-write", ""), ("P24", "crc/damaged-write", ""), ("M14", "crc/damaged-write", ""))),
    # ---- Terminate
    Fault("Terminate in the host's bit order", "RFC 5040 §4.8", READ, "Layer and type are swapped, M, D and R are the low bits.",
          (("P25", "*", ""), ("E7", "reply/*", "0/2/06"))),
    Fault("DDP segment length counts payload only", "RFC 5040 §4.8", READ, "It has to count the DDP header, too.",
          (("D13", "*", "seen"), ("D13", "*", ""))),
    Fault("Read Request comes back with its size for the MSN", "RFC 5040 §4.8", READ, "The Terminated DDP header is not the one that was sent.",
          (("P24", "error/read-*", ""),)),
    Fault("Terminate without the DDP header", "RFC 5040 §4.8", FOUND, "Errors of version and opcode come without the header and length that belong to them.",
          (("P24", "*", "---"),)),
    Fault("Terminate with headers that do not belong", "RFC 5040 §4.8", FOUND, "Local errors come with a DDP header, refused invalidations with an RDMA header.",
          (("P24", "error/*", "MD"),)),
    Fault("no Terminate, just FIN", "RFC 5040 §5.4", READ, "For a Read Request with payload, a Read that wraps, a Terminate on queue 0.",
          (("P27", "*", ""), ("P22", "*", ""), ("P23", "*", ""))),
    # ---- messages
    Fault("opcode and queue not compared", "RFC 5040 §4.2", READ, "A Read Request on queue 0 is served; tagged or untagged opcodes on the wrong path give"
          " whatever error comes next, or none.", (("P4", "error/*", ""),)),
    Fault("too long a Send called 'no buffer'", "RFC 5041 §7.2", READ, "1/2/02 where 1/2/05 is meant.",
          (("P19", "*", "1/2/02"),)),
    Fault("wrap and unasked Response called catastrophic", "RFC 5041 §7.1", FOUND, "1/0/00, local catastrophic, for what the peer did wrong.",
          (("D12", "error/write-wraps", ""), ("P9", "error/response-nobody-asked-for", ""))),
    Fault("Read without the right to read served", "RFC 5040 §7.2", READ, "The right is not looked at for inbound Reads: memory that is local, or for Writes only, is sent.",
          (("P12", "error/read-without-right", ""), ("P12", "error/read-local-memory", ""))),
    Fault("empty Read answered with octets", "RFC 5040 §5.2", FOUND, "Now and then a Read of 0 octets gets as many as some earlier message had (seen in one run"
          " of three).", (("P13", "read/empty-*", "a Read Response of 0 octets; "),), always=False),
    Fault("Read of 4 GB called an invalid STag", "RFC 5040 §7.2", FOUND, "0/1/00 where base or bounds is meant.",
          (("P12", "error/read-4-gigabytes", ""),)),
    Fault("shared STag invalidated by the peer", "RFC 5040 §8.1.1", FOUND, "A Send with Invalidate takes away memory that other streams use, too.",
          (("P21", "*", ""),)),
)  # fmt: skip

# Known, and not to be seen by an exchange of uwarp-conform: (name, cite, text, where it shows).
ELSEWHERE = (
    ("own private data cut", "RFC 5044 §7.1.1", "252 octets or more of its own are announced with a length modulo 256.", "captures"),
    ("program's Reads fail after revision 1", "RFC 6581 §6", "rping's server cannot post its Read when IRD and ORD were not negotiated.", "rping"),
    ("own FPDUs split", "RFC 5044 §5", "Header and CRC leave as TCP segments of their own (a SHOULD).", "captures"),
)  # fmt: skip

# A start-up frame that siw's kernel does not survive: (case, role of the tester, what is wrong).
CRASHES = (
    ("reply/s-without-word", "responder", "Reply with S and no IRD/ORD word"),
    ("reply/private-data-508", "responder", "Reply with S and more than 256 octets of private data, which are allowed"),
)
CRASH_CITE = "RFC 6581 §9, RFC 5044 §8"


def explain(requirement, case, seen):
    return next((f for f in FAULTS if f.explains(requirement, case, seen)), None)
