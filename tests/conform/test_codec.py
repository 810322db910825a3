#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tester's own octets: golden vectors of the RFCs, of captures, and there and back again."""

import os
import struct
import unittest

import fake_peer
from conform import codec, crc32c, markers

VECTORS = os.path.join(fake_peer.ROOT, "tests", "vectors")


def vectors(name):
    with open(os.path.join(VECTORS, name)) as f:
        return [line.split() for line in f if line.strip() and not line.startswith("#")]


class Crc(unittest.TestCase):
    def test_check_value(self):
        self.assertEqual(crc32c.crc32c(b"123456789"), 0xE3069283)

    def test_rfc5044_figures(self):
        for _, octets in vectors("rfc5044-crc.txt"):
            data = bytes.fromhex(octets)
            self.assertEqual(crc32c.field(data[:-4]), data[-4:])


class Fpdu(unittest.TestCase):
    def test_pad_and_size(self):
        for n in range(0, 40):
            f = codec.fpdu(bytes(n), True)
            self.assertEqual(len(f) % 4, 0)
            self.assertLess(len(f) - n - 6, 4)
            self.assertEqual(crc32c.field(f[:-4]), f[-4:])

    def test_damage_and_off(self):
        good, bad, off = (codec.fpdu(b"abc", *x) for x in ((True,), (True, None, None, 1), (False,)))
        self.assertEqual(good[:-4], bad[:-4])
        self.assertNotEqual(good[-4:], bad[-4:])
        self.assertEqual(off[-4:], bytes(4))

    def test_rfc5044_figure_5(self):
        """Markers: the first figure's FPDU with its marker in front."""
        want = bytes.fromhex(vectors("rfc5044-crc.txt")[0][1])
        ins = markers.Inserter()
        body = codec.fpdu(codec.untagged(codec.SEND, 0, 1, bytes(24)), False)[:-4]
        self.assertEqual(ins.add(body, crc32c.field), want)

    def test_rfc5044_figure_6(self):
        """...and the second's, with its marker 20 octets in."""
        want = bytes.fromhex(vectors("rfc5044-crc.txt")[1][1])
        ins = markers.Inserter()
        ins.position = 512 * 3 - 20
        body = codec.fpdu(codec.untagged(codec.SEND, 0, 2, bytes(24)), False)[:-4]
        self.assertEqual(ins.add(body, crc32c.field), want)


class Markers(unittest.TestCase):
    def stream(self, sizes):
        ins = markers.Inserter()
        return b"".join(ins.add(codec.fpdu(bytes([i & 255]) * n, False)[:-4], crc32c.field) for i, n in enumerate(sizes))

    def test_every_512_octets_and_their_pointers(self):
        sizes = [1, 500, 506, 502, 2000, 0, 3, 490, 514, 1018]
        data = self.stream(sizes)
        self.assertEqual(data[:4], bytes(4))
        at, i = 0, 0
        for n in sizes:  # walk it anew, octet by octet
            start = None
            left = 2 + n + codec.pad_of(n) + 4
            while left:
                if at % 512 == 0:
                    rsvd, pointer = struct.unpack(">HH", data[at : at + 4])
                    self.assertEqual((rsvd, pointer), (0, 0 if start is None else at - start), (i, at))
                    self.assertEqual(pointer % 4, 0)
                    at += 4
                if start is None:
                    start = at
                at += 1
                left -= 1
            i += 1
        self.assertEqual(at, len(data))


class Segments(unittest.TestCase):
    def test_control_words(self):
        for op, tagged, last, word in (
            (codec.WRITE, True, True, 0xC140), (codec.WRITE, True, False, 0x8140), (codec.SEND, False, True, 0x4143),
            (codec.READ_REQUEST, False, True, 0x4141), (codec.READ_RESPONSE, True, True, 0xC142),
            (codec.TERMINATE, False, True, 0x4147), (codec.ATOMIC_RESPONSE, False, True, 0x414B),
        ):  # fmt: skip
            self.assertEqual(codec.control(op, tagged, last), word.to_bytes(2, "big"))

    def test_there_and_back(self):
        s = codec.parse_segment(codec.untagged(codec.SEND_INV, 1, 2, b"abc", mo=3, inv=4, last=False, rsvd=9, rsv=2))
        self.assertEqual((s.op, s.qn, s.msn, s.mo, s.inv, s.last, s.payload, s.reserved), (4, 1, 2, 3, 4, False, b"abc", 9 << 2 | 2))
        s = codec.parse_segment(codec.tagged(codec.WRITE, 5, 6, b"x", dv=2, rv=3))
        self.assertEqual((s.stag, s.to, s.payload, s.dv, s.rv, s.tagged), (5, 6, b"x", 2, 3, True))

    def test_too_short(self):
        for raw in (b"", b"\x41", codec.untagged(codec.SEND, 0, 1)[:17], codec.tagged(codec.WRITE, 1, 1)[:13]):
            with self.assertRaises(codec.Malformed):
                codec.parse_segment(raw)

    def test_header_sizes(self):
        self.assertEqual(len(codec.read_body(1, 2, 3, 4, 5)), 28)
        self.assertEqual(len(codec.atomic_body(0, 1, 2, 3, 4)), 52)


class Terminates(unittest.TestCase):
    def test_rfc_order(self):
        bad = codec.untagged(codec.SEND, 0, 1, b"x")
        t = codec.parse_terminate(codec.terminate_body(1, 2, 5, struct.pack(">H", len(bad)) + bad[:18], 0xC0))
        self.assertEqual((t.triple, t.m, t.d, t.r, t.siw_order, t.length, t.ddp), ("1/2/05", True, True, False, False, 19, bad[:18]))

    def test_siw_order(self):
        t = codec.parse_terminate(bytes([0x02, 2, 0, 0]))
        self.assertEqual((t.triple, t.siw_order), ("2/0/02", True))
        t = codec.parse_terminate(bytes([0x10, 0, 7, 0]) + struct.pack(">H", 0) + codec.untagged(codec.READ_REQUEST, 1, 1) + bytes(28))
        self.assertEqual((t.triple, t.m, t.d, t.r, t.siw_order, len(t.rdmap)), ("0/1/00", True, True, True, True, 28))

    def test_every_code_of_the_rfcs_is_read_as_meant(self):
        for (layer, etype), codes in codec.CODES.items():
            for code in codes or (0, 1):
                t = codec.parse_terminate(codec.terminate_body(layer, etype, code))
                self.assertEqual((t.layer, t.etype, t.code, t.siw_order), (layer, etype, code, False))


class StartFrames(unittest.TestCase):
    def test_enhanced_word(self):
        frame = codec.start_frame(codec.REQUEST_KEY, codec.S | codec.C, 2, codec.enhanced(0x3FFF, 5, True, 7) + b"pd")
        f = codec.parse_start(frame)
        self.assertEqual((f.ird, f.ord, f.p2p, f.rtr, f.ulp_data), (0x3FFF, 5, True, 7, b"pd"))
        self.assertEqual(frame[20:24], bytes.fromhex("ffffc005"))

    def test_malformed(self):
        with self.assertRaises(codec.Malformed):
            codec.parse_start(codec.start_frame(codec.REPLY_KEY, codec.S, 2, b"ab"))
        with self.assertRaises(codec.Malformed):
            codec.parse_start(codec.start_frame(codec.REPLY_KEY, 0, 1, b"ab", length=9))


if __name__ == "__main__":
    unittest.main(verbosity=1)
