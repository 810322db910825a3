# SPDX-License-Identifier: BSD-3-Clause
"""Two QPs that name each other, without rdma_cm: exchange.py server|client ADDR PORT

What they need to know of each other goes over a TCP socket of the kernel's. The client uses the
ibv_wr_* interface and an extended CQ, the server the plain ones with a completion channel."""

import json
import socket
import sys
import time

import pyverbs.device as d
from constants import e
from pyverbs.addr import GID, AHAttr, GlobalRoute
from pyverbs.cq import CQ, CQEX, CompChannel, CqInitAttrEx
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPAttr, QPCap, QPEx, QPInitAttr, QPInitAttrEx
from pyverbs.wr import SGE, RecvWR, SendWR

SIZE, TIMES, PATIENCE = 5000, 50, 10.0
ACCESS = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
CAP = {"max_send_wr": 8, "max_recv_wr": 8, "max_send_sge": 1, "max_recv_sge": 1}
SEND_OPS = e.IBV_QP_EX_WITH_SEND | e.IBV_QP_EX_WITH_RDMA_WRITE | e.IBV_QP_EX_WITH_RDMA_READ
WC_FLAGS = e.IBV_WC_EX_WITH_BYTE_LEN | e.IBV_WC_EX_WITH_QP_NUM


def text(who, n):
    return (f"{who} {n} " * SIZE)[:SIZE]


def init_attr():
    attr = QPAttr(port_num=1)
    attr.qp_access_flags = ACCESS
    return attr


class End:
    def __init__(self):
        self.ctx = d.Context(name="uwarp0")
        self.pd = PD(self.ctx)
        self.mr, self.area = MR(self.pd, SIZE, ACCESS), MR(self.pd, SIZE, ACCESS)
        self.make_qp()

    def connect(self, peer):
        gid = self.ctx.query_gid(1, 0)
        mine = {"gid": gid.gid, "qpn": self.qp.qp_num, "addr": self.area.buf, "rkey": self.area.rkey}
        peer.sendall(json.dumps(mine).encode() + b"\n")
        self.there = json.loads(peer.makefile().readline())
        route = GlobalRoute(dgid=GID(self.there["gid"]), sgid_index=0)
        attr = init_attr()
        attr.dest_qp_num, attr.path_mtu, attr.max_rd_atomic, attr.max_dest_rd_atomic = self.there["qpn"], 3, 1, 1
        attr.min_rnr_timer, attr.timeout, attr.retry_cnt, attr.rnr_retry = 12, 14, 7, 7
        attr.ah_attr = AHAttr(gr=route, is_global=1, port_num=1)
        self.receive()
        self.qp.to_rts(attr)
        peer.sendall(b"ready\n")
        peer.makefile().readline()

    def sge(self):
        return SGE(self.mr.buf, SIZE, self.mr.lkey)

    def receive(self):
        self.qp.post_recv(RecvWR(sg=[SGE(self.area.buf, SIZE, self.area.lkey)], num_sge=1))

    def got(self, who, n):
        assert self.area.read(SIZE, 0).decode() == text(who, n), f"message {n} came wrong"


class Server(End):
    """Plain verbs, and sleeps until something has come."""

    def make_qp(self):
        self.channel = CompChannel(self.ctx)
        self.cq = CQ(self.ctx, 20, None, self.channel, 0)
        init = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cq, rcq=self.cq, cap=QPCap(**CAP))
        self.qp = QP(self.pd, init, init_attr())

    def one_completion(self):
        while True:
            self.cq.req_notify()
            n, wcs = self.cq.poll()
            if n:
                assert wcs[0].status == e.IBV_WC_SUCCESS, wcs[0]
                return wcs[0]
            self.channel.get_cq_event(self.cq)
            self.cq.ack_events(1)

    def send(self, what):
        self.mr.write(what, SIZE)
        self.qp.post_send(SendWR(opcode=e.IBV_WR_SEND, num_sge=1, sg=[self.sge()]))
        assert self.one_completion().opcode == e.IBV_WC_SEND

    def work(self):
        for n in range(TIMES):
            assert self.one_completion().byte_len == SIZE
            self.got("client", n)
            self.receive()
            self.send(text("server", n))
        assert self.one_completion().opcode & e.IBV_WC_RECV  # after the client's writes and reads


class Client(End):
    """The interfaces that came later."""

    def make_qp(self):
        self.cq = CQEX(self.ctx, CqInitAttrEx(cqe=20, wc_flags=WC_FLAGS))
        init = QPInitAttrEx(
            qp_type=e.IBV_QPT_RC, pd=self.pd, scq=self.cq, rcq=self.cq, cap=QPCap(**CAP), sq_sig_all=1,
            comp_mask=e.IBV_QP_INIT_ATTR_PD | e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS, send_ops_flags=SEND_OPS,
        )  # fmt: skip
        self.qp = QPEx(self.ctx, init, init_attr())

    def one_completion(self):
        deadline = time.monotonic() + PATIENCE
        while self.cq.start_poll(None):
            assert time.monotonic() < deadline, "no completion"
        opcode, status = self.cq.read_opcode(), self.cq.status
        assert self.cq.read_qp_num() == self.qp.qp_num
        self.cq.end_poll()
        assert status == e.IBV_WC_SUCCESS, status
        return opcode

    def post(self, build):
        self.qp.wr_start()
        self.qp.wr_id, self.qp.wr_flags = 7, e.IBV_SEND_SIGNALED
        build()
        self.qp.wr_set_sge(self.sge())
        self.qp.wr_complete()

    def work(self):
        for n in range(TIMES):
            self.mr.write(text("client", n), SIZE)
            self.post(self.qp.wr_send)
            opcodes = {self.one_completion(), self.one_completion()}
            assert opcodes == {e.IBV_WC_SEND, e.IBV_WC_RECV}, opcodes
            self.got("server", n)
            self.receive()
        self.post(lambda: self.qp.wr_rdma_write(self.there["rkey"], self.there["addr"]))
        assert self.one_completion() == e.IBV_WC_RDMA_WRITE
        written = self.mr.read(SIZE, 0)
        self.mr.write("\0" * SIZE, SIZE)
        self.post(lambda: self.qp.wr_rdma_read(self.there["rkey"], self.there["addr"]))
        assert self.one_completion() == e.IBV_WC_RDMA_READ
        assert self.mr.read(SIZE, 0) == written, "what was read is not what was written"
        self.post(self.qp.wr_send)
        assert self.one_completion() == e.IBV_WC_SEND


def meet(role, addr, port):
    if role == "server":
        with socket.create_server((addr, port)) as listener:
            return listener.accept()[0]
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            return socket.create_connection((addr, port))
        except ConnectionRefusedError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def main(role, addr, port):
    with meet(role, addr, int(port)) as peer:
        end = {"server": Server, "client": Client}[role]()
        end.connect(peer)
        end.work()
        peer.sendall(b"done\n")
        peer.makefile().readline()
    end.ctx.close()
    print(f"{role}: all came right", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
