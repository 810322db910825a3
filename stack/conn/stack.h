/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One stack, and the data that the stacks of a process share. A stack has a lock and threads
 * (struct sched), a TCP (struct llp_ops), links, and the connections on them. Most processes have
 * one stack; doc/adr/0016 has the rules for several.
 */
#ifndef UWARP_CONN_STACK_H
#define UWARP_CONN_STACK_H

#include "base/random.h"
#include "base/said.h"
#include "base/spin.h"
#include "conn/deadlines.h"
#include "conn/ports.h"
#include "conn/silent.h"
#include "io/llp.h"
#include "mpa/handshake.h"
#include "sched/sched.h"
#include "uwarp/uwarp.h"

#define STACK_LINKS 2u

struct conn;
struct conn_qp;
struct conn_domain;
struct conn_walk;
struct dgram;
struct dgram_group;
struct end_event;
struct sidr;
struct listener;
struct rc;
struct rc_call;
struct rc_resolver;
struct persister;

/* State of CM-less RC (rc/rc.h) in a stack. Only the first stack of a process uses CM-less RC. */
struct rc_stack {
	struct rc *list;       /* QPs that name a peer and have no stream */
	struct rc_call *calls; /* Requests whose QP is not ready */
	unsigned n_calls;
	uint64_t last_serial;
	uint64_t due_us; /* when the earliest timer of these is due; UINT64_MAX: none */
	struct rc_resolver *resolver;
};

/* Under the lock of the stack, except domain, llp and links, which are constant while the stack is
 * started. */
struct stack {
	struct sched sched; /* first: see stack_of() */
	struct conn_domain *domain;
	const struct llp_ops *llp;
	struct io_link *links[STACK_LINKS];
	unsigned n_links;
	struct conn *conns;
	struct conn_walk *walks; /* walk.h: those that are under way */
	/* Connections that have something to send and wait for room or for their turn, first come
	 * first served. */
	struct conn *tx_first, *tx_last;
	/* connections whose peer acknowledged requests; their completions are due */
	struct conn *acked_list;
	/* UC and UD QPs that have something to send and wait for room or for their turn */
	struct dgram *dgram_first, **dgram_last;
	struct dgram_group *groups; /* UD QPs that are members of multicast groups */
	unsigned n_groups;	    /* different ones of them */
	/* datagrams: what was asked or answered by QP 1 (dgram/sidr.h), the PSN of its next packet,
	 * and the last request that was not for us */
	struct sidr *sidrs;
	uint32_t sidr_psn;
	uint64_t sidr_refused;
	struct end_event *end_events; /* DISCONNECTED that programs are not told yet */
	unsigned n_end_events;
	struct silent silent;
	struct ring_entry turns; /* Requests whose turn may have come (order.h) */
	struct deadlines timers;
	uint64_t timers_us; /* when the timers last ran */
	struct uw_random random;
	struct rc_stack rc;
};

/* Functions that the rooms above provide before the first connection. */
struct conn_hooks {
	/* The QP with this number; NULL: none. Under any stack lock. */
	struct conn_qp *(*find_qp)(void *arg, uint32_t qpn);
	void *find_qp_arg;
	/* Direct segments for this local port (network order) to stack `to`; -1: to the stack on
	 * whose queue they arrive. NULL with one stack. Under all locks. */
	void (*steer)(void *arg, bool ip6, uint16_t port, int to);
	void *steer_arg;
	/* The QP of a connection fails, and the connection is still as it was (verdict.h). NULL:
	 * nobody asked to be told. */
	void (*failed)(void *arg, const struct conn *c, uw_status why);
	void *failed_arg;
};

/* What is offered and accepted at start-up: */
struct conn_policies {
	struct mpa_policy cm; /* with rdma_cm */
	struct mpa_policy rc; /* without it */
};

/* Shared by the stacks of a process. Written under all stack locks, read under any one, except
 * atomics and constants. */
