/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine's objects: where the protocol layers, the TCP edge and the program's threads meet.
 * Lock order: a CQ's, SQ's or RQ's spin lock is never held while the stack lock is taken, except
 * where noted; callbacks to the user run under the stack lock.
 */
#ifndef UWARP_ENGINE_ENGINE_H
#define UWARP_ENGINE_ENGINE_H

#include <pthread.h>

#include "cm/cm.h"
#include "cm/rc.h"
#include "engine/deadlines.h"
#include "engine/lock.h"
#include "io/llp.h"
#include "io/pcap.h"
#include "mem/mem.h"
#include "qp/qp.h"
#include "uwarp/uwarp.h"

#define ENGINE_BURST 32u
#define ENGINE_WAKES 8u
#define ENGINE_LATER 8u

struct uw_pd {
	struct uw_engine *e;
	uint32_t id;
	_Atomic unsigned users; /* MRs, QPs, SRQs */
};

struct uw_mr {
	struct mem_region r;
	struct uw_pd *pd;
};

struct uw_mw {
	struct mem_region r;
	struct uw_pd *pd;
	struct uw_mw *next, **link; /* e->mws */
};

struct uw_cq {
	struct cq cq;
	void (*notify)(void *ctx), (*error)(void *ctx); /* the program's */
	void *ctx;
	uint16_t mod_count, mod_us;
	uint64_t due_us; /* a notify is held back until then; 0 none */
	struct uw_cq *next_due;
	_Atomic bool failed; /* it overflowed and its QPs do not know yet */
	struct uw_engine *e;
	struct spin lock;   /* among pollers; taken inside the stack lock too */
	struct spin pushes; /* among stacks, where there are several */
	_Atomic unsigned users;
};

/* Something that a thread without the stack lock left for whoever has it: doorbell.c. */
struct ring_entry {
	_Atomic bool rung;
	struct ring_entry *next;
	void (*fn)(struct ring_entry *);  /* under the lock of: */
	_Atomic(struct uw_engine *) home; /* changes under the locks of all stacks */
};

struct uw_srq {
	struct rq rq;
	struct ring_entry ring;
	_Atomic bool hungry; /* rnr.c: QPs wait for a receive, the first and where the next goes */
	struct uw_qp *starved, **starved_last;
	struct uw_pd *pd;
	struct spin lock;  /* among posters */
	struct spin takes; /* among stacks, where there are several: receives, and who starves */
	_Atomic unsigned users;
	void (*event)(void *ctx, enum uw_event ev);
	void *ctx;
};

/* In front what leads a post to all else that it touches. */
struct uw_qp {
	struct ring_entry ring; /* its home is the QP's stack */
	struct uw_ep *ep;	/* its connection */
	struct uw_srq *srq;
	struct spin sq_lock, rq_lock; /* among posters */
	_Atomic bool hungry;	      /* rnr.c: a Send waits for a receive */
	unsigned claims;	      /* endpoints that connect for it have it as theirs, at most */
	struct uw_prefetch_list *at_llp; /* warm.c: the transport's copy of the next; NULL: none */
	struct uw_prefetch_list prefetch_list; /* what its messages touch */
	struct qp qp;
	struct uw_pd *pd;
	struct uw_cq *scq, *rcq;
	struct uw_qp *next_starved;
	void *queues; /* one block: SQ slots, RQ slots */
	size_t queue_octets;
	void *stream; /* one block: read queues */
	uint8_t *scratch;
	struct uw_rc *rc; /* its peer was named: CM-less RC */
	struct uw_path path;
};

static_assert(offsetof(struct uw_qp, prefetch_list) == UW_LINE,
	      "a post finds its way by two lines");

enum uw_rc_state {
	RC_WAITING, /* the next try, or the peer's, is due */
	RC_FINDING, /* the finder looks for the way, without the lock */
	RC_CALLING, /* a connection is under way */
	RC_UP,
	RC_LOST, /* it was up */
};

