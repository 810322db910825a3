/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uwarp-kv's mover, between a host's store and a SoC that answers late, or never, or is lost. The
 * SoC and what is below its connection are below here.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "mover.h"
#include "peer.h"

#define BUCKETS	  64u
#define MEMORY	  (8u << 20)
#define LOOKS	  1000u /* in vain, of a mover whose SoC is silent */
#define PATIENCE  5000	/* ms, for the mover's thread */
#define KEY	  "one key of 16 ..."
#define OTHER_KEY "another of 16 .."

struct node {
	struct store store;
	uint8_t *memory;
};

/* What the mover's thread meets; the test's thread waits for what it has seen. */
static struct {
	struct node host, soc;
	struct kv_client_config config; /* of the mover's connection */
	enum kv_op op;
	struct kv_key key;
	uint8_t value[64];
	uint32_t value_length;
	bool called;
	_Atomic unsigned silent; /* so many looks find nothing; UINT_MAX: all */
	_Atomic unsigned looked; /* in vain, for an answer */
	_Atomic unsigned answered, closed;
	_Atomic bool dead;
	_Atomic int put, got; /* of the key that moves, at the host while the SoC is silent */
} bed;

static struct span span_of(const char *text)
{
	return (struct span){ text, (uint32_t)strlen(text) };
}

static int get_at(struct node *n, const char *key)
{
	uint8_t room[64];
	struct span out = { room, sizeof(room) };
	struct kv_entry e;

	return store_get(&n->store, span_of(key), &out, &e);
}

static int put_at(struct node *n, const char *key)
{
	return store_put(&n->store, span_of(key), span_of("value"));
}

/* ---- the SoC ----------------------------------------------------------------------------- */

static int obey(void)
{
	struct span key = { bed.key.octets, bed.key.length };
	struct store *s = &bed.soc.store;

	switch (bed.op) {
	case KV_ADOPT:
		return store_set(s, key, (struct span){ bed.value, bed.value_length }, KV_PENDING);
	case KV_COMMIT:
		return store_change(s, key, KV_PENDING, KV_HERE);
	default:
		return -EINVAL;
	}
}

int kv_client_open(struct kv_client *c, const struct kv_client_config *config)
{
	c->config = bed.config = *config;
	return 0;
}

uint8_t *kv_room(struct kv_client *c, unsigned slot, enum kv_op op, const struct kv_key *key,
		 uint32_t n)
{
	(void)c;
	(void)slot;
	bed.op = op;
	bed.key = *key;
	bed.value_length = n;
	return bed.value;
}

int kv_go(struct kv_client *c, unsigned slot)
{
	(void)c;
	(void)slot;
	bed.called = true;
	return 0;
}

int comp_wait(struct comp *c, struct ibv_wc *wc, int n, int milliseconds)
{
	(void)c;
	(void)wc;
	(void)n;
	if (bed.dead)
		return 1;
	if (!bed.called || !milliseconds)
		return 0;
	if (!bed.silent) {
		bed.called = false;
		return 1;
	}
	bed.silent -= bed.silent != UINT32_MAX;
	bed.put = put_at(&bed.host, OTHER_KEY);
	bed.got = get_at(&bed.host, OTHER_KEY);
	bed.looked++;
	return 0;
}

int kv_client_take(struct kv_client *c, const struct ibv_wc *wc)
{
	int err;

	(void)wc;
	if (bed.dead)
		return -ECONNRESET;
	err = c->config.done(c->config.arg, 0, obey(), NULL, NULL, 0);
	bed.answered++;
	return err;
}

void conn_close(struct conn *c)
{
	(void)c;
	bed.closed++;
}

void kv_client_close(struct kv_client *c)
{
	(void)c;
}

int conn_flush(struct conn *c, unsigned *posted)
{
	(void)c;
	(void)posted;
	return 0;
}

int device_open_to(struct device *d, const char *host, const char *port)
{
	(void)d;
	(void)host;
	(void)port;
	return 0;
}

void device_close(struct device *d)
{
	(void)d;
}

int comp_open(struct comp *c, const struct device *d, unsigned entries, bool events)
{
	(void)c;
	(void)d;
	(void)entries;
	(void)events;
	return 0;
}

void comp_close(struct comp *c)
{
	(void)c;
}

void report_count(struct report *r, const char *name, uint64_t value)
{
	(void)r;
	(void)name;
	(void)value;
}

/* ---- set-up ------------------------------------------------------------------------------ */

static void node_open(struct node *n, bool owner)
{
	n->memory = calloc(1, MEMORY);
	store_open(&n->store, n->memory, MEMORY, BUCKETS);
	n->store.owner = owner;
}

