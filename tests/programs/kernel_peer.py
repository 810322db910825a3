# SPDX-License-Identifier: BSD-3-Clause
"""An ordinary TCP program that knows nothing of iWARP:
kernel_peer.py listen|connect ADDR PORT TALK INTERFACE"""

import array
import fcntl
import socket
import struct
import sys
import time

SIOCETHTOOL, ETHTOOL_STXCSUM = 0x8946, 0x17

REQUEST = b"GET / HTTP/1.1\r\nHost: nobody\r\n\r\n"
ANSWER = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"
WAIT = 30.0
TALK = {
    "http": {"listen": ANSWER, "connect": REQUEST},
    "silent": {"listen": b"", "connect": b""},
    # the first octets of a request, and no more
    "half": {"listen": b"MPA ID Rep", "connect": b"MPA ID Req"},
    "close": {"listen": None, "connect": None},
}


def send_checksums(name):
    """A kernel leaves them out towards a virtual cable, and marks the frame. An Ethernet card would
    fill them in; whoever gets the raw frame cannot tell them from wrong ones."""
    value = array.array("B", struct.pack("II", ETHTOOL_STXCSUM, 0))
    request = struct.pack("16sP8x", name.encode(), value.buffer_info()[0])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        fcntl.ioctl(s, SIOCETHTOOL, request)


def converse(s, words):
    """Say the words and wait for the other's end; seconds until then."""
    start = time.monotonic()
    s.settimeout(WAIT)
    try:
        if words is not None:
            s.sendall(words)
            while s.recv(4096):
                pass
    except (ConnectionError, BrokenPipeError):
        pass  # a reset is an end, too
    s.close()
    return time.monotonic() - start


def main():
    what, addr, port, talk, interface = sys.argv[1:]
    send_checksums(interface)
    words = TALK[talk][what]
    if what == "connect":
        seconds = converse(socket.create_connection((addr, int(port)), timeout=WAIT), words)
        print(f"closed after {seconds:.2f} s", flush=True)
        return
    with socket.create_server((addr, int(port))) as listener:
        print("listening", flush=True)
        while True:
            converse(listener.accept()[0], words)


if __name__ == "__main__":
    main()