/* A QP whose peer was named, rc.c. */
struct uw_rc {
	struct uw_qp *qp;
	struct uw_rc *next, **link; /* e->rcs, unless it is up */
	enum uw_rc_state state;
	bool heard; /* the program was told that the peer has spoken */
	bool ready; /* it says what the peer wants to know, or has had the time to */
	uint8_t peer_rnr_retry;
	struct io_link *l;
	struct rc_end self, peer;
	uint16_t ird;
	uint8_t tos;
	uint64_t serial;      /* a QP number may come again */
	struct uw_ep *call;   /* RC_CALLING */
	uw_status last;	      /* why the last try failed */
	uint64_t ready_us;    /* then it is */
	uint64_t since_us;    /* the first try */
	uint64_t next_us;     /* the next try */
	uint64_t deadline_us; /* what is posted fails then; 0: nothing is */
};

enum ep_state {
	EP_IDLE,
	EP_BOUND,
	EP_RESOLVED,
	EP_LISTENING,
	EP_CONNECTING, /* TCP */
	EP_STARTING,   /* MPA */
	EP_REQUESTED,  /* the program has to answer */
	EP_STREAMING,
	EP_CLOSING, /* our FIN is out or waits for what is queued */
	EP_ENDED,
};

/* The first cache line has all that a message touches. */
struct uw_ep {
	struct uw_engine *e;
	struct uw_qp *qp;
	struct llp_conn *c;
	struct uw_ep *next_stalled;
	struct uw_ep *next_settling;
	uint8_t *unsent; /* the rest of a start-up frame; it goes before the stream */
	uint16_t unsent_len;
	uint8_t state;	     /* enum ep_state */
	bool rc;	     /* the engine's own: CM-less RC */
	bool stalled;	     /* has something to send and no room: e->stalled_eps */
	bool settles;	     /* the peer has acknowledged requests of its QP: e->settling_eps */
	bool refers;	     /* zero copy */
	bool shut;	     /* FIN sent */
	bool unheard, spoke; /* conn.c, nudge: nothing came from the peer; we sent something */
	bool owned;	     /* has a ctx: events go out */
	bool passive;	     /* came in on a listener */

	struct uw_ep *next, **link; /* e->eps */
	/* A listener has a twin on each other stack, which hands what comes in to its master. */
	struct uw_ep *twin, *master;
	uw_cm_event_fn *fn;
	void *ctx;
	struct uw_ep *listener; /* passive: which is still there, on the same stack */
	struct llp_listener *ls;
	struct cm_conn *cm; /* only while starting */
	struct io_link *l;
	struct uw_ip local, remote;
	struct uw_ip asked;	/* the destination as the program named it */
	uint16_t lport, rport;	/* network order */
	bool shares;		/* its port with others that do */
	bool joint;		/* others have its port, or had */
	bool only6;		/* :: is not 0.0.0.0 as well */
	bool has_port, claimed; /* lport is entered in the port table; at the link */
	bool unresolved;	/* nobody was there yet: look again when connecting */
	bool fin_waits;		/* the peer's FIN came behind a Send that waits for a receive */
	bool patient;		/* such a Send may wait for ever */
	bool again;		/* a refused connect is tried again at the next tick */
	uint8_t nudges;
	uint8_t tos;		   /* as llp_ops.set_tos */
	uint64_t rnr_until_us;	   /* a Send may wait until then; 0 none does */
	uint64_t deadline_us;	   /* closing: then abort; 0 none */
	uint64_t nudge_us;	   /* the next one; 0 none */
	uint64_t gate_us;	   /* responder: look whether the peer has spoken; 0 never */
	uint64_t patient_until_us; /* connecting: a refusal before this is tried again */
	struct deadline timer;	   /* ep_timer.c: no later than the first of all these times */
	struct uw_ep *next_parked; /* rc: a Request whose QP is not ready */
	struct rc_hello hello;	   /* ... and what it says */
	uint64_t parked_until_us;  /* 0: not parked */
	uint64_t serial;	   /* llp_addrs.serial */
	struct cm_param want;	   /* connect: kept until TCP is up */
	uint8_t pd[UW_PRIVATE_DATA_MAX];
};

static_assert(offsetof(struct uw_ep, next) == 64, "a message touches one line of it");

struct idmap {
	void **v;
	uint32_t n, next, used;
};

