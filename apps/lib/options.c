/* SPDX-License-Identifier: BSD-3-Clause */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

enum {
	KEY_BIND = 0x100,
	KEY_EVENTS,
	KEY_JSON,
	KEY_CSV,
	KEY_CDF,
	KEY_SERIES,
	KEY_SEED,
	KEY_WAIT,
	KEY_QUIET,
	KEY_VERIFY,
	KEY_DELETES,
	KEY_JOURNAL,
	KEY_FAULT
};

static const struct argp_option known[] = {
	{ 0, 0, 0, 0, "Both ends:", 1 },
	{ "port", 'p', "PORT", 0, "default: 7471", 1 },
	{ "bind", KEY_BIND, "ADDRESS", 0, "serve at this address alone", 1 },
	{ "threads", 't', "N", 0, "of a client, or workers of a server; default: 1", 1 },
	{ "events", KEY_EVENTS, 0, 0, "sleep until something completes, instead of polling", 1 },
	{ 0, 0, 0, 0, "Client:", 2 },
	{ "window", 'w', "N", 0, "operations under way for each thread; default: 8", 2 },
	{ "seconds", 's', "S", 0, "how long; default: 2", 2 },
	{ "ops", 'n', "N", 0, "so many operations instead", 2 },
	{ "seed", KEY_SEED, "N", 0, "of what is random; default: 1", 2 },
	{ "wait", KEY_WAIT, "S", 0, "for a server that does not listen yet; default: 5", 2 },
	{ "json", KEY_JSON, 0, 0, "print the result as one line of JSON", 2 },
	{ "csv", KEY_CSV, "FILE", 0,
	  "add the result to it, with a head if it is new; one program's results alone", 2 },
	{ "cdf", KEY_CDF, "FILE", 0, "write the latencies' distribution there, as CSV", 2 },
	{ "series", KEY_SERIES, "FILE", 0, "write the rate of every 100 ms there, as CSV", 2 },
	{ "quiet", KEY_QUIET, 0, 0, "show no progress", 2 },
	{ 0 }
};

uint64_t option_size(struct argp_state *state, const char *name, const char *text)
{
	static const struct {
		const char *name;
		uint64_t factor;
	} unit[] = { { "", 1 },		{ "K", 1000 },	     { "Ki", 1 << 10 }, { "M", 1000000 },
		     { "Mi", 1 << 20 }, { "G", 1000000000 }, { "Gi", 1 << 30 } };
	bool number = isdigit((unsigned char)*text), large;
	uint64_t n, all;
	char *end;

	errno = 0;
	n = strtoull(text, &end, 10);
	large = errno;
	for (unsigned i = 0; number && i < sizeof(unit) / sizeof(unit[0]); i++) {
		if (strcmp(end, unit[i].name))
			continue;
		if (!large && !__builtin_mul_overflow(n, unit[i].factor, &all))
			return all;
		argp_error(state, "--%s %s: too large", name, text);
		return 0;
	}
	argp_error(state, "--%s %s: not a number such as 64, 10K or 64Ki", name, text);
	return 0;
}

uint32_t option_upto(struct argp_state *state, const char *name, const char *text, uint32_t most)
{
	uint64_t n = option_size(state, name, text);

	if (n > most)
		argp_error(state, "--%s %s: up to %u", name, text, most);
	return (uint32_t)n;
}

unsigned option_list(struct argp_state *state, const char *name, const char *text, unsigned most,
		     uint64_t *out)
{
	char *copy = strdup(text), *rest = copy, *word;
	unsigned n = 0;

	while ((word = strsep(&rest, ",")) && n < most)
		out[n++] = option_size(state, name, word);
	if (word)
		argp_error(state, "--%s: at most %u of them", name, most);
	free(copy);
	return n;
}

#define OPTION_NUMBER_MAX 1e9

/* From 0 to OPTION_NUMBER_MAX: as seconds it is so many that their nanoseconds can be added to a
 * clock. */
