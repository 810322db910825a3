/* SPDX-License-Identifier: BSD-3-Clause */
/* A text that grows, and JSON in it. */
#ifndef UWARP_STAT_TEXT_H
#define UWARP_STAT_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TEXT_MAX (64u << 20) /* octets */

struct text {
	char *p; /* malloc(3); NULL while there is nothing */
	size_t n, room;
	bool failed; /* no memory, or longer than TEXT_MAX: nothing is added any more */
};

void text_add(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_free(struct text *t);

/* Members of a JSON object, each with the comma in front that it needs. */
void text_member(struct text *t, const char *name);
void text_number(struct text *t, const char *name, uint64_t value);
void text_truth(struct text *t, const char *name, bool value);
/* value NULL: null. */
void text_string(struct text *t, const char *name, const char *value);

#endif
