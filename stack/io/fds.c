/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/fds.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BITS 64u

/* fork handlers take no argument, so the set can only be one per process. */
static struct {
	pthread_mutex_t lock;
	pthread_once_t once;
	uint64_t *bits; /* by descriptor */
	unsigned words;
} kept = { .lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT };

static void before_fork(void)
{
	pthread_mutex_lock(&kept.lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&kept.lock);
}

static void in_child(void)
{
	for (unsigned i = 0; i < kept.words; i++) {
		for (; kept.bits[i]; kept.bits[i] &= kept.bits[i] - 1)
			close((int)(i * BITS) + __builtin_ctzll(kept.bits[i]));
	}
	pthread_mutex_unlock(&kept.lock);
}

static void watch_forks(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

static int grow(unsigned word)
{
	unsigned words = kept.words ? kept.words : 4;
	uint64_t *bits;

	while (words <= word)
		words *= 2;
	bits = realloc(kept.bits, words * sizeof(*bits));
	if (!bits)
		return -1;
	memset(bits + kept.words, 0, (words - kept.words) * sizeof(*bits));
	kept.bits = bits;
	kept.words = words;
	return 0;
}

int fds_keep(int fd)
{
	unsigned word = (unsigned)fd / BITS;

	if (fd < 0)
		return -1;
	pthread_once(&kept.once, watch_forks);
	pthread_mutex_lock(&kept.lock);
	if (word >= kept.words && grow(word)) {
		close(fd);
		fd = -1;
	} else {
		kept.bits[word] |= (uint64_t)1 << ((unsigned)fd % BITS);
	}
	pthread_mutex_unlock(&kept.lock);
	return fd;
}

void fds_close(int fd)
{
	uint64_t bit = (uint64_t)1 << ((unsigned)fd % BITS);
	unsigned word = (unsigned)fd / BITS;

	if (fd < 0)
		return;
	pthread_mutex_lock(&kept.lock);
	if (word < kept.words && kept.bits[word] & bit) {
		kept.bits[word] &= ~bit;
		close(fd);
	}
	pthread_mutex_unlock(&kept.lock);
}
