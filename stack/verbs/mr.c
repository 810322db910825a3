/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions. */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/bits.h"
#include "base/guard.h"
#include "base/slab.h"
#include "verbs/verbs.h"

/* ---- the table --------------------------------------------------------------------------- */

static int make_room(struct verbs *v)
{
	struct mem_region **slots, **old = v->mem.slots;
	uint32_t n = uw_pow2_above((v->mem.used + 1) * 3);

	if (!mem_table_full(&v->mem))
		return 0;
	slots = calloc(n, sizeof(*slots));
	if (!slots)
		return -ENOMEM;
	mem_table_move(&v->mem, slots, n);
	free(old);
	return 0;
}

int verbs_enter_region(struct verbs *v, struct mem_region *r)
{
	int err = v->mem.used < VERBS_REGIONS_MAX ? make_room(v) : -ENOMEM;

	while (!err && mem_insert(&v->mem, r, stack_random(v->conn->first)))
		; /* taken: another random STag */
	return err;
}

static int enter(struct verbs *v, struct mem_region *r)
{
	int err;

	verbs_lock(v);
	err = verbs_enter_region(v, r);
	verbs_unlock(v);
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

bool verbs_is_reachable(const void *va, uint64_t len, bool write)
{
	return len > PROBE_MAX ? is_mapped(va, len)
			       : is_touchable(va, len, write) && is_mapped(va, len);
}

/* Its first and its last page stand for all: memory of one kind, as nearly all is. */
static bool is_usable(const struct mem_region *r)
{
	bool write = r->rights & UW_ACCESS_LOCAL_WRITE;

	return !r->len || (is_mapped(r->base, r->len) && is_touchable(r->base, 1, write) &&
			   is_touchable(r->base + r->len - 1, 1, write));
}

static int check(const struct mem_region *r)
{
	const unsigned remote = UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_ATOMIC;

	if ((uintptr_t)r->base + r->len < (uintptr_t)r->base || r->to + r->len < r->to)
		return -EINVAL;
	if ((r->rights & remote) && !(r->rights & UW_ACCESS_LOCAL_WRITE))
		return -EINVAL;
	if (!(r->rights & UW_ACCESS_ON_DEMAND) && !is_usable(r))
		return -EFAULT;
	/* As Linux's rxe: a promise that cannot be kept is not given. */
	if ((r->rights & UW_ACCESS_FLUSH_PERSISTENT) && !verbs_is_file(r->base, r->len))
		return -EINVAL;
	return 0;
}

/* A region that a peer may FLUSH to a disk needs the thread that waits for the disk. Not where the
 * caller runs the stacks itself, as tests do: there is no other thread. */
static int prepare(struct verbs *v, const struct mem_region *r)
{
	int err = check(r);

	if (err || !(r->rights & UW_ACCESS_FLUSH_PERSISTENT) || v->conn->manual)
		return err;
	verbs_lock(v);
	err = verbs_errno(persister_start(v->conn, v->mem.persist));
	verbs_unlock(v);
	return err;
}

static int add(struct uw_pd *pd, const struct mem_region *r, struct uw_mr **out)
{
	struct uw_mr *mr = slab_alloc(sizeof(*mr));
	int err;

	if (!mr)
		return -ENOMEM;
	mr->pd = pd;
	mr->r = *r;
	err = enter(pd->v, &mr->r);
	if (err) {
		slab_free(mr, sizeof(*mr));
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
	int err = prepare(pd->v, &r);

	uw_guard_install(); /* the program may have taken the signals since */
	return err ? err : add(pd, &r, out);
}

int uw_mr_alloc_null(struct uw_pd *pd, struct uw_mr **out)
{
	const struct mem_region r = {
		.pd = pd->id, .len = UINT64_MAX, .rights = UW_ACCESS_LOCAL_WRITE, .kind = MEM_NULL
	};

	return add(pd, &r, out);
}

/* The region as it would be afterwards. What the stack changes of it meanwhile is not looked at. */
static struct mem_region changed(const struct mem_region *old, const struct uw_mr_change *c)
{
	struct mem_region r = *old;

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
	return r;
}

/* Only what the program has changed: a peer may invalidate, or windows be bound, at any time. */
static int store(struct mem_region *to, const struct mem_region *r)
{
	if (to->windows)
		return -EBUSY;
	to->pd = r->pd;
	to->base = r->base;
	to->len = r->len;
	to->to = r->to;
	to->rights = r->rights;
	to->on_demand = r->on_demand;
	return 0;
}

int uw_mr_change(struct uw_mr *mr, const struct uw_mr_change *c)
{
	struct verbs *v = mr->pd->v;
	struct mem_region r;
	int err;

	verbs_lock(v);
	r = changed(&mr->r, c);
	verbs_unlock(v);
	/* Not under the locks: it may touch pages. */
	err = r.kind == MEM_PLAIN ? prepare(v, &r) : -EINVAL;
	if (err)
		return err;
	verbs_lock(v);
	err = store(&mr->r, &r);
	verbs_unlock(v);
	if (!err && c->pd) {
		atomic_fetch_add(&c->pd->users, 1);
		atomic_fetch_sub(&mr->pd->users, 1);
		mr->pd = c->pd;
	}
	return err;
}

int uw_mr_dereg(struct uw_mr *mr)
{
	struct verbs *v = mr->pd->v;
	int err = 0;

	/* Placement happens under a stack lock: after this nothing reaches the memory. */
	verbs_lock(v);
	if (mr->r.windows)
		err = -EBUSY;
	else
		mem_remove(&v->mem, &mr->r);
	verbs_unlock(v);
	if (err)
		return err;
	atomic_fetch_sub(&mr->pd->users, 1);
	slab_free(mr, sizeof(*mr));
	return 0;
}

uint32_t uw_mr_stag(const struct uw_mr *mr)
{
	return mr->r.stag;
}
