/* SPDX-License-Identifier: BSD-3-Clause */
/* A thread of uwarp-btree run: keeps its window full, and judges what comes back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "clock.h"
#include "log.h"
#include "values.h"

#define WRONG_MAX 10u

static unsigned link_of(const struct bench_worker *w, uint64_t number)
{
	return w->client.links > 1 && number >= w->balance.split;
}

static uint64_t own(const struct bench_worker *w, uint64_t number)
{
	uint64_t mine = number - number % w->options->common.threads + w->writer;

	return mine < w->bench->keys.n ? mine : w->writer;
}

/* ---- beginning operations ---------------------------------------------------------------- */

/* What had been acknowledged of these keys before they are asked for. */
static void remember(struct bench_worker *w, struct bench_slot *s, uint64_t number, unsigned keys)
{
	s->number = number;
	s->keys = keys;
	s->link = link_of(w, number);
	for (unsigned i = 0; w->bench->line && i < keys; i++)
		s->oldest[i] = w->bench->line[number + i].acked;
}

static int begin_get(struct bench_worker *w, unsigned slot, uint64_t number)
{
	w->slot[slot].type = MAIL_GET;
	remember(w, &w->slot[slot], number, 1);
	return btree_get(&w->client, slot, w->slot[slot].link, btree_key(number));
}

/* As many keys as are at the same server. */
static int begin_scan(struct bench_worker *w, unsigned slot, uint64_t number)
{
	unsigned link = link_of(w, number), keys = w->options->scan;
	uint64_t end = w->client.links > 1 && !link ? w->balance.split : w->bench->all;
	struct page_item from_until;

	keys = end - number < keys ? (unsigned)(end - number) : keys;
	w->slot[slot].type = MAIL_SCAN;
	remember(w, &w->slot[slot], number, keys);
	from_until = (struct page_item){ btree_key(number), btree_key(number + keys) - 1 };
	return btree_scan(&w->client, slot, link, &from_until, keys);
}

static int begin_write(struct bench_worker *w, unsigned slot, uint64_t number)
{
	struct bench *b = w->bench;
	struct bench_slot *s = &w->slot[slot];

	s->number = number;
	s->type = MAIL_PUT;
	s->write = b->line ? ++b->line[number].tried : 1;
	if (b->busy)
		b->busy[number] = true;
	if (b->line && is_delete(w->options, number, s->write)) {
		s->type = MAIL_DELETE;
		return btree_delete(&w->client, slot, link_of(w, number), btree_key(number));
	}
	return btree_put(&w->client, slot, link_of(w, number), btree_key(number),
			 value_of(number, s->write));
}

/* A new key, which is this thread's. The top is each thread's own idea of it. */
static uint64_t new_key(struct bench_worker *w)
{
	uint64_t number = w->top - w->top % w->options->common.threads + w->writer;

	w->top += w->options->common.threads;
	return number;
}

static int begin_mix(struct bench_worker *w, unsigned slot)
{
	enum op op = mix_next(w->options->mix, &w->member->random);
	uint64_t number = keys_next(&w->bench->keys, w->top, &w->member->random);

	if (random64(&w->member->random) % 100 < w->options->scans)
		return begin_scan(w, slot, number);
	if (op == OP_INSERT && w->top + 2 * w->options->common.threads <= w->bench->all)
		number = new_key(w);
	else if (op != OP_READ)
		number = own(w, number);
	if (op == OP_READ || (w->bench->busy && w->bench->busy[number]))
		return begin_get(w, slot, number);
	return begin_write(w, slot, number);
}

static int begin(struct bench_worker *w, unsigned slot)
{
	if (!member_goes_on(w->member, w->begun++))
		return 0;
	w->under_way++;
	w->slot[slot].began = w->client.comp.at;
	return begin_mix(w, slot);
}

/* ---- their ends -------------------------------------------------------------------------- */

