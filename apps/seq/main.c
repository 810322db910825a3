/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "seq.h"

enum { KEY_MODE = OPTION_OWN, KEY_BATCH, KEY_ENTRIES, KEY_VERIFY, KEY_ADOPT, KEY_FAULT };

static const char *const ways[] = { "faa", "rpc", NULL };
static const char *const faults[] = { "twice", NULL };

static const struct argp_option own[] = {
	{ "mode", KEY_MODE, "faa|rpc", 0, "how a client takes tickets; default: faa", 3 },
	{ "batch", KEY_BATCH, "N", 0, "tickets taken at once; default: 1", 3 },
	{ "verify", KEY_VERIFY, 0, 0, "enter every ticket into the server's ledger", 3 },
	{ "adopt", KEY_ADOPT, 0, 0, "audit: take the tickets whose owners were killed", 3 },
	{ "entries", KEY_ENTRIES, "N", 0, "server: of each ledger; default: 1Mi", 4 },
	{ "fault", KEY_FAULT, "twice", 0,
	  "server: give every 1000th ticket of rpc twice, to see that --verify finds it", 4 },
	{ 0 }
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct seq_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->common;
		return 0;
	case KEY_MODE:
		o->way = option_word(state, "mode", arg, ways);
		return 0;
	case KEY_BATCH:
		o->batch = option_size(state, "batch", arg);
		if (!o->batch)
			argp_error(state, "--batch: at least 1");
		return 0;
	case KEY_ENTRIES:
		o->entries = option_size(state, "entries", arg);
		if (o->entries > 1ull << 40)
			argp_error(state, "--entries: up to 2^40");
		return 0;
	case KEY_VERIFY:
		o->verify = true;
		return 0;
	case KEY_ADOPT:
		o->adopt = true;
		return 0;
	case KEY_FAULT:
		option_word(state, "fault", arg, faults);
		o->twice = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

int main(int argc, char **argv)
{
	static const struct argp_child children[] = { { &options_argp, 0, NULL, 0 }, { 0 } };
	static const struct argp argp = {
		.options = own,
		.parser = parse,
		.args_doc = "serve\ntake HOST\naudit HOST",
		.doc = "A sequencer by one-sided atomics or by calls, on any RDMA device.",
		.children = children,
	};
	struct seq_options o = { .common = OPTIONS_DEFAULT, .batch = 1, .entries = 1 << 20 };
	int first;

	argp_parse(&argp, argc, argv, 0, &first, &o);
	o.id = mix64(clock_ns() ^ (uint64_t)getpid() << 40) | 1;
	if (argc - first == 1 && !strcmp(argv[first], "serve"))
		return seq_serve(&o) ? EXIT_FAILURE : EXIT_SUCCESS;
	if (argc - first == 2) {
		o.common.server.host = argv[first + 1];
		if (!strcmp(argv[first], "take"))
			return seq_take(&o) ? EXIT_FAILURE : EXIT_SUCCESS;
		if (!strcmp(argv[first], "audit"))
			return seq_audit(&o) ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	return options_no_command(&argp, argc - first, argv + first);
}
