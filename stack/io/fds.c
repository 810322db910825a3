/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/fds.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

/* As many descriptors as Linux allows a process by default (fs.nr_open). Memory that is not touched
 * costs nothing. */
#define FDS_MAX (1u << 20)
#define BITS	64u

/* How long fds_poll waits: if nothing comes, since a poll does not see that what it waits for was
 * closed; and if it cannot tell what comes. */
#define LONGEST_MS 1000
#define BLIND_MS   20

/* This thread has `lock`, or is about to take it: a signal handler on top of it that forks is not
 * to wait for it. */
static _Thread_local volatile bool inside;

/*
 * Fork handlers take no argument, so the set can only be one per process.
 *
 * Only fork waits for `lock`: fds_close may be called with a stack's lock held, and a fork holds
 * `lock` while it waits for the stacks' locks. A thread that finds `lock` taken leaves the
 * descriptor in `due`, and the thread that holds `lock` closes it. A thread does not try `lock`
 * while a fork waits for it: a mutex is not fair, and busy threads would keep the fork waiting for
 * seconds.
 */
static struct {
	pthread_mutex_t lock; /* no descriptor of ours is closed meanwhile */
	pthread_once_t once;
	_Atomic unsigned forks;		       /* forks that wait for the lock or hold it */
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

static bool try_lock(void)
{
	if (inside || atomic_load(&fds.forks))
		return false;
	inside = true;
	if (pthread_mutex_trylock(&fds.lock) == 0)
		return true;
	inside = false;
	return false;
}

static void unlock(void)
{
	pthread_mutex_unlock(&fds.lock);
	inside = false;
	atomic_thread_fence(memory_order_seq_cst);
}

/*
 * Close what is due unless another thread or a fork has the lock, which does it then. Sequentially
 * consistent: either the holder sees ndue after it has unlocked (a fork: after it has left
 * `forks`), or we find the lock free after ndue was set.
 */
static void try_close_due(void)
{
	while (atomic_load(&fds.ndue) && try_lock()) {
		close_due();
		unlock();
	}
}

static void before_fork(void)
{
	atomic_fetch_add(&fds.forks, 1);
	if (!inside)
		pthread_mutex_lock(&fds.lock);
}

static void in_parent(void)
{
	if (!inside)
		pthread_mutex_unlock(&fds.lock);
	atomic_fetch_sub(&fds.forks, 1);
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
	atomic_store(&fds.forks, 0);
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
	if (try_lock()) {
		close_kept(fd);
		unlock();
	} else {
		atomic_fetch_or(&fds.due[(unsigned)fd / BITS], bit_of(fd));
		atomic_fetch_add(&fds.ndue, 1);
	}
	try_close_due();
}

/* Files, pipes and sockets have a type, eventfds have none. */
static bool is_eventfd(int fd)
{
	struct stat st;

	return !fstat(fd, &st) && !(st.st_mode & S_IFMT);
}

bool fds_rung(int fd)
{
	uint64_t count;
	ssize_t n = is_eventfd(fd) ? read(fd, &count, sizeof(count)) : 0;

	return n == (ssize_t)sizeof(count) || (n < 0 && (errno == EAGAIN || errno == EINTR));
}

void fds_ring(int fd)
{
	if (is_eventfd(fd))
		eventfd_write(fd, 1);
}

bool fds_poll(struct pollfd *p, unsigned n, int ms)
{
	bool blind;

	if (poll(p, n, ms < 0 || ms > LONGEST_MS ? LONGEST_MS : ms) >= 0)
		return true;
	blind = errno != EINTR;
	for (unsigned i = 0; i < n; i++)
		p[i].revents = blind && p[i].fd >= 0 ? p[i].events : 0;
	if (blind)
		poll(NULL, 0, BLIND_MS);
	return false;
}
