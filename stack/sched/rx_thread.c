/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RX thread. It runs the stack while no thread of the program does, and sleeps while nothing
 * comes: on the doorbell that peers ring, in the transport, or for short times on links that do not
 * tell (doc/adr/0003, doc/adr/0010).
 */
#include "sched/run.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define YIELDS_BEFORE_SLEEP 200u    /* rounds without work; a yield costs little when idle */
#define NO_YIELD_US	    100000u /* after a long yield: sleep at once for so long */
#define STEADY_ROUNDS	    32u	    /* of the program in WATCH_US, posts included */
#define LEAST_ROUNDS	    4u	    /* ... without them */
#define RECENT_US	    100000u /* a program that drove within this may stop without a word */
#define NAP_MIN_US	    20u	    /* links that nobody rings: sleep and look, longer and longer */
#define NAP_MAX_US	    1000u
#define SLICE_NS	    100000u /* the shortest time slice that Linux grants */
#define NO_MOVE_US	    10000u
#define BUSY_US		    4000u /* away for so long: the program computes, it was not just late */
#define OFTEN_US	    40000u /* ... and if it does so again within that, it does so often */

/* What only the RX thread knows. */
struct rx_thread {
	struct sched *s;
	unsigned idle_rounds;
	uint32_t seen_waits;	/* waits when it last looked */
	bool late;		/* when it last took over, frames waited */
	uint64_t late_us;	/* when that last happened with a program that computed */
	uint64_t waits_us;	/* when it last saw them change */
	uint64_t rung_us;	/* since when the program has not come though it was rung; 0: not */
	uint64_t timers_us;	/* while the program waits: when the timers are due */
	uint32_t seen_rounds;	/* app_rounds when it last looked */
	uint32_t judged_rounds; /* app_rounds at judged_us */
	uint32_t judged_posts;	/* app_posts then */
	uint64_t judged_us;	/* when it last judged whether the program drives steadily */
	uint64_t lapsed_us;	/* when a steady one was last found to have stopped */
	uint64_t left_us;	/* when held posts were last left behind */
	uint64_t doubt_us;	/* until then it takes no program for steady */
	uint64_t drove_us;	/* when a program was last seen driving */
	uint64_t no_yield_us;	/* until then it does not yield */
	uint64_t no_move_us;	/* until then it does not change its CPU */
	uint64_t no_watch_us; /* until then frames wake it, though the program polls now and then */
	uint64_t no_hold_us;  /* until then no post waits for others */
	uint64_t nap_us;
};

static _Atomic uint32_t *doorbell_of(struct sched *s)
{
	return atomic_load_explicit(&s->doorbell, memory_order_acquire);
}

/* ---- sleeping ---------------------------------------------------------------------------- */

static uint64_t sleep_us(struct rx_thread *t, uint64_t now)
{
	uint64_t us = sched_idle_us(t->s, now);

	/* Peers do not ring while a program drives. A transport that sleeps itself wakes all the
	 * same.
	 */
	if (!t->s->ops->sleep && now - t->drove_us < RECENT_US && us > LOOK_US)
		us = LOOK_US;
	return us;
}

/* A peer that rings from another CPU then waits, as our program does. To take its CPU for a moment
 * costs nobody anything, and the kernel less than to interrupt ours. So a thread that is on its own
 * program's CPU moves to the peer's. */
static void move_to_ringing_cpu(struct rx_thread *t, uint64_t now)
{
	uint32_t rung = atomic_load_explicit(doorbell_of(t->s), memory_order_relaxed);
	unsigned here = (unsigned)sched_getcpu(), there = rung - IO_RUNG;
	cpu_set_t all, one;

	if (rung < IO_RUNG || there == here || now < t->no_move_us ||
	    here != atomic_load_explicit(&t->s->post_cpu, memory_order_relaxed))
		return;
	t->no_move_us = now + NO_MOVE_US;
	if (sched_getaffinity(0, sizeof(all), &all) || there >= CPU_SETSIZE ||
	    !CPU_ISSET(there, &all))
		return;
	CPU_ZERO(&one);
	CPU_SET(there, &one);
	if (!sched_setaffinity(0, sizeof(one), &one))
		sched_setaffinity(0, sizeof(all), &all);
	t->s->stats.rx_moves++;
}

