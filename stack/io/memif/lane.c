/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <rte_ethdev.h>

#include "lane.h"

/*
 * A peer whose ring stays full this long is stopped or hung: its frames are dropped from then on
 * (TCP sends them again), so that it holds up nobody else. A descheduled peer is back sooner.
 */
#define STUCK_MS 50

/* One burst takes no more octets than a first-level cache holds. */
enum { RX_OCTETS = 16 << 10, RX_FEW = 4 };

/* ms, for ages only; the coarse clock costs no more than a read */
static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* --- the stash --- */

/* Room for n frames behind what is there, fewer if the stash is nearly full. */
static unsigned stash_room(struct lane_set *s, unsigned n)
{
	if (s->stash_at) {
		s->stash_end -= s->stash_at;
		memmove(s->stash, s->stash + s->stash_at, s->stash_end * sizeof(s->stash[0]));
		s->stash_at = 0;
	}
	return RTE_MIN(n, LANE_STASH - s->stash_end);
}

static void stash_put(struct lane_set *s, unsigned n)
{
	s->stash_end += n;
	s->stashed += n;
}

static unsigned stash_take(struct lane_set *s, struct io_frame **v, unsigned n)
{
	unsigned got = 0;

	while (got < n && s->stash_at < s->stash_end)
		v[got++] = s->stash[s->stash_at++];
	s->unstashed += got;
	return got;
}

bool lane_passed(const struct lane_set *s, uint64_t mark)
{
	return s->unstashed >= mark;
}

/* --- receiving --- */

static unsigned lane_take_in(struct lane_set *s, const struct lane *l, struct io_frame **v,
			     unsigned n)
{
	struct rte_mbuf *m[FRAME_BURST];
	unsigned got = rte_eth_rx_burst(l->port, l->queue, m, (uint16_t)n);

	for (unsigned i = 0; i < got; i++) {
		uint32_t len;

		v[i] = frame_from_mbuf(m[i], &len);
		s->link->stats.rx_bytes += len;
	}
	s->link->stats.rx_frames += got;
	return got;
}

/* Large frames few at a time: memif copies them, and whoever reads them finds them in the cache. */
static unsigned lane_poll(struct lane_set *s, const struct lane *l, struct io_frame **v, unsigned n)
{
	uint64_t full = s->link->stats.rx_bytes + RX_OCTETS;
	unsigned got = 0, more;

	if (!l->receives)
		return 0;
	do {
		more = lane_take_in(s, l, v + got, RTE_MIN(n - got, (unsigned)RX_FEW));
		got += more;
	} while (more == RX_FEW && got < n && s->link->stats.rx_bytes < full);
	return got;
}

static unsigned poll_all(struct lane_set *s, struct io_frame **v, unsigned n)
{
	unsigned got = 0;

	if (s->turn >= s->count)
		s->turn = 0;
	for (unsigned i = 0; i < s->count && got < n; i++) {
		unsigned at = s->turn + i < s->count ? s->turn + i : s->turn + i - s->count;

		got += lane_poll(s, &s->lane[at], v + got, n - got);
	}
	s->turn++;
	return got;
}

/* --- peers --- */

struct lane *lane_find(struct lane_set *s, uint32_t addr)
{
	for (unsigned i = 0; i < s->count; i++)
		if (s->lane[i].addr == addr)
			return &s->lane[i];
	return NULL;
}

void lane_add(struct lane_set *s, const struct lane *l)
{
	s->lane[s->count++] = *l;
}

void lane_prime(uint16_t port, uint16_t queue)
{
	struct rte_mbuf *m;

	if (rte_eth_rx_burst(port, queue, &m, 1))
		rte_pktmbuf_free(m); /* from a peer that did not wait for our READY */
}

static void queue_drop(struct lane_set *s, struct lane *l)
{
	s->link->stats.tx_drops += l->nheld;
	for (unsigned i = 0; i < l->nheld; i++)
		rte_pktmbuf_free(l->held[i]);
	l->nheld = 0;
}

bool lane_remove(struct lane_set *s, uint32_t addr, uint64_t *mark)
{
	struct lane *l = lane_find(s, addr);
	unsigned got;

	*mark = s->stashed;
	if (!l)
		return false;
	do {
		unsigned room = stash_room(s, FRAME_BURST);

		got = room ? lane_poll(s, l, s->stash + s->stash_end, room) : 0;
		stash_put(s, got);
	} while (got);
	*mark = s->stashed;
	queue_drop(s, l);
	*l = s->lane[--s->count];
	s->turn = 0;
	return true;
}

void lane_clear(struct lane_set *s)
{
	struct io_frame *f;
	uint64_t mark;

	while (s->count)
		lane_remove(s, s->lane[0].addr, &mark);
	while (stash_take(s, &f, 1))
		io_free_chain(f);
}

/* --- sending --- */

static bool was_asleep(_Atomic uint32_t *bell)
{
	if (atomic_load_explicit(bell, memory_order_relaxed) != IO_ASLEEP)
		return false;
	/* Of several that see it asleep, the one that swaps wakes. */
	return atomic_exchange_explicit(bell, IO_RUNG + (uint32_t)sched_getcpu(),
					memory_order_relaxed) == IO_ASLEEP;
}

