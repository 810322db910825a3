/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>

#include "btree.h"
#include "wire.h"

enum {
	KEY_PAGE = OPTION_OWN,
	KEY_PAGES,
	KEY_FIRST,
	KEY_MAIL,
	KEY_KEYS,
	KEY_BY,
	KEY_MIX,
	KEY_DIST,
	KEY_SCANS,
	KEY_SCAN,
	KEY_SOC,
	KEY_SPLIT,
	KEY_PLACE,
	KEY_CACHE
};

static const char *const ways[] = { "reads", "mail", "send", NULL };
static const char *const places[] = { "both", "host", "soc", NULL };

static const struct argp_option own[] = {
	{ "keys", KEY_KEYS, "N", 0,
	  "that the server makes, and that clients choose from; default: 10K", 3 },
	{ 0, 0, 0, 0, "Server:", 4 },
	{ "page", KEY_PAGE, "N", 0, "octets of a page, 256 to 64Ki; default: 4096", 4 },
	{ "pages", KEY_PAGES, "N", 0, "default: twice what the keys need", 4 },
	{ "mail", KEY_MAIL, 0, 0, "look into mailboxes all the time", 4 },
	{ "first", KEY_FIRST, "N", 0, "the number of its first key; default: 0", 4 },
	{ 0, 0, 0, 0, "Client:", 5 },
	{ "by", KEY_BY, "WAY", 0,
	  "look keys up by reads (default), or call by mail or send; changes go by send or mail",
	  5 },
	{ "cache", KEY_CACHE, "N", 0,
	  "inner pages that each thread keeps, and what it needs to READ a piece of a leaf alone; "
	  "default: 0",
	  5 },
	{ "mix", KEY_MIX, "A|B|C|D|F", 0, "YCSB's; default: C, look-ups alone", 5 },
	{ "dist", KEY_DIST, "DIST", 0, "uniform, zipf[:THETA] or latest; default: uniform", 5 },
	{ "scans", KEY_SCANS, "N", 0, "per cent of the operations are scans; default: 0", 5 },
	{ "scan", KEY_SCAN, "N", 0, "keys of a scan, 1 to 128; default: 50", 5 },
	{ "soc", KEY_SOC, "ADDR[:PORT]", 0, "a second server, which has the keys from --split on",
	  5 },
	{ "split", KEY_SPLIT, "N|auto", 0,
	  "default: half of the keys; auto: where both are busy, for look-ups alone at two servers "
	  "that have all keys",
	  5 },
	{ "place", KEY_PLACE, "PLACE", 0,
	  "look at the host alone, at the soc alone, or at both; default: both, if --soc names one",
	  5 },
	{ 0 }
};