static void wrote(struct bench_worker *w, struct bench_slot *s, int status)
{
	struct bench *b = w->bench;

	w->no_memory += status == -ENOMEM;
	if (!b->line)
		return;
	b->busy[s->number] = false;
	if (!status || (s->type == MAIL_DELETE && status == -ENOENT))
		b->line[s->number].acked = s->write;
}

static void got(struct bench_worker *w, struct bench_slot *s, const struct page_item *items,
		unsigned n)
{
	struct bench *b = w->bench;

	w->hits += n > 0;
	w->misses += !n;
	if (!b->line)
		return;
	if (s->type == MAIL_SCAN)
		w->wrong += !judge_scan(b, s, items, n);
	else
		w->wrong += !judge(b, s->number, s->oldest[0], n ? &items->value : NULL);
}

static int done(void *arg, unsigned slot, int status, const struct page_item *items, unsigned n)
{
	struct bench_worker *w = arg;
	struct bench_slot *s = &w->slot[slot];
	bool read = s->type == MAIL_GET || s->type == MAIL_SCAN;
	uint64_t ns = w->client.comp.at - s->began;

	if (status && status != -ENOENT && status != -ENOMEM) {
		log_line("the server refuses what it should do: %s", strerror(-status));
		return status;
	}
	if (read)
		got(w, s, items, status ? 0 : n);
	else
		wrote(w, s, status);
	if (w->wrong >= WRONG_MAX)
		return -EBADMSG;
	hist_add(read ? w->reads : w->writes, ns);
	if (w->options->balance)
		balance_note(&w->balance, s->link, ns);
	member_done(w->member, 1, ns);
	w->under_way--;
	return begin(w, slot);
}

/* ---- thread ------------------------------------------------------------------------------ */

static int begin_slot(void *user, unsigned slot)
{
	return begin(user, slot);
}

static int poll_client(void *user, int milliseconds)
{
	struct bench_worker *w = user;

	return btree_poll(&w->client, milliseconds);
}

int bench_run(struct member *m)
{
	static const struct window ops = { .begin = begin_slot, .poll = poll_client };
	struct bench_worker *w = m->user;

	comp_mark(&w->client.comp);
	return member_fill_window(m, &ops, &w->under_way);
}

int bench_open(struct member *m)
{
	struct bench *b = m->team->user;
	const struct btree_options *o = b->options;
	struct bench_worker *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	m->user = w;
	w->member = m;
	w->bench = b;
	w->options = o;
	w->writer = m->index;
	w->top = b->keys.n;
	balance_open(&w->balance, o->keys, o->split);
	w->client.done = done;
	w->client.arg = w;
	w->slot = calloc(o->common.window, sizeof(*w->slot));
	w->reads = calloc(1, sizeof(*w->reads));
	w->writes = calloc(1, sizeof(*w->writes));
	if (!w->slot || !w->reads || !w->writes)
		return -ENOMEM;
	for (unsigned i = 0; i < o->common.window; i++) {
		w->slot[i].oldest = calloc(BTREE_SCAN_MAX, sizeof(uint32_t));
		if (!w->slot[i].oldest)
			return -ENOMEM;
	}
	return btree_client_open(&w->client, o);
}

/* What it counted is everybody's from here on. */
void bench_close(struct member *m)
{
	struct bench_worker *w = m->user;
	struct bench *b = w->bench;

	if (w->reads && w->writes) {
		hist_merge(b->reads, w->reads);
		hist_merge(b->writes, w->writes);
	}
	b->hits += w->hits;
	b->misses += w->misses;
	b->no_memory += w->no_memory;
	b->wrong += w->wrong;
	b->torn += w->client.torn;
	b->restarts += w->client.restarts;
	b->pages += w->client.reads;
	b->pieces += w->client.pieces;
	b->split += w->balance.split / w->options->common.threads;
	for (unsigned i = 0; w->slot && i < w->options->common.window; i++)
		free(w->slot[i].oldest);
	btree_client_close(&w->client);
	free(w->slot);
	free(w->reads);
	free(w->writes);
	free(w);
}
