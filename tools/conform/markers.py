# SPDX-License-Identifier: BSD-3-Clause
"""MPA markers (RFC 5044 §4.3): put into a stream, taken out of one and judged."""

import struct

STEP = 512


class Inserter:
    """What we send when the peer asked for markers: FPDUs without to FPDUs with them, CRC made
    over both."""

    def __init__(self):
        self.position = 0  # octets sent since the first marker's place

    def add(self, body, crc_field):
        """`body`: length to pad; crc_field: function of the marked body."""
        out, start = bytearray(), self.position
        if start % STEP == 0:
            out += bytes(4)
            self.position += 4
            start = self.position
        self._run(out, body, start)
        if self.position % STEP == 0:  # right in front of the CRC: covered by it
            self._marker(out, start)
        crc = crc_field(bytes(out))
        self.position += len(crc)
        return bytes(out) + crc

    def _marker(self, out, start):
        out += struct.pack(">HH", 0, self.position - start)
        self.position += 4

    def _run(self, out, data, start):
        while data:
            if self.position % STEP == 0:
                self._marker(out, start)
            n = min(len(data), STEP - self.position % STEP)
            out += data[:n]
            self.position += n
            data = data[n:]


class Stripper:
    """A marked stream as received: octets without markers, and what was wrong with the markers."""

    def __init__(self):
        self.position = 0
        self.count = 0
        self.faults = []
        self.start = None  # where the present FPDU's ULPDU_Length stands

    def begin_fpdu(self):
        self.start = None

    def at_marker(self):
        return self.position % STEP == 0

    def take_marker(self, four):
        rsvd, pointer = struct.unpack(">HH", four)
        want = 0 if self.start is None else self.position - self.start
        if rsvd:
            self.faults.append(f"marker at {self.position}: reserved field {rsvd:#06x}")
        if pointer != want:
            self.faults.append(f"marker at {self.position}: FPDUPTR {pointer}, the FPDU began {want} before it")
        self.count += 1
        self.position += 4

    def room(self):
        """Octets of FPDU before the next marker."""
        return STEP - self.position % STEP

    def took(self, n):
        if self.start is None:
            self.start = self.position
        self.position += n
