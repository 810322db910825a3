/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains and memory regions. */
#include <stdlib.h>

#include "provider.h"

struct ibv_pd *uwarp_alloc_pd(struct ibv_context *ibctx)
{
	struct uwarp_stack stack;
	struct uwarp_pd *pd;
	int rc = uwarp_stack_get(&stack);

	(void)ibctx;
	if (rc)
		return uwarp_fail(rc);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return uwarp_fail(-ENOMEM);
	pd->api = stack.api;
	rc = pd->api->pd_alloc(stack.engine, &pd->uw);
	if (rc) {
		free(pd);
		return uwarp_fail(rc);
	}
	return &pd->pd;
}

int uwarp_dealloc_pd(struct ibv_pd *ibpd)
{
	struct uwarp_pd *pd = to_uwarp_pd(ibpd);
	int rc = pd->api->pd_dealloc(pd->uw);

	if (rc)
		return -rc;
	free(pd);
	return 0;
}

struct ibv_mr *uwarp_reg_mr(struct ibv_pd *ibpd, void *addr, size_t len, uint64_t iova, int access)
{
	struct uwarp_pd *pd = to_uwarp_pd(ibpd);
	struct uwarp_mr *mr = calloc(1, sizeof(*mr));
	int rc;

	if (!mr)
		return uwarp_fail(-ENOMEM);
	mr->api = pd->api;
	rc = mr->api->mr_reg(pd->uw, addr, len, iova, (unsigned)access, &mr->uw);
	if (rc) {
		free(mr);
		return uwarp_fail(rc);
	}
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
	free(mr);
	return 0;
}