/* Who may do the stack's work (doc/adr/0010). */
struct thread_model {
	bool posts_inline; /* a post transmits if the lock is free; else they all go on the ring */
	bool polls_drive;  /* a poll that finds nothing does a round */
	bool caller_alone; /* while it does so, the RX thread keeps out of it */
};

/* A word, not a mutex of pthread's: every poll and every post takes it, nearly always without a
 * rival, and that is one instruction then, and one to let it go. */
enum engine_lock {
	ENGINE_FREE,
	ENGINE_TAKEN,
	ENGINE_WANTED, /* taken, and somebody may sleep for it: a futex */
};

/*
 * One stack: links, a transport and all that a connection needs, under one lock. A process has one,
 * or several (doc/adr/0016), of which the first is what the program holds as its engine. What they
 * share is in that one alone, and changes only under the locks of all; so does what a thread
 * without a lock may look at: a QP's home, an endpoint's listener. Calls that make, change or end
 * something take all locks; those that post, send and receive their own stack's.
 */
struct engine_later {
	void (*fn)(void *arg);
	void *arg;
};

struct uw_engine {
	struct uw_engine *lead, *next; /* the first of them; the one after this */
	unsigned index;

	struct uw_config cfg;
	const struct llp_ops *llp; /* its transport */
	const struct thread_model *model;
	struct mpa_policy policy, rc_policy;
	struct uw_stats stats;

	_Atomic uint32_t lock; /* the stack lock: enum engine_lock */
	_Atomic unsigned waiters;
	_Atomic bool look; /* a sleeper-to-be wants whoever has the lock to look for frames */
	_Atomic uint32_t *wakes[ENGINE_WAKES];
	unsigned n_wakes;
	struct engine_later later[ENGINE_LATER]; /* uw_later() */
	unsigned n_later;
	uint8_t *bounce;	/* copies = 2: what all payload passes through */
	struct uw_cq *due;	/* CQs that hold a notify back; with several stacks none does */
	_Atomic uint64_t shows; /* the Request of that SYN; 0 none: engine_look_elsewhere */
	_Atomic bool cq_failed; /* one has: objects.c */

	/* the lead's, for all stacks */
	struct mem_table mem;
	struct uw_mw *mws;
	struct idmap qps;
	_Atomic uint32_t next_pd;
	_Atomic uint32_t objects;  /* PDs, CQs and endpoints that the program holds */
	_Atomic uint64_t syns;	   /* that came, with several stacks */
	unsigned next_home;	   /* where the next endpoint goes: counts up */
	struct steer_ports *steer; /* whose frames are whose; NULL: one stack */

	/* the post ring, doorbell.c */
	_Atomic(struct ring_entry *) rung;

	struct io_link *links[2];
	unsigned n_links;
	struct io_pcap *pcap;
	struct uw_ep *eps;
	struct uw_ep *stalled_eps, *settling_eps;
	struct deadlines deadlines; /* the endpoints' timers */
	uint64_t timers_us;	    /* when they ran last */
	uint64_t next_timer_us;

	/* CM-less RC, rc.c */
	struct uw_rc *rcs;
	struct uw_ep *parked;
	unsigned n_parked;
	uint64_t rc_serial;
	uint64_t rc_due_us; /* when its timers have something to do; UINT64_MAX never */
	struct rc_finder *finder;
	uint64_t rng;

	/* progress.c */
	_Atomic bool started, stop;
	bool manual; /* tests: nobody but the test drives, the clock is its own */
	pthread_t thread;
	pthread_mutex_t start_lock;
	_Atomic uint32_t *doorbell;
	_Atomic uint32_t own_doorbell;
	_Atomic unsigned dozing;     /* programs' threads that polled in vain and sleep */
	bool rings;		     /* peers wake who sleeps on the doorbell */
	_Atomic bool rx_far;	     /* the RX thread sleeps for longer than a program may vanish */
	_Atomic uint32_t drive_tick; /* rounds of programs, and frames that they found */
	_Atomic uint32_t left;	     /* a futex: counts up when one that drove steadily leaves */
	_Atomic uint32_t post_cpu;   /* where the program last posted */
	_Atomic bool driving;
	_Atomic bool steady; /* ... and does nothing else: written by the RX thread */
	uint64_t (*now_us)(void *arg);
	void *now_arg;

