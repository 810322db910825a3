/* SPDX-License-Identifier: BSD-3-Clause */
/* The libibverbs provider: translates verbs objects and calls into those of the engine
 * (uwarp/uwarp.h), and does nothing else. */
#ifndef UWARP_PROVIDER_H
#define UWARP_PROVIDER_H

#include <netinet/in.h>

#include "objects.h"

/* ---- the verbs ---- */

/* query.c */
int uwarp_query_device(struct ibv_context *ibctx, const struct ibv_query_device_ex_input *input,
		       struct ibv_device_attr_ex *attr, size_t attr_size);
int uwarp_query_port(struct ibv_context *ibctx, uint8_t port, struct ibv_port_attr *attr);
/* *speed: in units of 100 Mb/s. */
int uwarp_query_port_speed(struct ibv_context *ibctx, uint32_t port, uint64_t *speed);

int uwarp_query_rt_values(struct ibv_context *ibctx, struct ibv_values_ex *values);

/* domain.c */
struct ibv_pd *uwarp_alloc_pd(struct ibv_context *ibctx);
int uwarp_dealloc_pd(struct ibv_pd *ibpd);
struct ibv_td *uwarp_alloc_td(struct ibv_context *ibctx, struct ibv_td_init_attr *attr);
int uwarp_dealloc_td(struct ibv_td *ibtd);
struct ibv_pd *uwarp_alloc_parent_domain(struct ibv_context *ibctx,
					 struct ibv_parent_domain_init_attr *attr);

/* mr.c */
int uwarp_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *ibpd, void *addr, size_t len,
		   int access);
struct ibv_mr *uwarp_alloc_null_mr(struct ibv_pd *ibpd);
int uwarp_advise_mr(struct ibv_pd *ibpd, enum ibv_advise_mr_advice advice, uint32_t flags,
		    struct ibv_sge *sge, uint32_t n);

/* dm.c */
#define UWARP_DM_SIZE ((size_t)1 << 20) /* octets of device memory that a process has */
struct ibv_dm *uwarp_alloc_dm(struct ibv_context *ibctx, struct ibv_alloc_dm_attr *attr);
int uwarp_free_dm(struct ibv_dm *ibdm);
struct ibv_mr *uwarp_reg_dm_mr(struct ibv_pd *ibpd, struct ibv_dm *ibdm, uint64_t offset,
			       size_t length, unsigned access);

/* dmah.c: of rdma-core 59 and later, see pabi.h */
struct ibv_dmah *uwarp_alloc_dmah(struct ibv_context *ibctx, struct pabi_dmah_attr *attr);
int uwarp_dealloc_dmah(struct ibv_dmah *dmah);
struct ibv_mr *uwarp_reg_mr_ex(struct ibv_pd *ibpd, struct pabi_mr_attr *attr);

/* mw.c */
struct ibv_mw *uwarp_alloc_mw(struct ibv_pd *ibpd, enum ibv_mw_type type);
int uwarp_dealloc_mw(struct ibv_mw *ibmw);
int uwarp_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *ibmw, struct ibv_mw_bind *bind);
/* Fill in the request that binds the window. False: no window or no region is given. */
bool uwarp_fill_bind(struct uw_send_wr *to, struct ibv_mw *mw, uint32_t rkey,
		     const struct ibv_mw_bind_info *info);
struct ibv_mr *uwarp_reg_mr(struct ibv_pd *ibpd, void *addr, size_t len, uint64_t iova, int access);
int uwarp_dereg_mr(struct verbs_mr *vmr);

/* cq.c, cq_ex.c */
struct ibv_cq *uwarp_create_cq(struct ibv_context *ibctx, int cqe, struct ibv_comp_channel *channel,
			       int comp_vector);
