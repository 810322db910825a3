/* SPDX-License-Identifier: BSD-3-Clause */
/* What a filter passes on to the link below. */
#include "io/link_filter.h"

#include <arpa/inet.h>
#include <stddef.h>

#include "uwtest.h"

#define SLOTS (sizeof(struct io_ops) / sizeof(uintptr_t))

struct call {
	struct io_link *l;
	struct uw_ip group;
	bool in;
};

static struct call last;

static uw_status group(struct io_link *l, const struct uw_ip *g, bool in)
{
	last = (struct call){ l, *g, in };
	return UW_E_UNSUPPORTED;
}

static void read_slots(const struct io_ops *o, uintptr_t *slot)
{
	memcpy(slot, o, sizeof(*o));
}

/* What the filter does itself, and what it leaves out: it waits, and it cuts nothing. */
static bool is_the_filters(size_t at)
{
	static const size_t own[] = {
		offsetof(struct io_ops, rx),	     offsetof(struct io_ops, tx),
		offsetof(struct io_ops, alloc_long), offsetof(struct io_ops, pending),
		offsetof(struct io_ops, sleep),	     offsetof(struct io_ops, rouse),
		offsetof(struct io_ops, close)
	};

	for (unsigned i = 0; i < COUNT(own); i++) {
		if (own[i] == at)
			return true;
	}
	return false;
}

/* Each operation that a link below may have, also one that is added to struct io_ops. */
static void all_that_the_link_has_is_passed_on(void **state)
{
	struct io_ops all, over;
	uintptr_t slot[SLOTS];

	(void)state;
	memset(&all, 1, sizeof(all));
	over = link_filter_ops(&all);
	read_slots(&over, slot);
	for (size_t i = 0; i < SLOTS; i++)
		assert_int_equal(slot[i] == 0, is_the_filters(i * sizeof(slot[0])));
}

/* NULL means something: that a group needs no joining (io/io.h), for one. */
static void what_the_link_has_not_stays_away(void **state)
{
	const struct io_ops none = { 0 };
	struct io_ops over = link_filter_ops(&none);

	(void)state;
	assert_true(!over.due_ns && !over.resolve && !over.claim_port && !over.release_port);
	assert_true(!over.claim_packets && !over.release_packets && !over.group && !over.is_ours);
}

/* Over a packet link with --rate or --impair a group was joined, and nothing of it came. */
static void a_group_is_joined_below(void **state)
{
	const struct io_ops ops = { .group = group };
	const struct io_ops over = link_filter_ops(&ops);
	const struct uw_ip to = uw_ip_v4(htonl(0xefc00001));
	struct io_link under = { .ops = &ops };
	struct link_filter f = { .l.ops = &over, .under = &under };

	(void)state;
	for (unsigned in = 0; in < 2; in++) {
		assert_int_equal(f.l.ops->group(&f.l, &to, in), UW_E_UNSUPPORTED);
		assert_ptr_equal(last.l, &under);
		assert_true(uw_ip_eq(&last.group, &to));
		assert_int_equal(last.in, in);
	}
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(all_that_the_link_has_is_passed_on),
	cmocka_unit_test(what_the_link_has_not_stays_away),
	cmocka_unit_test(a_group_is_joined_below),
};

UWTEST_MAIN(tests)
