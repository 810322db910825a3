/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/dad/search.h"

#include <string.h>
#include <time.h>

enum { BURST = 32, LOOK_NS = 5000000 };

void dad_send(struct io_link *l, const uint8_t *frame, size_t n)
{
	struct io_frame *f = l->ops->alloc(l);

	if (!f)
		return;
	memcpy(f->data, frame, n);
	f->len = (uint32_t)n;
	if (!l->ops->tx(l, &f, 1))
		l->ops->free(f);
}

static void ask(const struct dad_search *s)
{
	struct io_link *l = s->link[0];
	uint8_t frame[DAD_FRAME];
	size_t n;

	s->lock(s->arg, 0);
	for (unsigned i = 0; (n = dad_probe(l, i, frame)); i++)
		dad_send(l, frame, n);
	s->unlock(s->arg, 0);
}

/* True: the burst had something about us. All frames are dropped. */
static bool look_at(struct io_link *l, const struct io_link *ours, struct dad_conflict *who)
{
	struct io_frame *v[BURST];
	unsigned n = l->ops->rx(l, v, BURST);
	bool found = false;

	for (unsigned i = 0; i < n; i++) {
		found = found || dad_read(ours, v[i]->data, v[i]->len, true, who);
		io_free_chain(v[i]);
	}
	return found;
}

static bool look(const struct dad_search *s, struct dad_conflict *who)
{
	bool found = false;

	for (unsigned i = 0; i < s->n && !found; i++) {
		s->lock(s->arg, i);
		found = look_at(s->link[i], s->link[0], who);
		s->unlock(s->arg, i);
	}
	return found;
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

uw_status dad_search_run(const struct dad_search *s, struct dad_conflict *who)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	const uint64_t start = now_us(), all = s->ms * 1000ull;
	unsigned asked = 0;

	do {
		if (now_us() - start >= asked * all / DAD_PROBES && asked < DAD_PROBES) {
			ask(s);
			asked++;
		}
		if (!all)
			return UW_OK;
		nanosleep(&pause, NULL);
		if (look(s, who))
			return UW_E_ADDR_IN_USE;
	} while (now_us() - start < all);
	return UW_OK;
}
