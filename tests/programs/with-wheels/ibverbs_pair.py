#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The bindings of the wheel ibverbs: RC without rdma_cm; 1 MiB written, read back and compared, and a message with
immediate data. ibverbs_pair.py server|client, each under uwarp-run --identity roce."""

import ctypes
import random
import socket
import sys
import time

import ibverbs as ib

PORT, SIZE, IMMEDIATE = 18116, 1 << 20, 0x1234
ACCESS = ib.AccessFlags.LOCAL_WRITE | ib.AccessFlags.REMOTE_WRITE | ib.AccessFlags.REMOTE_READ
DATA = random.Random(3).randbytes(SIZE)


class End:
    def __init__(self, peer):
        self.context = ib.get_device_list()[0].open()
        self.pd, self.cq = self.context.alloc_pd(), self.context.create_cq(64)
        self.buffer = ctypes.create_string_buffer(SIZE)
        self.mr = self.pd.reg_mr(ctypes.addressof(self.buffer), SIZE, ACCESS)
        self.qp = self.pd.create_qp(ib.QPInitAttr(send_cq=self.cq, recv_cq=self.cq, qp_type=ib.QPType.RC))
        local = ib.local_qp_info(self.qp, self.context.query_port(1), self.context.query_gid(1, 3), port=1, psn=0)
        peer.write(f"{local.to_bytes().hex()} {ctypes.addressof(self.buffer)} {self.mr.rkey}\n")
        peer.flush()
        info, at, key = peer.readline().split()
        self.there = {"remote_addr": int(at), "rkey": int(key)}
        ib.connect_rc(self.qp, ib.QPInfo.from_bytes(bytes.fromhex(info)), port=1, sgid_index=3, access=ACCESS)

    def complete(self):
        limit = time.monotonic() + 20
        while time.monotonic() < limit:
            for wc in self.cq.poll(1):
                wc.raise_for_status()
                return wc
        raise SystemExit("no completion")

    def send(self, opcode, **more):
        wr = ib.SendWR(wr_id=1, sg_list=[ib.SGE(self.mr, SIZE)], opcode=opcode, send_flags=ib.SendFlags.SIGNALED, **more)
        self.qp.post_send(wr)
        return self.complete()


def serve():
    with socket.create_server(("127.0.0.1", PORT)) as s:
        peer = s.accept()[0].makefile("rw")
    end = End(peer)
    end.qp.post_recv(ib.RecvWR(wr_id=2, sg_list=[ib.SGE(end.mr, SIZE)]))
    peer.write("ready\n")
    peer.flush()
    assert peer.readline() == "written\n"
    assert end.buffer.raw == DATA, "other octets than those written"
    peer.write("go on\n")
    peer.flush()
    wc = end.complete()
    assert wc.wr_id == 2 and end.buffer.raw == DATA[::-1], "another message than was sent"
    peer.readline()


def ask():
    for _ in range(200):
        try:
            peer = socket.create_connection(("127.0.0.1", PORT)).makefile("rw")
            break
        except OSError:
            time.sleep(0.1)
    end = End(peer)
    assert peer.readline() == "ready\n"
    end.buffer.raw = DATA
    end.send(ib.WROpcode.RDMA_WRITE, **end.there)
    end.buffer.raw = bytes(SIZE)
    end.send(ib.WROpcode.RDMA_READ, **end.there)
    assert end.buffer.raw == DATA, "other octets were read"
    peer.write("written\n")
    peer.flush()
    assert peer.readline() == "go on\n"
    end.buffer.raw = DATA[::-1]
    end.send(ib.WROpcode.SEND_WITH_IMM, imm_data=IMMEDIATE)
    peer.write("bye\n")
    peer.flush()


{"server": serve, "client": ask}[sys.argv[1]]()
print(f"{sys.argv[1]}: all came right", flush=True)
