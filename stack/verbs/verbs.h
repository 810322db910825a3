/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The objects of verbs: protection domains, memory regions and windows, completion queues, shared
 * receive queues, queue pairs. Functions that create, change or destroy an object take the locks of
 * all stacks; functions that post, poll or arm take at most one stack lock.
 */
#ifndef UWARP_VERBS_VERBS_H
#define UWARP_VERBS_VERBS_H

#include "base/spin.h"
#include "conn/conn_qp.h"
#include "mem/mem.h"
#include "uwarp/uwarp.h"
#include "verbs/idmap.h"

/* How many there may be of each, as the device's attributes say: then ENOMEM. */
#define VERBS_QPS_MAX  IDMAP_MAX
#define VERBS_CQS_MAX  (1u << 18)
#define VERBS_SRQS_MAX (1u << 16)
#define VERBS_PDS_MAX  (1u << 20)
/* a quarter of what 24 bits name: a random one is soon free */
#define VERBS_REGIONS_MAX (1u << 22)

/* Shared by the stacks of a process. Written under all stack locks, read under any one, except
 * atomics and where a comment says otherwise. */
struct verbs {
	struct conn_domain *conn; /* constant */
	struct mem_table mem;
	struct uw_mw *mws;
	struct idmap qps; /* the struct uw_qp of each QP number */
	struct uw_cq *cqs;
	struct uw_srq *srqs;
	/* CQs with a delayed notify; with one stack only, under its lock */
	struct uw_cq *moderated;
	_Atomic uint32_t next_pd;
	_Atomic uint32_t n_pds, n_cqs, n_srqs; /* that the program holds */
	_Atomic bool
		/* a CQ overflowed, and the QPs of this stack are not in error yet */
		cq_failed[UW_STACKS_MAX];
};

struct uw_pd {
	struct verbs *v;
	uint32_t id;
	_Atomic unsigned users; /* number of MRs, MWs, QPs, SRQs in the PD */
};

struct uw_mr {
	struct mem_region r; /* an entry of verbs.mem */
	struct uw_pd *pd;
};

struct uw_mw {
	struct mem_region r; /* an entry of verbs.mem */
	struct uw_pd *pd;
	struct uw_mw *next, **link; /* verbs.mws */
};

struct uw_cq {
	struct cq cq;
	void (*notify)(void *ctx); /* callback of the program; constant, as the next two */
	void (*error)(void *ctx);
	void *ctx;
	struct sched *sched; /* the stack to run when the CQ is empty; constant */
	struct verbs *v;
	uint16_t mod_count, mod_us; /* set under all locks (uw_cq_moderate) */
	uint64_t due_us;	    /* when the delayed notify is due; 0: none */
	struct uw_cq *moderated;    /* next in verbs.moderated */
	struct uw_cq *next, **link; /* verbs.cqs */
	_Atomic bool failed;	    /* the CQ overflowed */
	struct spin lock; /* lock among threads that poll; taken inside a stack lock, or alone */
	/* lock among several stacks that add completions; taken inside a stack lock */
	struct spin pushes;
	_Atomic unsigned users; /* number of QPs that use the CQ */
	_Atomic int telling;	/* notifies that are under way, perhaps after the stack's lock */
};

struct uw_srq {
	struct rnr_srq r;
	struct uw_pd *pd;
	struct spin lock;	     /* lock among threads that post */
	struct uw_srq *next, **link; /* verbs.srqs */
	_Atomic unsigned users;	     /* number of QPs that use the SRQ */
	void (*event)(void *ctx, enum uw_event ev);
	void *ctx;
};

struct uw_qp {
	struct conn_qp c;
	struct uw_pd *pd;
	struct uw_cq *scq, *rcq;
	struct uw_srq *srq; /* NULL: the QP has its own RQ */
	/* one block of memory: SQ slots, and RQ slots or, with an SRQ, the SGEs of its current
	 * receive */
	void *queues;
	size_t queue_octets;
};

static inline int verbs_errno(uw_status st)
{
	return st ? -uw_status_errno(st) : 0;
}
/* One more of what there may be `max` of. 0 or -ENOMEM. */
static inline int verbs_count_in(_Atomic uint32_t *n, uint32_t max)
{
	if (atomic_fetch_add_explicit(n, 1, memory_order_relaxed) < max)
		return 0;
	atomic_fetch_sub_explicit(n, 1, memory_order_relaxed);
	return verbs_errno(UW_E_NOMEM);
}
static inline void verbs_count_out(_Atomic uint32_t *n)
{
	atomic_fetch_sub_explicit(n, 1, memory_order_relaxed);
}
static inline void verbs_lock(struct verbs *v)
{
	sched_lock_all(&v->conn->first->sched);
}
static inline void verbs_unlock(struct verbs *v)
{
	sched_unlock_all(&v->conn->first->sched);
}
static inline bool verbs_has_several_stacks(const struct verbs *v)
{
	return sched_is_one_of_several(&v->conn->first->sched);
}

/* ---- verbs.c: what the engine calls -------------------------------------------------------- */

/* Initialise v; conn may be initialised later. UW_E_NOMEM. */
uw_status verbs_init(struct verbs *v, struct conn_domain *conn) UW_CHECK;
void verbs_free(struct verbs *v);
/* conn_hooks.find_qp; arg is the struct verbs. */
struct conn_qp *verbs_find_qp(void *arg, uint32_t qpn);
/* Under the lock of s, once in each round: put QPs of overflowed CQs into error, and call delayed
 * notifies. */
void verbs_run(struct verbs *v, struct stack *s);
/* When the next delayed notify is due; UINT64_MAX: none. Under the lock. */
uint64_t verbs_next_due_us(const struct verbs *v, const struct stack *s);
/* In a forked child, before sched_after_fork(): put every QP into error without events, and free
 * the locks of all queues. */
void verbs_after_fork(struct verbs *v);

/* The parts of uw_pd_alloc and uw_cq_create in this room. */
int verbs_make_pd(struct verbs *v, struct uw_pd **out);
int verbs_make_cq(struct verbs *v, const struct uw_cq_attr *a, struct uw_cq **out);

/* ---- cq.c --------------------------------------------------------------------------------- */

/* Under all locks: drop the completions of one QP. */
void verbs_forget_in_cq(struct uw_cq *cq, uint32_t qpn);
void verbs_run_moderated(struct verbs *v, uint64_t now_us);

/* ---- mw.c --------------------------------------------------------------------------------- */

/* Under all locks: unbind the windows of a stream that has ended. */
void verbs_mws_unbind(struct verbs *v, uint32_t stream);

/* ---- mr.c --------------------------------------------------------------------------------- */

/* The function for mem_table.reachable. */
bool verbs_is_reachable(const void *va, uint64_t len, bool write);
/* Under all locks: add r to verbs.mem with a random STag (RFC 5040 §8.1.1). -ENOMEM. */
int verbs_enter_region(struct verbs *v, struct mem_region *r);

/* ---- persist.c ---------------------------------------------------------------------------- */

/* The function for mem_table.persist. Waits for the disk: no stack lock. */
bool verbs_persist(void *va, uint64_t len);
/* Is all of this memory a shared mapping of files? */
bool verbs_is_file(const void *addr, uint64_t len);

#endif
