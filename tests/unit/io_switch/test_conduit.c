/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames through shared memory, and an other side that writes nonsense. */
#include "io/switch/conduit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "uwtest.h"

static struct conduit a, b;

static int up(void **state)
{
	int fa, fb;

	(void)state;
	assert_status(conduit_make(&a, &fa), UW_OK);
	assert_status(conduit_make(&b, &fb), UW_OK);
	assert_status(conduit_attach(&a, dup(fb)), UW_OK);
	assert_status(conduit_attach(&b, dup(fa)), UW_OK);
	close(fa);
	close(fb);
	return 0;
}

static int down(void **state)
{
	(void)state;
	conduit_free(&a);
	conduit_free(&b);
	return 0;
}

static bool send(uint32_t len, uint8_t with)
{
	const struct conduit_meta meta = { .gso_size = (uint16_t)len, .sum = len & 1 };
	uint8_t *to;
	enum conduit_result r = conduit_room(&a.out, len, &to);

	assert_int_not_equal(r, CONDUIT_FAULT);
	if (r != CONDUIT_OK)
		return false;
	memset(to, with, len);
	conduit_put(&a.out, len, &meta);
	return true;
}

/* The length; 0: there is none. */
static uint32_t receive(uint8_t with)
{
	struct conduit_meta meta;
	const uint8_t *at;
	uint32_t len;
	enum conduit_result r = conduit_look(&b.in, &at, &len, &meta);

	assert_int_not_equal(r, CONDUIT_FAULT);
	if (r == CONDUIT_NONE)
		return 0;
	assert_int_equal(at[0], with);
	assert_int_equal(at[len - 1], with);
	assert_int_equal(meta.gso_size, (uint16_t)len);
	assert_int_equal(meta.sum, len & 1);
	conduit_step(&b.in);
	conduit_tell(&b.in);
	return len;
}

static void frames_of_all_lengths_many_times_round(void **state)
{
	uint32_t lens[64], n = 0, first = 0;
	uint64_t octets = 0;

	(void)state;
	srandom(5);
	while (octets < 20u * CONDUIT_OCTETS) {
		uint32_t len = random() % 2 ? 60 : CONDUIT_FRAME_MIN + (uint32_t)random() % 65522;

		if (n - first < 64 && send(len, (uint8_t)n)) {
			lens[n++ % 64] = len;
			octets += len;
		} else {
			assert_true(conduit_has(&b.in));
			assert_int_equal(receive((uint8_t)first), lens[first % 64]);
			first++;
		}
	}
	while (first < n) {
		assert_int_equal(receive((uint8_t)first), lens[first % 64]);
		first++;
	}
	assert_false(conduit_has(&b.in));
	assert_int_equal(receive(0), 0);
}

static void a_full_conduit_takes_none(void **state)
{
	unsigned n = 0;

	(void)state;
	while (send(60000, 1))
		n++;
	assert_in_range(n, 30, CONDUIT_OCTETS / 60000);
	assert_false(send(60000, 1));
	assert_int_equal(receive(1), 60000);
	assert_int_equal(receive(1), 60000);
	assert_true(send(60000, 1));
}

/* ---- nonsense ------------------------------------------------------------------------------ */

static enum conduit_result look(void)
{
	struct conduit_meta meta;
	const uint8_t *at;
	uint32_t len;

	return conduit_look(&b.in, &at, &len, &meta);
}

static void heads_that_cannot_be(void **state)
{
	static const uint32_t heads[] = { 1, 63, 65, CONDUIT_OCTETS + 64, 0x80000000, 0xffffffc0 };

	(void)state;
	for (unsigned i = 0; i < 6; i++) {
		atomic_store(a.out.head, heads[i]);
		b.in.known = b.in.next;
		assert_int_equal(look(), CONDUIT_FAULT);
	}
}

static void lengths_that_cannot_be(void **state)
{
	static const uint32_t lens[] = {
		0, 13, 65536, 0xfffffe, 0x1000000, 0xffffffff, 0xfffffff0
	};
	uint32_t *len = (uint32_t *)(void *)a.out.records;

	(void)state;
	assert_true(send(1000, 1));
	for (unsigned i = 0; i < 7; i++) {
		*len = lens[i];
		assert_int_equal(look(), CONDUIT_FAULT);
	}
	*len = 1100; /* beyond what was written */
	assert_int_equal(look(), CONDUIT_FAULT);
	*len = 0xffffff; /* a skip at the very beginning leads there again */
	atomic_store(a.out.head, CONDUIT_OCTETS);
	b.in.known = CONDUIT_OCTETS;
	assert_int_equal(look(), CONDUIT_FAULT);
}

/* The writer stops for good when the reader claims to have read what was never written. */
static void tails_that_cannot_be(void **state)
{
	uint8_t *to;

	(void)state;
	while (send(60000, 1))
		;
	atomic_store(b.in.tail, a.out.next + 64);
	assert_int_equal(conduit_room(&a.out, 60000, &to), CONDUIT_FAULT);
}

static void regions_that_are_none(void **state)
{
	struct conduit c;
	int fd;

	(void)state;
	assert_status(conduit_make(&c, &fd), UW_OK);
	close(fd);
	assert_status(conduit_attach(&c, -1), UW_E_INVAL);
	assert_status(conduit_attach(&c, open("/dev/zero", 0)), UW_E_INVAL);
	fd = memfd_create("short", MFD_ALLOW_SEALING);
	assert_int_equal(ftruncate(fd, CONDUIT_REGION), 0);
	assert_status(conduit_attach(&c, fd), UW_E_INVAL); /* not sealed */
	conduit_free(&c);
}

/* What the other side reads it cannot write. */
static void regions_are_read_only_to_others(void **state)
{
	struct conduit c;
	int fd;

	(void)state;
	assert_status(conduit_make(&c, &fd), UW_OK);
	assert_ptr_equal(mmap(NULL, CONDUIT_REGION, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0),
			 MAP_FAILED);
	close(fd);
	conduit_free(&c);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, up, down)

static const struct CMUnitTest tests[] = {
	TEST(frames_of_all_lengths_many_times_round),
	TEST(a_full_conduit_takes_none),
	TEST(heads_that_cannot_be),
	TEST(lengths_that_cannot_be),
	TEST(tails_that_cannot_be),
	TEST(regions_that_are_none),
	TEST(regions_are_read_only_to_others),
};

UWTEST_MAIN(tests)
