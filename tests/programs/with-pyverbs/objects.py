# SPDX-License-Identifier: BSD-3-Clause
"""Every kind of object that a program without a peer makes: its attributes, its errors, its end."""

import errno
import mmap

import pyverbs.device as d
from constants import e
from pyverbs.cq import CQ, CQEX, CompChannel, CqInitAttrEx
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPEx, QPInitAttr, QPInitAttrEx
from pyverbs.srq import SRQ, SrqAttr, SrqInitAttr

ALL = e.IBV_ACCESS_LOCAL_WRITE | e.IBV_ACCESS_REMOTE_WRITE | e.IBV_ACCESS_REMOTE_READ | e.IBV_ACCESS_REMOTE_ATOMIC
SIZE = 10000


def refused(code, make, *args, **named):
    try:
        make(*args, **named)
    except PyverbsRDMAError as problem:
        assert problem.error_code == code, (make, problem.error_code)
        return
    raise AssertionError(f"{make} was not refused")


def device(name):
    names = [x.name.decode() for x in d.get_device_list()]
    assert name in names, names
    ctx = d.Context(name=name)
    attr, ex, port = ctx.query_device(), ctx.query_device_ex(), ctx.query_port(1)
    assert attr.max_qp > 1000 and attr.max_qp_wr > 1000 and attr.max_sge >= 16, str(attr)
    assert attr.vendor_id, str(attr)
    assert ex.orig_attr.node_guid == attr.node_guid
    assert port.state == e.IBV_PORT_ACTIVE and port.gid_tbl_len >= 1, str(port)
    assert ctx.query_gid(1, 0).gid != ":".join(["0000"] * 8)
    assert len(ctx.query_gid_table(16)) >= 1
    refused(errno.EINVAL, ctx.query_port, 2)
    return ctx


def memory(pd):
    mr = MR(pd, SIZE, ALL)
    mr.write("x" * SIZE, SIZE)
    assert mr.read(10, SIZE - 10) == b"x" * 10 and mr.length == SIZE
    other = MR(pd, SIZE, e.IBV_ACCESS_LOCAL_WRITE)
    assert mr.rkey and other.rkey and mr.rkey != other.rkey
    other.close()
    with mmap.mmap(-1, 1 << 20) as area:
        first = MR(pd, 1 << 20, ALL)
        assert len(area) == first.length
    refused(errno.EINVAL, MR, pd, SIZE, e.IBV_ACCESS_REMOTE_WRITE)  # needs local write


def completion_queues(ctx):
    channel = CompChannel(ctx)
    cq = CQ(ctx, 100, None, channel, 0)
    cq.req_notify()
    assert cq.poll(10) == (0, [])
    assert CQ(ctx, 1).cqe >= 1
    extended = CQEX(ctx, CqInitAttrEx(cqe=20, wc_flags=e.IBV_WC_EX_WITH_BYTE_LEN | e.IBV_WC_EX_WITH_QP_NUM))
    extended.close()
    refused(errno.EINVAL, CQ, ctx, 1 << 30)
    return cq


def shared_queue(pd):
    srq = SRQ(pd, SrqInitAttr(SrqAttr(max_wr=50, max_sge=2)))
    attr = srq.query()
    assert attr.max_wr >= 50 and attr.max_sge >= 2
    srq.modify(SrqAttr(srq_limit=5), e.IBV_SRQ_LIMIT)
    assert srq.query().srq_limit == 5
    return srq


def queue_pairs(ctx, pd, cq, srq):
    cap = QPCap(max_send_wr=10, max_recv_wr=20, max_send_sge=3, max_recv_sge=2, max_inline_data=64)
    qp = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=cap))
    granted = qp.query(e.IBV_QP_CAP)[1].cap
    assert granted.max_send_wr >= 10 and granted.max_recv_wr >= 20 and granted.max_inline_data >= 64
    attr = QPAttr(qp_state=e.IBV_QPS_INIT, port_num=1)
    qp.modify(attr, e.IBV_QP_STATE | e.IBV_QP_PORT | e.IBV_QP_PKEY_INDEX | e.IBV_QP_ACCESS_FLAGS)
    assert qp.query(e.IBV_QP_STATE)[0].qp_state == e.IBV_QPS_INIT
    qp.modify(QPAttr(qp_state=e.IBV_QPS_ERR), e.IBV_QP_STATE)
    assert qp.query(e.IBV_QP_STATE)[0].qp_state == e.IBV_QPS_ERR
    with_srq = QP(pd, QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, srq=srq, cap=QPCap(max_recv_wr=0)))
    assert with_srq.qp_num != qp.qp_num
    flags = e.IBV_QP_EX_WITH_SEND | e.IBV_QP_EX_WITH_RDMA_WRITE
    mask = e.IBV_QP_INIT_ATTR_PD | e.IBV_QP_INIT_ATTR_SEND_OPS_FLAGS
    QPEx(ctx, QPInitAttrEx(qp_type=e.IBV_QPT_RC, pd=pd, scq=cq, rcq=cq, cap=cap, comp_mask=mask, send_ops_flags=flags))
    too_many = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(max_send_wr=1 << 30))
    refused(errno.EINVAL, QP, pd, too_many)
    refused(errno.EOPNOTSUPP, QP, pd, QPInitAttr(qp_type=e.IBV_QPT_RAW_PACKET, scq=cq, rcq=cq, cap=cap))


def main():
    ctx = device("uwarp0")
    for _ in range(3):
        pd = PD(ctx)
        memory(pd)
        cq, srq = completion_queues(ctx), shared_queue(pd)
        queue_pairs(ctx, pd, cq, srq)
        pd.close()  # takes its MRs, QPs and SRQs with it
        cq.close()
    PD(ctx)
    ctx.close()  # takes all the rest
    print("all came and went")


if __name__ == "__main__":
    main()
