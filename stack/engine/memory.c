/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions and windows. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "engine/engine.h"
#include "io/dense.h"

/* ---- the table --------------------------------------------------------------------------- */

static int make_room(struct uw_engine *e)
{
	struct mem_region **slots, **old = e->mem.slots;
	uint32_t n = uw_pow2_above((e->mem.used + 1) * 3);

	if (!mem_table_full(&e->mem))
		return 0;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	mem_table_move(&e->mem, slots, n);
	free(old);
	return 0;
}

#define REGIONS_MAX (1u << 22) /* a quarter of what 24 bits name: a random one is soon free */

static int enter_locked(struct uw_engine *e, struct mem_region *r)
{
	int err = e->mem.used < REGIONS_MAX ? make_room(e) : -ENOMEM;

	while (!err && mem_insert(&e->mem, r, engine_random(e)))
		; /* taken: another random STag */
	return err;
}

static int enter(struct uw_engine *e, struct mem_region *r)
{
	int err;

	engine_lock_all(e);
	err = enter_locked(e, r);
	engine_unlock_all(e);
	return err;
}

/* ---- regions ----------------------------------------------------------------------------- */

/* msync() looks for holes first and, MS_ASYNC, does nothing else. */
static bool is_mapped(const void *addr, size_t len)
{
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)addr & ~(page - 1);

	return !len || !msync((void *)from, (uintptr_t)addr + len - from, MS_ASYNC) ||
	       errno != ENOMEM;
}

/* The kernel's answer to "could this page be touched", with the page: as with hardware, which pins
 * it. Older kernels do not know the question. */
static bool is_touchable(const void *addr, size_t len, bool write)
{
#ifdef MADV_POPULATE_READ
	static _Thread_local char own; /* a page that surely is */
	uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)addr & ~(page - 1);
	int how = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;

	if (!len || !madvise((void *)from, (uintptr_t)addr + len - from, how))
		return true;
	if (errno == EAGAIN || errno == EINTR)
		return true;
	return errno == EINVAL && madvise((void *)((uintptr_t)&own & ~(page - 1)), 1, how);
#else
	(void)write;
	return is_mapped(addr, len);
#endif
}

#define PROBE_MAX 65536u /* one FPDU: longer ones are asked for in pieces later */

bool engine_is_reachable(const void *va, uint64_t len, bool write)
{
	return len > PROBE_MAX ? is_mapped(va, len)
			       : is_touchable(va, len, write) && is_mapped(va, len);
}

/* Its first and its last page stand for all: memory of one kind, as nearly all is. */
static bool is_usable(const struct mem_region *r)
{
	bool write = r->rights & MEM_LOCAL_WRITE;

	return !r->len || (is_mapped(r->base, r->len) && is_touchable(r->base, 1, write) &&
			   is_touchable(r->base + r->len - 1, 1, write));
}

static int check(const struct mem_region *r)
{
	const unsigned remote = MEM_REMOTE_WRITE | MEM_REMOTE_ATOMIC;

	if ((uintptr_t)r->base + r->len < (uintptr_t)r->base || r->to + r->len < r->to)
		return -EINVAL;
	if ((r->rights & remote) && !(r->rights & MEM_LOCAL_WRITE))
		return -EINVAL;
	if (!(r->rights & UW_ACCESS_ON_DEMAND) && !is_usable(r))
		return -EFAULT;
	return 0;
}

static int add(struct uw_pd *pd, const struct mem_region *r, struct uw_mr **out)
{
	struct uw_mr *mr = dense_alloc(sizeof(*mr));
	int err;

	if (!mr)
		return -ENOMEM;
	mr->pd = pd;
	mr->r = *r;
	err = enter(pd->e, &mr->r);
	if (err) {
		dense_free(mr, sizeof(*mr));
		return err;
	}
	atomic_fetch_add(&pd->users, 1);
	*out = mr;
	return 0;
}

