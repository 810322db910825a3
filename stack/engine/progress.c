/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who drives the stack, and when nobody has to. A program thread that polls an empty CQ drives it
 * itself; the RX thread does when no program thread is there; and when nothing comes it sleeps on
 * the doorbell word that peers ring (doc/path.md, doc/adr/0003).
 */
#include "engine/engine.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define YIELDS_BEFORE_SLEEP  200u    /* empty rounds; a yield costs next to nothing when idle */
#define LONG_YIELD_US	     200u    /* somebody else needs this core */
#define NO_YIELD_US	     100000u /* ... so do not spin for that long */
#define WATCH_US	     1000u   /* a program drives: look in at this pace */
#define STEADY_ROUNDS	     128u    /* in WATCH_US */
#define RECENT_US	     100000u /* a program that drove within this may vanish */
#define MAX_SLEEP_US	     250000u
#define NAP_MIN_US	     20u /* links that do not ring: nap and look, longer and longer */
#define NAP_MAX_US	     1000u
#define TIMER_US	     10000u
#define EMPTY_POLLS_TO_DRIVE 4u
#define DRIVES_PER_CLOCK     16u
#define EMPTY_POLLS_TO_YIELD 64u

/* ---- the stack lock ---------------------------------------------------------------------- */

void engine_lock(struct uw_engine *e)
{
	atomic_fetch_add_explicit(&e->waiters, 1, memory_order_relaxed);
	pthread_mutex_lock(&e->lock);
	atomic_fetch_sub_explicit(&e->waiters, 1, memory_order_relaxed);
}

bool engine_trylock(struct uw_engine *e)
{
	return pthread_mutex_trylock(&e->lock) == 0;
}

void engine_unlock(struct uw_engine *e)
{
	do {
		if (!engine_ring_empty(e)) {
			engine_drain_ring(e);
			llp_flush_links();
		}
		pthread_mutex_unlock(&e->lock);
		/* Whoever rang after the drain found the lock taken and relies on this look. */
		atomic_thread_fence(memory_order_seq_cst);
	} while (!engine_ring_empty(e) && engine_trylock(e));
}

/* ---- one round --------------------------------------------------------------------------- */

static unsigned receive(struct uw_engine *e, struct io_link *l)
{
	struct io_frame *v[ENGINE_BURST];
	unsigned n = l->ops->rx(l, v, ENGINE_BURST);

	for (unsigned i = 0; i < n; i++) {
		llp_input(l, v[i]);
		/* After every frame, never per burst: a post waits 2 us that way, not 13. */
		engine_drain_ring(e);
	}
	return n;
}

static void timers(struct uw_engine *e)
{
	uint64_t now = engine_now_us(e);

	if (now < e->next_timer_us)
		return;
	e->next_timer_us = now + TIMER_US;
	llp_timers();
	engine_ep_timers(e, now);
}

static unsigned round_of(struct uw_engine *e)
{
	unsigned work = 0;

	for (unsigned i = 0; i < e->n_links; i++)
		work += receive(e, e->links[i]);
	work += llp_poll();
	engine_settle(e);
	engine_failed_cqs(e);
	if (e->due)
		engine_due_cqs(e, engine_now_us(e));
	engine_pump_stalled(e);
	llp_acks();
	llp_flush_links();
	return work;
}

unsigned engine_run(struct uw_engine *e)
{
	timers(e);
	return round_of(e);
}

/* ---- sleeping ---------------------------------------------------------------------------- */

static void futex_wait(_Atomic uint32_t *word, uint32_t expect, uint64_t us)
{
	struct timespec t = { .tv_sec = (time_t)(us / 1000000),
			      .tv_nsec = (long)(us % 1000000 * 1000) };

	syscall(SYS_futex, word, FUTEX_WAIT, expect, &t, NULL, 0);
}

static void futex_wake(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* The caller has left what there is to do where pending() finds it: Dekker with whoever announces
 * its sleep. */
void engine_wake(struct uw_engine *e)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(e->doorbell, memory_order_relaxed) == IO_ASLEEP &&
	    atomic_exchange(e->doorbell, IO_AWAKE) == IO_ASLEEP)
		futex_wake(e->doorbell);
}

struct rx_thread {
	struct uw_engine *e;
	bool rings;
	unsigned empty;
	uint32_t seen_tick;
	uint32_t judged_tick;	      /* steady or not: at judged_us */
	uint64_t judged_us, doubt_us; /* doubt: not steady until then */
	uint64_t drove_us;	      /* when a program was last seen driving */
	uint64_t no_yield_us;	      /* until then */
	uint64_t nap_us;
};

