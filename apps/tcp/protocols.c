/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
#include "clock.h"
#include "peer.h"

/* Decimal digits at p, up to the end of the line; -1 if that has not come. */
static long number_at(const uint8_t *p, const uint8_t *end)
{
	return memchr(p, '\n', (size_t)(end - p)) ? strtol((const char *)p, NULL, 10) : -2;
}

static size_t line_length(const uint8_t *in, size_t n)
{
	const uint8_t *end = memchr(in, '\n', n);

	return end ? (size_t)(end - in) + 1 : 0;
}

/* ---- values ------------------------------------------------------------------------------ */

#define PLACES 4096u /* where values of different keys begin */

static uint64_t *octets;

int values_open(void)
{
	size_t words = (PLACES + PEER_VALUE_MAX) / sizeof(*octets);
	uint64_t random = 1;

	octets = malloc(words * sizeof(*octets));
	for (size_t i = 0; octets && i < words; i++)
		octets[i] = random64(&random);
	return octets ? 0 : -ENOMEM;
}

const uint8_t *value_of(uint64_t key)
{
	return (const uint8_t *)octets + key % PLACES;
}

/* ---- memcached --------------------------------------------------------------------------- */

static size_t mc_request(uint8_t *out, enum op op, uint64_t key, const struct peer_options *o)
{
	char *p = (char *)out;
	size_t n;

	if (op == OP_READ)
		return (size_t)sprintf(p, "get %016lx\r\n", key);
	n = (size_t)sprintf(p, "set %016lx 0 0 %u\r\n", key, o->value);
	memcpy(p + n, value_of(key), o->value);
	memcpy(p + n + o->value, "\r\n", 2);
	return n + o->value + 2;
}

/* What has come ends with a 0. */
static bool begins(const uint8_t *in, const char *word)
{
	return !strncmp((const char *)in, word, strlen(word));
}

static size_t mc_reply(const uint8_t *in, size_t n, struct reply *r)
{
	size_t head = line_length(in, n), all;
	unsigned value;

	if (!head)
		return 0;
	*r = (struct reply){ .verdict = begins(in, "STORED") ? REPLY_GOOD
					: begins(in, "END")  ? REPLY_MISS
							     : REPLY_BAD };
	if (sscanf((const char *)in, "VALUE %*s %*u %u", &value) != 1)
		return head;
	*r = (struct reply){ .value = in + head, .length = value };
	all = head + value + sizeof("\r\nEND\r\n") - 1;
	return n < all ? 0 : all;
}

static const struct protocol memcached = { "memcached", true, mc_request, mc_reply };

/* ---- Valkey and Redis -------------------------------------------------------------------- */

static size_t resp_request(uint8_t *out, enum op op, uint64_t key, const struct peer_options *o)
{
	char *p = (char *)out;
	size_t n;

	if (op == OP_READ)
		return (size_t)sprintf(p, "*2\r\n$3\r\nGET\r\n$16\r\n%016lx\r\n", key);
	n = (size_t)sprintf(p, "*3\r\n$3\r\nSET\r\n$16\r\n%016lx\r\n$%u\r\n", key, o->value);
	memcpy(p + n, value_of(key), o->value);
	memcpy(p + n + o->value, "\r\n", 2);
	return n + o->value + 2;
}

static size_t resp_reply(const uint8_t *in, size_t n, struct reply *r)
{
	size_t head = line_length(in, n), all;
	long value;

	if (!head)
		return 0;
	value = in[0] == '$' ? number_at(in + 1, in + n) : -1;
	*r = (struct reply){ .verdict = in[0] == '+'   ? REPLY_GOOD
					: in[0] == '$' ? REPLY_MISS
						       : REPLY_BAD };
	if (value < 0)
		return head;
	*r = (struct reply){ .value = in + head, .length = (size_t)value };
	all = head + (size_t)value + 2;
	return n < all ? 0 : all;
}

static const struct protocol resp = { "valkey", true, resp_request, resp_reply };

/* ---- our own calls ----------------------------------------------------------------------- */

static size_t seq_request(uint8_t *out, enum op op, uint64_t key, const struct peer_options *o)
{
	struct call c = { .type = CALL_NEXT };

	(void)op;
	(void)key;
	(void)o;
	memcpy(out, &c, sizeof(c));
	return sizeof(c);
}

static size_t tree_request(uint8_t *out, enum op op, uint64_t key, const struct peer_options *o)
{
	struct call c = { .type = op == OP_READ ? CALL_GET : CALL_PUT,
			  .key = call_key(key),
			  .value = key };

	(void)o;
	memcpy(out, &c, sizeof(c));
	return sizeof(c);
}

static size_t call_reply(const uint8_t *in, size_t n, struct reply *r)
{
	struct call c;

	if (n < sizeof(c))
		return 0;
	memcpy(&c, in, sizeof(c));
	*r = (struct reply){ .verdict = c.status ? REPLY_BAD : REPLY_GOOD };
	return sizeof(c);
}

static const struct protocol seq = { "seq", false, seq_request, call_reply };
static const struct protocol btree = { "btree", false, tree_request, call_reply };

const struct protocol *const protocols[] = { &memcached, &resp, &seq, &btree, NULL };
