#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a hostile neighbour sends that is no TCP of a connection, from a seed:
hostile_network.py WHAT INTERFACE MAC ADDR ADDR6 COUNT SECONDS
WHAT is one of
fragments     pieces of packets that overlap, do not begin or end beyond 64 KiB; headers whose lengths are wrong;
              chains of extension headers (RFC 5722, RFC 7112, RFC 8200 section 4)
neighbours    ARP and neighbour discovery: thousands of neighbours, others with our address, options of no length (RFC 826, 4861)
routers       what routers say: advertisements, redirects, packets too big, group queries (RFC 4861, RFC 792, RFC 1191, RFC 2710)
It sends COUNT frames in SECONDS, and goes on at that rate until SIGTERM, for MOST times as many."""

import random
import signal
import socket
import struct
import sys
import time

from flood import folded

BATCH, MOST = 20, 12
ALL_NODES = socket.inet_pton(socket.AF_INET6, "ff02::1")
IPV4, ARP, IPV6 = 0x0800, 0x0806, 0x86DD
TCP, ICMP, ICMP6 = 6, 1, 58


class Sender:
    def __init__(self, interface, mac, addr, addr6, seed):
        self.s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
        self.s.bind((interface, 0))
        self.own, self.mac = self.s.getsockname()[4], bytes.fromhex(mac.replace(":", ""))
        self.us, self.us6 = socket.inet_aton(addr), socket.inet_pton(socket.AF_INET6, addr6)
        self.rng = random.Random(seed)

    def frame(self, kind, octets, to=None):
        head = (to or self.mac) + self.own + struct.pack("!H", kind)
        self.s.send((head + octets)[:1514].ljust(60, b"\0"))

    def rubbish(self, most):
        return self.rng.randbytes(self.rng.randrange(most + 1))

    def other(self):
        """Nobody's address of the same network, never the client's."""
        return self.us[:2] + bytes([self.rng.randrange(1, 255), self.rng.randrange(100, 255)])

    def other6(self, link_local=False):
        return (b"\xfe\x80" + bytes(6) if link_local else self.us6[:8]) + bytes([0x77]) + self.rng.randbytes(7)

    # ---- packets ----------------------------------------------------------------------------

    def ip(self, proto, data, fragment=0, ihl=5, length=None, options=b""):
        length = 20 + len(options) + len(data) if length is None else length
        head = struct.pack("!BBHHHBBH", 0x40 | ihl, 0, length & 0xFFFF, self.rng.randrange(8), fragment, 64, proto, 0)
        head += self.other() + self.us + options
        if len(head) % 2 == 0:
            head = head[:10] + struct.pack("!H", folded(head)) + head[12:]
        return head + data

    def ip6(self, following, data, source=None, to=None, hops=255, length=None):
        length = len(data) if length is None else length
        return struct.pack("!IHBB", 6 << 28, length & 0xFFFF, following, hops) + (source or self.other6()) + (to or self.us6) + data

    def icmp6(self, data, source=None, to=None):
        source, to = source or self.other6(link_local=True), to or self.us6
        data += b"\0" * (len(data) % 2)
        total = folded(source + to + struct.pack("!II", len(data), ICMP6) + data[:2] + b"\0\0" + data[4:])
        return self.ip6(ICMP6, data[:2] + struct.pack("!H", total) + data[4:], source, to)

    # ---- fragments --------------------------------------------------------------------------

    def fragment_of_4(self):
        more, at = self.rng.choice((0, 0x2000)), self.rng.choice((0, 0, 1, 2, 3, 185, 8189, 8191))
        proto = self.rng.choice((TCP, 17, ICMP, 0, 255))
        return IPV4, self.ip(proto, self.rubbish(self.rng.choice((0, 7, 8, 24, 1400))), fragment=more | at)

    def wrong_head_of_4(self):
        ihl = self.rng.randrange(16)
        options = self.rng.choice((b"", bytes([0x44, 0, 0, 0]), bytes([7, 255, 4, 0]), bytes([0x83, 1]) + b"\0\0", self.rng.randbytes(40)))
        return IPV4, self.ip(TCP, self.rubbish(60), ihl=ihl, options=options, length=self.rng.choice((0, 19, 20, 39, 40, 1500, 65535, None)))

    def wrong_tcp(self):
        data = struct.pack("!HHIIBBHHH", 1024, 7471, 1, 1, self.rng.randrange(16) << 4, self.rng.randrange(256), 0, 0, 65535)
        return IPV4, self.ip(TCP, data[: self.rng.randrange(21)] + self.rubbish(40))

    def fragment_of_6(self):
        head = struct.pack("!BBHI", TCP, 0, self.rng.choice((0, 1, 8, 0xFFF8, 0xFFF9)), self.rng.randrange(8))
        return IPV6, self.ip6(44, head + self.rubbish(self.rng.choice((0, 7, 8, 1200))))

    def chain_of_6(self):
        kinds = [self.rng.choice((0, 43, 60, 44, 50, 51, 59, 135)) for _ in range(self.rng.randrange(1, 40))]
        data = b""
        for following in [*kinds[1:], TCP]:
            data += bytes([following, self.rng.choice((0, 0, 0, 1, 255))]) + self.rng.randbytes(6)
        to = self.rng.choice((self.us6, self.us6, self.other6()))
        return IPV6, self.ip6(kinds[0], data + self.rubbish(40), to=to, length=self.rng.choice((None, None, 0, 1, 65535)))

    def fragments(self):
        makers = (self.fragment_of_4, self.wrong_head_of_4, self.wrong_tcp, self.fragment_of_6, self.chain_of_6)
        self.frame(*self.rng.choice(makers)())

    # ---- neighbours -------------------------------------------------------------------------

    def arp(self):
        sender, target = self.rng.choice(((self.other(), self.us), (self.us, self.us), (self.other(), self.other()), (bytes(4), self.us)))
        mac = self.rng.choice((self.own, self.rng.randbytes(6), b"\xff" * 6, self.mac))
        kind = self.rng.choice((0x0001, 0x0001, 0x0006, 0xFFFF))
        sizes = self.rng.choice((0x0604, 0x0604, 0x0604, 0x0000, 0xFFFF))
        words = struct.pack("!HHHH", kind, IPV4, sizes, self.rng.choice((1, 2, 2, 9)))
        return ARP, (words + mac + sender + self.mac + target)[: self.rng.choice((28, 28, 28, 27, 8))]

    def discovery(self):
        kind, target = self.rng.choice((135, 136)), self.rng.choice((self.us6, self.us6, self.other6()))
        options = [bytes([1, 1]) + self.own, bytes([2, 1]) + self.rng.randbytes(6), bytes([2, 0]) + bytes(6), bytes([1, 255]) + bytes(6)]
        data = bytes([kind, 0, 0, 0, self.rng.choice((0, 0x20, 0x60, 0xE0)), 0, 0, 0]) + target
        data += b"".join(self.rng.choices(options, k=self.rng.randrange(4)))
        source = self.rng.choice((self.other6(), self.other6(True), bytes(16), self.us6))
        return IPV6, self.icmp6(data, source, self.rng.choice((self.us6, ALL_NODES)))

    def neighbours(self):
        self.frame(*self.rng.choice((self.arp, self.discovery))())

    # ---- routers ----------------------------------------------------------------------------

    def advertisement(self):
        prefix = bytes([3, 4, self.rng.choice((0, 64, 128, 255)), 0xC0]) + self.rng.choice((b"\xff" * 4, bytes(4))) * 2 + bytes(4) + self.rng.randbytes(16)
        mtu = bytes([5, 1, 0, 0]) + struct.pack("!I", self.rng.choice((0, 68, 1279, 1280, 0xFFFFFFFF)))
        data = bytes([134, 0, 0, 0, self.rng.choice((0, 1, 255)), 0]) + struct.pack("!HII", self.rng.choice((0, 65535)), 0, self.rng.choice((0, 1)))
        data += b"".join(self.rng.choices([prefix, mtu, bytes([25, 0]) + bytes(6), bytes([1, 1]) + self.own], k=self.rng.randrange(8)))
        return IPV6, self.icmp6(data, None, self.rng.choice((ALL_NODES, self.us6)))

    def redirect(self):
        if self.rng.randrange(2):
            return IPV6, self.icmp6(bytes([137]) + bytes(7) + self.other6(True) + self.other6())
        inner = self.ip(TCP, self.rng.randbytes(8))
        return IPV4, self.icmp(5, self.rng.randrange(4), self.other(), inner)

    def icmp(self, kind, code, word, inner):
        data = bytes([kind, code, 0, 0]) + word + inner
        data += b"\0" * (len(data) % 2)
        return self.ip(ICMP, data[:2] + struct.pack("!H", folded(data)) + data[4:])

    def too_big(self):
        mtu, ports = self.rng.choice((0, 1, 67, 68, 576, 1279, 1280, 65535)), struct.pack("!HHI", 7471, self.rng.randrange(65536), self.rng.getrandbits(32))
        if self.rng.randrange(2):
            inner = struct.pack("!IHBB", 6 << 28, 1440, TCP, 64) + self.us6 + self.other6() + ports
            return IPV6, self.icmp6(bytes([2, 0, 0, 0]) + struct.pack("!I", mtu) + inner[: self.rng.choice((0, 39, 40, 48))])
        inner = struct.pack("!BBHHHBBH", 0x45, 0, 1500, 1, 0x4000, 64, TCP, 0) + self.us + self.other() + ports
        return IPV4, self.icmp(3, 4, struct.pack("!HH", 0, mtu), inner[: self.rng.choice((0, 19, 20, 28))])

    def groups(self):
        data = bytes([self.rng.choice((130, 131, 132, 143)), 0, 0, 0, 0, 1, 0, 0]) + self.rng.choice((bytes(16), ALL_NODES, self.rng.randbytes(16)))
        return IPV6, self.icmp6(data + self.rubbish(40), None, ALL_NODES)

    def routers(self):
        self.frame(*self.rng.choice((self.advertisement, self.redirect, self.too_big, self.groups))())


def main():
    what, interface, mac, addr, addr6, count, seconds = sys.argv[1:]
    sender = Sender(interface, mac, addr, addr6, seed=1)
    told = []
    signal.signal(signal.SIGTERM, lambda *_: told.append(True))
    start, n = time.monotonic(), 0
    print("begun", flush=True)
    while n < int(count) or not told and n < int(count) * MOST:
        getattr(sender, what)()
        if n % BATCH == 0:
            time.sleep(max(0, start + n * float(seconds) / int(count) - time.monotonic()))
        n += 1
    print(f"{n} in {time.monotonic() - start:.2f} s", flush=True)


if __name__ == "__main__":
    main()
