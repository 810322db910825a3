/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "peer.h"

enum { KEY_PROTOCOL = OPTION_OWN, KEY_KEYS, KEY_VALUE, KEY_MIX, KEY_DIST, KEY_LOAD };

static const struct argp_option own[] = {
	{ "protocol", KEY_PROTOCOL, "NAME", 0, "memcached (default), valkey, seq or btree", 3 },
	{ "keys", KEY_KEYS, "N", 0, "default: 10K", 3 },
	{ "value", KEY_VALUE, "N", 0, "octets; default: 1024", 3 },
	{ "mix", KEY_MIX, "A|B|C", 0, "YCSB's; default: B", 3 },
	{ "dist", KEY_DIST, "DIST", 0, "uniform or zipf[:THETA]; default: zipf", 3 },
	{ "load", KEY_LOAD, 0, 0, "write every key first", 3 },
	{ 0 }
};

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct peer_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->common;
		return 0;
	case KEY_PROTOCOL:
		o->protocol = NULL;
		for (unsigned i = 0; protocols[i]; i++)
			if (!strcmp(arg, protocols[i]->name))
				o->protocol = protocols[i];
		if (!o->protocol)
			argp_error(state, "--protocol %s: memcached, valkey, seq or btree", arg);
		return 0;
	case KEY_KEYS:
		o->keys = option_size(state, "keys", arg);
		return 0;
	case KEY_VALUE:
		o->value = option_upto(state, "value", arg, UINT32_MAX);
		if (o->value > PEER_VALUE_MAX)
			argp_error(state, "--value: up to 1Mi");
		return 0;
	case KEY_MIX:
		o->mix = mix_find(arg[0]);
		if (!o->mix || arg[1] || o->mix->insert)
			argp_error(state, "--mix %s: A, B or C", arg);
		return 0;
	case KEY_DIST:
		o->dist = arg;
		return 0;
	case KEY_LOAD:
		o->load = true;
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
		.args_doc = "serve\nrun HOST",
		.doc = "Key-value stores, calls to a sequencer and to a tree over the kernel's "
		       "TCP.",
		.children = children,
	};
	struct peer_options o = { .common = OPTIONS_DEFAULT, .keys = 10000, .value = 1024 };
	int first;

	o.mix = mix_find('B');
	o.protocol = protocols[0];
	argp_parse(&argp, argc, argv, 0, &first, &o);
	if (argc - first == 1 && !strcmp(argv[first], "serve"))
		return peer_serve(&o) ? EXIT_FAILURE : EXIT_SUCCESS;
	if (argc - first == 2 && !strcmp(argv[first], "run")) {
		o.common.server.host = argv[first + 1];
		return peer_run(&o) ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	return options_no_command(&argp, argc - first, argv + first);
}
