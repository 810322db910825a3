/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides which thread runs a stack, and when. A stack is one instance of TCP with its links and
 * connections. This room has the stack's lock, its post ring, its receive thread (RX thread), and
 * the rules by which threads of the program run the stack themselves. Connections are unknown here:
 * the work of a stack is behind struct sched_ops, which the rooms above provide.
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
#include "sched/after.h"
#include "uwarp/uwarp.h"

struct sched;

/* The work of a stack. `stack` is struct sched.stack. All but the last two run under the stack lock
 * unless their comment says otherwise. */
struct sched_ops {
	/* Take in frames, send waiting octets, send ACKs, hand frames to the links. Returns the
	 * number of frames taken in. comes_back: a thread of the program runs it, which calls again
	 * soon; should it not, the RX thread does within 2 * WATCH_US. */
	unsigned (*run)(void *stack, bool comes_back);
	/* Hand queued frames to the links. */
	void (*flush)(void *stack);
	/* Run the timers that are due. */
	void (*timers)(void *stack, uint64_t now_us);
	/* Would run() find work? May be true by mistake. links false: ignore the links; in that
	 * case the caller need not have the lock. */
	bool (*pending)(void *stack, bool links);
	/* When the next timer is due, in microseconds of the stack's clock; UINT64_MAX: none is
	 * set. */
	uint64_t (*next_timer_us)(void *stack, uint64_t now_us);
	/* Wait until there is work, at most `us` microseconds, or until rouse(). NULL: the RX
	 * thread sleeps on the doorbell. No lock held. */
	void (*sleep)(void *stack, uint64_t us);
	/* End sleep(). Any thread, no lock needed. NULL together with sleep. */
	void (*rouse)(void *stack);
};

/* Which threads may do the work of a stack (doc/adr/0010). */
struct thread_model {
	/* a post sends if the stack lock is free; false: every post uses the ring */
	bool posts_inline;
	bool polls_drive; /* a poll of an empty CQ runs the stack once */
	bool app_alone;	  /* while the program polls, the RX thread does not run the stack */
};

/* The model that the configuration names. Never NULL. */
const struct thread_model *sched_thread_model(enum uw_threads t);

/* A queue with new entries for its stack: requests of a QP, or receives that a connection waits
 * for. A thread that does not get the stack lock puts the entry on the post ring. */
struct ring_entry {
	_Atomic bool queued; /* the entry is on a post ring; on one at most once */
	struct ring_entry *next;
	/* Called under the lock of `home`. fn must not take the lock of another stack. */
	void (*fn)(struct ring_entry *);
	_Atomic(struct sched *) home; /* changes under the locks of all stacks only */
};

/* How a thread of the program can wait for a stack's frames. */
struct sched_link {
	bool able; /* false: it cannot; the rest is not valid then */
	/* readable: the doorbell was rung, or (all but the first) frames came; -1: none */
	int fd[UW_WAIT_FDS];
	struct io_ring ring; /* of the stack's doorbell */
};

/* Who waits for frames in poll() or the like: */
enum sched_waiter {
	SCHED_NO_WAITER, /* nobody; the doorbell belongs to the RX thread */
	SCHED_WAITS,	 /* a thread of the program; it is rung on descriptors */
	SCHED_AWAY,	 /* a thread did and is expected back soon; the RX thread watches */
};

/* The lock's word: free, or its holder, perhaps with a bit: a thread may sleep (futex) until it is
 * free. */
#define SCHED_FREE   ((uint64_t)0)
#define SCHED_WANTED ((uint64_t)1)

struct sched {
	/* The next fields are constant from sched_init() on. */
	const struct sched_ops *ops;
	void *stack;
	const struct thread_model *model;
	struct sched *first, *next; /* the stacks of a process, in the order of their index */
	unsigned index;
	uint64_t (*now_us)(void *arg); /* monotonic */
	void *now_arg;

	/* The stack lock: a word and not a mutex, since every post and every poll takes the lock,
	 * nearly always without contention, and then needs one instruction. */
	_Atomic uint64_t lock;	  /* pthread_self() of the holder, SCHED_WANTED */
	_Atomic unsigned waiters; /* threads that wait for the lock */
	_Atomic bool look; /* a thread about to sleep wants the lock's holder to look for frames */
	/* under the lock: the cancellation state of the holder before it took the lock */
	int cancel_state;
	_Atomic(struct ring_entry *)
		ring; /* the post ring: a stack of entries; any thread pushes */
	/* hold.c: what is on the post ring and waits for more; cleared under the lock */
	_Atomic uint32_t held;
	_Atomic bool no_hold;	 /* written by the RX thread */
	_Atomic uint64_t row_us; /* when a thread last posted while another waited for frames */

	/* The next fields are under the stack lock. */
	struct after after;	/* what is to be done when the lock is free */
	struct after_row row;	/* and what is to be called in its order */
	uint64_t next_timer_us; /* when timers run next; at most once in TIMER_US */
	struct uw_stats stats;	/* counters of all rooms, written under the lock */

