/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows. */
#include <stdlib.h>

#include "provider.h"

struct ibv_mw *uwarp_alloc_mw(struct ibv_pd *ibpd, enum ibv_mw_type type)
{
	struct uwarp_pd *pd = to_uwarp_pd(ibpd);
	struct uwarp_mw *mw = calloc(1, sizeof(*mw));
	int rc;

	if (!mw)
		return uwarp_fail(-ENOMEM);
	mw->api = pd->api;
	rc = mw->api->mw_alloc(pd->uw, type, &mw->uw);
	if (rc) {
		free(mw);
		return uwarp_fail(rc);
	}
	uwarp_pd_hold(ibpd);
	mw->mw.context = ibpd->context;
	mw->mw.pd = ibpd;
	mw->mw.rkey = mw->mw.handle = mw->api->mw_rkey(mw->uw);
	mw->mw.type = type;
	return &mw->mw;
}

int uwarp_dealloc_mw(struct ibv_mw *ibmw)
{
	struct uwarp_mw *mw = uwarp_container(ibmw, struct uwarp_mw, mw);
	int rc = mw->uw ? mw->api->mw_dealloc(mw->uw) : -EINVAL;

	if (rc)
		return -rc;
	mw->uw = NULL;
	uwarp_pd_put(ibmw->pd);
	free(mw);
	return 0;
}

bool uwarp_fill_bind(struct uw_send_wr *to, struct ibv_mw *mw, uint32_t rkey,
		     const struct ibv_mw_bind_info *info)
{
	if (!mw || (!info->mr && info->length))
		return false;
	to->opcode = UW_WR_BIND_MW;
	/* The upper bits are the window's, whatever the program says. */
	to->rkey = (mw->rkey & ~0xffu) | (rkey & 0xff);
	to->imm_or_inv = info->mr ? info->mr->lkey : 0;
	to->remote_addr = info->addr;
	to->swap = info->length;
	to->compare_add = info->mw_access_flags;
	to->num_sge = 0;
	/* Programs read the new key there, as with irdma; of type 1 it is set once the bind is
	 * posted. */
	if (mw->type == IBV_MW_TYPE_2)
		mw->rkey = to->rkey;
	return true;
}

/* Type 1: libibverbs has looked. The new key is the window's at once, as with hardware. */
int uwarp_bind_mw(struct ibv_qp *ibqp, struct ibv_mw *ibmw, struct ibv_mw_bind *bind)
{
	struct uwarp_qp *qp = to_uwarp_qp(ibqp);
	struct uw_send_wr wr = { .wr_id = bind->wr_id, .flags = bind->send_flags };
	int rc;

	if (!uwarp_fill_bind(&wr, ibmw, ibv_inc_rkey(ibmw->rkey), &bind->bind_info))
		return EINVAL;
	rc = qp->api->post_send_all(qp->uw, &wr, 1);
	if (!rc)
		ibmw->rkey = wr.rkey;
	return -rc;
}
