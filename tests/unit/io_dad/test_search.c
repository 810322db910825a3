/* SPDX-License-Identifier: BSD-3-Clause */
/* Asking a network whether our addresses are free: the link's other end is the test. */
#include "io/dad/search.h"

#include <time.h>

#include "base/be.h"
#include "uwtest.h"

static struct net {
	struct io_link l;
	struct io_frame f[8];
	uint8_t octets[8][DAD_FRAME];
	unsigned frames, probes, locked;
	bool answers; /* another host has the address */
	bool waits;   /* its answer has not been received */
	bool slow;    /* the process gets no CPU for longer than the search is to take */
} net;

static struct io_frame *alloc(struct io_link *l)
{
	assert_int_equal(net.locked, 1);
	for (unsigned i = 0; i < 8; i++) {
		if (net.f[i].link)
			continue;
		net.f[i] = (struct io_frame){
			.link = l, .buf = net.octets[i], .data = net.octets[i], .room = DAD_FRAME
		};
		net.frames++;
		return &net.f[i];
	}
	return NULL;
}

static void free_it(struct io_frame *f)
{
	f->link = NULL;
	net.frames--;
}

static unsigned tx(struct io_link *l, struct io_frame **v, unsigned n)
{
	(void)l;
	assert_int_equal(n, 1);
	assert_int_equal(uw_be16(v[0]->data + 12), 0x0806);
	net.probes++;
	net.waits = net.answers;
	if (net.slow)
		nanosleep(&(struct timespec){ .tv_nsec = 10000000 }, NULL);
	free_it(v[0]);
	return 1;
}

static unsigned rx(struct io_link *l, struct io_frame **v, unsigned n)
{
	assert_true(n && net.locked == 1);
	if (!net.waits)
		return 0;
	net.waits = false;
	v[0] = alloc(l);
	v[0]->len = (uint32_t)dad_announcement(l, v[0]->data);
	memset(v[0]->data + 22, 7, 6);
	return 1;
}

static void lock(void *arg, unsigned i)
{
	(void)arg;
	assert_true(!i && !net.locked++);
}

static void unlock(void *arg, unsigned i)
{
	(void)arg;
	assert_true(!i && net.locked--);
}

static uw_status search_in(struct net n, unsigned ms, struct dad_conflict *who)
{
	static const struct io_ops ops = { .alloc = alloc, .free = free_it, .tx = tx, .rx = rx };
	static struct io_link *const link[] = { &net.l };
	const struct dad_search s = {
		.link = link, .n = 1, .lock = lock, .unlock = unlock, .ms = ms
	};
	uw_status st;

	net = n;
	net.l = (struct io_link){ .ops = &ops,
				  .addr = htobe32(0x0a000001),
				  .flags = IO_NEIGHBOURS };
	st = dad_search_run(&s, who);
	assert_int_equal(net.frames, 0);
	assert_int_equal(net.locked, 0);
	return st;
}

static uw_status search(bool answers, unsigned ms, struct dad_conflict *who)
{
	return search_in((struct net){ .answers = answers }, ms, who);
}

static uw_status search_slowly(unsigned ms, struct dad_conflict *who)
{
	return search_in((struct net){ .slow = true }, ms, who);
}

static void nobody_answers(void **state)
{
	struct dad_conflict who;

	(void)state;
	assert_int_equal(search(false, 30, &who), UW_OK);
	assert_int_equal(net.probes, DAD_PROBES); /* RFC 5227 §2.1.1 */
}

static void somebody_answers(void **state)
{
	struct dad_conflict who;

	(void)state;
	assert_int_equal(search(true, 10000, &who), UW_E_ADDR_IN_USE);
	assert_int_equal(uw_ip_v4_be(&who.ip), htobe32(0x0a000001));
	assert_int_equal(who.mac[5], 7);
}

static void a_late_process_asks_as_often(void **state)
{
	struct dad_conflict who;

	(void)state;
	assert_int_equal(search_slowly(5, &who), UW_OK);
	assert_int_equal(net.probes, DAD_PROBES); /* RFC 5227 §2.1.1 */
}

static void one_that_does_not_wait(void **state)
{
	struct dad_conflict who;

	(void)state;
	assert_int_equal(search(true, 0, &who), UW_OK);
	assert_int_equal(net.probes, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nobody_answers),
		cmocka_unit_test(somebody_answers),
		cmocka_unit_test(a_late_process_asks_as_often),
		cmocka_unit_test(one_that_does_not_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
