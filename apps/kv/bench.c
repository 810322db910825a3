/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uwarp-kv run: up to three phases, each by all threads: every key is written once (--load), the
 * mix is run, and with --verify every key is read once more and compared.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "clock.h"
#include "report.h"
#include "log.h"

#define WRONG_MAX 10u /* then it is enough */

/* ---- keys -------------------------------------------------------------------------------- */

void bench_key(const struct kv_options *o, uint64_t number, struct kv_key *key)
{
	uint64_t w = mix64(number + 1);

	key->length = (uint8_t)o->key_length;
	memcpy(key->octets, &number, sizeof(number));
	for (unsigned i = sizeof(number); i < key->length; i++)
		key->octets[i] = (uint8_t)(w >> (i % 8 * 8));
}

/* The nearest key that this writer may write. */
static uint64_t own(const struct bench_worker *w, uint64_t number)
{
	uint64_t mine = number - number % w->writers + w->writer;

	return mine < w->bench->keys.n ? mine : w->writer;
}

static bool is_busy(const struct bench_worker *w, uint64_t number)
{
	return w->bench->busy && w->bench->busy[number];
}

/* ---- beginning operations ---------------------------------------------------------------- */

static int begin_get(struct bench_worker *w, unsigned slot, uint64_t number)
{
	struct bench_slot *s = &w->slot[slot];
	struct kv_key key;

	s->number = number;
	s->oldest = w->bench->journal.line ? w->bench->journal.line[number].acked : 0;
	bench_key(w->options, number, &key);
	return route_begin(&w->route, slot, KV_GET, &key, 0);
}

/* The key's next write, which may be a delete. */
static int begin_write(struct bench_worker *w, unsigned slot, uint64_t number)
{
	struct oracle *j = &w->bench->journal;
	struct bench_slot *s = &w->slot[slot];
	uint32_t length = (uint32_t)w->options->value_low;
	struct kv_key key;

	s->number = number;
	bench_key(w->options, number, &key);
	if (!j->line)
		return route_begin(&w->route, slot, KV_PUT, &key, length);
	w->bench->busy[number] = true;
	s->was_there = j->line[number].acked && j->line[number].acked == j->line[number].tried &&
		       !oracle_deletes(j, number, j->line[number].acked);
	s->write = ++j->line[number].tried;
	if (oracle_deletes(j, number, s->write))
		return route_begin(&w->route, slot, KV_DELETE, &key, 0);
	return route_begin(&w->route, slot, KV_PUT, &key, oracle_length(j, number, s->write));
}

static void fill(void *arg, unsigned slot, uint8_t *p, uint32_t n)
{
	const struct bench_worker *w = arg;

	if (w->bench->journal.line)
		oracle_fill(p, n, w->slot[slot].number, w->slot[slot].write);
}

/* The next operation of the mix. */
static int begin_mix(struct bench_worker *w, unsigned slot)
{
	enum op op = mix_next(w->options->mix, &w->member->random);
	uint64_t number = keys_next(&w->bench->keys, w->top, &w->member->random);

	w->slot[slot].then_write = false;
	w->slot[slot].only_read = true;
	if (op == OP_INSERT && w->top + w->writers <= w->bench->all) {
		number = w->top - w->top % w->writers + w->writer;
		w->top += w->writers;
	} else if (op != OP_READ) {
		number = own(w, number);
	}
	if (op == OP_READ || is_busy(w, number))
		return begin_get(w, slot, number);
	w->slot[slot].then_write = op == OP_MODIFY;
	w->slot[slot].only_read = false;
	if (op == OP_MODIFY && w->bench->busy)
		w->bench->busy[number] = true;
	return op == OP_MODIFY ? begin_get(w, slot, number) : begin_write(w, slot, number);
}

static int begin(struct bench_worker *w, unsigned slot)
{
	uint64_t number = w->walked * w->writers + w->writer;
	bool walk_over =
		number >= (w->bench->phase == PHASE_LOAD ? w->bench->keys.n : w->bench->all);
	int err = 0;

	w->slot[slot].began = w->route.comp.at;
	if (w->bench->phase == PHASE_RUN) {
		if (!member_goes_on(w->member, w->begun++))
			return 0;
		err = begin_mix(w, slot);
	} else if (walk_over) {
		return 0;
	} else {
		w->walked++;
		err = w->bench->phase == PHASE_LOAD ? begin_write(w, slot, number)
						    : begin_get(w, slot, number);
	}
	w->under_way++;
	return err;
}

/* ---- their ends -------------------------------------------------------------------------- */

