/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lane.h"

/*
 * A peer whose ring stays full this long is stopped or hung: its frames are dropped from then on
 * (TCP sends them again), so that it holds up nobody else. A descheduled peer is back sooner, on a
 * busy machine, too. Nobody sends a datagram again: those wait for longer, in the queues that they
 * were posted to, and hold up what is behind them there.
 */
enum { STUCK_MS = 500, DATAGRAM_MS = 3000 };

/* Most datagrams that wait behind TCP's frames: so many are lost with these. */
enum { BEHIND_MAX = LANE_QUEUE / 2 };

/* Who looks so seldom was not running itself, and neither was the peer perhaps. */
enum { GAP_MS = 50 };

/* One burst takes RX_FEW frames, and more as long as they are short: what was copied should still
 * be in the cache when it is read. */
enum { RX_OCTETS = 16 << 10, RX_FEW = 4 };

/* ms, for ages only; the coarse clock costs no more than a read */
static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* How long has the ring been full, as far as this process was there to see it? */
static uint64_t stuck_ms(struct lane *l)
{
	uint64_t now = now_ms();

	if (l->stuck_looked)
		l->stuck_ms += RTE_MIN(now - l->stuck_looked, (uint64_t)GAP_MS);
	l->stuck_looked = now;
	return l->stuck_ms;
}

static void not_stuck(struct lane *l)
{
	l->stuck_looked = l->stuck_ms = 0;
}

/* --- faults --- */

/* From here on nothing is read from the peer or written to it; the control thread ends it. */
static void lane_fail(struct lane_set *s, struct lane *l, const char *what)
{
	if (l->fault)
		return;
	l->fault = what;
	s->link->stats.peer_faults++;
	/* Pairs with the control thread's exchange: it sees what was written before. */
	atomic_store_explicit(s->faulty, true, memory_order_release);
	s->on_fault(s->arg);
}

const struct lane *lane_faulty(const struct lane_set *s)
{
	for (unsigned i = 0; i < s->count; i++)
		if (s->lane[i].fault)
			return &s->lane[i];
	return NULL;
}

/* --- receiving --- */

static struct io_frame *frame_for_rx(const struct frame_pools *p)
{
	return p->alone ? frame_take(p->rx, p->rx_cache) : frame_alloc(p->rx);
}

/* Frames wait in the ring as long as there is no buffer for them. */
static unsigned lane_poll(struct lane_set *s, struct lane *l, struct io_frame **v, unsigned n)
{
	const struct ring_slot *slot;
	uint32_t len, octets = 0;
	unsigned got = 0;

	while (got < n && (got < RX_FEW || octets < RX_OCTETS) && (slot = ring_look(&l->reader))) {
		if (ring_length(&l->reader, slot, &len) != RING_OK) {
			lane_fail(s, l, "a frame of a length that was not agreed");
			break;
		}
		struct io_frame *f = frame_for_rx(s->pools);
		if (!f) {
			s->link->stats.no_frame++;
			break;
		}
		if (ring_copy(&l->reader, slot, len, f->data) != RING_OK) {
			lane_fail(s, l, "a frame outside of the memory that it lends");
			io_free_chain(f);
			break;
		}
		f->len = len;
		ring_step(&l->reader);
		v[got++] = f;
		octets += len;
	}
	if (!got)
		return 0;
	ring_tell(&l->reader);
	s->link->stats.rx_bytes += octets;
	s->link->stats.rx_frames += got;
	return got;
}

static unsigned poll_all(struct lane_set *s, struct io_frame **v, unsigned n)
{
	unsigned got = 0;

	if (s->turn >= s->count)
		s->turn = 0;
	for (unsigned i = 0; i < s->count && got < n; i++) {
		unsigned at = s->turn + i < s->count ? s->turn + i : s->turn + i - s->count;
		struct lane *l = &s->lane[at];

		if (l->receives && !l->fault)
			got += lane_poll(s, l, v + got, n - got);
	}
	s->turn++;
	return got;
}

/* --- frames that are lent --- */

/* Of frames before number `until`, which may lie before `settled`: then there is nothing new. */
static void take_back(struct lane_set *s, struct lane_sender *to, uint32_t until)
{
	for (; to->nlent && (int32_t)(until - to->settled) > 0; to->settled++) {
		struct io_frame **f = &to->lent[to->settled & to->ring.mask];

		if (!*f)
			continue;
		io_free_chain(*f);
		*f = NULL;
		to->nlent--;
		s->nlent--;
	}
}