/* Dekker with sched_end_doze(): the flag, fence, the word, which the kernel compares. */
static void doze(struct sched *s, uint64_t us)
{
	atomic_store(&s->rx_dozes, true);
	sched_futex_wait(doorbell_of(s), IO_ASLEEP, us);
	atomic_store(&s->rx_dozes, false);
}

/* Announce the sleep, look once more, sleep. Dekker with the ringing peer: it stores its frames,
 * fences and reads the word; we store the word, fence and look for frames. */
static void sleep_on_doorbell(struct rx_thread *t, uint64_t now)
{
	struct sched *s = t->s;
	uint64_t us;
	bool any;

	move_to_ringing_cpu(t, now);
	if (!sched_say_asleep(s))
		return;
	if (!sched_trylock_or_ask(s)) {
		/* The holder looks for frames; only timers may be left for us. */
		doze(s, s->frames_wait ? NAP_MIN_US : LOOK_US);
		return;
	}
	any = sched_pending(s);
	us = sleep_us(t, now);
	atomic_store_explicit(&s->rx_sleeps_long, us > LOOK_US, memory_order_relaxed);
	s->stats.rx_sleeps += !any;
	sched_unlock(s);
	if (!any)
		doze(s, us);
}

/* The transport knows when something comes, and forgets nothing that came before. */
static void sleep_in_transport(struct rx_thread *t, uint64_t now)
{
	struct sched *s = t->s;
	uint64_t us;

	/* Not trylock: what waits in the transport would wake us at once, again and again, while
	 * another thread has the lock. */
	sched_lock(s);
	us = sleep_us(t, now);
	s->stats.rx_sleeps++;
	sched_unlock(s);
	/* Dekker with call_rx_thread_away(). QEMU's Arm lets the load go before a store of seq_cst
	 * without the fence. */
	atomic_store(&s->rx_in_transport, true);
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load(&s->waiter) == SCHED_NO_WAITER)
		s->ops->sleep(s->stack, us);
	atomic_store(&s->rx_in_transport, false);
}

