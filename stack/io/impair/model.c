/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/impair/model.h"

#include <stdio.h>
#include <string.h>

#include "base/sum.h"

/* Preamble, FCS and inter-frame gap; the shortest frame without its FCS. */
#define WIRE_EXTRA 24u
#define FRAME_MIN  60u
#define ETH_LEN	   14u
#define VLAN_LEN   4u
#define NS	   1000000000ull

/* One for each decision about a frame. */
enum draw {
	DROP,
	BURST_STATE,
	BURST_DROP,
	REORDER,
	DUPLICATE,
	CORRUPT,
	WHERE,
	WITH,
	TRUNCATE,
	LENGTH,
	JITTER,
	DRAWS
};

void impair_init(struct impair *m, const struct impair_config *cfg)
{
	memset(m, 0, sizeof(*m));
	m->cfg = *cfg;
}

/* splitmix64 of the seed, the frame's number and the decision: no decision shifts another. */
static uint64_t draw(const struct impair *m, enum draw what)
{
	uint64_t z = m->cfg.seed * 0xd1342543de82ef95u +
		     (m->number * DRAWS + what + 1) * 0x9e3779b97f4a7c15u;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static bool chance(const struct impair *m, enum draw what, uint32_t of_one)
{
	return of_one && draw(m, what) % IMPAIR_ONE < of_one;
}

/* ---- losses ------------------------------------------------------------------------------ */

static bool in_blackout(const struct impair *m, uint64_t now)
{
	const struct impair_config *c = &m->cfg;
	uint64_t t = now - m->start_ns;

	if (!c->blackout_len_ns || t < c->blackout_at_ns)
		return false;
	t -= c->blackout_at_ns;
	if (c->blackout_every_ns)
		t %= c->blackout_every_ns;
	return t < c->blackout_len_ns;
}

static bool burst_takes(struct impair *m)
{
	if (chance(m, BURST_STATE, m->in_burst ? m->cfg.burst_end : m->cfg.burst_begin))
		m->in_burst = !m->in_burst;
	return m->in_burst && chance(m, BURST_DROP, m->cfg.burst_drop);
}

static bool too_big(const struct impair *m, uint32_t len, uint64_t now)
{
	const struct impair_config *c = &m->cfg;

	return c->mtu && len > ETH_LEN + c->mtu && now - m->start_ns >= c->mtu_at_ns;
}

/* IMPAIR_FRAMES: not lost so far. The burst's state goes on with every frame. */
static enum impair_event loss_of(struct impair *m, uint32_t len, uint64_t now)
{
	const struct impair_config *c = &m->cfg;
	bool burst = burst_takes(m);

	if (in_blackout(m, now))
		return IMPAIR_DROPPED_BLACKOUT;
	if (too_big(m, len, now))
		return IMPAIR_DROPPED_MTU;
	if (c->drop_nth && (m->number + 1) % c->drop_nth == 0)
		return IMPAIR_DROPPED_NTH;
	if (burst)
		return IMPAIR_DROPPED_BURST;
	return chance(m, DROP, c->drop) ? IMPAIR_DROPPED : IMPAIR_FRAMES;
}

/* ---- time -------------------------------------------------------------------------------- */

/* a * b / c without an overflow, for c up to 10^12 and results that fit. */
static uint64_t scaled(uint64_t a, uint64_t b, uint64_t c)
{
	return a / c * b + a % c * b / c;
}

/* Through the port and its queue: false if that is full. */
static bool through_port(struct impair *m, uint32_t len, uint64_t now, struct impair_copy *c)
{
	const struct impair_config *cfg = &m->cfg;
	uint32_t octets = (len < FRAME_MIN ? FRAME_MIN : len) + WIRE_EXTRA;
	uint64_t waiting;

	c->due_ns = now;
	if (!cfg->bps)
		return true;
	if (m->free_ns < now)
		m->free_ns = now;
	waiting = scaled(m->free_ns - now, cfg->bps / 8, NS);
	if (cfg->queue && waiting + len > cfg->queue)
		return false;
	c->mark = cfg->ecn && waiting > cfg->ecn;
	m->free_ns += octets * 8ull * NS / cfg->bps;
	c->due_ns = m->free_ns;
	return true;
}

static void along_the_path(struct impair *m, uint64_t now, struct impair_copy *c)
{
	const struct impair_config *cfg = &m->cfg;

	c->due_ns += cfg->delay_ns;
	if (cfg->jitter_ns)
		c->due_ns += draw(m, JITTER) % (cfg->jitter_ns + 1);
	if (c->due_ns < m->last_ns)
		c->due_ns = m->last_ns;
	m->count[IMPAIR_DELAYED] += c->due_ns > now;
	if (chance(m, REORDER, cfg->reorder)) {
		m->count[IMPAIR_REORDERED]++;
		c->due_ns += cfg->reorder_ns;
	} else {
		m->last_ns = c->due_ns;
	}
}

/* ---- damage ------------------------------------------------------------------------------ */

static void damage(struct impair *m, struct impair_copy *c)
{
	const struct impair_config *cfg = &m->cfg;

	if (c->len > IMPAIR_LEN_MIN && chance(m, TRUNCATE, cfg->truncate)) {
		m->count[IMPAIR_TRUNCATED]++;
		c->len = IMPAIR_LEN_MIN + (uint32_t)(draw(m, LENGTH) % (c->len - IMPAIR_LEN_MIN));
	}
	if (chance(m, CORRUPT, cfg->corrupt)) {
		m->count[IMPAIR_CORRUPTED]++;
		c->corrupt_at = (uint32_t)(draw(m, WHERE) % c->len);
		c->corrupt_with = (uint8_t)(1 + draw(m, WITH) % 255);
	}
}

static void decide(struct impair *m, uint32_t len, uint64_t now, struct impair_verdict *v)
{
	enum impair_event lost = loss_of(m, len, now);
	struct impair_copy *c = &v->copy[0];

	c->len = len;
	if (lost == IMPAIR_FRAMES && !through_port(m, len, now, c))
		lost = IMPAIR_DROPPED_QUEUE;
	if (lost != IMPAIR_FRAMES) {
		m->count[lost]++;
		return;
	}
	along_the_path(m, now, c);
	v->copies = 1;
	if (chance(m, DUPLICATE, m->cfg.duplicate)) {
		m->count[IMPAIR_DUPLICATED]++;
		v->copy[v->copies++] = *c;
	}
	damage(m, c);
}

void impair_decide(struct impair *m, uint32_t len, uint64_t now_ns, struct impair_verdict *v)
{
	memset(v, 0, sizeof(*v));
	if (!m->number)
		m->start_ns = now_ns;
	m->count[IMPAIR_FRAMES]++;
	decide(m, len, now_ns, v);
	m->number++;
}

bool impair_changes(const struct impair_copy *c, uint32_t len)
{
	return c->len != len || c->corrupt_with || c->mark;
}

/* RFC 3168, 5: 01 and 10 are ECN-capable, 11 is CE. The header checksum follows (RFC 1624, 3). */
static bool mark_ip4(uint8_t *ip)
{
	uint32_t was = (uint32_t)ip[0] << 8 | ip[1], sum = (uint32_t)ip[10] << 8 | ip[11];

	if (!(ip[1] & 3) || (ip[1] & 3) == 3)
		return false;
	ip[1] |= 3;
	sum = uw_sum_fold((~sum & 0xffff) + (~was & 0xffff) + ((uint32_t)ip[0] << 8 | ip[1]));
	ip[10] = (uint8_t)(~sum >> 8);
	ip[11] = (uint8_t)~sum;
	return true;
}

static bool mark_ip6(uint8_t *ip)
{
	if (!(ip[1] & 0x30) || (ip[1] & 0x30) == 0x30)
		return false;
	ip[1] |= 0x30;
	return true;
}

static bool mark(uint8_t *frame, uint32_t len)
{
	uint32_t at = ETH_LEN;
	unsigned type;

	if (len < ETH_LEN)
		return false;
	type = (unsigned)frame[12] << 8 | frame[13];
	if (type == 0x8100 && len >= ETH_LEN + VLAN_LEN) { /* IEEE 802.1Q */
		type = (unsigned)frame[16] << 8 | frame[17];
		at += VLAN_LEN;
	}
	if (type == 0x0800 && len >= at + 20)
		return mark_ip4(frame + at);
	return type == 0x86dd && len >= at + 40 && mark_ip6(frame + at);
}

void impair_change(struct impair *m, const struct impair_copy *c, uint8_t *frame)
{
	if (c->mark && mark(frame, c->len))
		m->count[IMPAIR_MARKED]++;
	if (c->corrupt_with)
		frame[c->corrupt_at] ^= c->corrupt_with;
}

/* ---- counters ---------------------------------------------------------------------------- */

const char *impair_event_name(enum impair_event e)
{
	static const char *const names[IMPAIR_EVENTS] = {
		[IMPAIR_FRAMES] = "frames",
		[IMPAIR_DROPPED] = "dropped",
		[IMPAIR_DROPPED_NTH] = "dropped_nth",
		[IMPAIR_DROPPED_BURST] = "dropped_burst",
		[IMPAIR_DROPPED_BLACKOUT] = "dropped_blackout",
		[IMPAIR_DROPPED_MTU] = "dropped_mtu",
		[IMPAIR_DROPPED_QUEUE] = "dropped_queue",
		[IMPAIR_DROPPED_ROOM] = "dropped_room",
		[IMPAIR_REORDERED] = "reordered",
		[IMPAIR_DUPLICATED] = "duplicated",
		[IMPAIR_CORRUPTED] = "corrupted",
		[IMPAIR_TRUNCATED] = "truncated",
		[IMPAIR_DELAYED] = "delayed",
		[IMPAIR_MARKED] = "marked",
	};

	return names[e];
}

unsigned impair_describe(const struct impair *m, char *out, unsigned size)
{
	unsigned at = 0;

	out[0] = 0;
	for (unsigned i = 0; i < IMPAIR_EVENTS; i++) {
		int n;

		if (!m->count[i])
			continue;
		n = snprintf(out + at, size - at, " %s %llu",
			     impair_event_name((enum impair_event)i),
			     (unsigned long long)m->count[i]);
		if (n < 0 || (unsigned)n >= size - at)
			break;
		at += (unsigned)n;
	}
	out[at] = 0;
	return at;
}