	uint64_t ports[65536 / 64]; /* local ports in use */
	unsigned next_port;	    /* ephemeral, counted from their first; 0: any */
	struct llp_addrs unused;
};

/* ---- engine.c ---------------------------------------------------------------------------- */

uint32_t engine_random(struct uw_engine *e);
uint64_t engine_now_us(struct uw_engine *e);
/* For tests: links and clock from outside, no thread; engine_run drives. */
int engine_open_manual(const struct uw_config *cfg, struct io_link *const *links, unsigned n,
		       uint64_t (*now_us)(void *arg), void *arg, struct uw_engine **out);
static inline int engine_errno(uw_status st)
{
	return st ? -uw_status_errno(st) : 0;
}

int idmap_add(struct idmap *m, void *what, uint32_t *id);
static inline void *idmap_get(const struct idmap *m, uint32_t id)
{
	return id < m->n ? m->v[id] : NULL;
}
void idmap_remove(struct idmap *m, uint32_t id);

/* ---- links_*.c: which links this build has ------------------------------------------------ */

uw_status engine_link_open(struct uw_engine *e, const struct io_env *env, struct io_link **out);

/* ---- stacklock.c ------------------------------------------------------------------------- */

void engine_lock(struct uw_engine *e);
static inline bool engine_trylock(struct uw_engine *e)
{
	uint32_t free = ENGINE_FREE;

	/* seq_cst: whoever leaves something for the holder and then fails here relies on
	 * engine_unlock, which stores and looks in the same order */
	return atomic_compare_exchange_strong(&e->lock, &free, ENGINE_TAKEN);
}
bool engine_lock_within(struct uw_engine *e, uint32_t us);
/* Before sleeping, with the doorbell word set: if false, whoever has the lock looks for frames. */
bool engine_trylock_or_ask(struct uw_engine *e);
/* Drains the post ring first; wakes peers afterwards. */
void engine_unlock(struct uw_engine *e);
/* Under the lock: a sleeper of another process, to be woken when the lock is free, or all now. */
void engine_wake_later(struct uw_engine *e, _Atomic uint32_t *bell);
void engine_wake_peers(struct uw_engine *e);
void engine_futex_wake(_Atomic uint32_t *word);

/* ---- stacks.c ---------------------------------------------------------------------------- */

/* Make the stacks beside the lead, as many as its configuration says. -EINVAL, said: not with this
 * transport or these threads. */
int engine_add_stacks(struct uw_engine *lead);
/* All but the lead. */
void engine_free_stacks(struct uw_engine *lead);
static inline bool engine_is_one_of_several(const struct uw_engine *e)
{
	return e->lead->next != NULL;
}
/* The locks of all stacks of e's process, in their order. */
void engine_lock_all(struct uw_engine *e);
void engine_unlock_all(struct uw_engine *e);
/* Inside the lead's lock: those of all others. */
void engine_lock_others(struct uw_engine *lead);
void engine_unlock_others(struct uw_engine *lead);
/* Connections that were begun one after the other are the program's in that order, as on a device
 * with one queue (perftest's and others' sides pair them so). Under e's lock, before a Request is
 * shown: the other stacks look what came to them before. */
void engine_look_elsewhere(const struct uw_ep *ep);
void engine_looked_elsewhere(const struct uw_ep *ep); /* it is shown */
/* No lock held: after a connect, wait a moment until its Request is out. */
void engine_await_request(struct uw_ep *ep);
/* Under all locks: where the next connection is to be. */
struct uw_engine *engine_next_home(struct uw_engine *e);
/* Under all locks: a QP without a stream goes to another stack; an endpoint that has nothing yet
 * does. */
void engine_qp_move(struct uw_qp *qp, struct uw_engine *to);
void engine_ep_move(struct uw_ep *ep, struct uw_engine *to);
/* Somebody listens on ep's port: what comes is its on whose queue it came. */
void engine_steer_any(const struct uw_ep *ep);
/* All that comes to this port is the lead's. */
void engine_steer_lead(struct uw_engine *lead, uint16_t port);

