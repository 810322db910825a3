# SPDX-License-Identifier: BSD-3-Clause
"""A peer on the kernel's TCP that starts an iWARP stream well, and ends it in the middle of an FPDU:
half_peer.py ADDR PORT rst|fin"""

import socket
import struct
import sys
import time

KEY = b"MPA ID Req Frame"
REPLY = b"MPA ID Rep Frame"


def exactly(s, n):
    octets = b""
    while len(octets) < n:
        piece = s.recv(n - len(octets))
        if not piece:
            raise SystemExit("the stream ended during start-up")
        octets += piece
    return octets


def main():
    addr, port, how = sys.argv[1:]
    s = socket.create_connection((addr, int(port)), timeout=10)
    # RFC 5044 7.1.1: no markers, no CRC, revision 1; the private data is count.c's offer
    offer = struct.pack("<QII", 4096, 0, 0)
    s.sendall(KEY + struct.pack(">BBH", 0, 1, len(offer)) + offer)
    head = exactly(s, 20)
    if head[:16] != REPLY or head[16] & 0x20:
        raise SystemExit("no good reply")
    exactly(s, struct.unpack(">H", head[18:])[0])
    # a Send of 1,000 octets (DDP: untagged, last; RDMAP: version 1, Send), of which 100 come
    ulpdu = struct.pack(">BBIIII", 0x41, 0x43, 0, 0, 1, 0) + bytes(1000)
    s.sendall((struct.pack(">H", len(ulpdu)) + ulpdu)[:100])
    time.sleep(0.3)
    if how == "rst":
        s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        s.close()
        return
    s.shutdown(socket.SHUT_WR)
    while s.recv(4096):
        pass


if __name__ == "__main__":
    main()
