/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, memory regions and windows; conventions are in uwarp.h. */
#ifndef UWARP_MEMORY_H
#define UWARP_MEMORY_H

#include "uwarp/config.h"

int uw_pd_alloc(struct uw_engine *e, struct uw_pd **out);
int uw_pd_dealloc(struct uw_pd *pd); /* -EBUSY while MRs, MWs, QPs or SRQs use the PD */

/* Register [addr, addr+len); the remote TO `iova` stands for addr. The memory is not pinned and
 * must stay mapped until dereg. Unknown access bits are ignored. STags are random and not reused
 * soon (RFC 5040 §8.1.1). -EINVAL: the range wraps, or remote write/atomic without local write.
 * -EFAULT: a part of the range is not mapped, or not writable although write access is asked for.
 * With UW_ACCESS_ON_DEMAND the check is made at every access instead, so all of the address space
 * may be registered (NULL, SIZE_MAX). -ENOMEM. */
int uw_mr_reg(struct uw_pd *pd, void *addr, size_t len, uint64_t iova, unsigned access,
	      struct uw_mr **out);
/* A region for any address: reads give zeros, writes are dropped. For local use only. */
int uw_mr_alloc_null(struct uw_pd *pd, struct uw_mr **out);
struct uw_mr_change {
	struct uw_pd *pd; /* NULL: keep the PD */
	bool move;	  /* change the memory to addr, len, iova */
	void *addr;
	size_t len;
	uint64_t iova;
	bool set_access; /* change the rights to access */
	unsigned access;
};
/* Change everything or, on an error, nothing; the STag stays. Errors as uw_mr_reg; -EBUSY: windows
 * are bound to the region. */
int uw_mr_change(struct uw_mr *mr, const struct uw_mr_change *c);
/* Deregister. After the return no packet, however late, reaches the memory (RFC 5042 §6.2.2).
 * -EBUSY: windows are bound to the region. */
int uw_mr_dereg(struct uw_mr *mr);
uint32_t uw_mr_stag(const struct uw_mr *mr); /* lkey = rkey = STag */

/* Memory windows. Type 1 belongs to the PD. Type 2 belongs to the QP that binds the window; the
 * peer of the QP may invalidate the window (SEND_WITH_INV). A new window is not bound. The upper 24
 * bits of its rkey stay; each UW_WR_BIND_MW chooses the lower 8. */
int uw_mw_alloc(struct uw_pd *pd, unsigned type, struct uw_mw **out); /* -EINVAL type, -ENOMEM */
int uw_mw_dealloc(struct uw_mw *mw);				      /* the window may be bound */
uint32_t uw_mw_rkey(const struct uw_mw *mw);

#endif
