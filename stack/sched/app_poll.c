/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread of the program that polls an empty CQ runs the stack itself: the shortest way from a
 * frame to its completion, and one busy thread less (doc/adr/0003).
 */
#include "sched/run.h"

#include <sched.h>

#define ROUNDS_PER_CLOCK    16u	 /* the clock is read, and timers run, once in so many rounds */
#define EMPTY_TO_DRIVE	    4u	 /* empty polls in a row: the program waits by polling */
#define EMPTY_TO_YIELD	    64u	 /* ... and then yields now and then */
#define EMPTY_TO_YIELD_SOON 4u	 /* ... where another process has to run before anything comes */
#define EMPTY_TO_SLEEP	    512u /* at most: about the time that a wake-up takes */
#define MISSED_TO_WAIT	    64u	 /* looks in a row that found the stack locked */
#define BUSY_ROUND_US	    100u /* between two rounds, if each poll finds something */
#define SOON_US		    100u /* a sleep that ended so soon was not worth it */
#define NO_RING_US	    50u	 /* sleep no longer where no peer rings */
#define YIELD_SHARE	    16u	 /* of the time, at most, goes into yielding to others */

#define WAITED_US 10000u /* after a wait: polls are likely to end in one again */

static _Atomic uint32_t *doorbell_of(struct sched *s)
{
	return atomic_load_explicit(&s->doorbell, memory_order_acquire);
}

/* In a row, of whatever CQs, since this thread's last completion or since it last armed a CQ. */
static __thread unsigned empty_polls;

/* ---- making room for others ----------------------------------------------------------------- */

static __thread unsigned polls_to_sleep = EMPTY_TO_YIELD; /* empty polls before the thread sleeps */
static __thread uint64_t no_yield_us;			  /* until then */

/* A thread that was woken at once, from another CPU, had better gone on polling. */
static void adapt_polls_to_sleep(struct sched *s, uint64_t slept_us)
{
	uint32_t rung = atomic_load_explicit(doorbell_of(s), memory_order_relaxed);

	if (slept_us < SOON_US && rung >= IO_RUNG && rung - IO_RUNG != (uint32_t)sched_getcpu())
		polls_to_sleep =
			polls_to_sleep < EMPTY_TO_SLEEP ? polls_to_sleep * 2 : polls_to_sleep;
	else
		polls_to_sleep = EMPTY_TO_YIELD;
}

/* Another thread has the core for longer than a look takes: to yield again would cost a time slice
 * each time. A thread that sleeps on the doorbell is woken as soon as a frame comes. */
static void sleep_on_doorbell(struct sched *s, uint64_t now)
{
	_Atomic uint32_t *bell = doorbell_of(s);
	uint64_t us = s->peers_ring ? LOOK_US : NO_RING_US, due;
	bool any;

	atomic_fetch_add_explicit(&s->app_sleepers, 1, memory_order_relaxed);
	/* Dekker with who rings: frames, fence, the word */
	if (sched_say_asleep(s) && sched_trylock(s)) {
		any = sched_pending(s);
		due = sched_idle_us(s, now);
		s->stats.app_sleeps += !any;
		sched_unlock(s);
		if (!any) {
			sched_futex_wait(bell, IO_ASLEEP, due < us ? due : us);
			adapt_polls_to_sleep(s, sched_now_us(s) - now);
		}
	}
	atomic_fetch_sub_explicit(&s->app_sleepers, 1, memory_order_relaxed);
}

static void yield(struct sched *s, uint64_t now)
{
	uint64_t after;

	sched_yield();
	after = sched_now_us(s);
	if (after - now > LONG_YIELD_US)
		no_yield_us = after + YIELD_SHARE * (after - now);
}

/* Whoever moves our frames has this CPU only while we leave it alone. To yield does not do: the
 * kernel shares the CPU out by time, so who has nothing to do has to burn as much as who has. */
static bool mover_is_here(const struct sched *s)
{
	return s->mover_cpu && atomic_load_explicit(s->mover_cpu, memory_order_relaxed) ==
				       1 + (uint32_t)sched_getcpu();
}

static void yield_or_sleep(struct sched *s, bool may_sleep)
{
	uint64_t now = sched_now_us(s);

	if (may_sleep && mover_is_here(s))
		sleep_on_doorbell(s, now);
	else if (now >= no_yield_us)
		yield(s, now);
	else if (may_sleep && empty_polls % polls_to_sleep == 0)
		sleep_on_doorbell(s, now);
}

