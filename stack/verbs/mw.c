/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory windows. */
#include <errno.h>
#include <stdlib.h>

#include "verbs/verbs.h"

int uw_mw_alloc(struct uw_pd *pd, unsigned type, struct uw_mw **out)
{
	struct verbs *v = pd->v;
	struct uw_mw *mw;
	int err;

	if (type != 1 && type != 2)
		return -EINVAL;
	if (verbs_has_several_stacks(v))
		return -EOPNOTSUPP;
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return -ENOMEM;
	mw->pd = pd;
	mw->r = (struct mem_region){ .pd = pd->id,
				     .kind = type == 1 ? MEM_WINDOW : MEM_STREAM_WINDOW,
				     .off = true };
	verbs_lock(v);
	err = verbs_enter_region(v, &mw->r);
	if (!err) {
		mw->next = v->mws;
		mw->link = &v->mws;
		if (mw->next)
			mw->next->link = &mw->next;
		v->mws = mw;
	}
	verbs_unlock(v);
	if (err) {
		free(mw);
		return err;
	}
	atomic_fetch_add(&pd->users, 1);
	*out = mw;
	return 0;
}

int uw_mw_dealloc(struct uw_mw *mw)
{
	struct verbs *v = mw->pd->v;

	verbs_lock(v);
	mem_unbind(&mw->r);
	mem_remove(&v->mem, &mw->r);
	*mw->link = mw->next;
	if (mw->next)
		mw->next->link = mw->link;
	verbs_unlock(v);
	atomic_fetch_sub(&mw->pd->users, 1);
	free(mw);
	return 0;
}

uint32_t uw_mw_rkey(const struct uw_mw *mw)
{
	return mw->r.stag;
}

void verbs_mws_unbind(struct verbs *v, uint32_t stream)
{
	for (struct uw_mw *mw = v->mws; mw; mw = mw->next) {
		if (!mw->r.off && mw->r.stream == stream)
			mem_unbind(&mw->r);
	}
}
