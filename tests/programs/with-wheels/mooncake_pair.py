#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Mooncake's transfer engine from its wheel (mooncake-transfer-engine-non-cuda, numpy): 8 MiB written to the other process,
read back from it, and moved inside one process, all compared. In a network namespace, say, with PYTHON that of an
environment with the wheel:

    uwarp-run --identity roce --ip 127.0.0.2 -- PYTHON mooncake_pair.py server 127.0.0.2 &
    uwarp-run --identity roce --ip 127.0.0.3 -- PYTHON mooncake_pair.py client 127.0.0.3"""

import socket
import sys
import time

import numpy as np
from mooncake.engine import TransferEngine

SIZE, PORT = 8 << 20, 18111
PATTERN = (np.arange(SIZE) % 251).astype(np.uint8)


def serve(engine, me, buf):
    with socket.create_server(("127.0.0.1", PORT)) as s:
        peer = s.accept()[0]
    peer.sendall(f"{me}:{engine.get_rpc_port()} {buf.ctypes.data}\n".encode())
    peer.recv(1)
    assert (buf == PATTERN).all(), "what was written is not here"
    peer.sendall(b"y")
    peer.recv(1)


def reach():
    for _ in range(100):
        try:
            return socket.create_connection(("127.0.0.1", PORT))
        except OSError:
            time.sleep(0.1)
    raise SystemExit("no server")


def ask(engine, me, buf):
    peer, at = reach(), buf.ctypes.data
    target, there = peer.makefile().readline().split()
    buf[:] = PATTERN
    assert engine.transfer_sync_write(target, at, int(there), SIZE) == 0
    peer.sendall(b"x")
    assert peer.recv(1) == b"y"
    buf[:] = 0
    assert engine.transfer_sync_read(target, at, int(there), SIZE) == 0
    assert (buf == PATTERN).all()
    half = SIZE // 2
    assert engine.transfer_sync_write(f"{me}:{engine.get_rpc_port()}", at, at + half, half) == 0
    assert (buf[half:] == buf[:half]).all()
    peer.sendall(b"z")


def main():
    role, me = sys.argv[1:]
    engine, buf = TransferEngine(), np.zeros(SIZE, dtype=np.uint8)
    assert engine.initialize(me, "P2PHANDSHAKE", "rdma", "uwarp0") == 0
    assert engine.register_memory(buf.ctypes.data, SIZE) == 0
    (serve if role == "server" else ask)(engine, me, buf)
    print(f"{role}: all came right", flush=True)


main()
