/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/impair/options.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/decimal.h"
#include "io/rate.h"

#define WORD 64u

struct unit {
	const char *name;
	double factor;
};

static const struct unit times[] = {
	{ "ns", 1 }, { "us", 1e3 }, { "ms", 1e6 }, { "s", 1e9 }, { NULL, 0 }
};
static const struct unit sizes[] = { { "", 1 }, { "K", 1024 }, { "M", 1048576 }, { NULL, 0 } };
static const struct unit chances[] = { { "", IMPAIR_ONE },
				       { "%", IMPAIR_ONE / 100.0 },
				       { NULL, 0 } };
static const struct unit counts[] = { { "", 1 }, { NULL, 0 } };

/* A number with one of these units, the whole text, at most max after the unit. */
static bool number(const char *text, const struct unit *u, double max, double *out)
{
	char *end;
	double x;

	if (!((*text >= '0' && *text <= '9') || *text == '.'))
		return false;
	x = uw_decimal(text, &end);
	for (; u->name; u++) {
		if (strcmp(end, u->name))
			continue;
		*out = x * u->factor;
		return *out >= 0 && *out <= max; /* not NaN either */
	}
	return false;
}

static bool whole(const char *text, const struct unit *u, double max, uint64_t *out)
{
	double x;

	if (!number(text, u, max, &x))
		return false;
	*out = (uint64_t)(x + 0.5);
	return true;
}

static bool time_of(const char *text, uint64_t *out)
{
	return whole(text, times, 1e15, out);
}

static bool chance_of(const char *text, uint32_t *out)
{
	uint64_t x;

	if (!whole(text, chances, IMPAIR_ONE, &x))
		return false;
	*out = (uint32_t)x;
	return true;
}

static bool small_of(const char *text, const struct unit *u, uint32_t *out)
{
	uint64_t x;

	if (!whole(text, u, 4e9, &x) || !x)
		return false;
	*out = (uint32_t)x;
	return true;
}

/* ---- one function for each kind of value; text may be written to ------------------------- */

static bool get_seed(char *text, struct impair_options *o)
{
	char *end;

	o->model.seed = strtoull(text, &end, 10);
	return *text >= '0' && *text <= '9' && !*end;
}

static bool get_nth(char *text, struct impair_options *o)
{
	return small_of(text, counts, &o->model.drop_nth);
}

static bool get_burst(char *text, struct impair_options *o)
{
	struct impair_config *c = &o->model;
	char *rest = text, *begin = strsep(&rest, ":"), *len = strsep(&rest, ":");
	double frames;

	c->burst_drop = IMPAIR_ONE;
	if (!len || !number(len, counts, 1e9, &frames) || frames < 1)
		return false;
	c->burst_end = (uint32_t)(IMPAIR_ONE / frames);
	return chance_of(begin, &c->burst_begin) && (!rest || chance_of(rest, &c->burst_drop));
}

static bool get_reorder(char *text, struct impair_options *o)
{
	char *rest = text, *p = strsep(&rest, ":");

	o->model.reorder_ns = 1000000;
	return chance_of(p, &o->model.reorder) && (!rest || time_of(rest, &o->model.reorder_ns));
}

static bool get_rate(char *text, struct impair_options *o)
{
	return rate_parse(text, &o->model.bps);
}

static bool get_queue(char *text, struct impair_options *o)
{
	return small_of(text, sizes, &o->model.queue);
}

static bool get_ecn(char *text, struct impair_options *o)
{
	return small_of(text, sizes, &o->model.ecn);
}

static bool get_blackout(char *text, struct impair_options *o)
{
	struct impair_config *c = &o->model;
	char *every = text, *rest = strsep(&every, "/"), *at = strsep(&rest, "+");

	if (!rest || !time_of(at, &c->blackout_at_ns) || !time_of(rest, &c->blackout_len_ns))
		return false;
	return !every ||
	       (time_of(every, &c->blackout_every_ns) && c->blackout_every_ns > c->blackout_len_ns);
}

static bool get_mtu(char *text, struct impair_options *o)
{
	char *at = text, *mtu = strsep(&at, "@");

	return small_of(mtu, counts, &o->model.mtu) && (!at || time_of(at, &o->model.mtu_at_ns));
}

