/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "kv.h"
#include "wire.h"

enum {
	KEY_MEMORY = OPTION_OWN,
	KEY_BUCKETS,
	KEY_VALUE_MAX,
	KEY_STAGING,
	KEY_GET,
	KEY_PUT,
	KEY_KEYS,
	KEY_KEY,
	KEY_VALUE,
	KEY_MIX,
	KEY_DIST,
	KEY_LOAD,
	KEY_SOC,
	KEY_AS_SOC,
	KEY_HOT,
	KEY_MAY_LOSE,
	KEY_RANGE,
	KEY_TOWARD,
	KEY_ALTERNATIVE,
	KEY_CACHE,
	KEY_WRITER
};

#define CACHE_MAX (1u << 24)

static const char *const gets[] = { "reads", "rpc", "hybrid", NULL };
static const char *const puts_by[] = { "send", "imm", "staged", NULL };
static const char *const alternatives[] = { "A1", "A2", "A3", "A4", "A5", NULL };

static const struct argp_option own[] = {
	{ 0, 0, 0, 0, "Server:", 3 },
	{ "memory", KEY_MEMORY, "N", 0, "octets for index and records; default: 256Mi", 3 },
	{ "buckets", KEY_BUCKETS, "N", 0,
	  "of 7 keys each, rounded up to a power of two; default: 64Ki", 3 },
	{ "value-max", KEY_VALUE_MAX, "N", 0, "the longest value; default: 1Mi", 3 },
	{ "staging", KEY_STAGING, "N", 0,
	  "octets for what all clients together write in stages; default: 1Gi", 3 },
	{ 0, 0, 0, 0, "Cluster, of a host and a SoC that share the keys:", 6 },
	{ "soc", KEY_SOC, "ADDR[:PORT]", 0,
	  "the SoC; for the host, which gives it keys, and for clients", 6 },
	{ "as-soc", KEY_AS_SOC, 0, 0, "server: own no keys but those that a host gives", 6 },
	{ "hot", KEY_HOT, "N", 0,
	  "so many popular keys go to the SoC by themselves; the host's and the clients'", 6 },
	{ "alternative", KEY_ALTERNATIVE, "A1..A5[+A1..A5]", 0,
	  "the SoC is a front of the host, and GETs go this way, or two ways in turn (uwarp-kv(1))",
	  6 },
	{ "may-lose", KEY_MAY_LOSE, 0, 0, "a node may die, and what it owned with it", 6 },
	{ "range", KEY_RANGE, "A-B", 0, "move: these keys, both numbers included", 6 },
	{ "toward", KEY_TOWARD, "soc|host", 0, "move: to this node", 6 },
	{ 0, 0, 0, 0, "Client:", 4 },
	{ "get", KEY_GET, "WAY", 0,
	  "reads (two READs; default), rpc, or hybrid (whichever is faster now)", 4 },
	{ "cache", KEY_CACHE, "N", 0,
	  "entries of the index that each thread keeps, so that most GETs are one READ; default: 0",
	  4 },
	{ "put", KEY_PUT, "WAY", 0,
	  "send (default; what fits no message is WRITTEN first), imm (WRITTEN with immediate), "
	  "staged (WRITTEN, told by SEND)",
	  4 },
	{ "keys", KEY_KEYS, "N", 0, "default: 10K", 4 },
	{ "key", KEY_KEY, "N", 0, "octets of a key, 16 to 250; default: 16", 4 },
	{ "value", KEY_VALUE, "N[-M]", 0,
	  "octets of a value, 32 to 1Mi, each of its own length if there are two; default: 1024",
	  4 },
	{ "mix", KEY_MIX, "A|B|C|D|F", 0,
	  "YCSB's: updates 50 %, 5 %, none; inserts 5 %; read-modify-writes 50 %; default: B", 4 },
	{ "dist", KEY_DIST, "DIST", 0, "uniform, zipf[:THETA] or latest; default: the mix's", 4 },
	{ "load", KEY_LOAD, 0, 0, "write every key first", 4 },
	{ "writer", KEY_WRITER, "I/N", 0,
	  "this is process I of N (from 0), and writes keys of its own alone; default: 0/1", 20 },
	{ 0 }
};

