/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls into lwIP's core, and out of it: who has something new. */
#include <stdlib.h>

#include "io/lwip/assertion.h"
#include "io/seq/seq.h"

#include "lwip/priv/tcpip_priv.h"

struct seq seq;

/* ---- into lwIP's core -------------------------------------------------------------------- */

struct call {
	struct tcpip_api_call_data lwip; /* first: lwIP hands it on */
	err_t (*fn)(void *arg);
	void *arg;
};

static err_t run(struct tcpip_api_call_data *data)
{
	struct call *c = (struct call *)data;

	return c->fn(c->arg);
}

err_t seq_call(err_t (*fn)(void *arg), void *arg)
{
	struct call c = { .fn = fn, .arg = arg };

	return tcpip_api_call(run, &c.lwip);
}

static void up(void *sem)
{
	sys_sem_signal(sem);
}

/* lwIP itself can be set up only once, but its thread can be tried for again. */
uw_status seq_init(const struct llp_config *cfg)
{
	static sys_sem_t is_up;
	static bool set_up, runs;

	seq.cfg = *cfg;
	if (!set_up) {
		sys_sem_new(&is_up, 0);
		tcpip_init(up, &is_up);
		set_up = true;
	}
	if (!seq_thread_is_there())
		return UW_E_NOMEM;
	if (!runs)
		sys_arch_sem_wait(&is_up, 0);
	runs = true;
	return UW_OK;
}

/* ---- out of it --------------------------------------------------------------------------- */

void seq_ring(struct seq_end *x, unsigned events)
{
	struct seq_end *head = atomic_load_explicit(&seq.ready, memory_order_relaxed);

	atomic_fetch_or_explicit(&x->events, events, memory_order_relaxed);
	/* acq_rel: whoever turns it off afterwards sees the events */
	if (atomic_exchange_explicit(&x->queued, true, memory_order_acq_rel))
		return;
	do {
		x->next = head;
		/* release: pairs with the acquire in seq_poll; next is visible */
	} while (!atomic_compare_exchange_weak_explicit(&seq.ready, &head, x, memory_order_release,
							memory_order_relaxed));
	/* Who takes frames in looks afterwards. */
	if (seq_is_lwips() || !seq.taking)
		seq.cfg.wake(seq.cfg.arg);
}

static void free_unless_queued(struct seq_end *x)
{
	/* On the list: who takes it from there frees it. */
	if (!atomic_exchange_explicit(&x->queued, true, memory_order_acq_rel))
		free(x);
}

/* lwIP does not know it any more. */
void seq_end_free(struct seq_end *x)
{
	x->dead = true;
	if (!x->busy)
		free_unless_queued(x);
}

static void handle(struct seq_end *x)
{
	/* acq_rel: what happens from here on rings again, what was before is seen */
	atomic_exchange_explicit(&x->queued, false, memory_order_acq_rel);
	if (!x->dead) {
		x->busy = true;
		x->handle(x, atomic_exchange_explicit(&x->events, 0, memory_order_relaxed));
		x->busy = false;
		if (!x->dead)
			return;
	}
	free_unless_queued(x);
}

bool seq_pending(void)
{
	if (atomic_load_explicit(&seq.ready, memory_order_acquire))
		return true;
	for (unsigned i = 0; i < SEQ_LINKS; i++) {
		const struct seq_out *o = &seq.links[i].out;

		if (seq.links[i].io && atomic_load_explicit(&o->put, memory_order_acquire) !=
					       atomic_load_explicit(&o->got, memory_order_relaxed))
			return true;
	}
	return false;
}

unsigned seq_poll(void)
{
	struct seq_end *x, *next;
	unsigned n = 0;

	seq_give_back();
	seq.cfg.stats->tcp_assertions += lwip_assertions_take();
	if (!atomic_load_explicit(&seq.ready, memory_order_relaxed))
		return 0;
	x = atomic_exchange_explicit(&seq.ready, NULL, memory_order_acquire);
	for (; x; x = next, n++) {
		next = x->next;
		handle(x);
	}
	return n;
}
