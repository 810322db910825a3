/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One stack and what the stacks of a process share. A stack has a lock and threads (struct sched),
 * a TCP (struct llp_ops), links, and the connections on them. Most processes have one; doc/adr/0016
 * has the rules for several.
 */
#ifndef UWARP_CONN_STACK_H
#define UWARP_CONN_STACK_H

#include "base/random.h"
#include "conn/deadlines.h"
#include "conn/ports.h"
#include "io/llp.h"
#include "mpa/handshake.h"
#include "sched/sched.h"
#include "uwarp/uwarp.h"

#define STACK_LINKS 2u

struct conn;
struct conn_qp;
struct conn_domain;
struct listener;
struct rc;
struct rc_call;
struct rc_resolver;

/* A stack's part of CM-less RC (rc/rc.h). Only the first stack of a process uses it. */
struct rc_stack {
	struct rc *list;       /* QPs that name a peer and have no stream */
	struct rc_call *calls; /* Requests whose QP is not ready */
	unsigned n_calls;
	uint64_t last_serial;
	uint64_t due_us; /* when the earliest of their timers is due; UINT64_MAX: none */
	struct rc_resolver *resolver;
};

/* Under its lock but for what is constant while it is started: domain, llp, links. */
struct stack {
	struct sched sched; /* first: see stack_of() */
	struct conn_domain *domain;
	const struct llp_ops *llp;
	struct io_link *links[STACK_LINKS];
	unsigned n_links;
	struct conn *conns;
	/* Connections that have something to send, and no room or no turn: first come first served.
	 */
	struct conn *tx_first, *tx_last;
	struct conn *acked_list; /* the peer acknowledged requests; their completions are due */
	struct deadlines timers;
	uint64_t timers_us; /* when the timers ran last */
	struct uw_random random;
	struct rc_stack rc;
};

/* What this room asks of the rooms above, which fill it in before the first connection. */
struct conn_hooks {
	/* The QP of that number; NULL: there is none. Under any stack's lock. */
	struct conn_qp *(*find_qp)(void *arg, uint32_t qpn);
	void *find_qp_arg;
	/* From now on segments to this local port (network order) are for that stack; `to` -1: for
	 * the stack on whose queue they come. NULL with one stack. Under all locks. */
	void (*steer)(void *arg, bool ip6, uint16_t port, int to);
	void *steer_arg;
};

/* Shared by the stacks of a process. Written under all stack locks, read under any, but for the
 * atomics and what is constant. */
struct conn_domain {
	struct stack *first;	     /* constant */
	const struct uw_config *cfg; /* constant */
	bool manual;		     /* constant: tests run the stacks, on their own clock */
	struct mpa_policy policy;    /* constant: connections of rdma_cm */
	struct mpa_policy rc_policy; /* constant: connections without rdma_cm */
	struct conn_hooks hooks;     /* constant */
	struct ports ports;	     /* local TCP ports in use */
	unsigned next_home;	     /* counts up: the next endpoint's stack */
	struct uw_ep *eps;	     /* every endpoint */
	struct listener *listeners;  /* every listener */
	_Atomic uint32_t n_eps;	     /* endpoints that the program holds */
	_Atomic uint32_t n_qps;	     /* written by the verbs room */
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
/* s->sched is initialised by the caller before or afterwards; the rest is zero. */
void stack_set_up(struct stack *s, struct conn_domain *d, const struct llp_ops *llp);

/* All under the lock. One burst from every link and what the transport has itself; returns frames.
 */
unsigned stack_receive(struct stack *s);
/* Completions for what the burst acknowledged. */
void stack_complete_acked(struct stack *s);
/* Send what waited for room or for its turn, acknowledge what came, hand frames to the links. */
void stack_transmit(struct stack *s);
void stack_timers(struct stack *s, uint64_t now_us);
/* When a timer of TCP's, of a connection's or of CM-less RC's is due; UINT64_MAX: never. */
uint64_t stack_next_timer_us(struct stack *s, uint64_t now_us);
bool stack_pending(struct stack *s, bool links);
/* Has every connection sent what was posted? */
bool stack_is_quiet(const struct stack *s);
/* End every connection and stop listening. The endpoints stay, dead. */
void stack_retire(struct stack *s);

/* The stack that the next endpoint is to be on. Under all locks. */
struct stack *stack_next_home(struct conn_domain *d);

/* What TCP tells the connections. */
extern const struct llp_user conn_llp_user;

#endif