bool lane_ring(_Atomic uint32_t *bell)
{
	if (!was_asleep(bell))
		return false;
	syscall(SYS_futex, bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	return true;
}

/* Under the stack lock. */
static void ring_peer(struct lane_set *s, const struct lane *l)
{
	const struct io_env *env = &s->link->env;

	if (!env->wake) {
		s->link->stats.rings += lane_ring(l->bell);
	} else if (was_asleep(l->bell)) {
		s->link->stats.rings++;
		env->wake(env->arg, l->bell);
	}
}

/* A ring that is full by what others send is not stuck as long as it moves. */
static unsigned lane_burst(struct lane *l)
{
	unsigned sent;

	if (!l->shared)
		return rte_eth_tx_burst(l->port, l->queue, l->held, (uint16_t)l->nheld);
	pthread_mutex_lock(&l->shared->lock);
	sent = rte_eth_tx_burst(l->port, l->queue, l->held, (uint16_t)l->nheld);
	l->shared->moved += sent > 0;
	if (l->moved != l->shared->moved)
		l->stuck_since = 0;
	l->moved = l->shared->moved;
	pthread_mutex_unlock(&l->shared->lock);
	return sent;
}

/* Move what is queued into the ring; true if anything went. */
static bool lane_flush(struct lane_set *s, struct lane *l)
{
	unsigned sent = lane_burst(l);

	if (sent) {
		l->stuck_since = 0;
		l->nheld -= sent;
		if (l->nheld)
			memmove(l->held, l->held + sent, l->nheld * sizeof(l->held[0]));
		return true;
	}
	if (!l->stuck_since)
		l->stuck_since = now_ms();
	else if (now_ms() - l->stuck_since > STUCK_MS)
		queue_drop(s, l);
	return false;
}

/* The peer behind a destination MAC that io_mac_of made. */
static struct lane *lane_of_mac(struct lane_set *s, const struct io_frame *f)
{
	uint32_t addr;

	if (f->len < FRAME_ETHER || f->data[0] != 0x02 || f->data[1] != 0x75)
		return NULL;
	memcpy(&addr, f->data + 2, sizeof(addr));
	return lane_find(s, addr);
}

/* Queue one frame for its peer. False: no room, the frame stays the caller's. */
static bool lane_take(struct lane_set *s, struct io_frame *f, uint64_t *touched)
{
	struct lane *l = lane_of_mac(s, f);
	uint32_t len = frame_len(f);

	if (!l || len > l->frame_max) {
		s->link->stats.tx_drops++;
		io_free_chain(f);
		return true;
	}
	if (l->nheld == LANE_QUEUE) {
		*touched |= lane_flush(s, l) ? UINT64_C(1) << (l - s->lane) : 0;
		if (l->nheld == LANE_QUEUE)
			return false;
	}
	l->held[l->nheld++] = frame_to_mbuf(f, len);
	*touched |= UINT64_C(1) << (l - s->lane);
	s->link->stats.tx_frames++;
	s->link->stats.tx_bytes += len;
	return true;
}

/* Sort the burst by peer first, so that each peer's ring and doorbell are touched once. */
unsigned lane_tx(struct lane_set *s, struct io_frame **v, unsigned n)
{
	uint64_t touched = 0;
	unsigned taken = 0;

	while (taken < n && lane_take(s, v[taken], &touched))
		taken++;
	if (taken < n)
		s->link->stats.tx_full++;
	if (!touched)
		return taken;

	for (unsigned i = 0; i < s->count; i++)
		if (touched >> i & 1 && s->lane[i].nheld)
			lane_flush(s, &s->lane[i]);
	/*
	 * Pairs with the fence between the sleeper's store of IO_ASLEEP and its look at the ring
	 * (pending): either it sees our frames or we see it asleep.
	 */
	atomic_thread_fence(memory_order_seq_cst);
	for (unsigned i = 0; i < s->count; i++)
		if (touched >> i & 1)
			ring_peer(s, &s->lane[i]);
	return taken;
}

/* --- the two together --- */

static void flush_queues(struct lane_set *s)
{
	bool moved = false;

	for (unsigned i = 0; i < s->count; i++)
		if (s->lane[i].nheld)
			moved |= lane_flush(s, &s->lane[i]);
	if (!moved)
		return;
	atomic_thread_fence(memory_order_seq_cst); /* as in lane_tx */
	for (unsigned i = 0; i < s->count; i++)
		ring_peer(s, &s->lane[i]);
}

unsigned lane_rx(struct lane_set *s, struct io_frame **v, unsigned n)
{
	n = RTE_MIN(n, (unsigned)FRAME_BURST);
	flush_queues(s);
	unsigned got = stash_take(s, v, n);
	return got + poll_all(s, v + got, n - got);
}

/* memif cannot be asked how much waits, so look by receiving. */
bool lane_pending(struct lane_set *s)
{
	if (s->stash_at < s->stash_end)
		return true;
	flush_queues(s);
	unsigned room = stash_room(s, FRAME_BURST);
	unsigned got = poll_all(s, s->stash + s->stash_end, room);
	stash_put(s, got);
	if (got)
		return true;
	for (unsigned i = 0; i < s->count; i++)
		if (s->lane[i].nheld) /* nobody rings when a full ring gets room */
			return true;
	return false;
}
