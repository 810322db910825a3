/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of operations that libibverbs calls. Each entry stands in front of the function of the
 * same name and does two things for all of them.
 *
 * A thread that the program cancels (pthread_cancel) must not end inside the stack: a lock would
 * stay locked and an object half made. So cancellation is off during the call. It takes effect at
 * the thread's next cancellation point after the call. Posting and polling are not wrapped: they
 * have no cancellation point of their own, and two calls of pthread_setcancelstate() cost 10 ns,
 * which is much beside what an empty poll costs.
 *
 * A call that returns an errno value sets errno as well, as with the kernel's devices. Some
 * programs print that.
 */
#include "pabi_ops.h"
#include "provider.h"

static int call_begin(void)
{
	int was;

	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
	return was;
}

static void call_end(int was)
{
	int ignored;

	pthread_setcancelstate(was, &ignored);
}

static int with_errno(int rc)
{
	if (rc)
		errno = rc < 0 ? -rc : rc;
	return rc;
}

/* An operation that returns 0 or an errno value; one that returns an object. */
#define INT_CALL(name, params, args)                                                               \
	static int call_##name params                                                              \
	{                                                                                          \
		int was = call_begin(), rc = uwarp_##name args;                                    \
                                                                                                   \
		call_end(was);                                                                     \
		return with_errno(rc);                                                             \
	}
#define PTR_CALL(type, name, params, args)                                                         \
	static type *call_##name params                                                            \
	{                                                                                          \
		int was = call_begin();                                                            \
		type *object = uwarp_##name args;                                                  \
                                                                                                   \
		call_end(was);                                                                     \
		return object;                                                                     \
	}

INT_CALL(query_device,
	 (struct ibv_context * c, const struct ibv_query_device_ex_input *in,
	  struct ibv_device_attr_ex *attr, size_t size),
	 (c, in, attr, size))
INT_CALL(query_port, (struct ibv_context * c, uint8_t port, struct ibv_port_attr *attr),
	 (c, port, attr))
INT_CALL(query_port_speed, (struct ibv_context * c, uint32_t port, uint64_t *speed),
	 (c, port, speed))
INT_CALL(query_rt_values, (struct ibv_context * c, struct ibv_values_ex *v), (c, v))

PTR_CALL(struct ibv_pd, alloc_pd, (struct ibv_context * c), (c))
PTR_CALL(struct ibv_td, alloc_td, (struct ibv_context * c, struct ibv_td_init_attr *attr),
	 (c, attr))
PTR_CALL(struct ibv_pd, alloc_parent_domain,
	 (struct ibv_context * c, struct ibv_parent_domain_init_attr *attr), (c, attr))
INT_CALL(dealloc_pd, (struct ibv_pd * pd), (pd))
INT_CALL(dealloc_td, (struct ibv_td * td), (td))

PTR_CALL(struct ibv_mr, reg_mr,
	 (struct ibv_pd * pd, void *addr, size_t len, uint64_t iova, int access),
	 (pd, addr, len, iova, access))
PTR_CALL(struct ibv_dm, alloc_dm, (struct ibv_context * c, struct ibv_alloc_dm_attr *attr),
	 (c, attr))
INT_CALL(free_dm, (struct ibv_dm * dm), (dm))
PTR_CALL(struct ibv_mr, reg_dm_mr,
	 (struct ibv_pd * pd, struct ibv_dm *dm, uint64_t offset, size_t len, unsigned access),
	 (pd, dm, offset, len, access))
PTR_CALL(struct ibv_dmah, alloc_dmah, (struct ibv_context * c, struct pabi_dmah_attr *attr),
	 (c, attr))
INT_CALL(dealloc_dmah, (struct ibv_dmah * dmah), (dmah))
PTR_CALL(struct ibv_mr, reg_mr_ex, (struct ibv_pd * pd, struct pabi_mr_attr *attr), (pd, attr))
PTR_CALL(struct ibv_mr, alloc_null_mr, (struct ibv_pd * pd), (pd))
INT_CALL(rereg_mr,
	 (struct verbs_mr * mr, int flags, struct ibv_pd *pd, void *addr, size_t len, int access),
	 (mr, flags, pd, addr, len, access))
INT_CALL(dereg_mr, (struct verbs_mr * mr), (mr))
INT_CALL(advise_mr,
	 (struct ibv_pd * pd, enum ibv_advise_mr_advice advice, uint32_t flags, struct ibv_sge *sge,
	  uint32_t n),
	 (pd, advice, flags, sge, n))
PTR_CALL(struct ibv_mw, alloc_mw, (struct ibv_pd * pd, enum ibv_mw_type type), (pd, type))
INT_CALL(dealloc_mw, (struct ibv_mw * mw), (mw))
INT_CALL(bind_mw, (struct ibv_qp * qp, struct ibv_mw *mw, struct ibv_mw_bind *bind), (qp, mw, bind))

