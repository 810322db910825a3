# SPDX-License-Identifier: BSD-3-Clause
"""Traffic of the kernel's own, over either version of IP: kernel_traffic.py ping ADDR COUNT | serve PORT | send ADDR PORT MIB"""

import hashlib
import os
import socket
import struct
import sys
import time

PIECE = 1 << 16
WAIT = 30.0


def checksum(octets):
    total = sum(struct.unpack(f"!{len(octets) // 2}H", octets))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ping(addr, count):
    """Echo requests, one every 10 ms; the last line counts the answers."""
    mark, got, six = os.getpid() & 0xFFFF, set(), ":" in addr
    family, protocol = (socket.AF_INET6, socket.IPPROTO_ICMPV6) if six else (socket.AF_INET, socket.IPPROTO_ICMP)
    asks, answers, skip = (128, 129, 0) if six else (8, 0, 20)  # IPv4 gives its header, too
    with socket.socket(family, socket.SOCK_RAW, protocol) as s:
        s.settimeout(0.01)
        for n in range(count + 100):
            if n < count:
                head = struct.pack("!BBHHH", asks, 0, 0, mark, n)
                s.sendto(struct.pack("!BBHHH", asks, 0, checksum(head), mark, n), (addr, 0))
            try:
                packet = s.recv(256)
                kind, _, _, whose, number = struct.unpack("!BBHHH", packet[skip : skip + 8])
                if kind == answers and whose == mark:
                    got.add(number)
            except TimeoutError:
                pass
            if len(got) == count:
                break
    print(f"{len(got)} of {count} answered", flush=True)
    return 0 if len(got) == count else 1


def serve(port):
    digest = hashlib.sha256()
    with socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True) if socket.has_dualstack_ipv6() else socket.create_server(("", port)) as s:
        s.settimeout(WAIT)
        peer, _ = s.accept()
        with peer:
            peer.settimeout(WAIT)
            while piece := peer.recv(PIECE):
                digest.update(piece)
    print(digest.hexdigest(), flush=True)
    return 0


def send(addr, port, mib):
    digest, piece = hashlib.sha256(), os.urandom(PIECE)
    deadline = time.monotonic() + WAIT
    while True:
        try:
            s = socket.create_connection((addr, port), WAIT)
            break
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
    with s:
        for _ in range(mib << 20 >> 16):
            s.sendall(piece)
            digest.update(piece)
    print(digest.hexdigest(), flush=True)
    return 0


def main():
    what, *words = sys.argv[1:]
    if what == "ping":
        return ping(words[0], int(words[1]))
    if what == "serve":
        return serve(int(words[0]))
    return send(words[0], int(words[1]), int(words[2]))


if __name__ == "__main__":
    sys.exit(main())