static bool get_dir(char *text, struct impair_options *o)
{
	static const struct {
		const char *name;
		unsigned dir;
	} dirs[] = { { "out", IMPAIR_OUT },
		     { "in", IMPAIR_IN },
		     { "both", IMPAIR_OUT | IMPAIR_IN } };

	for (unsigned i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		if (!strcmp(text, dirs[i].name)) {
			o->dir = dirs[i].dir;
			return true;
		}
	}
	return false;
}

#define CHANCE "must be a percentage or a fraction, such as 0.1% or 0.001"
#define TIME   "must be a time, such as 100us, 2.5ms or 3s"

struct option {
	const char *name;
	bool (*get)(char *text, struct impair_options *o); /* NULL: a chance or a time, at: */
	size_t chance, time;
	const char *want;
};

#define AT(member) offsetof(struct impair_options, model.member)

static const struct option options[] = {
	{ "seed", get_seed, 0, 0, "must be a number" },
	{ "drop", NULL, AT(drop), 0, CHANCE },
	{ "duplicate", NULL, AT(duplicate), 0, CHANCE },
	{ "corrupt", NULL, AT(corrupt), 0, CHANCE },
	{ "truncate", NULL, AT(truncate), 0, CHANCE },
	{ "delay", NULL, 0, AT(delay_ns), TIME },
	{ "jitter", NULL, 0, AT(jitter_ns), TIME },
	{ "nth", get_nth, 0, 0, "must be a number of frames, such as 100" },
	{ "burst", get_burst, 0, 0,
	  "must be chance:frames or chance:frames:chance, such as 0.1%:8" },
	{ "reorder", get_reorder, 0, 0, "must be a chance or chance:time, such as 1%:500us" },
	{ "rate", get_rate, 0, 0, "must be bits per second from 1M to 1000G, such as 10G" },
	{ "queue", get_queue, 0, 0, "must be octets, such as 256K" },
	{ "ecn", get_ecn, 0, 0, "must be octets, such as 64K" },
	{ "blackout", get_blackout, 0, 0,
	  "must be time+time or time+time/time, such as 2s+500ms/10s" },
	{ "mtu", get_mtu, 0, 0, "must be octets or octets@time, such as 1400 or 1400@3s" },
	{ "dir", get_dir, 0, 0, "must be out, in or both" },
};

#define OPTIONS (sizeof(options) / sizeof(options[0]))

static bool get(const struct option *opt, char *value, struct impair_options *o)
{
	uint8_t *base = (uint8_t *)o;

	if (opt->get)
		return opt->get(value, o);
	if (opt->time)
		return time_of(value, (uint64_t *)(void *)(base + opt->time));
	return chance_of(value, (uint32_t *)(void *)(base + opt->chance));
}

static const char *parse_one(char *word, struct impair_options *o, char *why, unsigned size)
{
	char *value = word, *name = strsep(&value, "="), kept[WORD];

	for (size_t i = 0; i < OPTIONS; i++) {
		if (strcmp(options[i].name, name))
			continue;
		snprintf(kept, sizeof(kept), "%s", value ? value : "");
		if (value && get(&options[i], value, o))
			return NULL;
		snprintf(why, size, "%s=%s: %s", name, kept, options[i].want);
		return why;
	}
	snprintf(why, size, "%s: no such impairment; known are", name);
	for (size_t i = 0; i < OPTIONS; i++) {
		size_t at = strlen(why);

		snprintf(why + at, size - at, " %s", options[i].name);
	}
	return why;
}

/* What only makes sense with something else. */
static const char *check(const struct impair_config *c, char *why, unsigned size)
{
	if (!c->bps && (c->queue || c->ecn)) {
		snprintf(why, size, "queue and ecn need a rate: without one nothing waits");
		return why;
	}
	return NULL;
}

const char *impair_parse(const char *text, struct impair_options *out, char *why, unsigned size)
{
	const char *bad = NULL;

	*out = (struct impair_options){ 0 };
	while (!bad && *text) {
		size_t n = strcspn(text, ",");
		char word[WORD];

		if (n >= sizeof(word)) {
			snprintf(why, size, "%.20s...: is too long", text);
			return why;
		}
		memcpy(word, text, n);
		word[n] = 0;
		text += n + (text[n] == ',');
		bad = parse_one(word, out, why, size);
	}
	if (!bad)
		bad = check(&out->model, why, size);
	if (!bad && out->model.bps && !out->model.queue)
		out->model.queue = 1u << 20;
	return bad;
}