/* Links that nobody rings: twice as long each time nothing came. Threads of this process ring. */
static void nap(struct rx_thread *t)
{
	struct sched *s = t->s;
	_Atomic uint32_t *bell = doorbell_of(s);

	atomic_store_explicit(bell, IO_ASLEEP, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (sched_ring_empty(s) && !s->ops->pending(s->stack, false))
		sched_futex_wait(bell, IO_ASLEEP, t->nap_us);
	atomic_store_explicit(bell, IO_AWAKE, memory_order_relaxed);
	t->nap_us = t->nap_us * 2 > NAP_MAX_US ? NAP_MAX_US : t->nap_us * 2;
}

/* Yield for a while before sleeping. True: it is time to sleep. */
static bool spun_enough(struct rx_thread *t, uint64_t now)
{
	uint64_t after;

	if (now < t->no_yield_us || ++t->idle_rounds > YIELDS_BEFORE_SLEEP)
		return true;
	sched_yield();
	after = sched_now_us(t->s);
	if (after - now > LONG_YIELD_US)
		t->no_yield_us = after + NO_YIELD_US;
	return false;
}

/* Frames have come to the link's sockets, which rings nothing. */
static bool sockets_rang(struct sched *s)
{
	bool any;

	if (!sched_has_sockets(s) || !sched_trylock(s))
		return false;
	any = sched_pending(s);
	sched_unlock(s);
	return any;
}

/* The program polls no more, and frames wait: it may spin on memory that a peer writes. */
static bool leaves_frames(struct rx_thread *t)
{
	struct sched *s = t->s;
	_Atomic uint32_t *bell = doorbell_of(s);
	uint32_t rounds = atomic_load_explicit(&s->app_rounds, memory_order_relaxed);

	sched_futex_wait(bell, atomic_load_explicit(bell, memory_order_relaxed), NAP_MIN_US);
	return rounds == atomic_load_explicit(&s->app_rounds, memory_order_relaxed) &&
	       sockets_rang(s);
}

/* The program ran the stack since the last look, if not steadily: look again after a while. No
 * frame ends that pause. Where frames could, a program for which they waited in vain gets no such
 * pauses for RECENT_US. */
static bool watch_program(struct rx_thread *t, uint64_t now)
{
	struct sched *s = t->s;
	uint32_t rounds = atomic_load_explicit(&s->app_rounds, memory_order_relaxed);
	_Atomic uint32_t *bell = doorbell_of(s);

	if (rounds == t->seen_rounds)
		return false;
	t->seen_rounds = rounds;
	if (!atomic_load_explicit(&s->app_drives, memory_order_acquire))
		return false;
	t->drove_us = now;
	if (now < t->no_watch_us)
		return false;
	sched_futex_wait(bell, atomic_load_explicit(bell, memory_order_relaxed), WATCH_US);
	if (s->ops->sleep && leaves_frames(t))
		t->no_watch_us = sched_now_us(s) + RECENT_US;
	return true;
}

static void idle(struct rx_thread *t)
{
	struct sched *s = t->s;
	uint64_t now = sched_now_us(s);

	if (watch_program(t, now) || !spun_enough(t, now))
		return;
	if (s->ops->sleep)
		sleep_in_transport(t, now);
	else if (s->peers_ring)
		sleep_on_doorbell(t, now);
	else
		nap(t);
}

/* ---- does the program drive? --------------------------------------------------------------- */

/* Model c2: it does if it ran the stack within WATCH_US. Else the stack is the RX thread's until
 * the program polls again. */
static bool app_drives_alone(struct rx_thread *t)
{
	struct sched *s = t->s;
	uint32_t rounds = atomic_load_explicit(&s->app_rounds, memory_order_relaxed);
	uint64_t now = sched_now_us(s);

	if (!atomic_load_explicit(&s->app_drives, memory_order_acquire))
		return false;
	if (rounds != t->judged_rounds) {
		t->judged_rounds = rounds;
		t->judged_us = now;
	}
	if (now - t->judged_us < WATCH_US)
		return true;
	atomic_store_explicit(&s->app_drives, false, memory_order_release);
	return false;
}

/* A thread of the program sleeps on the doorbell, and nothing has come to wake it. */
static bool app_sleeps(struct sched *s)
{
	return atomic_load_explicit(&s->app_sleepers, memory_order_relaxed) &&
	       atomic_load_explicit(doorbell_of(s), memory_order_relaxed) == IO_ASLEEP;
}

/* The program was not served for up to WATCH_US, now and last at *last: until when may that not
 * happen again? Twice in RECENT_US is enough. After the first time it may have lost its CPU for a
 * moment only, and goes on as before. */
static uint64_t not_before(uint64_t *last, uint64_t now)
{
	uint64_t again = *last ? *last + RECENT_US : 0;

	*last = now;
	return again > now + WATCH_US ? again : now + WATCH_US;
}

/* A post was held, and the program stayed away: it may compute behind its posts. */
static void judge_held(struct rx_thread *t, uint64_t now)
{
	struct sched *s = t->s;

	if (!atomic_load_explicit(&s->held, memory_order_relaxed))
		return;
	t->no_hold_us = not_before(&t->left_us, now);
	atomic_store_explicit(&s->no_hold, true, memory_order_relaxed);
}

static void hold_again(struct rx_thread *t, uint64_t now)
{
	if (!t->no_hold_us || now < t->no_hold_us)
		return;
	t->no_hold_us = 0;
	atomic_store_explicit(&t->s->no_hold, false, memory_order_relaxed);
}

static bool drove_enough(struct sched *s, uint64_t rounds, uint64_t posts, uint64_t elapsed)
{
	return ((rounds + posts) * WATCH_US >= STEADY_ROUNDS * elapsed &&
		rounds * WATCH_US >= LEAST_ROUNDS * elapsed) ||
	       app_sleeps(s);
}

/* Model adaptive: does a thread of the program drive, without a pause? Then the RX thread keeps
 * away: every look takes the lock from the program, and a doorbell's time from its peers. The
 * measure is how often the program looked for completions and found none, and the frames that it
 * took in then; a program busy with many completions looks seldom. So does one that posts most of
 * the time, so its posts count as well. A thread asleep on the doorbell counts as driving, since
 * any frame wakes it. A program that stops is found out within WATCH_US, and one that does so twice
 * within RECENT_US is not trusted for the rest of it. */
static bool app_drives_steadily(struct rx_thread *t)
{
	struct sched *s = t->s;
	uint64_t now = sched_now_us(s), elapsed = now - t->judged_us;
	bool steady = atomic_load_explicit(&s->app_drives_steadily, memory_order_relaxed);

	if (elapsed >= WATCH_US) {
		uint32_t rounds = atomic_load_explicit(&s->app_rounds, memory_order_relaxed);
		uint32_t posts = atomic_load_explicit(&s->app_posts, memory_order_relaxed);
		bool enough = drove_enough(s, rounds - t->judged_rounds, posts - t->judged_posts,
					   elapsed);

		hold_again(t, now);
		if (steady && !enough) {
			t->doubt_us = not_before(&t->lapsed_us, now);
			judge_held(t, now);
		}
		steady = enough && now >= t->doubt_us;
		atomic_store_explicit(&s->app_drives_steadily, steady, memory_order_relaxed);
		atomic_thread_fence(memory_order_seq_cst); /* Dekker with sched_post_octets() */
		t->judged_us = now;
		t->judged_rounds = rounds;
		t->judged_posts = posts;
	}
	return steady && atomic_load_explicit(&s->app_drives, memory_order_acquire);
}

/* ---- the thread -------------------------------------------------------------------------- */

/* What sched_setattr(2) takes; libc has no declaration of it here. */
struct sched_attributes {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
	uint32_t util_min, util_max;
};

/* A thread with short time slices is run soon after a wake-up, even beside a program that spins on
 * memory. It gets no larger share of the CPU. Kernels before 6.12 ignore it. */
void sched_ask_for_short_slices(void)
{
	struct sched_attributes a = { .size = sizeof(a) };

	if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) || a.policy != SCHED_OTHER)
		return;
	a.runtime = SLICE_NS;
	syscall(SYS_sched_setattr, 0, &a, 0);
}

