/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who runs a stack, and when. A stack is one instance of TCP with its links and connections. This
 * room has its lock, its post ring, its receive thread (RX thread) and the rules by which threads
 * of the program do the stack's work themselves. It knows nothing of connections: what there is to
 * do it asks of struct sched_ops, which the rooms above install.
 *
 * Lock order: a stack lock first, then the spin locks of queues (CQ, SQ, RQ, SRQ). A thread that
 * holds one stack lock never takes another, except sched_lock_all(), which takes all of a process
 * in the order of their index. Callbacks to the program run under the stack lock.
 */
#ifndef UWARP_SCHED_SCHED_H
#define UWARP_SCHED_SCHED_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/doorbell.h"
#include "base/stats.h"
#include "uwarp/uwarp.h"

#define SCHED_WAKES    8u
#define SCHED_DEFERRED 8u

struct sched;

/* What there is to do for a stack. `stack` is struct sched.stack. All but the last two run under
 * the stack lock unless their line says otherwise. */
struct sched_ops {
	/* Take in frames, send what waits, acknowledge, hand frames to the links. Returns the
	 * number of frames taken in. */
	unsigned (*run)(void *stack);
	/* Hand the frames that are queued for the links to them. */
	void (*flush)(void *stack);
	/* Run the timers that are due. */
	void (*timers)(void *stack, uint64_t now_us);
	/* Would run() find something? True also if it cannot be known. links false: other than on
	 * the links; then it may be asked without the lock. */
	bool (*pending)(void *stack, bool links);
	/* When the next timer is due, in microseconds of the stack's clock; UINT64_MAX: none is
	 * set. */
	uint64_t (*next_timer_us)(void *stack, uint64_t now_us);
	/* Wait until something comes, at most `us` microseconds, or until rouse(). NULL: the RX
	 * thread sleeps on the doorbell. No lock held. */
	void (*sleep)(void *stack, uint64_t us);
	/* End sleep(). Any thread, no lock needed. NULL together with sleep. */
	void (*rouse)(void *stack);
};

/* Who may do a stack's work (doc/adr/0010). */
struct thread_model {
	bool posts_inline; /* a post sends if the stack lock is free; else every post goes on the
			      ring */
	bool polls_drive;  /* a poll of an empty CQ runs the stack once */
	bool app_alone;	   /* while the program polls, the RX thread does not run the stack */
};

/* The model that the configuration names. Never NULL. */
const struct thread_model *sched_thread_model(enum uw_threads t);

/*
 * A queue that has something new for its stack: a QP's requests, or receives that a connection
 * waits for. Whoever does not get the stack lock leaves it on the post ring.
 */
struct ring_entry {
	_Atomic bool queued; /* it is on a post ring; an entry is on one at most once */
	struct ring_entry *next;
	/* Called under the lock of `home`. It may not take another stack's lock. */
	void (*fn)(struct ring_entry *);
	_Atomic(struct sched *) home; /* changes under the locks of all stacks only */
};

/* Called when the stack lock was let go: sched_defer(). */
struct deferred {
	void (*fn)(void *arg);
	void *arg;
};

enum sched_lock_state {
	SCHED_FREE,
	SCHED_TAKEN,
	SCHED_WANTED, /* taken, and a thread may sleep until it is free: a futex */
};

struct sched {
	/* Constant from sched_init() on. */
	const struct sched_ops *ops;
	void *stack;
	const struct thread_model *model;
	struct sched *first, *next; /* the stacks of a process, in the order of their index */
	unsigned index;
	uint64_t (*now_us)(void *arg); /* monotonic */
	void *now_arg;

	/* The stack lock. A word and not a mutex: every post and every poll takes it, nearly always
	 * without a rival, and that is one instruction then. */
	_Atomic uint32_t lock;	  /* enum sched_lock_state */
	_Atomic unsigned waiters; /* threads that wait for the lock */
	_Atomic bool look; /* a thread about to sleep wants the lock's holder to look for frames */
	int cancel_state;  /* under the lock: the holder's, before it took the lock */
	_Atomic(struct ring_entry *)
		ring; /* the post ring: a stack of entries; any thread pushes */

	/* Under the stack lock. */
	_Atomic uint32_t *wakes[SCHED_WAKES]; /* peers to wake when the lock is free */
	unsigned n_wakes;
	struct deferred deferred[SCHED_DEFERRED];
	unsigned n_deferred;
	uint64_t next_timer_us; /* timers run no more often than TIMER_US */
	struct uw_stats stats;	/* every room counts here, under the lock */

	/* The RX thread. */
	pthread_t thread;
	_Atomic bool started, stop;
	/* The word that the RX thread and sleeping programs wait on: the link's, which peers can
	 * see, or own_doorbell. Written under the lock; the memory behind it stays mapped. */
	_Atomic(_Atomic uint32_t *) doorbell;
	_Atomic uint32_t own_doorbell;
	bool peers_ring;	     /* every link has peers that ring; constant while started */
	_Atomic bool rx_sleeps_long; /* the RX thread may not look for longer than LOOK_US */