static double option_number(struct argp_state *state, const char *name, const char *text)
{
	char *end;
	double d = strtod(text, &end);

	if (end == text || *end || !(d >= 0 && d <= OPTION_NUMBER_MAX))
		argp_error(state, "--%s %s: not a number from 0 to %g", name, text,
			   OPTION_NUMBER_MAX);
	return d;
}

const char *option_port(struct argp_state *state, const char *name, const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);

	if (end == text || *end || *text == '-' || n > UINT16_MAX)
		argp_error(state, "--%s %s: no port, which is a number up to %u", name, text,
			   UINT16_MAX);
	return text;
}

unsigned option_word(struct argp_state *state, const char *name, const char *text,
		     const char *const *words)
{
	for (unsigned i = 0; words[i]; i++)
		if (!strcmp(words[i], text))
			return i;
	argp_error(state, "--%s %s: not one of those that --help lists", name, text);
	return 0;
}

static unsigned count_of(struct argp_state *state, const char *name, const char *text)
{
	uint64_t n = option_size(state, name, text);

	if (!n || n > 4096)
		argp_error(state, "--%s %s: from 1 to 4096", name, text);
	return (unsigned)n;
}

int options_no_command(const struct argp *argp, int n, char *const *words)
{
	char *me = program_invocation_short_name;

	fprintf(stderr, n ? "%s: these words are no command:" : "%s: no command given", me);
	for (int i = 0; i < n; i++)
		fprintf(stderr, " %s", words[i]);
	fputc('\n', stderr);
	argp_help(argp, stderr, ARGP_HELP_STD_USAGE, me);
	return 2;
}

static error_t parse_files(int key, char *arg, struct options *o)
{
	switch (key) {
	case KEY_JSON:
		o->json = true;
		return 0;
	case KEY_CSV:
		o->csv = arg;
		return 0;
	case KEY_CDF:
		o->cdf = arg;
		return 0;
	case KEY_SERIES:
		o->series = arg;
		return 0;
	case KEY_QUIET:
		o->quiet = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct options *o = state->input;

	switch (key) {
	case 'p':
		o->server.port = option_port(state, "port", arg);
		return 0;
	case KEY_BIND:
		o->bind = arg;
		return 0;
	case 't':
		o->threads = count_of(state, "threads", arg);
		return 0;
	case KEY_EVENTS:
		o->events = true;
		return 0;
	case 'w':
		o->window = count_of(state, "window", arg);
		return 0;
	case 's':
		o->seconds = option_number(state, "seconds", arg);
		return 0;
	case 'n':
		o->ops = option_size(state, "ops", arg);
		return 0;
	case KEY_SEED:
		o->seed = option_size(state, "seed", arg);
		return 0;
	case KEY_WAIT:
		o->server.patience = option_number(state, "wait", arg);
		return 0;
	default:
		return parse_files(key, arg, o);
	}
}

const struct argp options_argp = { .options = known, .parser = parse };

static const struct argp_option judged[] = {
	{ 0, 0, 0, 0, "Oracle:", 20 },
	{ "verify", KEY_VERIFY, 0, 0, "judge every answer", 20 },
	{ "deletes", KEY_DELETES, "N", 0, "make about one of N updates a delete", 20 },
	{ "journal", KEY_JOURNAL, "FILE", 0,
	  "keep what was written and acknowledged there, for a later run", 20 },
	{ "fault", KEY_FAULT, "believe", 0,
	  "do not check what was READ, to see that --verify finds it", 20 },
	{ 0 }
};

static error_t parse_oracle(int key, char *arg, struct argp_state *state)
{
	static const char *const faults[] = { "believe", NULL };
	struct oracle_options *o = state->input;

	switch (key) {
	case KEY_VERIFY:
		o->verify = true;
		return 0;
	case KEY_DELETES:
		o->deletes = option_upto(state, "deletes", arg, UINT32_MAX);
		return 0;
	case KEY_JOURNAL:
		o->journal = arg;
		return 0;
	case KEY_FAULT:
		option_word(state, "fault", arg, faults);
		o->believe = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

const struct argp oracle_argp = { .options = judged, .parser = parse_oracle };