struct ibv_cq_ex *uwarp_create_cq_ex(struct ibv_context *ibctx, struct ibv_cq_init_attr_ex *attr);
int uwarp_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc);
int uwarp_req_notify_cq(struct ibv_cq *ibcq, int solicited_only);
int uwarp_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr);
int uwarp_resize_cq(struct ibv_cq *ibcq, int cqe);
int uwarp_destroy_cq(struct ibv_cq *ibcq);

/* srq.c */
struct ibv_srq *uwarp_create_srq(struct ibv_pd *ibpd, struct ibv_srq_init_attr *attr);
struct ibv_srq *uwarp_create_srq_ex(struct ibv_context *ibctx, struct ibv_srq_init_attr_ex *attr);
int uwarp_modify_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr, int mask);
int uwarp_query_srq(struct ibv_srq *ibsrq, struct ibv_srq_attr *attr);
int uwarp_destroy_srq(struct ibv_srq *ibsrq);

/* qp.c, qp_state.c, qp_ex.c */
/* What a QP may allow its peer; a new one allows all. */
#define QP_ACCESS                                                                                  \
	((unsigned)(UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ | UW_ACCESS_REMOTE_ATOMIC |     \
		    UW_ACCESS_FLUSH_GLOBAL | UW_ACCESS_FLUSH_PERSISTENT))
struct ibv_qp *uwarp_create_qp(struct ibv_pd *ibpd, struct ibv_qp_init_attr *attr);
struct ibv_qp *uwarp_create_qp_ex(struct ibv_context *ibctx, struct ibv_qp_init_attr_ex *attr);
extern const struct uw_path uwarp_new_path;
int uwarp_modify_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask);
int uwarp_query_qp(struct ibv_qp *ibqp, struct ibv_qp_attr *attr, int mask,
		   struct ibv_qp_init_attr *init);
int uwarp_query_qp_data_in_order(struct ibv_qp *ibqp, enum ibv_wr_opcode op, uint32_t flags);
int uwarp_destroy_qp(struct ibv_qp *ibqp);
/* qp_steps.c: is there such a step, and has it no attributes but those that it takes? */
bool uwarp_step_takes(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
		      int mask);
/* ... and all that it needs? */
bool uwarp_step_is_ok(enum ibv_qp_type type, enum ibv_qp_state from, enum ibv_qp_state to,
		      int mask);
bool uwarp_batch_wanted(const struct ibv_qp_init_attr_ex *attr);
bool uwarp_batch_possible(const struct ibv_qp_init_attr_ex *attr);
int uwarp_batch_create(struct uwarp_qp *qp);
void uwarp_batch_destroy(struct uwarp_qp *qp);

/* path.c: the two ends that an address names. `own` is valid, and `from` points to it, if `from` is
 * not NULL. */
struct uwarp_ends {
	struct sockaddr_in6 peer, own;
	const struct sockaddr *from;
};
/* -EINVAL, with a line on stderr that names the call. */
int uwarp_find_ends(const char *call, const struct uw_device_attr *dev,
		    const struct ibv_ah_attr *ah, struct uwarp_ends *ends);

/* ah.c */
struct ibv_ah *uwarp_create_ah(struct ibv_pd *ibpd, struct ibv_ah_attr *attr);
int uwarp_destroy_ah(struct ibv_ah *ibah);
/* A group is named by its address as a GID; the LID is InfiniBand's. */
int uwarp_attach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid);
int uwarp_detach_mcast(struct ibv_qp *ibqp, const union ibv_gid *gid, uint16_t lid);
/* Say in a request to a UD QP where it goes. */
void uwarp_fill_to(struct uw_send_wr *to, const struct ibv_ah *ibah, uint32_t qpn, uint32_t qkey);

/* post.c */
int uwarp_post_send(struct ibv_qp *ibqp, struct ibv_send_wr *wr, struct ibv_send_wr **bad);
int uwarp_post_recv(struct ibv_qp *ibqp, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);
int uwarp_post_srq_recv(struct ibv_srq *ibsrq, struct ibv_recv_wr *wr, struct ibv_recv_wr **bad);

#endif