/* ---- progress.c -------------------------------------------------------------------------- */

/* One round under the lock: receive, timers, what was stalled, flush. Returns the work done. */
unsigned engine_run(struct uw_engine *e);
/* A thread that leaves the program's signals alone. 0 or a positive errno. */
int engine_spawn(pthread_t *thread, void *(*fn)(void *), void *arg);
int engine_thread_start(struct uw_engine *e);
void engine_thread_stop(struct uw_engine *e);
/* Any thread, no lock needed: there is something to do that no link tells of. */
void engine_wake(struct uw_engine *e);
const struct thread_model *engine_thread_model(enum uw_threads t);
/* A program thread found its CQ empty: let it do the stack's work. */
void engine_drive(struct uw_engine *e, bool again);
/* It found something, or goes to sleep: the RX thread is needed again. */
void engine_leave(struct uw_engine *e, bool to_sleep);

/* ---- objects.c, memory.c: under the lock --------------------------------------------------- */

/* Notifies that were held back and whose time has come; the time of the next, UINT64_MAX none. */
void engine_due_cqs(struct uw_engine *e, uint64_t now_us);
uint64_t engine_next_due_us(const struct uw_engine *e);
/* The QPs of CQs that overflowed go to error. */
void engine_failed_cqs(struct uw_engine *e);
/* For mem_table.reachable. */
bool engine_is_reachable(const void *va, uint64_t len, bool write);
/* The windows of a stream that is no more. */
void engine_unbind_all(struct uw_engine *e, uint32_t stream);

/* ---- doorbell.c -------------------------------------------------------------------------- */

/* Something was posted: see to it at once if nobody else is at it, else leave it on the ring. */
void engine_ring(struct ring_entry *r);
/* Any thread: whose it is at this moment. */
static inline struct uw_engine *engine_home(const struct ring_entry *r)
{
	return atomic_load_explicit(&r->home, memory_order_relaxed);
}
static inline struct uw_engine *engine_of(const struct uw_qp *qp)
{
	return engine_home(&qp->ring);
}
/* Under the lock. */
void engine_drain_ring(struct uw_engine *e);
/* Under all locks, all rings: nothing of what was there before is left on any. */
void engine_drain_rings(struct uw_engine *lead);
static inline bool engine_ring_empty(const struct uw_engine *e)
{
	return !atomic_load_explicit(&e->rung, memory_order_acquire);
}

/* ---- rnr.c: Sends without a receive ------------------------------------------------------- */

/* After a post, any thread: does the stack wait for it? */
bool engine_hungry(_Atomic bool *hungry);
/* Under the lock. The QP has no receive for the Send that came: stop its stream. False: there is a
 * receive by now, go on. */
bool engine_starve(struct uw_qp *qp);
/* Receives were posted: those who wait go on, in their order. */
void engine_feed(struct uw_qp *qp);
void engine_feed_srq(struct ring_entry *r);
/* It does not wait any longer. */
void engine_rnr_forget(struct uw_qp *qp);
void engine_rnr_timer(struct uw_ep *ep, uint64_t now_us);
/* The peer's FIN; true: it has to wait behind a Send that waits. */
bool engine_rnr_fin(struct uw_ep *ep);

/* ---- conn.c: under the lock --------------------------------------------------------------- */

extern const struct llp_user engine_llp_user;
/* ep connects on behalf of qp. */
void engine_ep_claim(struct uw_ep *ep, struct uw_qp *qp);
void engine_pump(struct uw_qp *qp);
void engine_pump_stalled(struct uw_engine *e);
/* Completions for what the burst has acknowledged. */
void engine_settle(struct uw_engine *e);
/* The QP cannot go on (or its connection ended): flush, tell the program, end the connection. */
void engine_qp_down(struct uw_qp *qp, uw_status why);
/* End the connection now; no event. */
void engine_ep_drop(struct uw_ep *ep);
void engine_ep_event(struct uw_ep *ep, enum uw_cm_event_type type, uw_status why);
/* How long a refused connect goes on: programs tell each other a port just before they listen on it
 * (perftest, qperf). */
