#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""DLSlime's transfer engine from its wheel (dlslime, numpy), two QPs to an endpoint: 4 MiB written and read back, a write with
immediate data, and 20 messages, all compared. dlslime_pair.py server|client, each under uwarp-run --identity roce."""

import json
import socket
import sys
import time

import dlslime
import numpy as np

PORT, SIZE, LITTLE, TIMES, IMMEDIATE = 18117, 4 << 20, 3000, 20, 77
PATTERN = (np.arange(SIZE) % 251).astype(np.uint8)


def ok(future):
    future.wait()
    return future


class End:
    def __init__(self, peer):
        self.peer, self.buffer = peer, np.zeros(SIZE, dtype=np.uint8)
        devices = dlslime.available_nic()
        assert devices == ["uwarp0"], f"devices: {devices}"
        self.endpoint = dlslime.RDMAEndpoint(device_name="uwarp0", ib_port=1, link_type="RoCE", num_qp=2)
        self.mine = self.endpoint.register_memory_region("data", self.buffer.ctypes.data, 0, SIZE)
        self.say(json.dumps(self.endpoint.endpoint_info()))
        info = json.loads(self.hear())
        self.endpoint.connect(info)
        self.there = self.endpoint.register_remote_memory_region("data", info["mr_info"]["data"])
        self.say("connected")
        assert self.hear() == "connected"

    def say(self, text):
        self.peer.write(text + "\n")
        self.peer.flush()

    def hear(self):
        return self.peer.readline().strip()

    def whole(self):
        return [(self.mine, self.there, 0, 0, SIZE)]


def serve(end):
    got = end.endpoint.imm_recv()
    end.say("ready")
    assert end.hear() == "written"
    assert (end.buffer == PATTERN).all(), "other octets than those written"
    end.say("go on")
    assert ok(got).imm_data() == IMMEDIATE, f"immediate data {got.imm_data()}"
    assert (end.buffer == PATTERN[::-1]).all(), "other octets than those written with immediate data"
    for i in range(TIMES):
        message = np.zeros(LITTLE, dtype=np.uint8)
        ok(end.endpoint.recv((message.ctypes.data, 0, LITTLE)))
        assert (message == i).all(), "another message than was sent"
    end.say("bye")


def ask(end):
    assert end.hear() == "ready"
    end.buffer[:] = PATTERN
    ok(end.endpoint.write(end.whole()))
    end.buffer[:] = 0
    ok(end.endpoint.read(end.whole()))
    assert (end.buffer == PATTERN).all(), "other octets were read"
    end.say("written")
    assert end.hear() == "go on"
    end.buffer[:] = PATTERN[::-1]
    ok(end.endpoint.write_with_imm(end.whole(), IMMEDIATE))
    for i in range(TIMES):
        message = np.full(LITTLE, i, dtype=np.uint8)
        ok(end.endpoint.send((message.ctypes.data, 0, LITTLE)))
    assert end.hear() == "bye"


def accept():
    with socket.create_server(("127.0.0.1", PORT)) as s:
        return s.accept()[0].makefile("rw")


def reach():
    for _ in range(300):
        try:
            return socket.create_connection(("127.0.0.1", PORT)).makefile("rw")
        except OSError:
            time.sleep(0.1)
    raise SystemExit("no server")


serving = sys.argv[1] == "server"
end = End(accept() if serving else reach())
(serve if serving else ask)(end)
print(f"{sys.argv[1]}: all came right", flush=True)
