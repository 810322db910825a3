/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of all functions of libuwarp.so, for programs that dlopen() the library. */
#ifndef UWARP_API_H
#define UWARP_API_H

#include "uwarp/cq.h"
#include "uwarp/device.h"
#include "uwarp/endpoint.h"
#include "uwarp/memory.h"
#include "uwarp/qp.h"

/* All of them, without the uw_; their order is the table's. */
/* clang-format off */
#define UW_API_LIST(X) \
	X(engine_open) \
	X(engine_start) \
	X(engine_started) \
	X(wait_elsewhere) \
	X(wait_look) \
	X(wait_begin) \
	X(wait_end) \
	X(wait_done) \
	X(wait_plainly) \
	X(wait_yield) \
	X(engine_end) \
	X(engine_query) \
	X(pd_alloc) \
	X(pd_dealloc) \
	X(mr_reg) \
	X(mr_dereg) \
	X(mr_stag) \
	X(cq_create) \
	X(cq_resize) \
	X(cq_destroy) \
	X(cq_poll) \
	X(cq_arm) \
	X(srq_create) \
	X(srq_destroy) \
	X(srq_set_limit) \
	X(srq_limit) \
	X(srq_post_recv) \
	X(qp_create) \
	X(qp_destroy) \
	X(qp_num) \
	X(qp_state) \
	X(qp_modify) \
	X(qp_name_peer) \
	X(qp_set_path) \
	X(qp_set_access) \
	X(post_send) \
	X(post_recv) \
	X(ep_create) \
	X(ep_set_ctx) \
	X(ep_bind) \
	X(ep_share_port) \
	X(ep_resolve) \
	X(ep_listen) \
	X(ep_connect) \
	X(ep_accept) \
	X(ep_reject) \
	X(ep_disconnect) \
	X(ep_destroy) \
	X(ep_local_addr) \
	X(ep_peer_addr) \
	X(ep_peer_gid) \
	X(mr_alloc_null) \
	X(mr_change) \
	X(mw_alloc) \
	X(mw_dealloc) \
	X(mw_rkey) \
	X(cq_poll_stamped) \
	X(cq_moderate) \
	X(post_send_all) \
	X(ep_only6) \
	X(srq_resize) \
	X(engine_fork) \
	X(ep_set_tos) \
	X(later) \
	X(engine_counters) \
	X(qp_set_datagrams) \
	X(ah_make) \
	X(ep_set_datagrams) \
	X(qp_group) \
	X(qp_depths)
/* clang-format on */

struct uw_api {
	uint32_t version; /* UW_API_VERSION */
#define UW_X(name) __typeof__(uw_##name) *name;
	UW_API_LIST(UW_X)
#undef UW_X
};

/* The only exported symbol of libuwarp.so. NULL if the library has another version. */
const struct uw_api *uw_api_get(uint32_t version);

#endif