static void node_close(struct node *n)
{
	store_close(&n->store);
	free(n->memory);
}

static void until(const _Atomic unsigned *count, unsigned n)
{
	for (unsigned i = 0; *count < n && i < PATIENCE; i++)
		usleep(1000);
	assert_true(*count >= n);
}

/* KEY is the SoC's, OTHER_KEY the host's. */
static struct mover *open_both(void)
{
	static const struct kv_options options = { .value_max = 64 };
	struct mover *m;

	memset(&bed, 0, sizeof(bed));
	node_open(&bed.host, true);
	node_open(&bed.soc, false);
	assert_int_equal(put_at(&bed.host, KEY), 0);
	assert_int_equal(put_at(&bed.host, OTHER_KEY), 0);
	assert_int_equal(mover_open(&m, &options, &bed.host.store), 0);
	assert_int_equal(mover_ask(m, span_of(KEY), true), 0);
	until(&bed.answered, 2);
	assert_int_equal(put_at(&bed.host, KEY), -EXDEV);
	assert_int_equal(put_at(&bed.soc, KEY), 0);
	return m;
}

static void close_both(struct mover *m)
{
	mover_stop(m);
	mover_close(m);
	node_close(&bed.host);
	node_close(&bed.soc);
}

/* ---- tests ------------------------------------------------------------------------------- */

/* The SoC does not run for a while: what is its own stays its own, and what moves is not written
 * by anybody. */
static void test_silence_is_not_death(void **state)
{
	struct mover *m = open_both();

	(void)state;
	bed.silent = LOOKS;
	assert_int_equal(mover_ask(m, span_of(OTHER_KEY), true), 0);
	until(&bed.answered, 4);
	assert_int_equal(bed.looked, LOOKS);
	assert_int_equal(bed.put, -EBUSY);
	assert_int_equal(bed.got, 0);
	assert_int_equal(put_at(&bed.host, KEY), -EXDEV);
	assert_int_equal(put_at(&bed.host, OTHER_KEY), -EXDEV);
	assert_int_equal(put_at(&bed.soc, OTHER_KEY), 0);
	assert_int_equal(bed.closed, 0);
	close_both(m);
}

/* Nor is the host's own end the SoC's: nothing is lost, and what moves stays as it is. */
static void test_stopped_while_it_waits(void **state)
{
	struct mover *m = open_both();

	(void)state;
	bed.silent = UINT32_MAX;
	assert_int_equal(mover_ask(m, span_of(OTHER_KEY), true), 0);
	until(&bed.looked, 2);
	mover_stop(m);
	assert_int_equal(put_at(&bed.host, KEY), -EXDEV);
	assert_int_equal(put_at(&bed.host, OTHER_KEY), -EBUSY);
	assert_int_equal(get_at(&bed.host, OTHER_KEY), 0);
	assert_int_equal(bed.closed, 0);
	close_both(m);
}

/* The answer comes when nobody waits any more: what it was to fill is gone. */
static void test_a_late_value_has_no_room(void **state)
{
	static const struct kv_options options = { .value_max = 64 };
	const _Atomic bool stop = true;
	const struct kv_key key = { .length = 1 };
	const uint8_t late[] = "late";
	uint8_t room[64];
	struct span value = { room, sizeof(room) };
	struct peer p = { 0 };

	(void)state;
	memset(&bed, 0, sizeof(bed));
	assert_int_equal(peer_open(&p, &options, &stop), 0);
	assert_int_equal(peer_take(&p, &key, &value), -ECANCELED);
	bed.config.done(bed.config.arg, 0, 0, NULL, late, sizeof(late));
	assert_int_equal(value.n, sizeof(room));
	peer_close(&p);
}

/* A connection that is lost in the middle: the SoC's keys are lost and may be written anew, what
 * moved is the host's, and the SoC hears it if it lives. */
static void test_a_lost_connection_is_death(void **state)
{
	struct mover *m = open_both();

	(void)state;
	bed.silent = UINT32_MAX;
	assert_int_equal(mover_ask(m, span_of(OTHER_KEY), true), 0);
	until(&bed.looked, 1);
	bed.dead = true;
	until(&bed.closed, 1);
	assert_int_equal(get_at(&bed.host, KEY), -ENODATA);
	assert_int_equal(put_at(&bed.host, KEY), 0);
	assert_int_equal(put_at(&bed.host, OTHER_KEY), 0);
	assert_int_equal(mover_ask(m, span_of(KEY), true), -ENODATA);
	close_both(m);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_silence_is_not_death),
		cmocka_unit_test(test_stopped_while_it_waits),
		cmocka_unit_test(test_a_late_value_has_no_room),
		cmocka_unit_test(test_a_lost_connection_is_death),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
