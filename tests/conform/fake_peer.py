# SPDX-License-Identifier: BSD-3-Clause
"""A small iWARP responder that can be told to do one thing wrong. It does right only what the
tests of the tool ask of it: start-up, Sends that come back, empty Reads, errors."""

import os
import select
import socket
import struct
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tools"))
from conform import codec, crc32c, markers, program  # noqa: E402

IRD = ORD = 8
RECV_SIZE = 4096
FRESH = [program.Region(name, i, 0, 0, 0, 0, 0).fresh_sum() for i, name in enumerate(program.REGION_NAMES)]


class Refused(Exception):
    """An error and what the Terminate about it says."""

    def __init__(self, layer, etype, code, rdma=False):
        super().__init__(f"{layer}/{etype}/{code:02x}")
        self.layer, self.etype, self.code, self.rdma = layer, etype, code, rdma


class Done(Exception):
    """The connection is over."""


class WrongMarkers(markers.Inserter):
    """Counts from the wrong end of the length field."""

    def _marker(self, out, start):
        super()._marker(out, start - 4)


class Fake:
    def __init__(self, fault=None):
        self.fault, self.served = fault, 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def close(self):
        try:
            self.listener.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # closed already
        self.listener.close()
        self.thread.join(5)

    def serve(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with sock:
                try:
                    Connection(sock, self.fault).run()
                except (Done, OSError):
                    pass
            self.served += 1
            if self.fault == "falls-over" and self.served == 3:
                self.listener.close()
                return


class Connection:
    def __init__(self, sock, fault):
        sock.settimeout(3)
        self.sock, self.fault = sock, fault
        self.msn = {q: 1 for q in range(4)}
        self.expected = {q: 1 for q in range(4)}
        self.marked = None

    def take(self, n):
        out = b""
        while len(out) < n:
            part = self.sock.recv(n - len(out))
            if not part:
                raise Done
            out += part
        return out

    # ---- start-up -------------------------------------------------------------------------

    def run(self):
        head = self.take(20)
        if head[:16] != codec.REQUEST_KEY and self.fault != "key-unchecked":
            raise Done
        flags, rev, length = struct.unpack(">BBH", head[16:20])
        if length > (256 if self.fault == "private-data-256" else 512) or rev > 2:
            raise Done
        request = codec.parse_start(head + self.take(length))
        self.wish = request.ulp_data[:20] if request.ulp_data[:4] == program.MAGIC else program.wish()
        time.sleep(int.from_bytes(self.wish[16:18], "big") / 1000)
        if self.fault != "octets-behind-request" and select.select([self.sock], [], [], 0.02)[0]:
            raise Done
        self.reply(request)
        if self.wish[5] & program.HELLO and self.fault == "talks-first":
            self.send(codec.SEND, b"hello too early")
        self.hello = bool(self.wish[5] & program.HELLO)
        self.stream()

    def reply(self, q):
        flags = 0 if self.fault == "crc-off" else codec.C
        self.crc = bool(flags | q.flags & codec.C)
        if self.fault == "reserved-bits":
            flags |= 1
        data = self.advert()
        if q.enhanced:
            flags |= codec.S
            data = self.word(q) + data
        self.sock.sendall(codec.start_frame(codec.REPLY_KEY, flags, q.rev, data))
        if q.flags & codec.M and self.fault != "no-markers":
            self.marked = WrongMarkers() if self.fault == "marker-pointer" else markers.Inserter()

    def word(self, q):
        same = self.fault == "no-negotiation-unknown"
        ord_ = codec.NO_NEGOTIATION if q.ird == codec.NO_NEGOTIATION and not same else min(ORD, q.ird)
        ird = codec.NO_NEGOTIATION if q.ord == codec.NO_NEGOTIATION and not same else IRD
        if self.fault == "ord-too-large":
            ord_ = ORD
        p2p = q.p2p and self.fault != "a-unanswered"
        return codec.enhanced(ird, ord_, p2p, q.rtr if p2p or self.fault == "rtr-without-a" else 0)

    def advert(self):
        names = program.REGION_NAMES[:1] if self.fault == "one-region" else program.REGION_NAMES
        out = program.ADVERT.pack(program.MAGIC, 1, len(names), 0, 0, RECV_SIZE, 16, IRD, ORD, 0, 0, 0, 0)
        for i, _ in enumerate(names):
            out += program.REGION.pack(0x100 + i, 0x10000 * i, program.REGION_SIZE, 3, FRESH[i])
        return out[:-1] if self.fault == "advertisement-cut" else out

    # ---- the stream -----------------------------------------------------------------------

    def stream(self):
        while True:
            head = self.take(2)
            n = struct.unpack(">H", head)[0]
            body, field = head + self.take(n + codec.pad_of(n)), self.take(4)
            self.ulpdu = body[2 : 2 + n]
            try:
                if self.crc and field != crc32c.field(body) and self.fault != "crc-unchecked":
                    raise Refused(2, 0, 2)
                self.segment(codec.parse_segment(self.ulpdu))
            except codec.Malformed:
                self.terminate(Refused(1, 0, 0))
            except Refused as e:
                self.terminate(e)

    def segment(self, s):
        if self.hello:
            self.send(codec.SEND, b"hello")
            self.hello = False
        if s.dv != 1:
            raise Refused(1, 1, 4) if s.tagged else Refused(1, 2, 6)
        if s.rv != 1 and self.fault != "version-unchecked":
            raise Refused(0, 2, 5)
        if not s.tagged:
            self.untagged(s)
        elif s.op == codec.WRITE and s.payload:
            raise Refused(1, 1, 0)

    def untagged(self, s):
        if s.qn > 3:
            raise Refused(1, 2, 1)
        if s.msn != self.expected[s.qn]:
            raise Refused(1, 2, 3)
        self.expected[s.qn] += 1
        if s.op == codec.READ_REQUEST:
            r = codec.parse_read(s.payload)
            if r.size:
                raise Refused(0, 1, 0, rdma=True)
            self.put(codec.tagged(codec.READ_RESPONSE, r.sink, r.sink_to + (self.fault == "sink-to-wrong")))
        elif s.op == codec.SEND:
            self.received(s.payload)
        elif s.op == codec.TERMINATE:
            if self.fault == "terminate-answered":
                self.terminate(Refused(0, 0, 0))
            raise Done
        else:
            raise Refused(0, 2, 6)

    def received(self, data):
        if data[:4] != program.MAGIC:
            self.send(codec.SEND, data)
            return
        _, op, _, count, length, stag, to = struct.unpack(">4sBBHIIQ", data[:24])
        for _ in range(count):
            if op == program.CMD_SEND:
                self.send(codec.SEND, program.pattern(0, length))
            elif op == program.CMD_WRITE:
                self.write(stag, to, program.pattern(0, length))
            else:
                raise Done

    def write(self, stag, to, data):
        step = 3000 if self.fault == "mulpdu-exceeded" else 500
        for o in range(0, len(data), step):
            self.put(codec.tagged(codec.WRITE, stag, to + o, data[o : o + step], last=o + step >= len(data)))

    def send(self, op, data):
        msn = self.msn[0]
        if self.fault != "msn-stuck":
            self.msn[0] += 1
        for o in range(0, max(1, len(data)), 500):
            last = o + 500 >= len(data) or self.fault == "last-everywhere"
            mo = 0 if self.fault == "mo-stuck" else o
            bits = {"rsvd": 1} if self.fault == "reserved-bits-of-ddp" else {}
            inv = 7 if self.fault == "invalidate-field" else 0
            self.put(codec.untagged(op, 0, msn, data[o : o + 500], mo=mo, last=last, inv=inv, **bits))

    def put(self, ulpdu):
        pad = (b"\xee" if self.fault == "pad" else b"\0") * codec.pad_of(len(ulpdu))
        damage = 1 if self.fault == "crc-wrong" else 0
        if self.marked is None:
            self.sock.sendall(codec.fpdu(ulpdu, self.crc, pad=pad, damage=damage))
            return
        self.sock.sendall(self.marked.add(codec.fpdu(ulpdu, False, pad=pad)[:-4], crc32c.field))

    # ---- errors ---------------------------------------------------------------------------

    def terminate(self, e):
        u = self.ulpdu
        size = 14 if u and u[0] & 0x80 else 18
        code = 0xFF if self.fault == "code-wrong" else e.code
        with_ddp = e.layer != 2 and e.etype != 0 and self.fault != "headers-missing"
        length = len(u) - size if self.fault == "length-of-payload" else len(u)
        headers = struct.pack(">H", length) + u[:size] if with_ddp else b""
        headers += u[18:46] if e.rdma and with_ddp else b""
        body = codec.terminate_body(e.layer, e.etype, code, headers, (0xC0 if with_ddp else 0) | (0x20 if e.rdma and with_ddp else 0))
        if self.fault == "siw-bit-order":
            siw = (3 if with_ddp else 0) | (4 if e.rdma and with_ddp else 0)
            body = bytes([e.etype << 4 | e.layer, code, siw, 0]) + headers
        if self.fault == "no-terminate":
            raise Done
        if self.fault == "silence-on-error":
            return
        self.put(codec.untagged(codec.TERMINATE, 1 if self.fault == "terminate-queue" else 2, 1, body))
        if self.fault == "talks-on":
            self.send(codec.SEND, b"still here")
        if self.fault == "stays-open":
            time.sleep(1.5)
        if self.fault == "reset":
            self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            self.leave()
        raise Done

    def leave(self):
        """Closed with octets unread, TCP would reset."""
        self.sock.shutdown(socket.SHUT_WR)
        self.sock.settimeout(1)
        while self.sock.recv(65536):
            pass
