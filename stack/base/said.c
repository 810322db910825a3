/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/said.h"

#include <stddef.h>

static bool is_old(const struct said_line *l, uint64_t now_us)
{
	return now_us >= l->until_us;
}

/* Where the line is, or a place for it. NULL: there is none. */
static struct said_line *find(struct said *s, uint64_t who, uint64_t what, uint64_t now_us)
{
	struct said_line *room = NULL;

	for (unsigned i = 0; i < SAID_LINES; i++) {
		struct said_line *l = &s->line[i];

		if (is_old(l, now_us))
			room = l;
		else if (l->who == who && l->what == what)
			return l;
	}
	return room;
}

bool said_may(struct said *s, uint64_t who, uint64_t what, uint64_t now_us)
{
	struct said_line *l;
	bool may;

	spin_lock(&s->lock);
	l = find(s, who, what, now_us);
	may = l && is_old(l, now_us);
	if (may)
		*l = (struct said_line){ who, what, now_us + SAID_US };
	spin_unlock(&s->lock);
	return may;
}

void said_forget(struct said *s, uint64_t who)
{
	spin_lock(&s->lock);
	for (unsigned i = 0; i < SAID_LINES; i++) {
		if (s->line[i].who == who)
			s->line[i].until_us = 0;
	}
	spin_unlock(&s->lock);
}
