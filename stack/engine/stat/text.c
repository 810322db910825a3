/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/stat/text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 4096u

static bool make_room(struct text *t, size_t n)
{
	size_t room = t->room ? t->room : FIRST_ROOM;
	char *p;

	while (room < t->n + n)
		room *= 2;
	if (room == t->room)
		return true;
	p = room <= TEXT_MAX ? realloc(t->p, room) : NULL;
	if (!p) {
		t->failed = true;
		return false;
	}
	t->p = p;
	t->room = room;
	return true;
}

void text_add(struct text *t, const char *fmt, ...)
{
	va_list ap;
	int n;

	if (t->failed)
		return;
	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0 || !make_room(t, (size_t)n + 1))
		return;
	va_start(ap, fmt);
	vsnprintf(t->p + t->n, (size_t)n + 1, fmt, ap);
	va_end(ap);
	t->n += (size_t)n;
}

void text_free(struct text *t)
{
	free(t->p);
	*t = (struct text){ 0 };
}

/* ---- JSON -------------------------------------------------------------------------------- */

static bool wants_comma(const struct text *t)
{
	return t->n && t->p[t->n - 1] != '{' && t->p[t->n - 1] != '[';
}

void text_member(struct text *t, const char *name)
{
	text_add(t, "%s\"%s\":", wants_comma(t) ? "," : "", name);
}

void text_number(struct text *t, const char *name, uint64_t value)
{
	text_member(t, name);
	text_add(t, "%llu", (unsigned long long)value);
}

void text_truth(struct text *t, const char *name, bool value)
{
	text_member(t, name);
	text_add(t, "%s", value ? "true" : "false");
}

/* RFC 8259 §7. What is no ASCII is written as '?', for nobody knows its encoding. */
static void add_escaped(struct text *t, const char *s)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if (c == '"' || c == '\\')
			text_add(t, "\\%c", c);
		else if (c < 0x20 || c >= 0x7f)
			text_add(t, "?");
		else
			text_add(t, "%c", c);
	}
}

void text_string(struct text *t, const char *name, const char *value)
{
	text_member(t, name);
	if (!value) {
		text_add(t, "null");
		return;
	}
	text_add(t, "\"");
	add_escaped(t, value);
	text_add(t, "\"");
}
