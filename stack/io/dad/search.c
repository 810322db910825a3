/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/dad/search.h"

#include <string.h>
#include <time.h>

#include "base/clock.h"

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

/* True: somebody answered within the time. */
static bool hear(const struct dad_search *s, uint64_t us, struct dad_conflict *who)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };
	const uint64_t start = uw_clock_us();

	do {
		nanosleep(&pause, NULL);
		if (look(s, who))
			return true;
	} while (uw_clock_us() - start < us);
	return false;
}

/* Each probe is given its time from when it left, so a process that gets no CPU sends all of them,
 * too. */
uw_status dad_search_run(const struct dad_search *s, struct dad_conflict *who)
{
	const uint64_t each = s->ms * 1000ull / DAD_PROBES;

	for (unsigned i = 0; i < DAD_PROBES; i++) {
		ask(s);
		if (!each)
			return UW_OK;
		if (hear(s, each, who))
			return UW_E_ADDR_IN_USE;
	}
	return UW_OK;
}
