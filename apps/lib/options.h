/* SPDX-License-Identifier: BSD-3-Clause */
/* The options that all programs share, as a child of each one's argp parser, and sizes and lists.
 */
#ifndef APPS_OPTIONS_H
#define APPS_OPTIONS_H

#include <argp.h>
#include <stdbool.h>
#include <stdint.h>

#include "conn.h"

struct options {
	struct server_name server; /* host NULL: be the server at bind */
	const char *bind;
	unsigned threads, window;
	bool events, json, quiet;
	double seconds;
	uint64_t ops; /* in all; 0: as many as the seconds allow */
	uint64_t seed;
	const char *csv, *cdf, *series;
};

#define OPTIONS_DEFAULT                                                                            \
	{                                                                                          \
		.server = { .port = "7471", .patience = 5 }, .threads = 1, .window = 8,            \
		.seconds = 2, .seed = 1                                                            \
	}

/* Of the programs that judge each answer; a struct argp_child's input with oracle_argp. */
struct oracle_options {
	bool verify;
	unsigned deletes;    /* one of so many updates is a delete; 0: none */
	const char *journal; /* file, or NULL */
	bool believe;	     /* a client leaves its checks out: to see that the oracle finds it */
};

/* Keys of the programs' own options begin here. */
#define OPTION_OWN 0x200

/* argp_child with this parser; its input is a struct options. */
extern const struct argp options_argp;
extern const struct argp oracle_argp;

/* "64", "10K" (10000), "64Ki" (65536), "1M", "1Mi"; ends the program with a line if it is none. */
uint64_t option_size(struct argp_state *state, const char *name, const char *text);
/* The same of what fits a word of 32 bits, or less. */
uint32_t option_upto(struct argp_state *state, const char *name, const char *text, uint32_t most);
/* Comma-separated sizes, at most `most` of them; returns how many. */
unsigned option_list(struct argp_state *state, const char *name, const char *text, unsigned most,
		     uint64_t *out);
/* text, which is a number that a port can have. */
const char *option_port(struct argp_state *state, const char *name, const char *text);
/* The index of the word in the list; the list ends with NULL. */
unsigned option_word(struct argp_state *state, const char *name, const char *text,
		     const char *const *words);
/* Says why these n words are no command, and how the program is used; returns the exit code. */
int options_no_command(const struct argp *argp, int n, char *const *words);

#endif