/* A program in a real-time class has given it to this thread. Among equals who spins on memory is
 * never preempted, and would wait for ever for what this thread is to write there. */
static void go_above_the_program(void)
{
	struct sched_attributes a = { .size = sizeof(a) };

	if (syscall(SYS_sched_getattr, 0, &a, sizeof(a), 0) ||
	    (a.policy != SCHED_FIFO && a.policy != SCHED_RR))
		return;
	a.priority++;
	syscall(SYS_sched_setattr, 0, &a, 0);
}

/* The thread that made this one may be bound to a CPU, to have it for itself. The others of the
 * process are here to be used: those of its first thread. */
static void use_cpus_of_the_process(void)
{
	cpu_set_t own, first;

	if (sched_getaffinity(0, sizeof(own), &own) ||
	    sched_getaffinity(getpid(), sizeof(first), &first))
		return;
	CPU_OR(&first, &first, &own);
	if (!CPU_EQUAL(&first, &own))
		sched_setaffinity(0, sizeof(first), &first);
}

/* ---- does the program wait? ---------------------------------------------------------------- */

/* Goes on as the program waits or polls. */
static uint32_t signs_of_life(struct sched *s)
{
	return atomic_load_explicit(&s->waits, memory_order_relaxed) +
	       atomic_load_explicit(&s->app_rounds, memory_order_relaxed);
}