/* All of them, for good: the peer may read on in what we take from it here. */
static void take_all_back(struct lane_set *s, struct lane_sender *to)
{
	if (to->nlent && ring_see(&to->ring) == RING_OK)
		take_back(s, to, to->ring.seen);
	s->unread |= to->nlent > 0;
	take_back(s, to, to->ring.next);
}

/* What the peer has copied is ours alone again. */
static void settle(struct lane_set *s, struct lane *l)
{
	if (!l->sender || !l->sender->nlent || l->fault)
		return;
	if (ring_see(&l->sender->ring) != RING_OK)
		lane_fail(s, l, "that it took frames which were never sent");
	else
		take_back(s, l->sender, l->sender->ring.seen);
}

static void settle_all(struct lane_set *s)
{
	for (unsigned i = 0; s->nlent && i < s->count; i++)
		settle(s, &s->lane[i]);
}

/* Is this frame to be lent? *at: where it lies. Peers that take nothing hold half of the frames at
 * most. */
static bool may_lend(const struct lane_set *s, const struct lane_sender *to,
		     const struct io_frame *f, size_t *at)
{
	const struct frame_arena *a = &s->pools->arena;

	*at = (size_t)(f->data - a->base);
	return to->lent && a->base && !f->next && f->len >= RING_LEND_MIN && f->link == s->link &&
	       f->buf >= a->base && f->buf < a->base + a->size &&
	       frame_spare_tx(s->pools) > s->pools->ntx / 2;
}

static enum ring_result lend(struct lane_set *s, struct lane_sender *to, struct io_frame *f,
			     size_t at)
{
	uint32_t n = to->ring.next;
	enum ring_result r = ring_lend(&to->ring, f, at);

	if (r != RING_OK)
		return r;
	take_back(s, to, to->ring.seen);
	if (!to->nlent++)
		to->settled = n;
	s->nlent++;
	s->link->stats.tx_lent++;
	f->link->ops->ref(f);
	to->lent[n & to->ring.mask] = f;
	return r;
}

/* --- peers --- */

bool lane_set_open(struct lane_set *s)
{
	s->lane = calloc(LANE_MAX, sizeof(*s->lane));
	return s->lane;
}

void lane_set_close(struct lane_set *s)
{
	while (s->count)
		lane_remove(s, s->lane[0].addr);
	free(s->lane);
	s->lane = NULL;
}

static uint8_t *hint_of(struct lane_set *s, uint32_t addr)
{
	return &s->hint[(addr >> 24 ^ addr >> 16) % LANE_HINTS];
}

static struct lane *lane_find(struct lane_set *s, uint32_t addr)
{
	uint8_t *hint = hint_of(s, addr);

	if (*hint < s->count && s->lane[*hint].addr == addr)
		return &s->lane[*hint];
	for (unsigned i = 0; i < s->count; i++) {
		if (s->lane[i].addr != addr)
			continue;
		*hint = (uint8_t)i;
		return &s->lane[i];
	}
	return NULL;
}

void lane_add(struct lane_set *s, const struct lane *l)
{
	s->lane[s->count++] = *l;
}

/* The first n of those held are gone. */
static void held_went(struct lane_set *s, struct lane *l, unsigned n)
{
	l->nheld -= n;
	s->nheld -= n;
	l->went += n;
	if (l->nheld)
		memmove(l->held, l->held + n, l->nheld * sizeof(l->held[0]));
	else
		l->turn = l->went;
}

static void drop_held(struct lane_set *s, struct lane *l)
{
	s->link->stats.tx_drops += l->nheld;
	for (unsigned i = 0; i < l->nheld; i++)
		io_free_chain(l->held[i]);
	held_went(s, l, l->nheld);
}

bool lane_close_sender(struct lane_set *s, uint32_t addr)
{
	struct lane *l = lane_find(s, addr);

	if (!l || !l->sender)
		return false;
	drop_held(s, l);
	l->sender = NULL;
	return true;
}

bool lane_drained(struct lane_set *s, uint32_t addr)
{
	const struct lane *l = lane_find(s, addr);

	return !l || l->fault || !l->receives || !ring_look(&l->reader);
}

void lane_remove(struct lane_set *s, uint32_t addr)
{
	struct lane *l = lane_find(s, addr);

	if (!l)
		return;
	drop_held(s, l);
	if (l->lends)
		take_all_back(s, l->lends);
	*l = s->lane[--s->count];
	s->turn = 0;
}

/* --- waking --- */

