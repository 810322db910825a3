# SPDX-License-Identifier: BSD-3-Clause
"""A client of a uwarpd that speaks its protocol by hand (stack/io/switch/msg.h, conduit.h), to do what no link does."""

import array
import fcntl
import mmap
import os
import socket
import struct

MESSAGE = struct.Struct("<IHBB4s4sIIQ6sHII")
MAGIC, VERSION = 0x64777775, 2
HELLO, WELCOME, REFUSE, READY, CLAIM, ANSWER, RELEASE = range(1, 8)
PAGE, OCTETS, LINE, HEAD = 4096, 2 << 20, 64, 16
ADD_SEALS, SEALS = 1033, 0x2 | 0x4  # F_ADD_SEALS: SHRINK, GROW


IP6 = 8  # a flag: of IPv6


def message(kind, port=0, serial=0, version=VERSION, flags=0):
    return MESSAGE.pack(MAGIC, version, kind, 0, bytes(4), bytes(4), 0, flags, 0, bytes(6), socket.htons(port), serial, 0)


def sealed(size):
    fd = os.memfd_create("hostile", os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, ADD_SEALS, SEALS)
    return fd


class Client:
    """One that has joined. Nothing keeps it from writing anything anywhere in its own memory."""

    def __init__(self, path, timeout=5.0):
        self.s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.s.settimeout(timeout)
        self.s.connect(path)
        self.bell = sealed(PAGE)
        self.fds, self.at = [], 0
        welcome = self.ask(message(HELLO), [self.bell])
        if welcome[2] != WELCOME:
            raise ConnectionRefusedError(f"refused: {welcome[3]}")
        self.addr, self.mac = welcome[4], welcome[9]
        self.region = sealed(PAGE + OCTETS)
        self.ours = mmap.mmap(self.region, PAGE + OCTETS)
        self.theirs = mmap.mmap(self.fds[0], PAGE + OCTETS, prot=mmap.PROT_READ)
        if self.ask(message(READY), [self.region])[2] != READY:
            raise ConnectionRefusedError("not ready")

    def ask(self, data, fds=()):
        self.s.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else [])
        data, more, _, _ = self.s.recvmsg(MESSAGE.size, socket.CMSG_SPACE(12))
        if not data:
            raise ConnectionResetError("it hung up")
        for _, _, octets in more:
            got = array.array("i")
            got.frombytes(octets[: len(octets) // 4 * 4])
            self.fds += got
        return MESSAGE.unpack(data)

    def claim(self, port, flags=0):
        return self.ask(message(CLAIM, port, flags=flags))[3]

    def put(self, frame, gso=0, sums=0):
        """A frame into our conduit; it does not mind whether there is room."""
        here = PAGE + self.at % OCTETS
        need = (HEAD + len(frame) + LINE - 1) // LINE * LINE
        if here + need > PAGE + OCTETS:
            self.ours[here : here + 4] = struct.pack("<I", 0xFFFFFF)
            self.at += PAGE + OCTETS - here
            here = PAGE
        self.ours[here : here + HEAD] = struct.pack("<IHHQ", len(frame), gso, sums, 0)
        self.ours[here + HEAD : here + HEAD + len(frame)] = frame
        self.at += need
        self.head(self.at)
        self.ring()

    def room(self):
        tail = struct.unpack("<I", self.theirs[LINE : LINE + 4])[0]
        return OCTETS - ((self.at - tail) & 0xFFFFFFFF)

    def head(self, value):
        self.ours[:4] = struct.pack("<I", value & 0xFFFFFFFF)

    def ring(self):
        os.write(self.fds[1], struct.pack("<Q", 1))

    def is_alive(self, seconds):
        """Does the uwarpd keep us?"""
        self.s.settimeout(seconds)
        try:
            return self.s.recv(1) != b""
        except TimeoutError:
            return True
        except OSError:
            return False

    def close(self):
        self.s.close()
        for fd in [self.bell, self.region, *self.fds]:
            os.close(fd)


def segment(client, sport, dport, target, payload=b"x" * 50, source=None, mac=None, to=b"\x02\0\0\0\0\x09"):
    """A TCP segment with ACK."""
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 40 + len(payload), 1, 0, 64, 6, 0, source or client.addr, socket.inet_aton(target))
    tcp = struct.pack("!HHIIBBHHH", sport, dport, 1, 1, 0x50, 0x10, 512, 0, 0)
    return to + (mac or client.mac) + b"\x08\x00" + ip + tcp + payload


def datagram(client, qpn, target, to=b"\x02\0\0\0\0\x09"):
    """A packet of UD in the name of a QP."""
    ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 60, 1, 0, 64, 17, 0, client.addr, socket.inet_aton(target))
    udp = struct.pack("!HHHH", 50000, 4791, 40, 0)
    return to + client.mac + b"\x08\x00" + ip + udp + struct.pack("!BBHIIII", 0x64, 0, 0xFFFF, 2, 0, 0, qpn) + bytes(12)


# ---- IPv6 ---------------------------------------------------------------------------------------


def packet6(client, following, data, source, target, mac=None, to=b"\x02\0\0\0\0\x09", hops=64):
    ip = struct.pack("!IHBB", 6 << 28, len(data), following, hops) + socket.inet_pton(socket.AF_INET6, source) + socket.inet_pton(socket.AF_INET6, target)
    return to + (mac or client.mac) + b"\x86\xdd" + ip + data


def tcp6(sport, dport, payload=b"x" * 50):
    return struct.pack("!HHIIBBHHH", sport, dport, 1, 1, 0x50, 0x10, 512, 0, 0) + payload


def solicit(client, source, target, kind=135, mac=None):
    """A neighbor solicitation, to the solicited-node address."""
    address = socket.inet_pton(socket.AF_INET6, target)
    group = socket.inet_ntop(socket.AF_INET6, b"\xff\x02" + bytes(9) + b"\x01\xff" + address[13:])
    data = struct.pack("!BBHI", kind, 0, 0, 0) + address + b"\x01\x01" + (mac or client.mac)
    return packet6(client, 58, data, source, group, to=b"\x33\x33\xff" + address[13:], hops=255)
