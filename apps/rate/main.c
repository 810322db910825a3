/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "rate.h"

enum {
	KEY_OP = OPTION_OWN,
	KEY_SIZE,
	KEY_LIST,
	KEY_QPS,
	KEY_SIGNAL,
	KEY_INLINE,
	KEY_VERIFY,
	KEY_MESSAGE,
	KEY_MEMORY,
	KEY_FAULT
};

const char *const rate_names[] = { "write", "read", "send", "faa", "cas", NULL };
static const char *const faults[] = { "lose", NULL };

static const struct argp_option own[] = {
	{ "op", KEY_OP, "OP", 0, "write (default), read, send, faa or cas", 3 },
	{ "size", KEY_SIZE, "N,...", 0, "octets of each, but of an atomic; default: 64", 3 },
	{ "post-list", KEY_LIST, "N,...", 0, "requests posted at once, 1 to 64; default: 1", 3 },
	{ "qps", KEY_QPS, "N", 0, "of each thread; default: 1", 3 },
	{ "signal", KEY_SIGNAL, "N", 0,
	  "a completion for each so many requests; default: 16, less with a small window", 3 },
	{ "inline", KEY_INLINE, "N", 0, "inline what is not longer; default: 0, nothing", 3 },
	{ "verify", KEY_VERIFY, 0, 0, "look afterwards whether everything is where it belongs", 3 },
	{ "message", KEY_MESSAGE, "N", 0, "server: the longest message it receives; default: 4096",
	  4 },
	{ "memory", KEY_MEMORY, "N", 0,
	  "server: octets for all clients' transfers together; default: 1Gi", 4 },
	{ "fault", KEY_FAULT, "lose", 0,
	  "leave a request out now and then, to see that --verify finds it", 4 },
	{ 0 }
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct rate_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->common;
		return 0;
	case KEY_OP:
		o->op = option_word(state, "op", arg, rate_names);
		return 0;
	case KEY_SIZE:
		o->sizes = option_list(state, "size", arg, RATE_POINTS, o->size);
		return 0;
	case KEY_LIST:
		o->lists = option_list(state, "post-list", arg, RATE_POINTS, o->list);
		return 0;
	case KEY_QPS:
		o->qps = option_size(state, "qps", arg);
		return 0;
	case KEY_SIGNAL:
		o->signal = option_size(state, "signal", arg);
		return 0;
	case KEY_INLINE:
		o->inline_data = option_upto(state, "inline", arg, UINT32_MAX);
		return 0;
	case KEY_VERIFY:
		o->verify = true;
		return 0;
	case KEY_MESSAGE:
		o->message = option_upto(state, "message", arg, UINT32_MAX);
		return 0;
	case KEY_MEMORY:
		o->memory = option_size(state, "memory", arg);
		return 0;
	case KEY_FAULT:
		option_word(state, "fault", arg, faults);
		o->fault = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The point with the largest interval of signals that still lets the window move. */
static struct rate_point point(const struct rate_options *o, uint64_t size, uint64_t list)
{
	uint64_t most = o->common.window - list + 1;

	return (struct rate_point){ .size = o->op >= RATE_FAA ? RATE_WORD : (uint32_t)size,
				    .list = (uint32_t)list,
				    .signal = (uint32_t)(o->signal < most ? o->signal : most),
				    .inline_data = (uint32_t)o->inline_data };
}

static int sweep(const struct rate_options *o)
{
	int err = 0;

	for (unsigned s = 0; s < o->sizes; s++)
		for (unsigned l = 0; !err && l < o->lists; l++) {
			struct rate_point p = point(o, o->size[s], o->list[l]);

			err = rate_run(o, &p);
		}
	return err;
}

static const char *wrong(const struct rate_options *o)
{
	for (unsigned i = 0; i < o->lists; i++) {
		if (!o->list[i] || o->list[i] > RATE_LIST_MAX)
			return "--post-list: from 1 to 64";
		if (o->list[i] > o->common.window)
			return "--window: at least the length of the post list";
	}
	for (unsigned i = 0; i < o->sizes; i++)
		if (!o->size[i] || o->size[i] > 1 << 30)
			return "--size: from 1 to 1Gi";
	if (!o->qps || o->qps > 4096 || !o->signal)
		return "--qps and --signal: at least 1";
	return NULL;
}

int main(int argc, char **argv)
{
	static const struct argp_child children[] = { { &options_argp, 0, NULL, 0 }, { 0 } };
	static const struct argp argp = {
		.options = own,
		.parser = parse,
		.args_doc = "serve\nrun HOST",
		.doc = "Operations per second of any RDMA device.",
		.children = children,
	};
	struct rate_options o = { .common = OPTIONS_DEFAULT,
				  .size = { 64 },
				  .list = { 1 },
				  .sizes = 1,
				  .lists = 1,
				  .qps = 1,
				  .signal = 16,
				  .message = 4096,
				  .memory = 1 << 30 };
	const char *why;
	int first;

	o.common.window = 128;
	argp_parse(&argp, argc, argv, 0, &first, &o);
	why = wrong(&o);
	if (why) {
		fprintf(stderr, "uwarp-rate: %s\n", why);
		return 2;
	}
	if (argc - first == 1 && !strcmp(argv[first], "serve"))
		return rate_serve(&o) ? EXIT_FAILURE : EXIT_SUCCESS;
	if (argc - first == 2 && !strcmp(argv[first], "run")) {
		o.common.server.host = argv[first + 1];
		return sweep(&o) ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	return options_no_command(&argp, argc - first, argv + first);
}
