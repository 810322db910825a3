/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, memory regions and windows; conventions are in uwarp.h. */
#ifndef UWARP_MEMORY_H
#define UWARP_MEMORY_H

#include "uwarp/config.h"

int uw_pd_alloc(struct uw_engine *e, struct uw_pd **out);
int uw_pd_dealloc(struct uw_pd *pd); /* -EBUSY while MRs, QPs or SRQs use it */

/* Register [addr, addr+len) so that remote TO `iova` means addr. The memory is not pinned: it must
 * stay mapped until dereg. Unknown access bits are ignored. STags are random and not reused soon
 * (RFC 5040 §8.1.1). -EINVAL: wraps, or remote write/atomic without local write. -EFAULT: not all
 * of it is mapped, or it is to be written and cannot be. With UW_ACCESS_ON_DEMAND nobody looks, but
 * every access does: all of the address space may be registered so (NULL, SIZE_MAX). -ENOMEM. */
int uw_mr_reg(struct uw_pd *pd, void *addr, size_t len, uint64_t iova, unsigned access,
	      struct uw_mr **out);
/* For any address: reads give zeros, what is written is dropped. Local use only. */
int uw_mr_alloc_null(struct uw_pd *pd, struct uw_mr **out);
struct uw_mr_change {
	struct uw_pd *pd; /* NULL: the same */
	bool move;	  /* to addr, len, iova */
	void *addr;
	size_t len;
	uint64_t iova;
	bool set_access; /* to access */
	unsigned access;
};
/* All or nothing; the STag stays. Errors as uw_mr_reg; -EBUSY: windows are bound to it. */
int uw_mr_change(struct uw_mr *mr, const struct uw_mr_change *c);
/* After it returns no packet, however late, reaches the memory (RFC 5042 §6.2.2). -EBUSY: windows
 * are bound to it. */
int uw_mr_dereg(struct uw_mr *mr);
uint32_t uw_mr_stag(const struct uw_mr *mr); /* lkey = rkey = STag */

/* Memory windows: type 1 belongs to the PD, type 2 to the QP that binds it, whose peer may
 * invalidate it (SEND_WITH_INV). Not bound at first. The upper 24 bits of its rkey stay, the lower
 * 8 are chosen with each UW_WR_BIND_MW. */
int uw_mw_alloc(struct uw_pd *pd, unsigned type, struct uw_mw **out); /* -EINVAL type, -ENOMEM */
int uw_mw_dealloc(struct uw_mw *mw);				      /* bound or not */
uint32_t uw_mw_rkey(const struct uw_mw *mw);

#endif
