/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions. */
#include <stdlib.h>

#include "provider.h"

/* As the kernel: what is neither known nor optional is refused. */
static bool is_known(int access)
{
	return !((unsigned)access & ~((unsigned)UW_ACCESS_ALL | (unsigned)UW_ACCESS_OPTIONAL));
}

struct ibv_mr *uwarp_reg_mr(struct ibv_pd *ibpd, void *addr, size_t len, uint64_t iova, int access)
{
	struct uwarp_pd *pd = to_uwarp_pd(ibpd);
	struct uwarp_mr *mr;
	int rc;

	if (!is_known(access))
		return uwarp_fail(-EINVAL);
	mr = calloc(1, sizeof(*mr));
	if (!mr)
		return uwarp_fail(-ENOMEM);
	mr->api = pd->api;
	if (access & IBV_ACCESS_ZERO_BASED)
		iova = 0;
	rc = mr->api->mr_reg(pd->uw, addr, len, iova, (unsigned)access, &mr->uw);
	if (rc) {
		free(mr);
		return uwarp_fail(rc);
	}
	uwarp_pd_hold(ibpd);
	mr->vmr.access = access; /* libibverbs' own book-keeping (fork safety) */
	mr->vmr.ibv_mr.lkey = mr->vmr.ibv_mr.rkey = mr->api->mr_stag(mr->uw);
	mr->vmr.ibv_mr.handle = mr->vmr.ibv_mr.lkey;
	return &mr->vmr.ibv_mr;
}

int uwarp_dereg_mr(struct verbs_mr *vmr)
{
	struct uwarp_mr *mr = uwarp_container(vmr, struct uwarp_mr, vmr);
	int rc = mr->api->mr_dereg(mr->uw);

	if (rc)
		return -rc;
	uwarp_pd_put(mr->vmr.ibv_mr.pd);
	if (mr->of_users)
		atomic_fetch_sub(mr->of_users, 1);
	free(mr);
	return 0;
}

/* libibverbs sets addr, length and pd itself, after it has used the old ones. */
int uwarp_rereg_mr(struct verbs_mr *vmr, int flags, struct ibv_pd *ibpd, void *addr, size_t len,
		   int access)
{
	struct uwarp_mr *mr = uwarp_container(vmr, struct uwarp_mr, vmr);
	const struct uw_mr_change c = {
		.pd = flags & IBV_REREG_MR_CHANGE_PD ? to_uwarp_pd(ibpd)->uw : NULL,
		.move = flags & IBV_REREG_MR_CHANGE_TRANSLATION,
		.addr = addr,
		.len = len,
		.iova = (uintptr_t)addr,
		.set_access = flags & IBV_REREG_MR_CHANGE_ACCESS,
		.access = (unsigned)access,
	};
	int rc = c.set_access && !is_known(access) ? -EINVAL : mr->api->mr_change(mr->uw, &c);

	if (rc)
		return -rc;
	if (c.pd) {
		uwarp_pd_hold(ibpd);
		uwarp_pd_put(vmr->ibv_mr.pd);
	}
	if (c.set_access)
		vmr->access = access;
	return 0;
}

struct ibv_mr *uwarp_alloc_null_mr(struct ibv_pd *ibpd)
{
	enum { TYPE_NULL = 1 }; /* libibverbs: nothing to do for fork */
	struct uwarp_pd *pd = to_uwarp_pd(ibpd);
	struct uwarp_mr *mr = calloc(1, sizeof(*mr));
	int rc;

	if (!mr)
		return uwarp_fail(-ENOMEM);
	mr->api = pd->api;
	rc = mr->api->mr_alloc_null(pd->uw, &mr->uw);
	if (rc) {
		free(mr);
		return uwarp_fail(rc);
	}
	uwarp_pd_hold(ibpd);
	mr->vmr.mr_type = TYPE_NULL;
	mr->vmr.ibv_mr.context = ibpd->context;
	mr->vmr.ibv_mr.pd = ibpd;
	mr->vmr.ibv_mr.lkey = mr->vmr.ibv_mr.handle = mr->api->mr_stag(mr->uw);
	return &mr->vmr.ibv_mr;
}

/* Memory is not pinned: its pages come when they are touched, so there is nothing to prefetch. */
int uwarp_advise_mr(struct ibv_pd *ibpd, enum ibv_advise_mr_advice advice, uint32_t flags,
		    struct ibv_sge *sge, uint32_t n)
{
	(void)ibpd;
	(void)sge;
	if (!n || (flags & ~(uint32_t)IBV_ADVISE_MR_FLAG_FLUSH))
		return EINVAL;
	switch (advice) {
	case IBV_ADVISE_MR_ADVICE_PREFETCH:
	case IBV_ADVISE_MR_ADVICE_PREFETCH_WRITE:
	case IBV_ADVISE_MR_ADVICE_PREFETCH_NO_FAULT:
		return 0;
	default:
		return EOPNOTSUPP;
	}
}
