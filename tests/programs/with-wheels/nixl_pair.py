#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""NIXL from its wheel (nixl-cu12, numpy), over its UCX: 64 MiB written to the other process and read back, compared. With
PYTHON that of an environment with the wheel:

    export UCX_TLS=rc_verbs,tcp
    uwarp-run --identity roce --ip 127.0.0.2 -- PYTHON nixl_pair.py server &
    uwarp-run --identity roce --ip 127.0.0.3 -- PYTHON nixl_pair.py client"""

import base64
import json
import socket
import sys
import time

import numpy as np
from nixl_cu12._api import nixl_agent, nixl_agent_config

SIZE, PORT, LIMIT = 64 << 20, 18112, 30.0
PATTERN = (np.arange(SIZE) % 251).astype(np.uint8)


def serve(agent, buf):
    with socket.create_server(("127.0.0.1", PORT)) as s:
        peer = s.accept()[0].makefile("rw")
    peer.write(json.dumps([base64.b64encode(agent.get_agent_metadata()).decode(), buf.ctypes.data]) + "\n")
    peer.flush()
    peer.readline()
    assert (buf == PATTERN).all(), "what was written is not here"
    peer.write("y\n")
    peer.flush()
    peer.readline()


def reach():
    for _ in range(200):
        try:
            return socket.create_connection(("127.0.0.1", PORT)).makefile("rw")
        except OSError:
            time.sleep(0.1)
    raise SystemExit("no server")


def transfer(agent, op, here, there, name):
    descs = [agent.get_xfer_descs([(at, SIZE, 0)], "DRAM") for at in (here, there)]
    handle, start = agent.initialize_xfer(op, *descs, name, b""), time.monotonic()
    state = agent.transfer(handle)
    while state not in ("DONE", "ERR") and time.monotonic() - start < LIMIT:
        state = agent.check_xfer_state(handle)
    assert state == "DONE", f"{op}: {state}"


def ask(agent, buf):
    peer = reach()
    data, there = json.loads(peer.readline())
    name = agent.add_remote_agent(base64.b64decode(data))
    name = name.decode() if isinstance(name, bytes) else name
    buf[:] = PATTERN
    transfer(agent, "WRITE", buf.ctypes.data, there, name)
    peer.write("x\n")
    peer.flush()
    assert peer.readline() == "y\n"
    buf[:] = 0
    transfer(agent, "READ", buf.ctypes.data, there, name)
    assert (buf == PATTERN).all()
    peer.write("z\n")
    peer.flush()


def main():
    role, buf = sys.argv[1], np.zeros(SIZE, dtype=np.uint8)
    agent = nixl_agent(role, nixl_agent_config(backends=["UCX"]))
    agent.register_memory([(buf.ctypes.data, SIZE, 0, "")], "DRAM")
    (serve if role == "server" else ask)(agent, buf)
    print(f"{role}: all came right", flush=True)


main()