	/* The RX thread. */
	pthread_t thread;
	_Atomic bool started, stop;
	/* The word that the RX thread and sleeping programs wait on: the doorbell of the link,
	 * which peers can see, or own_doorbell. Written under the lock (release), read by any
	 * thread (acquire); the memory stays mapped. */
	_Atomic(_Atomic uint32_t *) doorbell;
	_Atomic uint32_t own_doorbell;
	/* IO_YIELD: io_link.mover_cpu; else NULL. Constant while started. */
	const _Atomic uint32_t *mover_cpu;
	struct sched_link wait; /* constant while started */
	bool peers_ring;	/* the peers of every link ring; constant while started */
	/* Frames may wait inside a link (io_ops.due_ns); constant while started. */
	bool frames_wait;
	_Atomic bool rx_sleeps_long; /* the RX thread may sleep for longer than LOOK_US */
	_Atomic bool rx_dozes;	     /* it sleeps on the doorbell, or is about to */
	/* it sleeps in ops->sleep, or is about to: see sched_app_wait_begin */
	_Atomic bool rx_in_transport;

	/* Threads of the program that poll CQs. Written by those threads, evaluated by the RX
	 * thread. The values are hints, so relaxed unless the code names a pair. */
	_Atomic bool app_drives; /* a thread found an empty CQ a few times in a row */
	/* ... and does so without pause; written by the RX thread */
	_Atomic bool app_drives_steadily;
	/* rounds that those threads ran, plus frames that the rounds found */
	_Atomic uint32_t app_rounds;
	_Atomic uint32_t app_posts;    /* short posts of the program */
	_Atomic unsigned app_sleepers; /* threads that polled in vain and sleep on the doorbell */
	_Atomic uint32_t handover;     /* a futex: counts up when the program stops driving */
	_Atomic uint32_t post_cpu;     /* the CPU of the program's last post */
	/* which of them (pthread_self) last found its CQ empty a few times in a row, and when */
	_Atomic uint64_t poller, polled_us;

	/* Threads of the program that wait in poll() or the like. */
	_Atomic unsigned waiter;	 /* enum sched_waiter */
	_Atomic(const void *) waiter_id; /* the thread that waits */
	_Atomic uint32_t waits;		 /* counts their rounds, and begins and ends of sleeps */
	_Atomic uint64_t waited_us;	 /* when one last began or ended to wait */
	_Atomic uint64_t wait_doubt_us;	 /* until then threads wait for completions alone */
	_Atomic unsigned plain_waits;	 /* threads that do so */
};

/* ---- lock.c: the stack lock --------------------------------------------------------------- */

/* Initialise s, which is all zero except the fields set by the caller: stack, ops, model, first,
 * next, index, clock. */
void sched_init(struct sched *s);

/* Take the stack lock. Thread cancellation (pthread_cancel) is off while a thread holds a stack
 * lock: the stack makes system calls that are cancellation points, and a cancelled thread would
 * never release the lock. */
void sched_lock(struct sched *s);
bool sched_trylock(struct sched *s);
/* False: the lock was not free within `us` microseconds. */
bool sched_lock_within(struct sched *s, uint32_t us);
/* For a thread that is about to sleep and has set the doorbell to IO_ASLEEP. False: another thread
 * holds the lock, and will look for frames before it releases the lock. */
bool sched_trylock_or_ask(struct sched *s);
/* Release the lock, after draining the post ring. Then wake peers and make deferred calls. */
void sched_unlock(struct sched *s);

/* Take the locks of all stacks of the process of s, in the order of their index. */
void sched_lock_all(struct sched *s);
/* For fork(). False: this thread holds one of them, so it is in a signal handler on top of the
 * stack; nothing was taken then. */
bool sched_lock_all_to_fork(struct sched *s);
/* Release the locks of all stacks, after flushing their links. */
void sched_unlock_all(struct sched *s);

static inline bool sched_is_one_of_several(const struct sched *s)
{
	return s->first->next != NULL;
}

static inline uint64_t sched_now_us(const struct sched *s)
{
	return s->now_us(s->now_arg);
}

/* In a forked child, after a fork with the locks of all stacks held: release the locks, and replace
 * the ops of all stacks by `nothing`. Only the calling thread exists. */
void sched_after_fork(struct sched *first, const struct sched_ops *nothing);

/* ---- wake.c: wake-ups --------------------------------------------------------------------- */

/* Any thread, no lock needed: there is work that did not come by a link; wake a thread. */
void sched_wake(struct sched *s);
void sched_futex_wake(_Atomic uint32_t *word);
void sched_futex_wait(_Atomic uint32_t *word, uint32_t expect, uint64_t us);
/* Under the lock: wake another process once the lock is free; its doorbell was swapped, and said
 * `was`. At once would be bad: the kernel may run the woken process on this very core while we hold
 * the lock. */
void sched_wake_peer(struct sched *s, const struct io_ring *ring, uint32_t was);
/* Under the lock: ring the doorbells of sched_wake_peer now. */
void sched_wake_peers(struct sched *s);
/* Under the lock: call fn(arg) once the lock is free. False: too many calls are deferred already;
 * fn will not be called. */