static bool pending(struct uw_engine *e)
{
	bool any = !engine_ring_empty(e) || llp_pending();

	for (unsigned i = 0; i < e->n_links && !any; i++)
		any = e->links[i]->ops->pending(e->links[i]);
	return any;
}

/* Timers run no more often than that. */
static uint64_t until(uint64_t now, uint64_t at)
{
	return at > now + TIMER_US ? at - now : TIMER_US;
}

static uint64_t sleep_us(struct rx_thread *t, uint64_t now)
{
	uint64_t us = llp_next_timer_us();

	if (us > MAX_SLEEP_US)
		us = MAX_SLEEP_US;
	if (deadline_next_us(&t->e->deadlines) < now + us)
		us = until(now, deadline_next_us(&t->e->deadlines));
	if (t->e->rc_due_us < now + us)
		us = until(now, t->e->rc_due_us);
	if (t->e->due) { /* under the lock, as whoever adds one */
		uint64_t due = engine_next_due_us(t->e);

		due = due > now ? due - now : 1;
		us = due < us ? due : us;
	}
	if (now - t->drove_us < RECENT_US && us > WATCH_US)
		us = WATCH_US;
	return us;
}

/* Announce the sleep, look once more, sleep. Dekker with the ringing peer: it stores its frames,
 * fences, reads the word; we store the word, fence, look for frames. */
