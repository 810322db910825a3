/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who drives the stack, and when nobody has to. A program thread that polls an empty CQ drives it
 * itself; the RX thread does when no program thread is there; and when nothing comes it sleeps on
 * the doorbell word that peers ring (doc/path.md, doc/adr/0003).
 */
#include "engine/engine.h"

#include <errno.h>
#include <linux/futex.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define YIELDS_BEFORE_SLEEP  200u    /* empty rounds; a yield costs next to nothing when idle */
#define LONG_YIELD_US	     200u    /* somebody else needs this core */
#define NO_YIELD_US	     100000u /* ... so do not spin for that long */
#define WATCH_US	     1000u   /* a program drives: look in at this pace */
#define STEADY_LOOKS	     32u     /* in WATCH_US, and frames that they found */
#define RECENT_US	     100000u /* a program that drove within this may vanish */
#define MAX_SLEEP_US	     250000u
#define NAP_MIN_US	     20u /* links that do not ring: nap and look, longer and longer */
#define NAP_MAX_US	     1000u
#define TIMER_US	     10000u
#define EMPTY_POLLS_TO_DRIVE 4u
#define DRIVES_PER_CLOCK     16u
#define EMPTY_POLLS_TO_YIELD 64u
#define EMPTY_POLLS_TO_DOZE  512u /* at most: what a wake-up from another core takes */
#define SOON_US		     100u
#define TURN_NS		     100000u /* the least that Linux takes */
#define NO_MOVE_US	     10000u
#define DOZE_US		     50u /* where no peer rings */
/* A time that ends before the scheduler's next tick (4 ms) makes the kernel set the core's timer,
 * and set it back on a wake-up: in a virtual machine 15 us each. */
#define LOOK_US	    5000u
#define YIELD_SHARE 16u /* of the time, at most, is spent on yielding to others */

const struct thread_model *engine_thread_model(enum uw_threads t)
{
	static const struct thread_model models[] = {
		[UW_THREADS_ADAPTIVE] = { .posts_inline = true, .polls_drive = true },
		[UW_THREADS_C1] = { 0 },
		[UW_THREADS_C2] = { .posts_inline = true,
				    .polls_drive = true,
				    .caller_alone = true },
		[UW_THREADS_C3] = { .posts_inline = true },
	};

	return &models[t];
}

/* ---- one round --------------------------------------------------------------------------- */

static unsigned receive(struct uw_engine *e, struct io_link *l)
{
	struct io_frame *v[ENGINE_BURST];
	unsigned n = l->ops->rx(l, v, ENGINE_BURST);

	llp_prefetch(e->llp, v, n);
	for (unsigned i = 0; i < n; i++) {
		llp_input(e->llp, l, v[i]);
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
	llp_timers(e->llp);
	engine_ep_timers(e, now);
}

static unsigned round_of(struct uw_engine *e)
{
	unsigned work = 0;

	for (unsigned i = 0; i < e->n_links; i++)
		work += receive(e, e->links[i]);
	work += llp_poll(e->llp);
	engine_settle(e);
	engine_failed_cqs(e);
	if (e->due)
		engine_due_cqs(e, engine_now_us(e));
	engine_pump_stalled(e);
	llp_acks(e->llp);
	llp_flush_links(e->llp);
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

/* The caller has left what there is to do where pending() finds it: Dekker with whoever announces
 * its sleep. */
void engine_wake(struct uw_engine *e)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(e->doorbell, memory_order_relaxed) == IO_ASLEEP &&
	    atomic_exchange(e->doorbell, IO_AWAKE) == IO_ASLEEP)
		engine_futex_wake(e->doorbell);
}

struct rx_thread {
	struct uw_engine *e;
	unsigned empty;
	uint32_t seen_tick;
	uint32_t judged_tick;	      /* steady or not: at judged_us */
	uint64_t judged_us, doubt_us; /* doubt: not steady until then */
	uint64_t drove_us;	      /* when a program was last seen driving */
	uint64_t no_yield_us;	      /* until then */
	uint64_t nap_us;
	uint64_t no_move_us; /* until then */
};

static bool pending(struct uw_engine *e)
{
	bool any = !engine_ring_empty(e) || llp_pending(e->llp);

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
	uint64_t us = llp_next_timer_us(t->e->llp);

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
	/* Nobody rings while a program drives; a transport that sleeps itself wakes all the same.
	 */
	if (!llp_sleeps(t->e->llp) && now - t->drove_us < RECENT_US && us > LOOK_US)
		us = LOOK_US;
	return us;
}

