/* SPDX-License-Identifier: BSD-3-Clause */
/* Who is a member of what, and when to say it. */
#include "io/member/member.h"

#include <string.h>

#include "io/member/message.h"

/* RFC 2236 §6, RFC 2710 §5: of the group of all hosts nobody tells, nor of one that no link carries
 * (scopes 0 and 1). */
static bool is_told(const struct uw_ip *group)
{
	static const uint8_t all6[16] = { 0xff, 2, [15] = 1 };
	static const uint8_t all4[4] = { 224, 0, 0, 1 };

	if (uw_ip_is_v4(group))
		return memcmp(group->b + 12, all4, 4) != 0;
	return (group->b[1] & 15) > 1 && memcmp(group->b, all6, 16) != 0;
}

static struct member *find(struct members *m, const struct uw_ip *group)
{
	for (unsigned i = 0; i < m->n; i++) {
		if (uw_ip_eq(&m->v[i].group, group))
			return &m->v[i];
	}
	return NULL;
}

bool member_join(struct members *m, const struct uw_ip *group, uint64_t now_us)
{
	if (!is_told(group) || find(m, group))
		return true;
	if (m->n == MEMBER_GROUPS)
		return false;
	m->v[m->n++] = (struct member){ .group = *group, .due_us = now_us, .again = true };
	return true;
}

bool member_leave(struct members *m, const struct uw_ip *group)
{
	struct member *g = find(m, group);

	if (!g)
		return false;
	*g = m->v[--m->n];
	return true;
}

/* Any time up to limit_us, so that not all members answer at once. */
static uint64_t some_time(const struct members *m, uint64_t limit_us)
{
	return (m->random(m->arg) * limit_us >> 32) + 1;
}

uint64_t member_next_us(const struct members *m)
{
	uint64_t next = UINT64_MAX;

	for (unsigned i = 0; i < m->n; i++) {
		if (m->v[i].due_us && m->v[i].due_us < next)
			next = m->v[i].due_us;
	}
	return next;
}

bool member_due(struct members *m, uint64_t now_us, struct uw_ip *group)
{
	for (unsigned i = 0; i < m->n; i++) {
		struct member *g = &m->v[i];

		if (!g->due_us || g->due_us > now_us)
			continue;
		g->due_us = g->again ? now_us + some_time(m, MEMBER_REPORT_US) : 0;
		g->again = false;
		*group = g->group;
		return true;
	}
	return false;
}

/* RFC 2236 §3, RFC 2710 §4: a timer that runs out sooner goes on. */
static void on_query(struct members *m, const struct member_message *q, uint64_t now_us)
{
	for (unsigned i = 0; i < m->n; i++) {
		struct member *g = &m->v[i];
		uint64_t at;

		if (uw_ip_is_v4(&g->group) != q->v4 ||
		    (!q->general && !uw_ip_eq(&g->group, &q->group)))
			continue;
		at = now_us + some_time(m, q->limit_us);
		if (!g->due_us || g->due_us > now_us + q->limit_us)
			g->due_us = at;
	}
}

bool member_read(struct members *m, const uint8_t *frame, size_t n, uint64_t now_us)
{
	struct member_message q;
	struct member *g;

	switch (member_message_read(frame, n, &q)) {
	case MEMBER_QUERY:
		on_query(m, &q, now_us);
		return true;
	case MEMBER_REPORT: /* RFC 2236 §3, RFC 2710 §4: one report is enough */
		g = find(m, &q.group);
		if (g)
			g->due_us = 0;
		return true;
	case MEMBER_OTHER:
		return true;
	default:
		return false;
	}
}