bool lane_ring(const struct io_ring *ring)
{
	uint32_t was = doorbell_swap(ring->word);

	doorbell_wake(ring, was);
	return was != IO_AWAKE;
}

static void wake_peer(struct lane_set *s, const struct lane *l)
{
	const struct io_env *env = &s->link->env;
	uint32_t was;

	if (!env->wake) {
		s->link->stats.rings += lane_ring(&l->ring);
		return;
	}
	was = doorbell_swap(l->ring.word);
	if (was == IO_AWAKE)
		return;
	s->link->stats.rings++;
	env->wake(env->arg, &l->ring, was);
}

/*
 * The fence pairs with the one between the sleeper's store of IO_ASLEEP and its look at the ring
 * (pending): either it sees our frames or we see it asleep.
 */
static void wake_touched(struct lane_set *s)
{
	atomic_thread_fence(memory_order_seq_cst);
	for (unsigned i = 0; i < s->count; i++) {
		struct lane *l = &s->lane[i];

		if (l->touched && l->sender)
			wake_peer(s, l);
		l->touched = false;
	}
}

/* --- sending --- */

static enum ring_result write_shared(struct lane *l, const struct io_frame *f, uint32_t len)
{
	struct lane_sender *to = l->sender;

	pthread_mutex_lock(&to->lock);
	enum ring_result r = ring_write(&to->ring, f, len);
	to->moved += r == RING_OK;
	/* A ring that is full by what others send is not stuck as long as it moves. */
	if (l->moved != to->moved)
		not_stuck(l);
	l->moved = to->moved;
	pthread_mutex_unlock(&to->lock);
	return r;
}

static enum ring_result write_own(struct lane_set *s, struct lane *l, struct io_frame *f,
				  uint32_t len)
{
	size_t at;

	if (may_lend(s, l->sender, f, &at))
		return lend(s, l->sender, f, at);
	return ring_write(&l->sender->ring, f, len);
}

static enum ring_result lane_put(struct lane_set *s, struct lane *l, struct io_frame *f,
				 uint32_t len)
{
	enum ring_result r = l->sender->shared ? write_shared(l, f, len) : write_own(s, l, f, len);

	if (r == RING_FAULT)
		lane_fail(s, l, "that it took frames which were never sent");
	else if (r == RING_OK) {
		l->touched = true;
		not_stuck(l);
	}
	return r;
}

/* Write one frame, which is free then. NONE: there is no room, and it stays the caller's. */
static enum ring_result lane_write(struct lane_set *s, struct lane *l, struct io_frame *f,
				   uint32_t len)
{
	enum ring_result r = lane_put(s, l, f, len);

	if (r != RING_NONE)
		io_free_chain(f);
	return r;
}

/* Write what waits for room; true if anything went. */
static bool lane_flush(struct lane_set *s, struct lane *l)
{
	unsigned sent = 0;

	while (sent < l->nheld && !l->fault &&
	       lane_write(s, l, l->held[sent], frame_len(l->held[sent])) != RING_NONE)
		sent++;
	if (sent)
		held_went(s, l, sent);
	if (l->fault)
		drop_held(s, l);
	if (sent || !l->nheld)
		return sent;
	if (stuck_ms(l) > STUCK_MS)
		drop_held(s, l);
	return false;
}