/* The RX thread runs the stack, and may need this core. Where a yield costs a time slice, it gets
 * the core by preemption. */
static void yield_to_rx_thread(struct sched *s)
{
	uint64_t now = sched_now_us(s);

	if (now >= no_yield_us)
		yield(s, now);
}

/* ---- driving ------------------------------------------------------------------------------ */

/* Under the lock. Returns how many frames there were. */
static uint32_t run_once(struct sched *s)
{
	uint32_t rounds, frames;

	/* Reading the clock costs as much as looking for frames. */
	if (++s->stats.drive_app % ROUNDS_PER_CLOCK == 0)
		sched_run_timers(s);
	sched_send_held(s);
	rounds = atomic_load_explicit(&s->app_rounds, memory_order_relaxed);
	frames = s->ops->run(s->stack, sched_app_comes_back(s));
	atomic_store_explicit(&s->app_rounds, rounds + 1 + frames, memory_order_relaxed);
	return frames;
}

static bool is_time_for_clock(void)
{
	return empty_polls % ROUNDS_PER_CLOCK == EMPTY_TO_DRIVE;
}

/* A program that has waited for frames, and polls now: the RX thread is to judge it as any that
 * polls, and to receive for it where it does so with pauses. Where peers ring that is no gain. One
 * that polls for a moment before each wait (rsockets) goes on as one that waits: the RX thread
 * would be called to the transport and away again with each message. (doc/adr/0075) */
static void stop_waiting(struct sched *s)
{
	unsigned away = SCHED_AWAY;

	if (!sched_has_sockets(s) || !is_time_for_clock() ||
	    atomic_load_explicit(&s->waiter, memory_order_relaxed) != SCHED_AWAY)
		return;
	/* Another thread may note a later time than ours. */
	if (sched_now_us(s) >=
	    atomic_load_explicit(&s->waited_us, memory_order_relaxed) + WAITED_US)
		atomic_compare_exchange_strong(&s->waiter, &away, SCHED_NO_WAITER);
}

/* The program evidently waits by polling: peers need not ring. */
static void say_awake(struct sched *s)
{
	_Atomic uint32_t *bell = doorbell_of(s);

	stop_waiting(s);
	if (!atomic_load_explicit(&s->app_drives, memory_order_relaxed))
		atomic_store_explicit(&s->app_drives, true, memory_order_release);
	uint32_t asleep = IO_ASLEEP;

	if (atomic_load_explicit(bell, memory_order_relaxed) != IO_ASLEEP ||
	    !atomic_compare_exchange_strong_explicit(bell, &asleep, IO_AWAKE, memory_order_relaxed,
						     memory_order_relaxed))
		return;
	/* If the program stops without a word, only the RX thread notices: it must not sleep long.
	 */
	if (atomic_exchange_explicit(&s->rx_sleeps_long, false, memory_order_relaxed))
		sched_futex_wake(bell);
	else
		sched_end_doze(s);
}

/* Threads that wait leave the stack to it (sched_app_wait_begin). */
static void note_poller(struct sched *s)
{
	if (!is_time_for_clock())
		return;
	atomic_store_explicit(&s->polled_us, sched_now_us(s), memory_order_relaxed);
	atomic_store_explicit(&s->poller, (uint64_t)pthread_self(), memory_order_relaxed);
}

static bool is_time_to_yield(const struct sched *s)
{
	return !(s->mover_cpu ? empty_polls % EMPTY_TO_YIELD_SOON : empty_polls % EMPTY_TO_YIELD);
}

/* Whoever holds the lock for so long may have lost this very core to us. A thread that sleeps for
 * the lock gives it back at once, and one that polls at the end of its time slice. Under the lock
 * if it returns true. */
static bool lock_to_look(struct sched *s)
{
	static __thread unsigned missed;

	if (sched_trylock(s)) {
		missed = 0;
		return true;
	}
	if (++missed < MISSED_TO_WAIT)
		return false;
	missed = 0;
	if (!sched_lock_within(s, LOOK_US))
		return false;
	s->stats.lock_waits++;
	return true;
}