/* The program has not come back for a while: the stack is this thread's until it waits again; for
 * longer if what came meanwhile may be for a thread that waits for its completions alone. */
static void take_over(struct rx_thread *t, unsigned from, uint64_t now)
{
	struct sched *s = t->s;
	bool was_away = from == SCHED_AWAY;

	t->late = false;
	if (sched_trylock(s)) {
		t->late = sched_pending(s);
		sched_unlock(s);
	}
	t->rung_us = 0;
	if (!atomic_compare_exchange_strong(&s->waiter, &from, SCHED_NO_WAITER))
		return;
	s->stats.take_overs++;
	if (was_away && t->late && atomic_load_explicit(&s->plain_waits, memory_order_relaxed))
		atomic_store_explicit(&s->wait_doubt_us, now + WAIT_DOUBT_US, memory_order_relaxed);
}

/* The program is back. If it stayed away for long while frames waited, and does so often, it is
 * served by this thread for some time. A busy loop of events that was a little late goes on as
 * before, since two wake-ups for each message cost it more. */
static void judge_absence(struct rx_thread *t, uint64_t away_us, uint64_t now)
{
	bool computed = t->late && away_us >= BUSY_US;

	t->late = false;
	if (computed && now - t->late_us < OFTEN_US)
		atomic_store_explicit(&t->s->wait_doubt_us, now + WAIT_DOUBT_US,
				      memory_order_relaxed);
	if (computed)
		t->late_us = now;
}

/* The timers are this thread's while the program sleeps. Returns microseconds until the next. */
static uint64_t serve_timers(struct rx_thread *t, uint64_t now)
{
	struct sched *s = t->s;
	uint64_t at;

	if (!sched_trylock(s))
		return WATCH_US;
	if (now >= t->timers_us) {
		sched_run_timers(s);
		s->ops->run(s->stack, true);
		/* What the program's thread would be woken for is not there any more: it may lie in
		 * the stack now. */
		if (sched_pending(s))
			sched_wake(s);
		t->timers_us = UINT64_MAX;
	}
	at = now + sched_idle_us(s, now);
	sched_unlock(s);
	if (at < t->timers_us)
		t->timers_us = at;
	return t->timers_us - now;
}

/* The program sleeps for longer than a moment: so does this thread, and the program's end of the
 * wait wakes it (Dekker: the flag, fence, the state; see sched_app_wait_end). Who sets a timer
 * meanwhile, another thread that posts or the one that follows the interface, does not wake it:
 * where frames are lost, and timers matter, no sleep is longer than they may be late. */