int uw_mr_reg(struct uw_pd *pd, void *addr, size_t len, uint64_t iova, unsigned access,
	      struct uw_mr **out)
{
	const struct mem_region r = { .pd = pd->id,
				      .base = addr,
				      .to = iova,
				      .len = len,
				      .rights = access,
				      .on_demand = access & UW_ACCESS_ON_DEMAND };
	int err = check(&r);

	return err ? err : add(pd, &r, out);
}

int uw_mr_alloc_null(struct uw_pd *pd, struct uw_mr **out)
{
	const struct mem_region r = {
		.pd = pd->id, .len = UINT64_MAX, .rights = MEM_LOCAL_WRITE, .kind = MEM_NULL
	};

	return add(pd, &r, out);
}

int uw_mr_change(struct uw_mr *mr, const struct uw_mr_change *c)
{
	struct uw_engine *e = mr->pd->e;
	struct mem_region r = mr->r;
	int err;

	if (c->pd)
		r.pd = c->pd->id;
	if (c->move) {
		r.base = c->addr;
		r.len = c->len;
		r.to = c->iova;
	}
	if (c->set_access)
		r.rights = c->access;
	r.on_demand = r.rights & UW_ACCESS_ON_DEMAND;
	err = r.kind == MEM_PLAIN ? check(&r) : -EINVAL;
	if (err)
		return err;
	engine_lock_all(e);
	if (mr->r.windows)
		err = -EBUSY;
	else
		mr->r = r;
	engine_unlock_all(e);
	if (!err && c->pd) {
		atomic_fetch_add(&c->pd->users, 1);
		atomic_fetch_sub(&mr->pd->users, 1);
		mr->pd = c->pd;
	}
	return err;
}

int uw_mr_dereg(struct uw_mr *mr)
{
	struct uw_engine *e = mr->pd->e;
	int err = 0;

	/* Placement happens under the stack lock: after this nothing reaches the memory. */
	engine_lock_all(e);
	if (mr->r.windows)
		err = -EBUSY;
	else
		mem_remove(&e->mem, &mr->r);
	engine_unlock_all(e);
	if (err)
		return err;
	atomic_fetch_sub(&mr->pd->users, 1);
	dense_free(mr, sizeof(*mr));
	return 0;
}

uint32_t uw_mr_stag(const struct uw_mr *mr)
{
	return mr->r.stag;
}

/* ---- windows ----------------------------------------------------------------------------- */

int uw_mw_alloc(struct uw_pd *pd, unsigned type, struct uw_mw **out)
{
	struct uw_engine *e = pd->e;
	struct uw_mw *mw;
	int err;

	if (type != 1 && type != 2)
		return -EINVAL;
	if (engine_is_one_of_several(e))
		return -EOPNOTSUPP;
	mw = calloc(1, sizeof(*mw));
	if (!mw)
		return -ENOMEM;
	mw->pd = pd;
	mw->r = (struct mem_region){ .pd = pd->id,
				     .kind = type == 1 ? MEM_WINDOW : MEM_STREAM_WINDOW,
				     .off = true };
	engine_lock_all(e);
	err = enter_locked(e, &mw->r);
	if (!err) {
		mw->next = e->mws;
		mw->link = &e->mws;
		if (mw->next)
			mw->next->link = &mw->next;
		e->mws = mw;
	}
	engine_unlock_all(e);
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
	struct uw_engine *e = mw->pd->e;

	engine_lock_all(e);
	mem_unbind(&mw->r);
	mem_remove(&e->mem, &mw->r);
	*mw->link = mw->next;
	if (mw->next)
		mw->next->link = mw->link;
	engine_unlock_all(e);
	atomic_fetch_sub(&mw->pd->users, 1);
	free(mw);
	return 0;
}

uint32_t uw_mw_rkey(const struct uw_mw *mw)
{
	return mw->r.stag;
}

void engine_unbind_all(struct uw_engine *e, uint32_t stream)
{
	for (struct uw_mw *mw = e->mws; mw; mw = mw->next) {
		if (!mw->r.off && mw->r.stream == stream)
			mem_unbind(&mw->r);
	}
}