#define ENGINE_PATIENCE_US 500000u
/* There is no way to the peer: the event that says so. */
void engine_ep_unreachable(struct uw_ep *ep, uw_status why);
uw_status engine_ep_start_stream(struct uw_ep *ep, struct uw_qp *qp, bool initiator) UW_CHECK;
/* Send a start-up frame, or keep it until there is room. */
uw_status engine_send_frame(struct uw_ep *ep, const uint8_t *frame, size_t n) UW_CHECK;

/* The peer's request cannot be carried out, which is no fault of the QP's: its stream ends. */
void engine_qp_refuse(struct uw_qp *qp, uw_status why);
/* The peer ended the stream of a QP, or TCP did. */
void engine_qp_lost(struct uw_qp *qp, uw_status why);

/* ---- ep_timer.c: under the lock ------------------------------------------------------------ */

/* After setting any of an endpoint's times, or a state in which another of them counts. */
void engine_ep_arm(struct uw_ep *ep);
void engine_ep_timers(struct uw_engine *e, uint64_t now_us);
uint64_t engine_gate_period_us(const struct uw_ep *ep);

/* ---- rc.c: CM-less RC, under the lock ------------------------------------------------------ */

static inline const struct mpa_policy *engine_policy(const struct uw_ep *ep)
{
	return ep->rc ? &ep->e->rc_policy : &ep->e->policy;
}
/* It has no peer any more: reset, to error, destroyed. */
void engine_rc_forget(struct uw_qp *qp);
/* Something was posted and there is no stream. */
void engine_rc_posted(struct uw_qp *qp);
/* The program has taken it to RTS. */
void engine_rc_ready(struct uw_qp *qp);
/* Until when a Send that finds no receive now may wait. */
uint64_t engine_rc_rnr_limit(const struct uw_qp *qp, uint64_t now_us);
/* Something came while the QP is in RTR. */
void engine_rc_heard(struct uw_qp *qp);
/* The stream ended without an error of its own. */
void engine_rc_lost(struct uw_qp *qp);
void engine_rc_timers(struct uw_engine *e, uint64_t now_us);
void engine_rc_unpark(struct uw_ep *ep);
uw_status engine_find_way(struct io_link *l, struct uw_ip *to, uint16_t port, unsigned timeout_ms);

/* ---- ep.c -------------------------------------------------------------------------------- */

struct uw_ep *engine_ep_new(struct uw_engine *e);
/* Any address, or a loopback one: all that the link has. */
bool engine_means_all(const struct uw_ip *a);
/* To one of our addresses; port in network order, 0: any. */
uw_status engine_ep_bind(struct uw_ep *ep, const struct uw_ip *addr, uint16_t port) UW_CHECK;
/* Nobody has its port for the same version of IP. */
bool engine_ep_is_alone(const struct uw_ep *ep);
bool engine_place_of(const struct sockaddr *sa, struct uw_ip *addr);
bool engine_is_ours(const struct uw_engine *e, const struct uw_ip *addr, struct io_link **l);
/* The address of ours to speak to `to` from, if the program asked for `from`. */
uw_status engine_local_for(const struct io_link *l, const struct uw_ip *from,
			   const struct uw_ip *to, struct uw_ip *out) UW_CHECK;
/* Give it a local port that is free. */
bool engine_ep_any_port(struct uw_ep *ep);
/* TCP only. */
uw_status engine_ep_call(struct uw_ep *ep) UW_CHECK;
uw_status engine_ep_connect(struct uw_ep *ep, uint64_t patience_us) UW_CHECK;
uw_status engine_ep_accept(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p) UW_CHECK;
uw_status engine_ep_reject(struct uw_ep *ep, const struct uw_cm_param *p) UW_CHECK;
/* As uw_ep_set_tos. */
void engine_ep_set_tos(struct uw_ep *ep, uint8_t tos);
/* listen.c. With all that came in and the program has not seen. */
void engine_ep_unlisten(struct uw_ep *ep);
void engine_port_reserve(struct uw_engine *e, unsigned port);
void engine_ep_free(struct uw_ep *ep);

#endif