static void sleep_on_doorbell(struct rx_thread *t, uint64_t now)
{
	struct uw_engine *e = t->e;
	uint64_t us;
	bool any;

	atomic_store_explicit(e->doorbell, IO_ASLEEP, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (!engine_trylock(e)) {
		/* Somebody else is at work and may leave something: look again soon. */
		futex_wait(e->doorbell, IO_ASLEEP, WATCH_US);
		return;
	}
	any = pending(e);
	us = sleep_us(t, now);
	e->stats.rx_sleeps += !any;
	engine_unlock(e);
	if (!any)
		futex_wait(e->doorbell, IO_ASLEEP, us);
}

/* The transport knows when something comes, and forgets nothing that came before. */
static void sleep_in_transport(struct rx_thread *t, uint64_t now)
{
	struct uw_engine *e = t->e;
	uint64_t us = WATCH_US;

	if (engine_trylock(e)) {
		us = sleep_us(t, now);
		e->stats.rx_sleeps++;
		engine_unlock(e);
	}
	llp_sleep(us);
}

/* Links without a doorbell: nap, twice as long each time nothing came. Whoever is in this process
 * can ring it. */
static void nap(struct rx_thread *t)
{
	_Atomic uint32_t *doorbell = t->e->doorbell;

	atomic_store_explicit(doorbell, IO_ASLEEP, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (!llp_pending())
		futex_wait(doorbell, IO_ASLEEP, t->nap_us);
	atomic_store_explicit(doorbell, IO_AWAKE, memory_order_relaxed);
	t->nap_us = t->nap_us * 2 > NAP_MAX_US ? NAP_MAX_US : t->nap_us * 2;
}

/* Spin politely for a while; true: enough of it. */
static bool spun_enough(struct rx_thread *t, uint64_t now)
{
	uint64_t after;

	if (now < t->no_yield_us || ++t->empty > YIELDS_BEFORE_SLEEP)
		return true;
	sched_yield();
	after = engine_now_us(t->e);
	if (after - now > LONG_YIELD_US)
		t->no_yield_us = after + NO_YIELD_US;
	return false;
}

static void idle(struct rx_thread *t)
{
	struct uw_engine *e = t->e;
	uint64_t now = engine_now_us(e);
	uint32_t tick = atomic_load_explicit(&e->drive_tick, memory_order_relaxed);

	if (tick != t->seen_tick) {
		t->seen_tick = tick;
		t->drove_us = now;
		if (atomic_load_explicit(&e->driving, memory_order_acquire)) {
			futex_wait(e->doorbell, IO_AWAKE, WATCH_US);
			return;
		}
	}
	if (!spun_enough(t, now))
		return;
	if (llp_sleeps())
		sleep_in_transport(t, now);
	else if (t->rings)
		sleep_on_doorbell(t, now);
	else
		nap(t);
}

/* Does a program thread drive, and without a pause? Then it is to be left alone: every look at the
 * stack from here takes the lock from it, and every doorbell time from its peers. It is judged by
 * how often it looked for completions and found none. One that then stays away is found out within
 * WATCH_US, and not trusted again for a while. */
static bool driven_steadily(struct rx_thread *t)
{
	struct uw_engine *e = t->e;
	uint64_t now = engine_now_us(e), elapsed = now - t->judged_us;
	bool steady = atomic_load_explicit(&e->steady, memory_order_relaxed);

	if (elapsed >= WATCH_US) {
		uint32_t tick = atomic_load_explicit(&e->drive_tick, memory_order_relaxed);
		uint64_t rounds = tick - t->judged_tick;
		bool enough = rounds * WATCH_US >= STEADY_ROUNDS * elapsed;

		if (steady && !enough)
			t->doubt_us = now + RECENT_US;
		steady = enough && now >= t->doubt_us;
		atomic_store_explicit(&e->steady, steady, memory_order_relaxed);
		t->judged_us = now;
		t->judged_tick = tick;
	}
	return steady && atomic_load_explicit(&e->driving, memory_order_acquire);
}

static void *rx_main(void *arg)
{
	struct rx_thread t = { .e = arg, .nap_us = NAP_MIN_US, .rings = true };
	struct uw_engine *e = arg;

	pthread_setname_np(pthread_self(), "uwarp-rx");
	for (unsigned i = 0; i < e->n_links; i++)
		t.rings = t.rings && (e->links[i]->flags & IO_RINGS);
	while (!atomic_load_explicit(&e->stop, memory_order_acquire)) {
		unsigned work = 0;

		if (driven_steadily(&t)) {
			t.drove_us = engine_now_us(e);
			futex_wait(e->doorbell, IO_AWAKE, WATCH_US);
			continue;
		}
		if (engine_trylock(e)) {
			work = engine_run(e);
			e->stats.drive_rx++;
			engine_unlock(e);
		}
		if (!work) {
			idle(&t);
			continue;
		}
		t.empty = 0;
		t.nap_us = NAP_MIN_US;
		if (atomic_load_explicit(&e->waiters, memory_order_relaxed))
			sched_yield();
	}
	return NULL;
}

int engine_spawn(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	int err;

	/* The program's signals are the program's threads' business. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return err;
}

int engine_thread_start(struct uw_engine *e)
{
	return -engine_spawn(&e->thread, rx_main, e);
}

void engine_thread_stop(struct uw_engine *e)
{
	atomic_store_explicit(&e->stop, true, memory_order_release);
	atomic_store(e->doorbell, IO_AWAKE + 2); /* neither value anybody waits for */
	futex_wake(e->doorbell);
	llp_rouse();
	pthread_join(e->thread, NULL);
}

/* ---- a program thread drives -------------------------------------------------------------- */

void engine_drive(struct uw_engine *e, bool again)
{
	static __thread unsigned empty;

	if (!atomic_load_explicit(&e->started, memory_order_acquire))
		return;
	if (engine_trylock(e)) {
		/* Reading the clock costs as much as looking for frames. */
		if (++e->stats.drive_app % DRIVES_PER_CLOCK == 0)
			timers(e);
		round_of(e);
		engine_unlock(e);
	}
	atomic_fetch_add_explicit(&e->drive_tick, 1, memory_order_relaxed);
	empty = again ? empty + 1 : 1;
	if (empty < EMPTY_POLLS_TO_DRIVE)
		return;
	/* From here on it evidently waits by polling: no need to be rung. */
	if (!atomic_load_explicit(&e->driving, memory_order_relaxed))
		atomic_store_explicit(&e->driving, true, memory_order_release);
	if (atomic_load_explicit(e->doorbell, memory_order_relaxed) == IO_ASLEEP)
		atomic_store_explicit(e->doorbell, IO_AWAKE, memory_order_relaxed);
	if (empty % EMPTY_POLLS_TO_YIELD == 0)
		sched_yield();
}

void engine_leave(struct uw_engine *e, bool to_sleep)
{
	bool any;

	if (!atomic_load_explicit(&e->driving, memory_order_relaxed))
		return;
	/* It comes back at once; if not, the RX thread notices (driven_steadily). */
	if (!to_sleep && atomic_load_explicit(&e->steady, memory_order_relaxed))
		return;
	atomic_store_explicit(&e->driving, false, memory_order_release);
	/* The RX thread is asleep or will be: peers have to ring again, and what came in between
	 * is looked at once more (Dekker as in sleep_on_doorbell). */
	atomic_store_explicit(e->doorbell, IO_ASLEEP, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (llp_sleeps()) /* no peer rings: it has to go to where it is told */
		futex_wake(e->doorbell);
	if (!engine_trylock(e))
		return;
	any = pending(e);
	if (any)
		engine_run(e);
	engine_unlock(e);
}