static bool flush_lanes(struct lane_set *s)
{
	bool moved = false;

	for (unsigned i = 0; s->nheld && i < s->count; i++)
		if (s->lane[i].nheld)
			moved |= lane_flush(s, &s->lane[i]);
	return moved;
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

/* RFC 1112 §6.4, RFC 2464 §7 */
static bool is_for_group(const struct io_frame *f)
{
	return f->len >= FRAME_ETHER && ((f->data[0] == 0x01 && f->data[1] == 0x00) ||
					 (f->data[0] == 0x33 && f->data[1] == 0x33));
}

/* A copy for every peer that has room now; for the others it is lost, as on a network. */
static void lane_take_group(struct lane_set *s, struct io_frame *f)
{
	uint32_t len = frame_len(f);

	for (unsigned i = 0; i < s->count; i++) {
		struct lane *l = &s->lane[i];

		if (l->sender && !l->fault && len <= l->frame_max && !l->nheld &&
		    lane_put(s, l, f, len) == RING_OK)
			s->link->stats.tx_frames++;
		else
			s->link->stats.tx_drops++;
	}
	s->link->stats.tx_bytes += len;
	io_free_chain(f);
}

/* Send one frame or keep it until there is room. False: too many are kept, and the frame stays the
 * caller's. */
static bool lane_take(struct lane_set *s, struct io_frame *f)
{
	struct lane *l = lane_of_mac(s, f);
	uint32_t len = frame_len(f);

	if (!l && is_for_group(f)) {
		lane_take_group(s, f);
		return true;
	}
	if (!l || !l->sender || l->fault || len > l->frame_max) {
		s->link->stats.tx_drops++;
		io_free_chain(f);
		return true;
	}
	if (l->nheld == LANE_QUEUE && !lane_flush(s, l) && l->nheld == LANE_QUEUE)
		return false;
	if (l->nheld || lane_write(s, l, f, len) == RING_NONE) {
		l->held[l->nheld++] = f;
		s->nheld++;
	}
	s->link->stats.tx_frames++;
	s->link->stats.tx_bytes += len;
	return true;
}

/* The readers are woken once for the whole burst. */
unsigned lane_tx(struct lane_set *s, struct io_frame **v, unsigned n)
{
	unsigned taken = 0;

	while (taken < n && lane_take(s, v[taken]))
		taken++;
	if (taken < n)
		s->link->stats.tx_full++;
	flush_lanes(s);
	wake_touched(s);
	return taken;
}

void lane_flush_all(struct lane_set *s)
{
	if (flush_lanes(s))
		wake_touched(s);
}

/* --- datagrams --- */

static unsigned slots_seen(const struct ring_writer *w)
{
	return w->mask + 1 - (w->next - w->seen);
}

/* How many are free? The peer's count, which costs a cache miss, is read if it matters. */
static enum ring_result free_slots(struct lane *l, unsigned n, unsigned *slots)
{
	struct lane_sender *to = l->sender;
	enum ring_result r = RING_OK;

	if (to->shared)
		pthread_mutex_lock(&to->lock);
	if (slots_seen(&to->ring) <= n)
		r = ring_see(&to->ring);
	*slots = slots_seen(&to->ring);
	if (to->shared)
		pthread_mutex_unlock(&to->lock);
	return r;
}

/* Behind frames of TCP's that wait, and n more, a datagram waits, too, as long as these go on. TCP
 * may hold so many frames all the time: those that are there are waited for, not that there are
 * fewer. */
static bool may_join_held(struct lane *l, unsigned n)
{
	if (l->went >= l->turn) {
		l->behind = 0;
		l->turn = l->went + l->nheld + n + BEHIND_MAX;
	}
	if (l->behind == BEHIND_MAX)
		return false;
	l->behind++;
	return true;
}

static bool takes_more(struct lane_set *s, struct lane *l, unsigned n, uint64_t patience_ms)
{
	uint64_t stuck = 0;
	unsigned slots, most;

	if (!l->sender || l->fault)
		return true;
	if (free_slots(l, n, &slots) != RING_OK) {
		lane_fail(s, l, "that it took frames which were never sent");
		return true;
	}
	if (slots)
		not_stuck(l);
	else
		stuck = stuck_ms(l);
	/* The n may all be for others, and more than a ring has slots. */
	most = (l->sender->ring.mask + 1) / 2;
	if (l->nheld ? stuck < GAP_MS && may_join_held(l, n) : slots > RTE_MIN(n, most))
		return true;
	return stuck > patience_ms;
}

bool lane_has_room(struct lane_set *s, const struct uw_ip *to, unsigned n)
{
	struct lane *l;

	if (!uw_ip_is_multicast(to)) {
		l = lane_find(s, uw_ip_v4_be(to));
		return !l || takes_more(s, l, n, DATAGRAM_MS);
	}
	/* It may not even be a member that takes nothing. */
	for (unsigned i = 0; i < s->count; i++) {
		if (!s->lane[i].nheld && !takes_more(s, &s->lane[i], n, STUCK_MS))
			return false;
	}
	return true;
}

/* --- the two together --- */

unsigned lane_rx(struct lane_set *s, struct io_frame **v, unsigned n)
{
	settle_all(s);
	lane_flush_all(s);
	return poll_all(s, v, RTE_MIN(n, (unsigned)FRAME_BURST));
}

bool lane_pending(struct lane_set *s)
{
	lane_flush_all(s);
	for (unsigned i = 0; i < s->count; i++) {
		const struct lane *l = &s->lane[i];

		if (l->receives && !l->fault && ring_look(&l->reader))
			return true;
		if (l->nheld) /* nobody rings when a full ring gets room */
			return true;
	}
	return false;
}