struct conn_domain {
	struct stack *first;	       /* constant */
	const struct uw_config *cfg;   /* constant */
	bool manual;		       /* constant: tests run the stacks, with their own clock */
	struct conn_policies policies; /* constant */
	struct conn_policies intact;   /* constant: over links that are IO_INTACT */
	struct conn_hooks hooks;       /* constant */
	struct ports ports;	       /* local TCP ports in use */
	unsigned next_home;	       /* counts up; chooses the stack of the next endpoint */
	/* Every endpoint. Whoever does not hold the locks of all stacks takes eps_lock as well: a
	 * Request that comes makes one under its stack's lock alone. */
	struct uw_ep *eps;
	struct spin eps_lock;
	struct uw_ep *servers;	    /* endpoints that listen for datagrams */
	struct listener *listeners; /* every listener */
	/* Connections that the peer does not have the Request of, as they began (order.h). Under
	 * order_lock and any stack lock. */
	struct conn *order_first, **order_last;
	struct spin order_lock;
	struct said said;	     /* messages.c */
	struct persister *persister; /* persist.h; NULL: there is no thread for it */
	_Atomic uint32_t in_links;   /* calls that hold the links (stack_hold_links) */
	_Atomic uint32_t n_eps;	     /* endpoints that the program holds */
	_Atomic bool datagram_eps;   /* one of datagrams was made */
	_Atomic uint32_t n_qps;	     /* number of QPs; written by the verbs room */
};

static inline struct stack *stack_of(struct sched *s)
{
	return (struct stack *)(void *)s;
}
static inline struct stack *stack_next(const struct stack *s)
{
	return stack_of(s->sched.next);
}
static inline uint64_t stack_now_us(const struct stack *s)
{
	return sched_now_us(&s->sched);
}
/* An unpredictable number. Under the stack's lock. */
static inline uint32_t stack_random(struct stack *s)
{
	return uw_random_u32(&s->random);
}
static inline void stack_flush(const struct stack *s)
{
	s->llp->flush_links();
}

/* ---- stack.c ----------------------------------------------------------------------------- */

/* Fill in the policies that the configuration asks for, and reserve the port of CM-less RC. */
uw_status conn_domain_init(struct conn_domain *d, const struct uw_config *cfg,
			   const struct conn_hooks *hooks) UW_CHECK;
void conn_domain_free(struct conn_domain *d);
/* Set up s, which is all zero except s->sched, which the caller initialises before or afterwards.
 */
void stack_set_up(struct stack *s, struct conn_domain *d, const struct llp_ops *llp);

/* All below under the lock. Take in one burst of frames from every link, and input of the transport
 * itself. Returns the number of frames. */
unsigned stack_receive(struct stack *s);
/* Add completions for the requests that the burst acknowledged. */
void stack_complete_acked(struct stack *s);
/* Send what waited for room or for its turn, send ACKs, hand frames to the links. */
void stack_transmit(struct stack *s, enum llp_acks acks);
void stack_timers(struct stack *s, uint64_t now_us);
/* When the next timer of TCP, of a connection or of CM-less RC is due; UINT64_MAX: none. */
uint64_t stack_next_timer_us(struct stack *s, uint64_t now_us);
/* Is there work: input or output of the transport, or, with `links`, frames on the links or ACKs
 * that were left? */
bool stack_pending(struct stack *s, bool links);
/* Has every connection sent all posted requests? */
bool stack_is_quiet(const struct stack *s);
/* The process ends, and its links are closed and freed: what objects keep of one is not to be used.
 * Other threads of the program may go on, and timers with them. */
static inline bool stack_is_without_links(const struct stack *s)
{
	return !s->n_links;
}
/* Links that are held are not closed: the engine's end waits for a second, then leaves them open.
 * For a call into a link that may block, without the lock: hold while the lock is held (false:
 * there are no links any more), let the lock go, call, and let the links go. */
static inline bool stack_hold_links(struct stack *s)
{
	if (stack_is_without_links(s))
		return false;
	atomic_fetch_add_explicit(&s->domain->in_links, 1, memory_order_relaxed);
	return true;
}
static inline void stack_let_links_go(struct stack *s)
{
	/* release: what was done in the link was before it is closed */
	atomic_fetch_sub_explicit(&s->domain->in_links, 1, memory_order_release);
}

/* End every connection and stop listening. Endpoints stay allocated, without a connection. */
void stack_retire(struct stack *s);

/* The stack for the next endpoint. Under all locks. */
struct stack *stack_next_home(struct conn_domain *d);

/* The callbacks of TCP into connections. */
extern const struct llp_user conn_llp_user;

#endif
