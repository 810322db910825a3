/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/route/pmtu.h"

#define WAYS 4u /* places that an address may have */

void pmtu_init(struct pmtu_table *t)
{
	*t = (struct pmtu_table){ .least = UINT32_MAX, .until_us = UINT64_MAX };
}

static unsigned first_place(const struct uw_ip *to)
{
	return (unsigned)(uw_ip_hash(to) >> 32) % (PMTU_PATHS / WAYS) * WAYS;
}

static bool is_free(const struct pmtu_path *p)
{
	return !p->mtu;
}

const struct pmtu_path *pmtu_find(const struct pmtu_table *t, const struct uw_ip *to)
{
	const struct pmtu_path *p = &t->path[first_place(to)];

	if (!t->n)
		return NULL;
	for (unsigned i = 0; i < WAYS; i++) {
		if (!is_free(&p[i]) && uw_ip_eq(&p[i].to, to))
			return &p[i];
	}
	return NULL;
}

static void summarize(struct pmtu_table *t)
{
	t->n = 0;
	t->least = UINT32_MAX;
	t->until_us = UINT64_MAX;
	for (unsigned i = 0; i < PMTU_PATHS; i++) {
		const struct pmtu_path *p = &t->path[i];

		if (is_free(p))
			continue;
		t->n++;
		if (p->mtu < t->least)
			t->least = p->mtu;
		if (p->until_us < t->until_us)
			t->until_us = p->until_us;
	}
}

static struct pmtu_path *place_for(struct pmtu_table *t, const struct uw_ip *to)
{
	struct pmtu_path *p = &t->path[first_place(to)], *oldest = p;

	for (unsigned i = 0; i < WAYS; i++) {
		if (!is_free(&p[i]) && uw_ip_eq(&p[i].to, to))
			return &p[i];
	}
	for (unsigned i = 0; i < WAYS; i++) {
		if (is_free(&p[i]))
			return &p[i];
		if (p[i].until_us < oldest->until_us)
			oldest = &p[i];
	}
	return oldest;
}

void pmtu_set(struct pmtu_table *t, const struct uw_ip *to, uint32_t mtu, uint64_t now_us)
{
	bool v4 = uw_ip_is_v4(to);
	uint32_t least = v4 ? PMTU_MIN_4 : PMTU_MIN_6;

	*place_for(t, to) = (struct pmtu_path){ .to = *to,
						.mtu = mtu < least ? least : mtu,
						.until_us = now_us + PMTU_LIFE_US,
						.fragment = v4 && mtu < least };
	summarize(t);
}

bool pmtu_expire(struct pmtu_table *t, uint64_t now_us)
{
	if (now_us < t->until_us)
		return false;
	for (unsigned i = 0; i < PMTU_PATHS; i++) {
		struct pmtu_path *p = &t->path[i];

		if (!is_free(p) && p->until_us <= now_us)
			*p = (struct pmtu_path){ 0 };
	}
	summarize(t);
	return true;
}

uint32_t pmtu_below(uint32_t mtu, bool v4)
{
	/* without those that only one kind of old network has; 1280: tunnels and IPv6 */
	static const uint32_t sizes[] = { 32000, 17914, 8166, 4352,	 2002,
					  1492,	 1280,	1006, PMTU_MIN_4 };
	uint32_t least = v4 ? PMTU_MIN_4 : PMTU_MIN_6;

	for (unsigned i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		if (sizes[i] < mtu)
			return sizes[i] < least ? least : sizes[i];
	}
	return least;
}

/* ---- guesses ------------------------------------------------------------------------------- */

static struct pmtu_path *entry_of(struct pmtu_table *t, const struct uw_ip *to)
{
	struct pmtu_path *p = &t->path[first_place(to)];

	for (unsigned i = 0; i < WAYS; i++) {
		if (!is_free(&p[i]) && uw_ip_eq(&p[i].to, to))
			return &p[i];
	}
	return NULL;
}

static void enter(struct pmtu_table *t, struct pmtu_path *p, enum pmtu_state state, uint32_t mtu,
		  uint64_t now_us)
{
	p->state = state;
	p->mtu = mtu;
	p->since_us = now_us;
	p->until_us = now_us + PMTU_LIFE_US;
	summarize(t);
}

/* Did longer packets vanish before, and is it one of them again? */
static bool is_again(const struct pmtu_path *p, uint32_t octets)
{
	return p && p->state == PMTU_TRIED && octets > p->passed;
}

/* The next size below what vanished; the size that went through if it is the same again. */
static uint32_t next_guess(const struct pmtu_path *p, uint32_t lost, bool v4)
{
	return is_again(p, lost) ? p->passed : pmtu_below(lost, v4);
}

uint32_t pmtu_guess(struct pmtu_table *t, const struct uw_ip *to, uint32_t mtu, uint32_t octets,
		    uint64_t now_us)
{
	struct pmtu_path *p = entry_of(t, to);
	uint32_t lost = octets < mtu ? octets : mtu; /* a longer one went in pieces */
	uint32_t next = next_guess(p, lost, uw_ip_is_v4(to));
	bool again = is_again(p, lost);

	if (p && p->state == PMTU_GUESSED)
		p->again = false; /* this size vanishes, too */
	if (next >= lost)
		return mtu;
	if (!p || p->state == PMTU_KNOWN) {
		bool told = p;

		pmtu_set(t, to, next, now_us);
		p = entry_of(t, to);
		p->before = mtu;
		p->told = told;
	}
	p->again = again;
	p->lost = lost;
	enter(t, p, PMTU_GUESSED, next, now_us);
	return p->mtu;
}

/* Back to what it was before the guess. */
static void forget_guess(struct pmtu_table *t, struct pmtu_path *p, uint64_t now_us)
{
	bool told = p->told;

	if (told)
		enter(t, p, PMTU_KNOWN, p->before, now_us);
	else
		*p = (struct pmtu_path){ 0 };
	summarize(t);
}

/* The guess was wrong if it is as long as what vanished. Shorter ones may fit where those do not.
 */
static void went_through(struct pmtu_table *t, struct pmtu_path *p, uint32_t octets,
			 uint64_t now_us)
{
	if (octets >= p->lost)
		forget_guess(t, p, now_us);
	else if (octets > p->passed)
		p->passed = octets;
}

bool pmtu_acked(struct pmtu_table *t, const struct uw_ip *to, const struct pmtu_packet *p,
		uint64_t now_us)
{
	struct pmtu_path *at = entry_of(t, to);

	if (!at || at->state == PMTU_KNOWN || p->sent_us < at->since_us)
		return false;
	if (at->state == PMTU_TRIED) {
		if (p->once)
			went_through(t, at, p->octets, now_us);
		return false;
	}
	if (p->octets < at->mtu)
		return false;
	if (at->again) {
		enter(t, at, PMTU_KNOWN, at->mtu, now_us);
		return false;
	}
	at->passed = at->mtu;
	enter(t, at, PMTU_TRIED, at->before, now_us);
	return true;
}