static error_t parse_server(int key, char *arg, struct argp_state *state, struct btree_options *o)
{
	switch (key) {
	case KEY_PAGE:
		o->page = option_size(state, "page", arg);
		return 0;
	case KEY_PAGES:
		o->pages = option_size(state, "pages", arg);
		return 0;
	case KEY_MAIL:
		o->mail = true;
		return 0;
	case KEY_FIRST:
		o->first = option_size(state, "first", arg);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_place(int key, char *arg, struct argp_state *state, struct btree_options *o)
{
	char *colon;

	switch (key) {
	case KEY_SOC:
		colon = strchr(arg, ':');
		o->soc = arg;
		/* an IPv6 address has more of them */
		if (colon && !strchr(colon + 1, ':')) {
			*colon = 0;
			o->soc_port = option_port(state, "soc", colon + 1);
		}
		return 0;
	case KEY_SPLIT:
		o->balance = !strcmp(arg, "auto");
		o->split_given = !o->balance;
		o->split = o->balance ? 0 : option_size(state, "split", arg);
		return 0;
	case KEY_PLACE:
		o->place = (enum btree_place)option_word(state, "place", arg, places);
		o->place_given = true;
		return 0;
	default:
		return parse_server(key, arg, state, o);
	}
}

static error_t parse(int key, char *arg, struct argp_state *state)
{
	struct btree_options *o = state->input;

	switch (key) {
	case ARGP_KEY_INIT:
		state->child_inputs[0] = &o->common;
		state->child_inputs[1] = &o->oracle;
		return 0;
	case KEY_KEYS:
		o->keys = option_size(state, "keys", arg);
		return 0;
	case KEY_BY:
		o->way = option_word(state, "by", arg, ways);
		return 0;
	case KEY_MIX:
		o->mix = mix_find(arg[0]);
		if (!o->mix || arg[1])
			argp_error(state, "--mix %s: A, B, C, D or F", arg);
		return 0;
	case KEY_CACHE:
		o->cache = option_size(state, "cache", arg);
		return 0;
	case KEY_DIST:
		o->dist = arg;
		return 0;
	case KEY_SCANS:
		o->scans = option_upto(state, "scans", arg, UINT32_MAX);
		return 0;
	case KEY_SCAN:
		o->scan = option_upto(state, "scan", arg, UINT32_MAX);
		return 0;
	default:
		return parse_place(key, arg, state, o);
	}
}

static const char *wrong_place(const struct btree_options *o)
{
	if (o->place_given && o->place != PLACE_HOST && !o->soc)
		return "--place: name the SoC with --soc";
	if (o->balance && (!o->soc || o->mix->letter != 'C'))
		return "--split auto: for look-ups alone (--mix C) at two servers (--soc)";
	return NULL;
}

static const char *wrong(const struct btree_options *o)
{
	struct keys k;

	if (o->page < 256 || o->page > 65536 || o->page % PAGE_PIECE)
		return "--page: from 256 to 64Ki, a multiple of 256";
	if (o->keys < o->common.threads || o->keys > 1ull << 40)
		return "--keys: at least one for each thread";
	if (o->pages > 1ull << 40)
		return "--pages: up to 2^40";
	if (o->cache > 1u << 20)
		return "--cache: up to 1Mi pages";
	if (!o->scan || o->scan > BTREE_SCAN_MAX || o->scans > 100)
		return "--scan: from 1 to 128; --scans: up to 100";
	if (keys_parse(&k, o->dist))
		return "--dist: uniform, zipf, zipf:THETA with a THETA between 0 and 1, or latest";
	return wrong_place(o);
}

/* The servers of this place: those that are left out are not connected to. */
static void use_place(struct btree_options *o)
{
	if (o->place == PLACE_SOC) {
		o->common.server.host = o->soc;
		if (o->soc_port)
			o->common.server.port = o->soc_port;
	}
	if (o->place != PLACE_BOTH)
		o->soc = NULL;
	if (!o->soc && o->place == PLACE_BOTH)
		o->place = PLACE_HOST;
}

int main(int argc, char **argv)
{
	static const struct argp_child children[] = { { &options_argp, 0, NULL, 0 },
						      { &oracle_argp, 0, NULL, 0 },
						      { 0 } };
	static const struct argp argp = {
		.options = own,
		.parser = parse,
		.args_doc = "serve\nrun HOST",
		.doc = "A B-tree whose clients READ its pages, on any RDMA device.",
		.children = children,
	};
	struct btree_options o = { .common = OPTIONS_DEFAULT,
				   .page = 4096,
				   .keys = 10000,
				   .dist = "uniform",
				   .scan = 50 };
	const char *why;
	int first;

	o.mix = mix_find('C');
	argp_parse(&argp, argc, argv, 0, &first, &o);
	why = wrong(&o);
	if (why) {
		fprintf(stderr, "uwarp-btree: %s\n", why);
		return 2;
	}
	if (!o.split_given)
		o.split = o.keys / 2;
	if (argc - first == 1 && !strcmp(argv[first], "serve"))
		return btree_serve(&o) ? EXIT_FAILURE : EXIT_SUCCESS;
	if (argc - first == 2 && !strcmp(argv[first], "run")) {
		o.common.server.host = argv[first + 1];
		use_place(&o);
		return btree_bench(&o) ? EXIT_FAILURE : EXIT_SUCCESS;
	}
	return options_no_command(&argp, argc - first, argv + first);
}