static uint64_t power_of_two(uint64_t n)
{
	uint64_t p = 64;

	while (p < n && p < 1ull << 31)
		p *= 2;
	return p;
}

static void parse_lengths(struct argp_state *state, struct kv_options *o, const char *arg)
{
	char *copy = strdup(arg), *dash = strchr(copy, '-');

	if (dash)
		*dash = 0;
	o->value_low = option_size(state, "value", copy);
	o->value_high = dash ? option_size(state, "value", dash + 1) : o->value_low;
	free(copy);
	if (o->value_low < 32 || o->value_high < o->value_low || o->value_high > KV_VALUE_MAX)
		argp_error(state, "--value %s: from 32 to 1Mi", arg);
}

static void parse_writer(struct argp_state *state, struct kv_options *o, const char *arg)
{
	if (sscanf(arg, "%u/%u", &o->writer, &o->writers) != 2 || o->writer >= o->writers)
		argp_error(state, "--writer %s: not like 0/2", arg);
}

static void parse_soc(struct argp_state *state, struct kv_options *o, char *arg)
{
	char *colon = strchr(arg, ':');

	/* an IPv6 address has more of them */
	if (colon && !strchr(colon + 1, ':')) {
		*colon = 0;
		o->soc_port = option_port(state, "soc", colon + 1);
	}
	o->soc = arg;
}

/* "A5", or "A5+A4". */
static void parse_alternatives(struct argp_state *state, struct kv_options *o, const char *arg)
{
	char *copy = strdup(arg), *plus = strchr(copy, '+');

	if (plus)
		*plus = 0;
	o->alternative[0] = option_word(state, "alternative", copy, alternatives) + 1;
	o->alternative[1] = plus ? option_word(state, "alternative", plus + 1, alternatives) + 1
				 : o->alternative[0];
	free(copy);
}

