/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains, thread domains and the parent domains that pair them. */
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
	int rc = 0;

	if (atomic_load(&pd->users))
		return EBUSY;
	if (!pd->of)
		rc = pd->api->pd_dealloc(pd->uw);
	if (rc)
		return -rc;
	if (pd->of)
		atomic_fetch_sub(&pd->of->users, 1);
	if (pd->td)
		atomic_fetch_sub(&pd->td->users, 1);
	free(pd);
	return 0;
}

struct ibv_td *uwarp_alloc_td(struct ibv_context *ibctx, struct ibv_td_init_attr *attr)
{
	struct uwarp_td *td;

	if (attr->comp_mask)
		return uwarp_fail(-EINVAL);
	td = calloc(1, sizeof(*td));
	if (!td)
		return uwarp_fail(-ENOMEM);
	td->td.context = ibctx;
	return &td->td;
}

int uwarp_dealloc_td(struct ibv_td *ibtd)
{
	struct uwarp_td *td = uwarp_container(ibtd, struct uwarp_td, td);

	if (atomic_load(&td->users))
		return EBUSY;
	free(td);
	return 0;
}

/* The allocators of the attribute are for hardware's queues; there are none. */
struct ibv_pd *uwarp_alloc_parent_domain(struct ibv_context *ibctx,
					 struct ibv_parent_domain_init_attr *attr)
{
	const uint32_t known = IBV_PARENT_DOMAIN_INIT_ATTR_ALLOCATORS |
			       IBV_PARENT_DOMAIN_INIT_ATTR_PD_CONTEXT |
			       UWARP_PARENT_DOMAIN_CC_UNPROTECTED;
	struct uwarp_pd *pd, *of;

	if (!attr->pd || (attr->comp_mask & ~known))
		return uwarp_fail(-EINVAL);
	of = to_uwarp_pd(attr->pd);
	pd = calloc(1, sizeof(*pd));
	if (!pd)
		return uwarp_fail(-ENOMEM);
	pd->pd.context = ibctx;
	pd->api = of->api;
	pd->uw = of->uw;
	pd->of = of;
	atomic_fetch_add(&of->users, 1);
	if (attr->td) {
		pd->td = uwarp_container(attr->td, struct uwarp_td, td);
		atomic_fetch_add(&pd->td->users, 1);
	}
	return &pd->pd;
}