/* Who rang does so from a core of its own, and then waits like our program: to take that core for
 * a moment costs nobody anything, and the kernel less than to interrupt ours. So if we got in the
 * way of our program, go over there. */
static void follow_ringer(struct rx_thread *t, uint64_t now)
{
	uint32_t rung = atomic_load_explicit(t->e->doorbell, memory_order_relaxed);
	unsigned here = (unsigned)sched_getcpu(), there = rung - IO_RUNG;
	cpu_set_t all, one;

	if (rung < IO_RUNG || there == here || now < t->no_move_us ||
	    here != atomic_load_explicit(&t->e->post_cpu, memory_order_relaxed))
		return;
	t->no_move_us = now + NO_MOVE_US;
	if (sched_getaffinity(0, sizeof(all), &all) || there >= CPU_SETSIZE ||
	    !CPU_ISSET(there, &all))
		return;
	CPU_ZERO(&one);
	CPU_SET(there, &one);
	if (!sched_setaffinity(0, sizeof(one), &one))
		sched_setaffinity(0, sizeof(all), &all);
	t->e->stats.rx_moves++;
}

/* Announce the sleep, look once more, sleep. Dekker with the ringing peer: it stores its frames,
 * fences, reads the word; we store the word, fence, look for frames. */
static void sleep_on_doorbell(struct rx_thread *t, uint64_t now)
{
	struct uw_engine *e = t->e;
	uint64_t us;
	bool any;

	follow_ringer(t, now);
	atomic_store_explicit(e->doorbell, IO_ASLEEP, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (!engine_trylock_or_ask(e)) {
		/* Whoever is at work looks; what it leaves is our timers'. */
		futex_wait(e->doorbell, IO_ASLEEP, LOOK_US);
		return;
	}
	any = pending(e);
	us = sleep_us(t, now);
	atomic_store_explicit(&e->rx_far, us > LOOK_US, memory_order_relaxed);
	e->stats.rx_sleeps += !any;
	engine_unlock(e);
	if (!any)
		futex_wait(e->doorbell, IO_ASLEEP, us);
}

/* A program drives, but not so that it could be trusted; it may doze, too. */
static void watch(struct uw_engine *e)
{
	futex_wait(e->doorbell, atomic_load_explicit(e->doorbell, memory_order_relaxed), WATCH_US);
}

/* The transport knows when something comes, and forgets nothing that came before. */
static void sleep_in_transport(struct rx_thread *t, uint64_t now)
{
	struct uw_engine *e = t->e;
	uint64_t us;

	/* Not trylock: what waits there wakes at once, again and again while another has the lock.
	 */
	engine_lock(e);
	us = sleep_us(t, now);
	e->stats.rx_sleeps++;
	engine_unlock(e);
	llp_sleep(e->llp, us);
}

/* Links without a doorbell: nap, twice as long each time nothing came. Whoever is in this process
 * can ring it. */
static void nap(struct rx_thread *t)
{
	_Atomic uint32_t *doorbell = t->e->doorbell;

	atomic_store_explicit(doorbell, IO_ASLEEP, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (engine_ring_empty(t->e) && !llp_pending(t->e->llp))
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
		if (atomic_load_explicit(&e->driving, memory_order_acquire)) {
			t->drove_us = now;
			watch(e);
			return;
		}
	}
	if (!spun_enough(t, now))
		return;
	if (llp_sleeps(e->llp))
		sleep_in_transport(t, now);
	else if (e->rings)
		sleep_on_doorbell(t, now);
	else
		nap(t);
}

/* c2: it drives, and did so within WATCH_US. If not, its doorbell is ours until it drives again. */
static bool driven_alone(struct rx_thread *t)
{
	struct uw_engine *e = t->e;
	uint32_t tick = atomic_load_explicit(&e->drive_tick, memory_order_relaxed);
	uint64_t now = engine_now_us(e);

	if (!atomic_load_explicit(&e->driving, memory_order_acquire))
		return false;
	if (tick != t->judged_tick) {
		t->judged_tick = tick;
		t->judged_us = now;
	}
	if (now - t->judged_us < WATCH_US)
		return true;
	atomic_store_explicit(&e->driving, false, memory_order_release);
	return false;
}

/* A program's thread sleeps, and nothing has come that it would have to be up for. */
static bool dozes(const struct uw_engine *e)
{
	return atomic_load_explicit(&e->dozing, memory_order_relaxed) &&
	       atomic_load_explicit(e->doorbell, memory_order_relaxed) == IO_ASLEEP;
}

/* Does a program thread drive, and without a pause? Then it is to be left alone: every look at the
 * stack from here takes the lock from it, and every doorbell time from its peers. It is judged by
 * how often it looked for completions and found none, and by the frames that it took in then: one
 * that is busy with many looks seldom. One that dozes is woken by any frame. One that then stays
 * away is found out within WATCH_US, and not trusted again for a while. */
static bool driven_steadily(struct rx_thread *t)
{
	struct uw_engine *e = t->e;
	uint64_t now = engine_now_us(e), elapsed = now - t->judged_us;
	bool steady = atomic_load_explicit(&e->steady, memory_order_relaxed);

	if (elapsed >= WATCH_US) {
		uint32_t tick = atomic_load_explicit(&e->drive_tick, memory_order_relaxed);
		uint64_t looks = tick - t->judged_tick;
		bool enough = looks * WATCH_US >= STEADY_LOOKS * elapsed || dozes(e);

		if (steady && !enough)
			t->doubt_us = now + RECENT_US;
		steady = enough && now >= t->doubt_us;
		atomic_store_explicit(&e->steady, steady, memory_order_relaxed);
		t->judged_us = now;
		t->judged_tick = tick;
	}
	return steady && atomic_load_explicit(&e->driving, memory_order_acquire);
}

/* What sched_setattr(2) takes; libc has no name for it here. */
struct sched_attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
	uint32_t util_min, util_max;
};

