# SPDX-License-Identifier: BSD-3-Clause
"""A server and a client through CMIDs, both ways of having one: traffic.py server|client sync|async ADDR [PORT]

They echo messages, and then the client writes into the server's memory and reads from it."""

import errno
import struct
import sys
import time

from constants import ce, e
from pyverbs.cmid import CMID, AddrInfo, CMEvent, CMEventChannel, ConnParam
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QPCap, QPInitAttr

PORT, SIZE, TIMES, PATIENCE = "7471", 3000, 20, 10.0
WHERE = struct.Struct("!QIQI")  # address and rkey of what may be written, and of what may be read
REFUSED = errno.ECONNREFUSED


def qp_attr():
    return QPInitAttr(qp_type=e.IBV_QPT_RC, cap=QPCap(max_send_wr=4, max_recv_wr=4, max_send_sge=1, max_recv_sge=1))


def address(server, addr, port):
    if server:
        return AddrInfo(src=addr, src_service=port, port_space=ce.RDMA_PS_TCP, flags=ce.RAI_PASSIVE)
    return AddrInfo(dst=addr, dst_service=port, port_space=ce.RDMA_PS_TCP)


# ---- connections: each is a generator, which gives its CMID and ends it when it goes on -------------


def sync_server(addr, port):
    listener = CMID(creator=address(True, addr, port), qp_init_attr=qp_attr())
    listener.listen()
    cmid = listener.get_request()
    yield cmid, cmid.accept
    cmid.disconnect()


def sync_client(addr, port):
    deadline = time.monotonic() + PATIENCE
    while True:
        cmid = CMID(creator=address(False, addr, port), qp_init_attr=qp_attr())
        try:
            cmid.connect(ConnParam())
            break
        except PyverbsRDMAError as problem:
            if problem.error_code != REFUSED or time.monotonic() > deadline:
                raise
            cmid.close()
            time.sleep(0.05)
    yield cmid, lambda: None
    cmid.disconnect()


def event(channel, wanted):
    """The next event, which must be that one."""
    got = CMEvent(channel)
    assert got.event_type == wanted, f"{got.event_str()} instead of {wanted}"
    return got


def async_server(addr, port):
    channel = CMEventChannel()
    listener = CMID(creator=channel)
    listener.bind_addr(address(True, addr, port))
    listener.listen(5)
    request = event(channel, ce.RDMA_CM_EVENT_CONNECT_REQUEST)
    cmid = CMID(creator=request, listen_id=listener)
    request.ack_cm_event()
    cmid.create_qp(qp_attr())

    def accept():
        cmid.accept(ConnParam())
        event(channel, ce.RDMA_CM_EVENT_ESTABLISHED).ack_cm_event()

    yield cmid, accept
    event(channel, ce.RDMA_CM_EVENT_DISCONNECTED).ack_cm_event()
    cmid.disconnect()


def async_client(addr, port):
    channel = CMEventChannel()
    cmid = CMID(creator=channel)
    cmid.resolve_addr(address(False, addr, port))
    event(channel, ce.RDMA_CM_EVENT_ADDR_RESOLVED).ack_cm_event()
    cmid.resolve_route()
    event(channel, ce.RDMA_CM_EVENT_ROUTE_RESOLVED).ack_cm_event()
    cmid.create_qp(qp_attr())
    cmid.connect(ConnParam())
    event(channel, ce.RDMA_CM_EVENT_ESTABLISHED).ack_cm_event()
    yield cmid, lambda: None
    cmid.disconnect()
    event(channel, ce.RDMA_CM_EVENT_DISCONNECTED).ack_cm_event()


# ---- what goes over them ---------------------------------------------------------------------------


def message(who, n):
    return (f"{who} {n} " * SIZE)[:SIZE]


def serve(cmid, accept):
    mr, sink, source = cmid.reg_msgs(SIZE), cmid.reg_write(SIZE), cmid.reg_read(SIZE)
    source.write(message("read", 0), SIZE)
    cmid.post_recv(mr)
    accept()
    for n in range(TIMES):
        assert cmid.get_recv_comp().byte_len == SIZE
        assert mr.read(SIZE, 0).decode() == message("client", n), f"message {n} came wrong"
        mr.write(message("server", n), SIZE)
        cmid.post_send(mr)
        cmid.get_send_comp()
        cmid.post_recv(mr)
    where = cmid.reg_msgs(WHERE.size)
    where.write(WHERE.pack(sink.buf, sink.rkey, source.buf, source.rkey), WHERE.size)
    cmid.post_send(where)
    cmid.get_send_comp()
    assert cmid.get_recv_comp().opcode == e.IBV_WC_RECV  # the client is done
    assert sink.read(SIZE, 0).decode() == message("write", 0), "what was written came wrong"


def use(cmid, _accept):
    mr = cmid.reg_msgs(SIZE)
    for n in range(TIMES):
        cmid.post_recv(mr)
        out = cmid.reg_msgs(SIZE)
        out.write(message("client", n), SIZE)
        cmid.post_send(out)
        cmid.get_send_comp()
        cmid.get_recv_comp()
        assert mr.read(SIZE, 0).decode() == message("server", n), f"answer {n} came wrong"
    cmid.post_recv(mr)
    assert cmid.get_recv_comp().byte_len == WHERE.size
    write_and_read(cmid, *WHERE.unpack(mr.read(WHERE.size, 0)))
    cmid.post_send(mr)
    cmid.get_send_comp()


def write_and_read(cmid, sink, sink_key, source, source_key):
    mr = cmid.reg_msgs(SIZE)
    mr.write(message("write", 0), SIZE)
    cmid.post_write(mr, SIZE, sink, sink_key, e.IBV_SEND_SIGNALED)
    assert cmid.get_send_comp().opcode == e.IBV_WC_RDMA_WRITE
    cmid.post_read(mr, SIZE, source, source_key, e.IBV_SEND_SIGNALED)
    assert cmid.get_send_comp().opcode == e.IBV_WC_RDMA_READ
    assert mr.read(SIZE, 0).decode() == message("read", 0), "what was read came wrong"


ROLES = {
    ("server", "sync"): sync_server,
    ("client", "sync"): sync_client,
    ("server", "async"): async_server,
    ("client", "async"): async_client,
}


def run(role, kind, addr, port=PORT):
    for cmid, accept in ROLES[role, kind](addr, port):
        (serve if role == "server" else use)(cmid, accept)
    print(f"{role}: all came right", flush=True)


if __name__ == "__main__":
    run(*sys.argv[1:])
