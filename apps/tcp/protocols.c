/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "calls.h"
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

/* ---- memcached --------------------------------------------------------------------------- */

static size_t mc_request(uint8_t *out, enum op op, uint64_t key, const struct peer_options *o)
{
	char *p = (char *)out;
	size_t n;

	if (op == OP_READ)
		return (size_t)sprintf(p, "get %016lx\r\n", key);
	n = (size_t)sprintf(p, "set %016lx 0 0 %u\r\n", key, o->value);
	memset(p + n, 'v', o->value);
	memcpy(p + n + o->value, "\r\n", 2);
	return n + o->value + 2;
}

static size_t mc_reply(const uint8_t *in, size_t n, bool *good)
{
	size_t head = line_length(in, n), all;
	unsigned value;

	if (!head)
		return 0;
	*good = in[0] == 'S' || in[0] == 'E'; /* STORED; END alone: there is no such key */
	if (sscanf((const char *)in, "VALUE %*s %*u %u", &value) != 1)
		return head;
	*good = true;
	all = head + value + sizeof("\r\nEND\r\n") - 1;
	return n < all ? 0 : all;
}

static const struct protocol memcached = { "memcached", mc_request, mc_reply };

/* ---- Valkey and Redis -------------------------------------------------------------------- */

static size_t resp_request(uint8_t *out, enum op op, uint64_t key, const struct peer_options *o)
{
	char *p = (char *)out;
	size_t n;

	if (op == OP_READ)
		return (size_t)sprintf(p, "*2\r\n$3\r\nGET\r\n$16\r\n%016lx\r\n", key);
	n = (size_t)sprintf(p, "*3\r\n$3\r\nSET\r\n$16\r\n%016lx\r\n$%u\r\n", key, o->value);
	memset(p + n, 'v', o->value);
	memcpy(p + n + o->value, "\r\n", 2);
	return n + o->value + 2;
}

static size_t resp_reply(const uint8_t *in, size_t n, bool *good)
{
	size_t head = line_length(in, n), all;
	long value;

	if (!head)
		return 0;
	*good = in[0] == '+' || in[0] == '$';
	value = in[0] == '$' ? number_at(in + 1, in + n) : -1;
	if (value < 0)
		return head;
	all = head + (size_t)value + 2;
	return n < all ? 0 : all;
}

static const struct protocol resp = { "valkey", resp_request, resp_reply };

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

static size_t call_reply(const uint8_t *in, size_t n, bool *good)
{
	struct call c;

	if (n < sizeof(c))
		return 0;
	memcpy(&c, in, sizeof(c));
	*good = !c.status;
	return sizeof(c);
}

static const struct protocol seq = { "seq", seq_request, call_reply };
static const struct protocol btree = { "btree", tree_request, call_reply };

const struct protocol *const protocols[] = { &memcached, &resp, &seq, &btree, NULL };