static uint64_t sleep_long(struct rx_thread *t, uint64_t us)
{
	struct sched *s = t->s;

	if (sched_has_sockets(s) && us > TIMER_US)
		us = TIMER_US;
	atomic_store_explicit(&s->rx_sleeps_long, true, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	return signs_of_life(s) == t->seen_waits ? us : 1;
}

/* A thread sleeps on descriptors, was rung a while ago and has not come. It was taken out of the
 * sleep by a jump or its end; or a peer, which has the descriptor too, took the ring out of it. */
static bool is_deaf(struct rx_thread *t, uint64_t now)
{
	if (atomic_load_explicit(doorbell_of(t->s), memory_order_relaxed) == IO_ASLEEP_FD &&
	    !sockets_rang(t->s))
		t->rung_us = 0;
	else if (!t->rung_us)
		t->rung_us = now;
	return t->rung_us && now - t->rung_us >= WATCH_US;
}

/* The program does not do what the stack was left to it for. */
static bool is_neglected(struct rx_thread *t, unsigned waiter, uint64_t now)
{
	if (waiter == SCHED_WAITS)
		return is_deaf(t, now);
	t->rung_us = 0;
	return now - t->waits_us >= WATCH_US;
}

/* A thread of the program waits for frames by itself, or has just done so and comes back. */
static bool left_to_waiter(struct rx_thread *t, uint32_t handover)
{
	struct sched *s = t->s;
	unsigned waiter = atomic_load(&s->waiter);
	uint64_t now, us;
	uint32_t waits;

	if (waiter == SCHED_NO_WAITER)
		return false;
	now = sched_now_us(s);
	waits = signs_of_life(s);
	if (waits != t->seen_waits) {
		judge_absence(t, now - t->waits_us, now);
		t->seen_waits = waits;
		t->waits_us = now;
		t->rung_us = 0;
	}
	hold_again(t, now);
	if (is_neglected(t, waiter, now)) {
		judge_held(t, now);
		take_over(t, waiter, now);
		return false;
	}
	us = serve_timers(t, now);
	if (waiter == SCHED_WAITS && !t->rung_us && now - t->waits_us >= LOOK_US)
		us = sleep_long(t, us);
	else if (us > WATCH_US)
		us = WATCH_US;
	sched_futex_wait(&s->handover, handover, us);
	return true;
}

/* True: the program drives, and the thread has slept for a while. */
static bool left_to_program(struct rx_thread *t)
{
	struct sched *s = t->s;
	uint32_t handover = atomic_load_explicit(&s->handover, memory_order_acquire);

	if (left_to_waiter(t, handover))
		return true;
	if (!(s->model->app_alone ? app_drives_alone(t) : app_drives_steadily(t)))
		return false;
	t->drove_us = sched_now_us(s);
	/* Not on the doorbell: who rings it means the program's thread that sleeps there. */
	sched_futex_wait(&s->handover, handover, WATCH_US);
	return true;
}

static void *rx_main(void *arg)
{
	struct rx_thread t = { .s = arg, .nap_us = NAP_MIN_US, .timers_us = UINT64_MAX };
	struct sched *s = arg;
	char name[16];

	snprintf(name, sizeof(name), s->index ? "uwarp-rx%u" : "uwarp-rx", s->index);
	pthread_setname_np(pthread_self(), name);
	use_cpus_of_the_process();
	sched_ask_for_short_slices();
	go_above_the_program();
	while (!atomic_load_explicit(&s->stop, memory_order_acquire)) {
		unsigned frames = 0;

		if (left_to_program(&t))
			continue;
		if (sched_trylock(s)) {
			frames = sched_run(s);
			s->stats.drive_rx++;
			sched_unlock(s);
		}
		if (!frames) {
			idle(&t);
			continue;
		}
		t.idle_rounds = 0;
		t.nap_us = NAP_MIN_US;
		if (atomic_load_explicit(&s->waiters, memory_order_relaxed))
			sched_yield();
	}
	return NULL;
}

int sched_spawn(pthread_t *thread, void *(*fn)(void *), void *arg)
{
	sigset_t all, old;
	int err;

	/* The program's signals are for the program's threads. */
	sigfillset(&all);
	sigdelset(&all, SIGSEGV); /* base/guard.h: our own; blocked, they would kill */
	sigdelset(&all, SIGBUS);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	err = pthread_create(thread, NULL, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return -err;
}

int sched_thread_start(struct sched *s, bool peers_ring)
{
	s->peers_ring = peers_ring && !s->ops->sleep;
	return sched_spawn(&s->thread, rx_main, s);
}

void sched_hand_over(struct sched *s)
{
	atomic_fetch_add_explicit(&s->handover, 1, memory_order_release);
	sched_futex_wake(&s->handover);
}

void sched_thread_stop(struct sched *s)
{
	_Atomic uint32_t *bell = doorbell_of(s);

	atomic_store_explicit(&s->stop, true, memory_order_release);
	atomic_store(bell, IO_RUNG); /* a value that no thread waits for */
	sched_futex_wake(bell);
	sched_hand_over(s);
	if (s->ops->rouse)
		s->ops->rouse(s->stack);
	pthread_join(s->thread, NULL);
}
