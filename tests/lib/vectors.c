/* SPDX-License-Identifier: BSD-3-Clause */
#include "vectors.h"

static void bad(const char *name, unsigned line, const char *why)
{
	fail_msg("%s/%s:%u: %s", VECTORS_DIR, name, line, why);
}

static bool unhex(const char *hex, struct vector *v)
{
	size_t n = strlen(hex);

	if (!n || n % 2 || strspn(hex, "0123456789abcdef") != n)
		return false;
	v->n = n / 2;
	v->p = malloc(v->n);
	assert_non_null(v->p);
	for (size_t i = 0; i < v->n; i++) {
		unsigned octet;

		if (sscanf(hex + 2 * i, "%2x", &octet) != 1)
			return false;
		v->p[i] = (uint8_t)octet;
	}
	return true;
}

static void parse(const char *name, char *text, struct vector *v)
{
	char *save, *word = strtok_r(text, " \n", &save), *next;

	for (unsigned i = 0; (next = strtok_r(NULL, " \n", &save)); i++, word = next) {
		if (i == VECTOR_WORDS || strlen(word) >= sizeof(v->word[0]))
			bad(name, v->line, "too many words, or one is too long");
		strcpy(v->word[i], word);
	}
	if (!word || !unhex(word, v))
		bad(name, v->line, "no octets in hex at the end");
}

struct vectors vectors_read(const char *name)
{
	char path[512], *text = NULL;
	struct vectors x = { NULL, 0 };
	unsigned line = 0;
	size_t size = 0;
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", VECTORS_DIR, name);
	f = fopen(path, "r");
	if (!f)
		fail_msg("%s: cannot be opened", path);
	while (getline(&text, &size, f) > 0) {
		line++;
		if (*text == '#' || *text == '\n')
			continue;
		x.v = realloc(x.v, (x.n + 1) * sizeof(*x.v));
		assert_non_null(x.v);
		x.v[x.n] = (struct vector){ .line = line };
		parse(name, text, &x.v[x.n++]);
	}
	free(text);
	fclose(f);
	if (!x.n)
		bad(name, line, "no vectors in it");
	return x;
}

void vectors_free(struct vectors *x)
{
	for (size_t i = 0; i < x->n; i++)
		free(x->v[i].p);
	free(x->v);
}
