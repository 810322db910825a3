# SPDX-License-Identifier: BSD-3-Clause
"""One connection to the RNIC under test: start-up frames, then FPDUs, over a kernel TCP socket."""

import select
import socket
import struct
import time
from dataclasses import dataclass

from . import codec, crc32c, markers


class Ended(Exception):
    """Nothing more comes. `how`: FIN, RST, silence, or what the socket said."""

    def __init__(self, how):
        super().__init__(how)
        self.how = how


class NotConnected(Exception):
    pass


@dataclass
class Received:
    """An FPDU's ULPDU, and what is to be said of its frame."""

    segment: codec.Segment
    size: int  # the FPDU's, without markers
    pad: bytes
    crc: bytes
    crc_wanted: bytes


class Stream:
    def __init__(self, sock, timeout, log):
        self.sock, self.timeout, self.log = sock, timeout, log
        self.buf = bytearray()
        self.started = 0.0  # when start-up last went on
        self.crc = False  # on this connection
        self.inserter = None  # we send markers
        self.stripper = None  # the peer does
        self.msn = {q: 1 for q in range(4)}  # of our next message on each queue
        self.reply = self.request = None  # the peer's start-up frame
        self.received = []  # every FPDU
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    # ---- octets ---------------------------------------------------------------------------

    def put(self, data, what):
        self.log(f"-> {what}")
        try:
            self.sock.sendall(data)
        except OSError as e:
            raise Ended(how_of(e)) from None

    def put_slowly(self, data, what, step=1, pause=0.001):
        self.log(f"-> {what} [{step} octets at a time]")
        try:
            for i in range(0, len(data), step):
                self.sock.sendall(data[i : i + step])
                time.sleep(pause)
        except OSError as e:
            raise Ended(how_of(e)) from None

    def _fill(self, n, deadline):
        while len(self.buf) < n:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.sock], [], [], left)[0]:
                raise Ended("silence" if not self.buf else f"silence after {len(self.buf)} octets of an FPDU")
            try:
                part = self.sock.recv(65536)
            except OSError as e:
                raise Ended(how_of(e)) from None
            if not part:
                raise Ended("FIN" if not self.buf else f"FIN after {len(self.buf)} octets of an FPDU")
            self.buf += part

    def take(self, n, timeout=None):
        self._fill(n, time.monotonic() + (self.timeout if timeout is None else timeout))
        out = bytes(self.buf[:n])
        del self.buf[:n]
        return out

    # ---- start-up -------------------------------------------------------------------------

    def take_start(self, timeout=None):
        head = self.take(20, timeout)
        length = struct.unpack(">H", head[18:20])[0]
        frame = codec.parse_start(head + (self.take(length, timeout) if length else b""))
        self.log(f"<- {frame}")
        self.started = time.monotonic()
        return frame

    def agree(self, mine, theirs):
        """Both frames' flags are known: what holds from now on."""
        self.crc = bool((mine | theirs) & codec.C)
        self.inserter = markers.Inserter() if theirs & codec.M else None
        self.stripper = markers.Stripper() if mine & codec.M else None

    # ---- FPDUs ----------------------------------------------------------------------------

    def frame(self, ulpdu, damage=0, pad=None, length=None):
        """The octets of an FPDU, markers and all."""
        if self.inserter is None:
            return codec.fpdu(ulpdu, self.crc, length, pad, damage)
        body = codec.fpdu(ulpdu, False, length, pad)[:-4]

        def crc_field(covered):
            value = crc32c.crc32c(covered) if self.crc else 0
            return (value ^ damage).to_bytes(4, "little")

        return self.inserter.add(body, crc_field)

    def send(self, *ulpdus, note="", **how):
        """One FPDU each, in one TCP write."""
        data = b"".join(self.frame(u, **how) for u in ulpdus)
        self.put(data, "; ".join(describe(u) for u in ulpdus) + note)

    def next_msn(self, qn):
        msn = self.msn[qn]
        self.msn[qn] = (msn + 1) & 0xFFFFFFFF
        return msn

    def _take_marked(self, n, timeout):
        out, m = b"", self.stripper
        while n:
            if m.at_marker():
                m.take_marker(self._raw(4, timeout))
            part = self._raw(min(n, m.room()), timeout)
            m.took(len(part))
            out += part
            n -= len(part)
        return out

    def _raw(self, n, timeout):
        part = self.take(n, timeout)
        self.covered += part
        return part

    def _take_fpdu(self, timeout):
        """(length to pad, CRC field, what the CRC covers)"""
        self.covered = b""
        if self.stripper is None:
            head = self._raw(2, timeout)
            n = struct.unpack(">H", head)[0]
            body = head + self._raw(n + codec.pad_of(n), timeout)
            return body, self.take(4, timeout), self.covered
        self.stripper.begin_fpdu()
        head = self._take_marked(2, timeout)
        n = struct.unpack(">H", head)[0]
        body = head + self._take_marked(n + codec.pad_of(n), timeout)
        if self.stripper.at_marker():
            self.stripper.take_marker(self._raw(4, timeout))
        covered = self.covered
        crc = self.take(4, timeout)
        self.stripper.took(4)
        return body, crc, covered

    def recv(self, timeout=None):
        """The next FPDU's segment."""
        body, crc, covered = self._take_fpdu(timeout)
        n = struct.unpack(">H", body[:2])[0]
        segment = codec.parse_segment(body[2 : 2 + n])
        self.received.append(Received(segment, len(body) + 4, body[2 + n :], crc, crc32c.field(covered)))
        self.log(f"<- {segment}")
        return segment

    def drain(self, timeout=None):
        """Everything until the end: (segments, how it ended)."""
        out = []
        try:
            while True:
                out.append(self.recv(timeout))
        except Ended as e:
            self.log(f"<- {e.how}")
            return out, e.how

    def quiet(self, seconds):
        """True if not one octet and no end comes in that time."""
        if self.buf:
            return False
        return not select.select([self.sock], [], [], seconds)[0]

    def alive(self):
        """True if the peer has not ended the connection (what it sent stays unread)."""
        if not select.select([self.sock], [], [], 0)[0]:
            return True
        try:
            return bool(self.sock.recv(1, socket.MSG_PEEK))
        except OSError:
            return False

    def mss(self):
        """What the peer may put into a segment to us: what we announced, as the kernel knows it."""
        return self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)

    def close(self):
        try:
            self.sock.close()
        except OSError:
            pass


def how_of(error):
    return "RST" if isinstance(error, (ConnectionResetError, BrokenPipeError)) else str(error)


def describe(ulpdu):
    try:
        return str(codec.parse_segment(ulpdu))
    except codec.Malformed:
        return f"ULPDU {ulpdu.hex()}"


def family_of(host):
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def connect(addr, timeout, log, mss=None, rcvbuf=None):
    # a target that has just ended a connection may need a moment before the next
    end = time.monotonic() + timeout
    while True:
        sock = socket.socket(family_of(addr[0]))
        try:
            if mss:
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, mss)
            if rcvbuf:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
            sock.settimeout(timeout)
            sock.connect(addr)
            return Stream(sock, timeout, log)
        except OSError as e:
            sock.close()
            if time.monotonic() > end or not isinstance(e, ConnectionRefusedError):
                raise NotConnected(f"{addr[0]} port {addr[1]}: {e.strerror or e}") from None
        time.sleep(0.1)


def accept(listener, patience, timeout, log):
    listener.settimeout(patience)
    try:
        sock, _ = listener.accept()
    except OSError:
        raise NotConnected(f"the target did not connect to us within {patience} s") from None
    sock.settimeout(timeout)
    return Stream(sock, timeout, log)