/* Short turns, and soon: woken it takes the core from a program that spins on memory, where the
 * kernel knows the wish (Linux 6.12). It gets no more of the core for it. */
static void ask_for_short_turns(void)
{
	struct sched_attributes a = { .size = sizeof(a) };

	if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) || a.policy != SCHED_OTHER)
		return;
	a.runtime = TURN_NS;
	syscall(SYS_sched_setattr, 0, &a, 0);
}

static void *rx_main(void *arg)
{
	struct rx_thread t = { .e = arg, .nap_us = NAP_MIN_US };
	struct uw_engine *e = arg;
	char name[16];

	snprintf(name, sizeof(name), e->index ? "uwarp-rx%u" : "uwarp-rx", e->index);
	pthread_setname_np(pthread_self(), name);
	ask_for_short_turns();
	while (!atomic_load_explicit(&e->stop, memory_order_acquire)) {
		uint32_t left = atomic_load_explicit(&e->left, memory_order_acquire);
		unsigned work = 0;

		if (e->model->caller_alone ? driven_alone(&t) : driven_steadily(&t)) {
			t.drove_us = engine_now_us(e);
			/* Not on the doorbell: who rings there means the program. */
			futex_wait(&e->left, left, WATCH_US);
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
	e->rings = !llp_sleeps(e->llp);
	for (unsigned i = 0; i < e->n_links; i++)
		e->rings = e->rings && (e->links[i]->flags & IO_RINGS);
	return -engine_spawn(&e->thread, rx_main, e);
}

/* Whoever drove does not any more: the RX thread is to look now. */
static void relieve(struct uw_engine *e)
{
	atomic_fetch_add_explicit(&e->left, 1, memory_order_release);
	engine_futex_wake(&e->left);
}

void engine_thread_stop(struct uw_engine *e)
{
	atomic_store_explicit(&e->stop, true, memory_order_release);
	atomic_store(e->doorbell, IO_AWAKE + 2); /* neither value anybody waits for */
	engine_futex_wake(e->doorbell);
	relieve(e);
	llp_rouse(e->llp);
	pthread_join(e->thread, NULL);
}

/* ---- a program thread drives -------------------------------------------------------------- */

static __thread unsigned patience = EMPTY_POLLS_TO_YIELD; /* empty polls before a doze */

/* If it was woken at once, and by somebody who has a core of his own, it had better gone on
 * looking. */
static void learn(struct uw_engine *e, uint64_t slept_us)
{
	uint32_t rung = atomic_load_explicit(e->doorbell, memory_order_relaxed);

	if (slept_us < SOON_US && rung >= IO_RUNG && rung - IO_RUNG != (uint32_t)sched_getcpu())
		patience = patience < EMPTY_POLLS_TO_DOZE ? patience * 2 : patience;
	else
		patience = EMPTY_POLLS_TO_YIELD;
}

/* The program waits by polling, and somebody else has the core for longer than a look takes: to
 * yield again would cost a time slice each time. Asleep it is woken as soon as something comes. */
static void doze(struct uw_engine *e, uint64_t now)
{
	bool any;

	atomic_fetch_add_explicit(&e->dozing, 1, memory_order_relaxed);
	atomic_store_explicit(e->doorbell, IO_ASLEEP, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst); /* Dekker as in sleep_on_doorbell */
	if (engine_trylock(e)) {
		any = pending(e);
		e->stats.app_doze += !any;
		engine_unlock(e);
		if (!any) {
			futex_wait(e->doorbell, IO_ASLEEP, e->rings ? LOOK_US : DOZE_US);
			learn(e, engine_now_us(e) - now);
		}
	}
	atomic_fetch_sub_explicit(&e->dozing, 1, memory_order_relaxed);
}

static __thread uint64_t no_yield_us; /* until then */

static void yield(struct uw_engine *e, uint64_t now)
{
	uint64_t after;

	sched_yield();
	after = engine_now_us(e);
	if (after - now > LONG_YIELD_US)
		no_yield_us = after + YIELD_SHARE * (after - now);
}

static void make_way(struct uw_engine *e, unsigned empty)
{
	uint64_t now = engine_now_us(e);

	if (now >= no_yield_us)
		yield(e, now);
	else if (empty % patience == 0)
		doze(e, now);
}

/* The RX thread does it, and may need this core. Where a yield costs a time slice it comes by
 * preemption. */
static void stand_back(struct uw_engine *e)
{
	uint64_t now = engine_now_us(e);

	if (now >= no_yield_us)
		yield(e, now);
}

void engine_drive(struct uw_engine *e, bool again)
{
	static __thread unsigned empty;
	uint32_t tick;

	if (!atomic_load_explicit(&e->started, memory_order_acquire))
		return;
	if (!e->model->polls_drive) {
		stand_back(e);
		return;
	}
	if (engine_trylock(e)) {
		/* Reading the clock costs as much as looking for frames. */
		if (++e->stats.drive_app % DRIVES_PER_CLOCK == 0)
			timers(e);
		/* Written under the lock alone. */
		tick = atomic_load_explicit(&e->drive_tick, memory_order_relaxed);
		atomic_store_explicit(&e->drive_tick, tick + 1 + round_of(e), memory_order_relaxed);
		engine_unlock(e);
	}
	empty = again ? empty + 1 : 1;
	if (empty < EMPTY_POLLS_TO_DRIVE && !e->model->caller_alone)
		return;
	/* From here on it evidently waits by polling: no need to be rung. */
	if (!atomic_load_explicit(&e->driving, memory_order_relaxed))
		atomic_store_explicit(&e->driving, true, memory_order_release);
	if (atomic_load_explicit(e->doorbell, memory_order_relaxed) == IO_ASLEEP) {
		atomic_store_explicit(e->doorbell, IO_AWAKE, memory_order_relaxed);
		/* Should we vanish, only the RX thread can notice: it must not sleep for long. */
		if (atomic_exchange_explicit(&e->rx_far, false, memory_order_relaxed))
			engine_futex_wake(e->doorbell);
	}
	if (empty % EMPTY_POLLS_TO_YIELD == 0)
		make_way(e, empty);
}

void engine_leave(struct uw_engine *e, bool to_sleep)
{
	bool any;

	if (!atomic_load_explicit(&e->driving, memory_order_relaxed))
		return;
	/* It comes back at once; if not, the RX thread notices (driven_steadily, driven_alone). */
	if (!to_sleep &&
	    (e->model->caller_alone || atomic_load_explicit(&e->steady, memory_order_relaxed)))
		return;
	atomic_store_explicit(&e->driving, false, memory_order_release);
	/* The RX thread is asleep or will be: peers have to ring again, and what came in between
	 * is looked at once more (Dekker as in sleep_on_doorbell). */
	atomic_store_explicit(e->doorbell, IO_ASLEEP, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (to_sleep &&
	    (e->model->caller_alone || atomic_load_explicit(&e->steady, memory_order_relaxed)))
		relieve(e);
	/* No peer rings: it has to go to where it is told. (If the program comes back after all, it
	 * would only be in its way.) */
	if (to_sleep && llp_sleeps(e->llp))
		engine_futex_wake(e->doorbell);
	if (!engine_trylock_or_ask(e))
		return;
	any = pending(e);
	if (any)
		engine_run(e);
	engine_unlock(e);
}
