/* SPDX-License-Identifier: BSD-3-Clause */
/* Extended completion queues: the start_poll/next_poll/end_poll iterator. */
#include <time.h>

#include "cq.h"

#define STAMPS                                                                                     \
	((uint64_t)(IBV_WC_EX_WITH_COMPLETION_TIMESTAMP |                                          \
		    IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK))
/* A VLAN, a flow tag or tag matching: a completion here never has one, and that is what is read. */
#define WC_FLAGS_HERE                                                                              \
	((uint64_t)(IBV_WC_STANDARD_FLAGS | IBV_WC_EX_WITH_CVLAN | IBV_WC_EX_WITH_FLOW_TAG |       \
		    IBV_WC_EX_WITH_TM_INFO) |                                                      \
	 STAMPS)
/* Of a parent domain a CQ needs nothing. */
#define COMP_MASK_HERE ((uint32_t)(IBV_CQ_INIT_ATTR_MASK_FLAGS | IBV_CQ_INIT_ATTR_MASK_PD))
#define FLAGS_HERE                                                                                 \
	((uint32_t)(IBV_CREATE_CQ_ATTR_SINGLE_THREADED | IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN))

static struct uwarp_cq *of(struct ibv_cq_ex *ibcq)
{
	return uwarp_container(ibcq, struct uwarp_cq, vcq.cq_ex);
}

static int take_one(struct uwarp_cq *cq)
{
	int n = cq->stamps ? cq->api->cq_poll_stamped(cq->uw, &cq->wc, &cq->stamp)
			   : cq->api->cq_poll(cq->uw, 1, &cq->wc);

	if (n == 0)
		return ENOENT;
	if (n < 0) {
		errno = -n;
		return -n;
	}
	cq->vcq.cq_ex.wr_id = cq->wc.wr_id;
	cq->vcq.cq_ex.status = (enum ibv_wc_status)cq->wc.status;
	return 0;
}

static void end_poll(struct ibv_cq_ex *ibcq)
{
	struct uwarp_cq *cq = of(ibcq);

	if (!cq->poll_unlocked)
		pthread_mutex_unlock(&cq->poll_lock);
}

/* end_poll() follows only if this succeeds. */
static int start_poll(struct ibv_cq_ex *ibcq, struct ibv_poll_cq_attr *attr)
{
	struct uwarp_cq *cq = of(ibcq);
	int rc;

	if (attr->comp_mask)
		return EINVAL;
	if (!cq->poll_unlocked)
		pthread_mutex_lock(&cq->poll_lock);
	rc = take_one(cq);
	if (rc)
		end_poll(ibcq);
	return rc;
}

static int next_poll(struct ibv_cq_ex *ibcq)
{
	return take_one(of(ibcq));
}

static enum ibv_wc_opcode read_opcode(struct ibv_cq_ex *ibcq)
{
	return (enum ibv_wc_opcode)of(ibcq)->wc.opcode;
}

#define READ(name, type, member)                                                                   \
	static type read_##name(struct ibv_cq_ex *ibcq)                                            \
	{                                                                                          \
		return of(ibcq)->wc.member;                                                        \
	}
READ(vendor_err, uint32_t, vendor_err)
READ(byte_len, uint32_t, byte_len)
READ(imm_data, __be32, imm_or_inv)
READ(qp_num, uint32_t, qp_num)
READ(src_qp, uint32_t, src_qp)
READ(wc_flags, unsigned int, wc_flags)
READ(slid, uint32_t, slid)
READ(sl, uint8_t, sl)
READ(dlid_path_bits, uint8_t, dlid_path_bits)
#undef READ

static uint64_t read_completion_ts(struct ibv_cq_ex *ibcq)
{
	return of(ibcq)->stamp;
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t read_wallclock_ns(struct ibv_cq_ex *ibcq)
{
	return of(ibcq)->stamp + (now_ns(CLOCK_REALTIME) - now_ns(CLOCK_MONOTONIC));
}

static uint16_t read_cvlan(struct ibv_cq_ex *ibcq)
{
	(void)ibcq;
	return 0;
}

static uint32_t read_flow_tag(struct ibv_cq_ex *ibcq)
{
	(void)ibcq;
	return 0;
}

static void read_tm_info(struct ibv_cq_ex *ibcq, struct ibv_wc_tm_info *info)
{
	(void)ibcq;
	*info = (struct ibv_wc_tm_info){ 0 };
}

static void set_readers(struct ibv_cq_ex *cq)
{
	cq->start_poll = start_poll;
	cq->next_poll = next_poll;
	cq->end_poll = end_poll;
	cq->read_opcode = read_opcode;
	cq->read_vendor_err = read_vendor_err;
	cq->read_byte_len = read_byte_len;
	cq->read_imm_data = read_imm_data;
	cq->read_qp_num = read_qp_num;
	cq->read_src_qp = read_src_qp;
	cq->read_wc_flags = read_wc_flags;
	cq->read_completion_ts = read_completion_ts;
	cq->read_completion_wallclock_ns = read_wallclock_ns;
	cq->read_cvlan = read_cvlan;
	cq->read_flow_tag = read_flow_tag;
	cq->read_tm_info = read_tm_info;
	cq->read_slid = read_slid;
	cq->read_sl = read_sl;
	cq->read_dlid_path_bits = read_dlid_path_bits;
}

struct ibv_cq_ex *uwarp_create_cq_ex(struct ibv_context *ibctx, struct ibv_cq_init_attr_ex *attr)
{
	struct uwarp_cq_params p = {
		.cqe = attr->cqe,
		.comp_vector = attr->comp_vector,
		.channel = attr->channel,
	};
	uint32_t flags = attr->comp_mask & IBV_CQ_INIT_ATTR_MASK_FLAGS ? attr->flags : 0;
	struct uwarp_cq *cq;
	int rc;

	if ((attr->wc_flags & ~WC_FLAGS_HERE) || (attr->comp_mask & ~COMP_MASK_HERE) ||
	    (flags & ~FLAGS_HERE))
		return uwarp_fail(-EOPNOTSUPP);
	p.stamps = attr->wc_flags & STAMPS;
	p.ignore_overrun = flags & IBV_CREATE_CQ_ATTR_IGNORE_OVERRUN;
	rc = uwarp_cq_new(ibctx, &p, &cq);
	if (rc)
		return uwarp_fail(rc);
	cq->poll_unlocked = flags & IBV_CREATE_CQ_ATTR_SINGLE_THREADED;
	set_readers(&cq->vcq.cq_ex);
	return &cq->vcq.cq_ex;
}