	/* Threads of the program that poll CQs. Written by them, judged by the RX thread; every
	 * value is a hint, so relaxed unless the code names a pair. */
	_Atomic bool app_drives;	  /* one looked at an empty CQ a few times in a row */
	_Atomic bool app_drives_steadily; /* ... and does little else; written by the RX thread */
	_Atomic uint32_t app_rounds;	  /* rounds that it ran, and frames that they found */
	_Atomic unsigned app_sleepers; /* threads that polled in vain and sleep on the doorbell */
	_Atomic uint32_t handover;     /* a futex: counts up when the program stops driving */
	_Atomic uint32_t post_cpu;     /* the CPU of the program's last post */
};

/* ---- lock.c: the stack lock --------------------------------------------------------------- */

/* s is all zero but for what the caller set: stack, ops, model, first, next, index, clock. */
void sched_init(struct sched *s);

/* Thread cancellation (pthread_cancel) is off while a thread holds a stack lock: the stack's system
 * calls are cancellation points, and a thread that ended there would keep the lock for ever. */
void sched_lock(struct sched *s);
bool sched_trylock(struct sched *s);
/* False: it was not to be had within so many microseconds. */
bool sched_lock_within(struct sched *s, uint32_t us);
/* Before sleeping, with the doorbell word set: if false, the holder of the lock looks for frames.
 */
bool sched_trylock_or_ask(struct sched *s);
/* Empties the post ring first. Peers are woken and deferred calls made once the lock is free. */
void sched_unlock(struct sched *s);

/* The locks of all stacks of s's process, in their order. */
void sched_lock_all(struct sched *s);
/* Flushes every stack's links, too. */
void sched_unlock_all(struct sched *s);

static inline bool sched_is_one_of_several(const struct sched *s)
{
	return s->first->next != NULL;
}

static inline uint64_t sched_now_us(const struct sched *s)
{
	return s->now_us(s->now_arg);
}

/* After fork, in the child, with the locks of all stacks held since before it: no thread but the
 * caller's exists. The locks are free afterwards, and `nothing` is all that the stacks have to do.
 */
void sched_after_fork(struct sched *first, const struct sched_ops *nothing);

/* ---- wake.c: wake-ups --------------------------------------------------------------------- */

/* Any thread, no lock needed: there is something to do that no link tells of. */
void sched_wake(struct sched *s);
void sched_futex_wake(_Atomic uint32_t *word);
void sched_futex_wait(_Atomic uint32_t *word, uint32_t expect, uint64_t us);
/* Under the lock: wake a sleeper of another process when the lock is free. Who is woken may take
 * this very core, and would keep the lock from everybody for that long. */
void sched_wake_peer(struct sched *s, _Atomic uint32_t *bell);
/* Under the lock: wake those now. */
void sched_wake_peers(struct sched *s);
/* Under the lock: call fn(arg) when it is free. False: too many wait already; nothing was kept. */
bool sched_defer(struct sched *s, void (*fn)(void *arg), void *arg);

/* ---- post_ring.c: work for a stack from threads without its lock ---------------------------- */

/* r's queue has something new: see to it at once if the lock is free, else leave it on the ring.
 * Any thread without a stack lock. */
void sched_post(struct ring_entry *r);
/* The same in two steps, for threads that hold a stack lock or may name r only for a moment: r goes
 * on the ring of its home, which is returned; then that ring is seen to. Any thread. */
struct sched *sched_push(struct ring_entry *r);
/* ... without a stack lock: at once, if the lock of s is free. */
void sched_kick(struct sched *s);
/* ... with one, whichever it is: by whoever has or takes the lock of s. */
void sched_kick_later(struct sched *s);
/* Under the lock: call fn of every entry. */
void sched_drain(struct sched *s);
/* Under all locks: afterwards no entry that was on a ring before is on one. */
void sched_drain_all(struct sched *first);
/* Under all locks, when nobody posts r any more: afterwards it is on no ring. fn may be called once
 * more before, and so may those of others. */
void sched_forget(struct ring_entry *r);

static inline bool sched_ring_empty(const struct sched *s)
{
	return !atomic_load_explicit(&s->ring, memory_order_acquire);
}

/* ---- run.c: one round --------------------------------------------------------------------- */

/* Under the lock: the timers that are due, then ops->run(). Returns the number of frames taken in.
 */
unsigned sched_run(struct sched *s);
void sched_run_timers(struct sched *s);
/* Under the lock: is there something to do? */
bool sched_pending(struct sched *s);
/* Under the lock: how long nothing is due, from now_us on, in microseconds. */
uint64_t sched_idle_us(struct sched *s, uint64_t now_us);

/* ---- rx_thread.c -------------------------------------------------------------------------- */

/* Start a thread that takes none of the program's signals. 0 or a negative errno. */
int sched_spawn(pthread_t *thread, void *(*fn)(void *), void *arg);
/* Start the RX thread; peers_ring as in struct sched. 0 or a negative errno. */
int sched_thread_start(struct sched *s, bool peers_ring);
void sched_thread_stop(struct sched *s);

/* ---- app_poll.c: threads of the program run the stack -------------------------------------- */

/* A thread of the program found its CQ empty. again: it found the same CQ empty before. */
void sched_app_poll(struct sched *s, bool again);
/* It found a completion. */
void sched_app_busy(struct sched *s);
/* It is about to sleep until a completion comes: the RX thread takes over. */
void sched_app_sleep(struct sched *s);

#endif
