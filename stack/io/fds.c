/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/fds.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <unistd.h>

/* As many descriptors as Linux allows a process by default (fs.nr_open). Memory that is not touched
 * costs nothing. */
#define FDS_MAX (1u << 20)
#define BITS	64u

/*
 * Fork handlers take no argument, so the set can only be one per process.
 *
 * Nobody waits for `lock` but fork itself: fds_close may be called with a stack's lock held, and a
 * fork holds `lock` while it waits for those of the stacks. Whoever finds it taken leaves the
 * descriptor in `due`, and whoever has it closes what it finds there.
 */
static struct {
	pthread_mutex_t lock; /* no descriptor of ours is closed meanwhile */
	pthread_once_t once;
	_Atomic uint64_t kept[FDS_MAX / BITS]; /* open, by number */
	_Atomic uint64_t due[FDS_MAX / BITS];  /* of these, to be closed */
	_Atomic unsigned ndue;
	_Atomic unsigned words; /* no bit is set behind so many */
} fds = { .lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT };

static uint64_t bit_of(int fd)
{
	return (uint64_t)1 << ((unsigned)fd % BITS);
}

/* With the lock held. The bit goes first, as the number may be somebody else's right after. */
static void close_kept(int fd)
{
	atomic_fetch_and(&fds.kept[(unsigned)fd / BITS], ~bit_of(fd));
	close(fd);
}

/* With the lock held. */
static void close_due(void)
{
	unsigned words = atomic_load(&fds.words);

	for (unsigned i = 0; i < words && atomic_load(&fds.ndue); i++) {
		uint64_t bits = atomic_exchange(&fds.due[i], 0);

		for (; bits; bits &= bits - 1) {
			close_kept((int)(i * BITS) + __builtin_ctzll(bits));
			atomic_fetch_sub(&fds.ndue, 1);
		}
	}
}

/*
 * Close what is due unless somebody else has the lock, who does it then. Sequentially consistent:
 * either the holder sees ndue after it has unlocked, or we find the lock free after ndue was set.
 */
static void try_close_due(void)
{
	while (atomic_load(&fds.ndue) && pthread_mutex_trylock(&fds.lock) == 0) {
		close_due();
		pthread_mutex_unlock(&fds.lock);
		atomic_thread_fence(memory_order_seq_cst);
	}
}

static void before_fork(void)
{
	pthread_mutex_lock(&fds.lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&fds.lock);
	atomic_thread_fence(memory_order_seq_cst);
	try_close_due();
}

static void in_child(void)
{
	for (unsigned i = 0; i < atomic_load(&fds.words); i++) {
		uint64_t bits = atomic_exchange(&fds.kept[i], 0);

		for (; bits; bits &= bits - 1)
			close((int)(i * BITS) + __builtin_ctzll(bits));
		atomic_store(&fds.due[i], 0);
	}
	atomic_store(&fds.ndue, 0);
	pthread_mutex_unlock(&fds.lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

int fds_keep(int fd)
{
	unsigned word = (unsigned)fd / BITS;

	if (fd < 0)
		return -1;
	pthread_once(&fds.once, watch_forks);
	if ((unsigned)fd >= FDS_MAX) {
		close(fd);
		return -1;
	}
	unsigned words = atomic_load(&fds.words);
	while (words <= word && !atomic_compare_exchange_weak(&fds.words, &words, word + 1))
		;
	atomic_fetch_or(&fds.kept[word], bit_of(fd));
	return fd;
}

void fds_close(int fd)
{
	/* A forked child has none of its parent's: the number may be the program's by now. */
	if (fd < 0 || (unsigned)fd >= FDS_MAX ||
	    !(atomic_load(&fds.kept[(unsigned)fd / BITS]) & bit_of(fd)))
		return;
	if (pthread_mutex_trylock(&fds.lock) == 0) {
		close_kept(fd);
		pthread_mutex_unlock(&fds.lock);
		atomic_thread_fence(memory_order_seq_cst);
	} else {
		atomic_fetch_or(&fds.due[(unsigned)fd / BITS], bit_of(fd));
		atomic_fetch_add(&fds.ndue, 1);
	}
	try_close_due();
}