static error_t parse_cluster(int key, char *arg, struct argp_state *state, struct kv_options *o)
{
	static const char *const nodes[] = { "host", "soc", NULL };

	switch (key) {
	case KEY_SOC:
		parse_soc(state, o, arg);
		return 0;
	case KEY_AS_SOC:
		o->is_soc = true;
		return 0;
	case KEY_ALTERNATIVE:
		parse_alternatives(state, o, arg);
		return 0;
	case KEY_HOT:
		o->hot = option_upto(state, "hot", arg, UINT32_MAX);
		return 0;
	case KEY_MAY_LOSE:
		o->may_lose = true;
		return 0;
	case KEY_RANGE:
		if (sscanf(arg, "%lu-%lu", &o->from, &o->to) != 2 || o->from > o->to)
			argp_error(state, "--range %s: not like 0-99", arg);
		return 0;
	case KEY_TOWARD:
		o->toward_soc = option_word(state, "toward", arg, nodes);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_server(int key, char *arg, struct argp_state *state, struct kv_options *o)
{
	switch (key) {
	case KEY_MEMORY:
		o->memory = option_size(state, "memory", arg);
		return 0;
	case KEY_BUCKETS:
		o->buckets = power_of_two(option_size(state, "buckets", arg));
		return 0;
	case KEY_VALUE_MAX:
		o->value_max = option_upto(state, "value-max", arg, KV_VALUE_MAX);
		return 0;
	case KEY_STAGING:
		o->staging = option_size(state, "staging", arg);
		return 0;
	case KEY_CACHE:
		o->cache = option_size(state, "cache", arg);
		return 0;
	case KEY_WRITER:
		parse_writer(state, o, arg);
		return 0;
	default:
		return parse_cluster(key, arg, state, o);
	}
}

static error_t parse_put(struct argp_state *state, struct kv_options *o, const char *arg)
{
	unsigned way = option_word(state, "put", arg, puts_by);

	o->with_imm = way == 1;
	o->stage_all = way > 0;
	return 0;
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct kv_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->common;
		state->child_inputs[1] = &o->oracle;
		return 0;
	case KEY_GET:
		o->way = option_word(state, "get", arg, gets);
		return 0;
	case KEY_PUT:
		return parse_put(state, o, arg);
	case KEY_KEYS:
		o->keys = option_size(state, "keys", arg);
		return 0;
	case KEY_KEY:
		o->key_length = option_size(state, "key", arg);
		return 0;
	case KEY_VALUE:
		parse_lengths(state, o, arg);
		return 0;
	case KEY_MIX:
		o->mix = mix_find(arg[0]);
		if (!o->mix || arg[1])
			argp_error(state, "--mix %s: A, B, C, D or F", arg);
		return 0;
	case KEY_DIST:
		o->dist = arg;
		return 0;
	case KEY_LOAD:
		o->load = true;
		return 0;
	default:
		return parse_server(key, arg, state, o);
	}
}

static const char *wrong(const struct kv_options *o)
{
	struct keys k;

	if (o->key_length < KV_KEY_MIN || o->key_length > KV_KEY_MAX)
		return "--key: from 16 to 250";
	if (o->keys < (uint64_t)o->writers * o->common.threads || o->keys > 1ull << 40)
		return "--keys: at least one for each writer, and up to 2^40";
	if (o->alternative[0] && !o->soc)
		return "--alternative: goes with --soc";
	if (o->cache > CACHE_MAX || (o->cache && o->soc))
		return "--cache: up to 16Mi entries, and not with --soc, where keys move";
	if (o->dist && keys_parse(&k, o->dist))
		return "--dist: uniform, zipf, zipf:THETA with a THETA between 0 and 1, or latest";
	return NULL;
}

static int client(struct kv_options *o, const char *what)
{
	static const struct {
		const char *name;
		int (*run)(const struct kv_options *o);
	} command[] = { { "run", kv_bench },
			{ "check", kv_bench },
			{ "move", kv_move },
			{ "where", kv_where },
			{ "front", kv_front } };

	o->check = !strcmp(what, "check");
	o->oracle.verify |= o->check;
	for (unsigned i = 0; i < sizeof(command) / sizeof(command[0]); i++)
		if (!strcmp(what, command[i].name))
			return command[i].run(o) ? EXIT_FAILURE : EXIT_SUCCESS;
	return 2;
}

int main(int argc, char **argv)
{
	static const struct argp_child children[] = { { &options_argp, 0, NULL, 0 },
						      { &oracle_argp, 0, NULL, 0 },
						      { 0 } };
	static const struct argp argp = {
		.options = own,
		.parser = parse,
		.args_doc = "serve\nrun HOST\ncheck HOST\nmove HOST\nwhere HOST\nfront HOST",
		.doc = "A key-value store whose clients READ it, on any RDMA device.",
		.children = children,
	};
	struct kv_options o = { .common = OPTIONS_DEFAULT,
				.memory = 256 << 20,
				.buckets = 1 << 16,
				.value_max = KV_VALUE_MAX,
				.staging = 1 << 30,
				.keys = 10000,
				.key_length = 16,
				.value_low = 1024,
				.value_high = 1024,
				.writers = 1,
				.to = UINT64_MAX };
	const char *why;
	int first, code = 2;

	o.mix = mix_find('B');
	argp_parse(&argp, argc, argv, 0, &first, &o);
	why = wrong(&o);
	if (why) {
		fprintf(stderr, "uwarp-kv: %s\n", why);
		return 2;
	}
	if (argc - first == 1 && !strcmp(argv[first], "serve"))
		return kv_serve(&o) ? EXIT_FAILURE : EXIT_SUCCESS;
	if (argc - first == 2) {
		o.common.server.host = argv[first + 1];
		code = client(&o, argv[first]);
	}
	return code == 2 ? options_no_command(&argp, argc - first, argv + first) : code;
}