void sched_app_poll(struct sched *s, enum sched_poll how)
{
	uint32_t frames = 0;

	if (!atomic_load_explicit(&s->started, memory_order_acquire))
		return;
	if (!s->model->polls_drive) {
		yield_to_rx_thread(s);
		return;
	}
	if (lock_to_look(s)) {
		frames = run_once(s);
		sched_unlock(s);
	}
	empty_polls = how == SCHED_POLL_FIRST ? 1 : empty_polls + 1;
	if (empty_polls < EMPTY_TO_DRIVE && !s->model->app_alone)
		return;
	say_awake(s);
	note_poller(s);
	if (!frames && is_time_to_yield(s))
		yield_or_sleep(s, how != SCHED_POLL_OTHER);
}

static bool app_is_trusted(struct sched *s)
{
	return s->model->app_alone ||
	       atomic_load_explicit(&s->app_drives_steadily, memory_order_relaxed);
}

/* Peers have to ring again, and what came in between is looked at once more (Dekker with the
 * ringing peer: frames, fence, the word). */
static void stop_driving(struct sched *s)
{
	bool any;

	atomic_store_explicit(&s->app_drives, false, memory_order_release);
	sched_say_asleep(s);
	if (!sched_trylock_or_ask(s))
		return;
	any = sched_pending(s);
	if (any)
		sched_run(s);
	sched_unlock(s);
}

/* It comes back to wait for frames by itself, and the RX thread watches that. */
static bool waits_by_itself(struct sched *s)
{
	if (atomic_load_explicit(&s->waiter, memory_order_relaxed) != SCHED_AWAY)
		return false;
	atomic_store_explicit(&s->app_drives, false, memory_order_release);
	return true;
}

/* Polls in a row that found something, BUSY_ROUND_US apart, and with short posts between. */
static __thread unsigned finds;

/* Polls that find something receive nothing by themselves. A program that posts to many QPs has
 * hardly any other: it drives all the same, and the RX thread would only be in its way. Where peers
 * ring it is not worth the clock. (doc/adr/0071) */
static bool drives_while_busy(struct sched *s)
{
	static __thread uint64_t last_us;
	static __thread uint32_t last_posts;
	uint32_t posts;
	uint64_t now;

	if (!sched_has_sockets(s) || !s->model->polls_drive || sched_is_one_of_several(s) ||
	    atomic_load_explicit(&s->waiter, memory_order_relaxed) != SCHED_NO_WAITER)
		return false;
	now = sched_now_us(s);
	if (now - last_us < BUSY_ROUND_US)
		return finds >= EMPTY_TO_DRIVE;
	posts = atomic_load_explicit(&s->app_posts, memory_order_relaxed);
	finds = now - last_us < WATCH_US && posts != last_posts ? finds + 1 : 0;
	last_us = now;
	last_posts = posts;
	if (finds < EMPTY_TO_DRIVE)
		return false;
	if (sched_trylock(s)) {
		run_once(s);
		sched_unlock(s);
	}
	say_awake(s);
	return true;
}

/* A program that is trusted comes back at once; if not, the RX thread notices within WATCH_US. */
void sched_app_busy(struct sched *s)
{
	if (drives_while_busy(s))
		return;
	if (atomic_load_explicit(&s->app_drives, memory_order_relaxed) && !app_is_trusted(s) &&
	    !waits_by_itself(s))
		stop_driving(s);
}

/* A program that waits for events finds its CQs empty before it arms them and once more after that,
 * and with two CQs (brpc has one for Sends and one for receives) that is as often as one that polls
 * does. Nobody else may then wait for frames, though it goes away. */
static void end_polling(struct sched *s)
{
	uint64_t self = (uint64_t)pthread_self();

	finds = 0;
	empty_polls = 0;
	if (atomic_load_explicit(&s->poller, memory_order_relaxed) == self)
		atomic_compare_exchange_strong(&s->poller, &self, 0);
}

void sched_app_sleep(struct sched *s)
{
	bool trusted = app_is_trusted(s);

	end_polling(s);
	if (!atomic_load_explicit(&s->app_drives, memory_order_relaxed) || waits_by_itself(s))
		return;
	stop_driving(s);
	if (trusted)
		sched_hand_over(s);
	/* Where no peer rings, the RX thread has to go and wait in the transport. */
	if (s->ops->sleep)
		sched_futex_wake(doorbell_of(s));
}