bool sched_defer(struct sched *s, void (*fn)(void *arg), void *arg);
/* The same for a short fn that calls nothing of the stack, in the order of these calls. If many
 * wait already, they are made at once, under the lock. False: another thread is at them. */
bool sched_defer_in_row(struct sched *s, void (*fn)(void *arg), void *arg);

/* ---- hold.c: posts in a row (doc/adr/0071, doc/adr/0072) ---------------------------------- */

/* Does sched_post_octets() differ from sched_post()? Where each frame costs a system call. */
bool sched_wants_octets(const struct sched *s);
/* sched_post() of requests of so many octets. They may wait on the post ring for the program's next
 * ones, until it polls or waits: see sched_may_hold(). Any thread without a stack lock. */
void sched_post_octets(struct ring_entry *r, uint32_t octets);
/* Is a post left to the thread that waits for frames (sched_app_wait_begin)? Not the first in a
 * while: each call notes the time. Any thread, before each post. */
bool sched_waiter_sends(struct sched *s);
/* Under the lock, by a thread of the program that is about to receive: send what was held. */
void sched_send_held(struct sched *s);

/* ---- post_ring.c: work for a stack from threads without its lock ---------------------------- */

/* The queue of r has new entries: handle them at once if the lock is free, else put r on the post
 * ring. Any thread without a stack lock. */
void sched_post(struct ring_entry *r);
/* sched_post in two steps, for threads that hold a stack lock or may use r only for a moment. Step
 * 1: put r on the post ring of its home, which is returned. Any thread. */
struct sched *sched_push(struct ring_entry *r);
/* Step 2 without a stack lock held: drain the post ring of s at once if its lock is free. */
void sched_kick(struct sched *s);
/* Step 2 with any stack lock held: the thread that has or next takes the lock of s drains the ring.
 */
void sched_kick_later(struct sched *s);
/* Under the lock: call fn of every entry on the post ring. */
void sched_drain(struct sched *s);
/* Under all locks: drain the post rings of all stacks. Afterwards no ring has an entry that was
 * there before the call. */
void sched_drain_all(struct sched *first);
/* Under all locks, when no thread posts r any more: take r off its ring. This may call fn of r and
 * of other entries. */
void sched_forget(struct ring_entry *r);

static inline bool sched_ring_empty(const struct sched *s)
{
	return !atomic_load_explicit(&s->ring, memory_order_acquire);
}

/* ---- run.c: one round --------------------------------------------------------------------- */

/* Under the lock: run the due timers, then ops->run(). Returns the number of frames taken in. */
unsigned sched_run(struct sched *s);
void sched_run_timers(struct sched *s);
/* Under the lock: is there work? */
bool sched_pending(struct sched *s);
/* Under the lock: microseconds from now_us until the next timer, 1 to MAX_SLEEP_US. */
uint64_t sched_idle_us(struct sched *s, uint64_t now_us);

/* ---- rx_thread.c -------------------------------------------------------------------------- */

/* Start a thread with all signals blocked. 0 or a negative errno. */
int sched_spawn(pthread_t *thread, void *(*fn)(void *), void *arg);
/* Let the calling thread run soon after each wake-up, in short time slices (sched_setattr(2)). */
void sched_ask_for_short_slices(void);
/* Start the RX thread; peers_ring as in struct sched. 0 or a negative errno. */
int sched_thread_start(struct sched *s, bool peers_ring);
void sched_thread_stop(struct sched *s);

/* ---- app_poll.c: threads of the program run the stack -------------------------------------- */

/* A thread of the program found a CQ empty: */
enum sched_poll {
	SCHED_POLL_FIRST, /* for the first time since a completion */
	SCHED_POLL_AGAIN, /* so was this one the last time */
	/* so was another one. Such a program may poll shared memory and other things as well, whose
	 * news end no sleep of ours. */
	SCHED_POLL_OTHER,
};
void sched_app_poll(struct sched *s, enum sched_poll how);
/* A thread of the program found a completion. */
void sched_app_busy(struct sched *s);
/* A thread of the program is about to sleep until a completion comes: the RX thread takes over. */
void sched_app_sleep(struct sched *s);

/* ---- app_wait.c: threads of the program that wait in poll() or the like (doc/adr/0030) --------
 */

/* May threads of the program wait for frames of this stack? */
bool sched_app_can_wait(struct sched *s);
/* See uw_wait_elsewhere. */
bool sched_app_waits_elsewhere(struct sched *s);
/* Run the stack until an event comes, as long as that is worth while and at most limit_us. */
void sched_app_look(struct sched *s, struct uw_wait *w, uint64_t limit_us);
/* See uw_wait_begin. UW_WAIT_PLAINLY: another thread waits for frames. */
enum uw_wait_how sched_app_wait_begin(struct sched *s, struct uw_wait *w);
void sched_app_wait_end(struct sched *s);
/* The program goes on. */
void sched_app_wait_done(struct sched *s, const struct uw_wait *w);
/* A thread waits for completions alone, or (off) does so no longer. */
void sched_app_waits_plainly(struct sched *s, bool on);

#endif