PTR_CALL(struct ibv_cq, create_cq,
	 (struct ibv_context * c, int cqe, struct ibv_comp_channel *channel, int vector),
	 (c, cqe, channel, vector))
PTR_CALL(struct ibv_cq_ex, create_cq_ex, (struct ibv_context * c, struct ibv_cq_init_attr_ex *attr),
	 (c, attr))
INT_CALL(req_notify_cq, (struct ibv_cq * cq, int solicited_only), (cq, solicited_only))
INT_CALL(resize_cq, (struct ibv_cq * cq, int cqe), (cq, cqe))
INT_CALL(modify_cq, (struct ibv_cq * cq, struct ibv_modify_cq_attr *attr), (cq, attr))
INT_CALL(destroy_cq, (struct ibv_cq * cq), (cq))

PTR_CALL(struct ibv_srq, create_srq, (struct ibv_pd * pd, struct ibv_srq_init_attr *attr),
	 (pd, attr))
PTR_CALL(struct ibv_srq, create_srq_ex, (struct ibv_context * c, struct ibv_srq_init_attr_ex *attr),
	 (c, attr))
INT_CALL(modify_srq, (struct ibv_srq * srq, struct ibv_srq_attr *attr, int mask), (srq, attr, mask))
INT_CALL(query_srq, (struct ibv_srq * srq, struct ibv_srq_attr *attr), (srq, attr))
INT_CALL(destroy_srq, (struct ibv_srq * srq), (srq))

PTR_CALL(struct ibv_qp, create_qp, (struct ibv_pd * pd, struct ibv_qp_init_attr *attr), (pd, attr))
PTR_CALL(struct ibv_qp, create_qp_ex, (struct ibv_context * c, struct ibv_qp_init_attr_ex *attr),
	 (c, attr))
PTR_CALL(struct ibv_ah, create_ah, (struct ibv_pd * pd, struct ibv_ah_attr *attr), (pd, attr))
INT_CALL(attach_mcast, (struct ibv_qp * qp, const union ibv_gid *gid, uint16_t lid), (qp, gid, lid))
INT_CALL(detach_mcast, (struct ibv_qp * qp, const union ibv_gid *gid, uint16_t lid), (qp, gid, lid))
INT_CALL(destroy_ah, (struct ibv_ah * ah), (ah))
INT_CALL(query_qp,
	 (struct ibv_qp * qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init),
	 (qp, attr, mask, init))
INT_CALL(modify_qp, (struct ibv_qp * qp, struct ibv_qp_attr *attr, int mask), (qp, attr, mask))
INT_CALL(destroy_qp, (struct ibv_qp * qp), (qp))

/* What is missing here libibverbs answers with EOPNOTSUPP. */
const struct pabi_ops uwarp_ops = {
	.free_context = uwarp_free_context,
	.query_device_ex = call_query_device,
	.query_port = call_query_port,
	.query_port_speed = call_query_port_speed,
	.query_rt_values = call_query_rt_values,
	.alloc_pd = call_alloc_pd,
	.dealloc_pd = call_dealloc_pd,
	.alloc_td = call_alloc_td,
	.dealloc_td = call_dealloc_td,
	.alloc_parent_domain = call_alloc_parent_domain,
	.reg_mr = call_reg_mr,
	.rereg_mr = call_rereg_mr,
	.alloc_dm = call_alloc_dm,
	.free_dm = call_free_dm,
	.reg_dm_mr = call_reg_dm_mr,
	.alloc_dmah = call_alloc_dmah,
	.dealloc_dmah = call_dealloc_dmah,
	.reg_mr_ex = call_reg_mr_ex,
	.alloc_null_mr = call_alloc_null_mr,
	.advise_mr = call_advise_mr,
	.dereg_mr = call_dereg_mr,
	.alloc_mw = call_alloc_mw,
	.dealloc_mw = call_dealloc_mw,
	.bind_mw = call_bind_mw,
	.create_cq = call_create_cq,
	.create_cq_ex = call_create_cq_ex,
	.poll_cq = uwarp_poll_cq,
	.req_notify_cq = call_req_notify_cq,
	.resize_cq = call_resize_cq,
	.modify_cq = call_modify_cq,
	.destroy_cq = call_destroy_cq,
	.create_srq = call_create_srq,
	.create_srq_ex = call_create_srq_ex,
	.modify_srq = call_modify_srq,
	.query_srq = call_query_srq,
	.destroy_srq = call_destroy_srq,
	.post_srq_recv = uwarp_post_srq_recv,
	.create_ah = call_create_ah,
	.attach_mcast = call_attach_mcast,
	.detach_mcast = call_detach_mcast,
	.destroy_ah = call_destroy_ah,
	.create_qp = call_create_qp,
	.create_qp_ex = call_create_qp_ex,
	.query_qp = call_query_qp,
	.query_qp_data_in_order = uwarp_query_qp_data_in_order,
	.modify_qp = call_modify_qp,
	.destroy_qp = call_destroy_qp,
	.post_send = uwarp_post_send,
	.post_recv = uwarp_post_recv,
};