static void got(struct bench_worker *w, struct bench_slot *s, const uint8_t *value, uint32_t n)
{
	struct oracle *j = &w->bench->journal;

	w->hits += value != NULL;
	w->misses += value == NULL;
	if (j->line)
		w->wrong += !oracle_allows(j, s->number, s->oldest, value, n);
	else if (value && n != w->options->value_low)
		w->wrong++;
}

static void wrote(struct bench_worker *w, struct bench_slot *s, enum kv_op op, int status)
{
	struct oracle *j = &w->bench->journal;

	w->no_memory += status == -ENOMEM;
	if (!j->line)
		return;
	w->bench->busy[s->number] = false;
	if (op == KV_DELETE && status == -ENOENT && s->was_there) {
		log_line("key %lu is lost: there was nothing to delete", s->number);
		w->wrong++;
	}
	if (!status || (op == KV_DELETE && status == -ENOENT))
		j->line[s->number].acked = s->write;
}

/* No answer, since the key's node is gone. */
static void lost(struct bench_worker *w, struct bench_slot *s, int status)
{
	w->gone++;
	if (w->bench->busy && !s->only_read)
		w->bench->busy[s->number] = false;
	s->then_write = false;
	if (!w->options->may_lose) {
		log_line("key %lu is gone: %s", s->number, strerror(-status));
		w->wrong++;
	}
}

static void count(struct bench_worker *w, enum kv_op op, uint64_t ns)
{
	hist_add(op == KV_GET ? w->reads : w->writes, ns);
	member_done(w->member, 1, ns);
}

static int done(void *arg, unsigned slot, int status, enum kv_op op, const uint8_t *value,
		uint32_t n)
{
	struct bench_worker *w = arg;
	struct bench_slot *s = &w->slot[slot];

	if (status == -EINVAL || status == -EBUSY || status == -EXDEV) {
		log_line("the server refuses what it should do: %s", strerror(-status));
		return status;
	}
	if (op == KV_GET && status == -EMSGSIZE) {
		log_line("key %lu has a longer value than --value says, which is %lu", s->number,
			 w->options->value_high);
		return status;
	}
	if (status == -EHOSTDOWN || status == -ENODATA)
		lost(w, s, status);
	else if (op == KV_GET)
		got(w, s, value, n);
	else
		wrote(w, s, op, status);
	if (w->wrong >= WRONG_MAX)
		return -EBADMSG;
	if (op == KV_GET && s->then_write) {
		s->then_write = false;
		return begin_write(w, slot, s->number);
	}
	count(w, op, w->route.comp.at - s->began);
	w->under_way--;
	return begin(w, slot);
}

/* ---- threads ----------------------------------------------------------------------------- */

static int begin_slot(void *user, unsigned slot)
{
	return begin(user, slot);
}

static int poll_client(void *user, int milliseconds)
{
	struct bench_worker *w = user;

	return route_poll(&w->route, milliseconds);
}

int bench_run(struct member *m)
{
	static const struct window ops = { .begin = begin_slot, .poll = poll_client };
	struct bench_worker *w = m->user;

	comp_mark(&w->route.comp);
	return member_fill_window(m, &ops, &w->under_way);
}

int bench_open(struct member *m)
{
	struct bench *b = m->team->user;
	const struct kv_options *o = b->options;
	static const struct route_ops ops = { .fill = fill, .done = done };
	struct bench_worker *w = calloc(1, sizeof(*w));

	if (!w)
		return -ENOMEM;
	m->user = w;
	w->member = m;
	w->bench = b;
	w->options = o;
	w->writers = o->writers * o->common.threads;
	w->writer = o->writer * o->common.threads + m->index;
	w->top = b->keys.n;
	w->slot = calloc(o->common.window, sizeof(*w->slot));
	w->reads = calloc(1, sizeof(*w->reads));
	w->writes = calloc(1, sizeof(*w->writes));
	return w->slot && w->reads && w->writes ? route_open(&w->route, o, &ops, w) : -ENOMEM;
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
	b->wrong += w->wrong;
	b->no_memory += w->no_memory;
	b->gone += w->gone;
	b->at_soc += w->route.at_soc;
	b->again += w->route.again;
	for (unsigned i = 0; i < NODES; i++) {
		b->torn += w->route.node[i].torn;
		b->outdated += w->route.node[i].outdated;
		b->by_reads += w->route.node[i].by_reads;
		b->by_rpc += w->route.node[i].by_rpc;
	}
	route_close(&w->route);
	free(w->slot);
	free(w->reads);
	free(w->writes);
	free(w);
}
