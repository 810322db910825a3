/* SPDX-License-Identifier: BSD-3-Clause */
/* Other hosts with our address: RFC 5227, RFC 4862 §5.4. */
#include "io/dad/dad.h"

#include "base/be.h"
#include "base/sum.h"
#include "io/addr.h"
#include "uwtest.h"

#define OURS   0x0a000001u
#define SECOND 1000000u

static const uint8_t theirs[6] = { 2, 9, 9, 9, 9, 9 };

static struct io_link network(unsigned flags)
{
	struct io_link l = { .addr = htobe32(OURS),
			     .mask = htobe32(0xffffff00),
			     .mtu = 1500,
			     .mac = { 2, 1, 1, 1, 1, 1 },
			     .flags = IO_NEIGHBOURS | flags };

	io_set_ip6(&l, NULL, 0); /* fe80::7577:10.0.0.1 */
	return l;
}

/* What a link sends, as another host with the same addresses would send it. */
static void from_them(uint8_t *frame)
{
	memcpy(frame + 6, theirs, 6);
	if (uw_be16(frame + 12) == 0x0806)
		memcpy(frame + 22, theirs, 6);
}

static void sum6(uint8_t *frame)
{
	uint8_t *p = frame + 14, *m = p + 40;
	unsigned n = uw_be16(p + 4);

	uw_put16(m + 2, 0);
	uw_put16(m + 2, (uint16_t)~uw_sum_fold(uw_sum_add(uw_sum_add(n + 58, p + 8, 32), m, n)));
}

/* RFC 5227 §2.1.1: no sender's address, so that nobody's cache changes; the target is ours. */
static void a_probe_of_ipv4(void **state)
{
	static const uint8_t all[6] = { 255, 255, 255, 255, 255, 255 }, none[6];
	struct io_link l = network(0);
	uint8_t f[DAD_FRAME];

	(void)state;
	assert_true(dad_is_due(&l));
	assert_int_equal(dad_probe(&l, 0, f), 42);
	assert_memory_equal(f, all, 6);
	assert_memory_equal(f + 6, l.mac, 6);
	assert_int_equal(uw_be16(f + 12), 0x0806);
	assert_int_equal(uw_be16(f + 20), 1);
	assert_memory_equal(f + 22, l.mac, 6);
	assert_memory_equal(f + 28, none, 4);
	assert_memory_equal(f + 32, none, 6);
	assert_int_equal(uw_be32(f + 38), OURS);
}

/* RFC 4862 §5.4.2, RFC 4861 §7.1.1: from the unspecified address, without options, hop limit 255.
 */
static void a_probe_of_ipv6(void **state)
{
	static const uint8_t nobody[16];
	struct io_link l = network(0);
	uint8_t f[DAD_FRAME], *p = f + 14;
	uint16_t sum;

	(void)state;
	assert_int_equal(dad_probe(&l, 1, f), 78);
	assert_int_equal(uw_be32(f), 0x3333ff00);
	assert_memory_equal(p + 8, nobody, 16);
	assert_int_equal(p[7], 255);
	assert_int_equal(p[40], 135);
	assert_memory_equal(p + 48, l.ip6[0].ip.b, 16);
	assert_memory_equal(p + 37, l.ip6[0].ip.b + 13, 3);
	sum = uw_be16(p + 42);
	sum6(f);
	assert_int_equal(uw_be16(p + 42), sum);
	assert_int_equal(dad_probe(&l, 2, f), 0);
}

/* RFC 5227 §2.3 */
static void an_announcement(void **state)
{
	struct io_link l = network(0);
	uint8_t f[DAD_FRAME];

	(void)state;
	assert_int_equal(dad_announcement(&l, f), 42);
	assert_int_equal(uw_be32(f + 28), OURS);
	assert_int_equal(uw_be32(f + 38), OURS);
}

/* The kernel looks after an address that is shared with it; between processes nobody else can have
 * one. */
static void what_is_not_ours_to_ask_for(void **state)
{
	struct io_link l = network(IO_SHARED);
	uint8_t f[DAD_FRAME];
	struct dad_conflict c;

	(void)state;
	assert_int_equal(dad_announcement(&l, f), 0);
	assert_int_equal(dad_probe(&l, 0, f), 78); /* IPv6 alone */
	assert_int_equal(dad_probe(&l, 1, f), 0);
	l.flags |= IO_SHARED6;
	assert_int_equal(dad_probe(&l, 0, f), 0);
	assert_false(dad_is_due(&l));
	l.flags = 0;
	l.n_ip6 = 0;
	assert_true(dad_announcement(&l, f) == 0 && !dad_is_due(&l));
	l = network(0);
	dad_announcement(&l, f);
	from_them(f);
	l.flags |= IO_SHARED;
	assert_false(dad_read(&l, f, 42, false, &c));
}

/* RFC 5227 §2.1.1, §2.4: who has it conflicts at any time, who probes for it only while we do. */
static void somebody_has_the_ipv4_address(void **state)
{
	struct io_link l = network(0);
	uint8_t f[DAD_FRAME];
	struct dad_conflict c = { 0 };

	(void)state;
	dad_announcement(&l, f);
	assert_false(dad_read(&l, f, 42, true, &c)); /* our own, come back */
	from_them(f);
	assert_true(dad_read(&l, f, 42, false, &c));
	assert_int_equal(uw_ip_v4_be(&c.ip), htobe32(OURS));
	assert_memory_equal(c.mac, theirs, 6);
	for (size_t n = 0; n < 42; n++)
		assert_false(dad_read(&l, f, n, true, &c));
	f[21] = 2; /* a reply */
	assert_true(dad_read(&l, f, 42, false, &c));
	f[31]++; /* another sender's, to us */
	assert_false(dad_read(&l, f, 42, true, &c));
	dad_probe(&l, 0, f);
	from_them(f);
	assert_true(dad_read(&l, f, 42, true, &c));
	assert_false(dad_read(&l, f, 42, false, &c));
	f[15] = 2; /* another network's hardware */
	assert_false(dad_read(&l, f, 42, true, &c));
	f[15] = 1;
	uw_put32(f + 28, OURS + 5); /* who has an address of his own asks us, and wants none */
	assert_false(dad_read(&l, f, 42, true, &c));
	uw_put32(f + 28, 0);
	assert_true(dad_read(&l, f, 42, true, &c));
	f[18] = 8; /* no Ethernet addresses */
	assert_false(dad_read(&l, f, 42, true, &c));
}

/* RFC 4862 §5.4.3, §5.4.4 */
static void somebody_has_the_ipv6_address(void **state)
{
	struct io_link l = network(0);
	uint8_t f[DAD_FRAME];
	struct dad_conflict c = { 0 };

	(void)state;
	dad_probe(&l, 1, f);
	assert_false(dad_read(&l, f, 78, true, &c)); /* our own */
	from_them(f);
	assert_true(dad_read(&l, f, 78, true, &c));
	assert_false(dad_read(&l, f, 78, false, &c)); /* lwIP answers it */
	f[54] = 136;
	assert_false(dad_read(&l, f, 78, true, &c)); /* the checksum is wrong now */
	sum6(f);
	assert_true(dad_read(&l, f, 78, false, &c));
	assert_true(uw_ip_eq(&c.ip, &l.ip6[0].ip));
	for (size_t n = 0; n < 78; n++)
		assert_false(dad_read(&l, f, n, true, &c));
	f[21] = 254; /* from beyond a router */
	assert_false(dad_read(&l, f, 78, true, &c));
	f[21] = 255;
	f[77]++;
	sum6(f);
	assert_false(dad_read(&l, f, 78, true, &c)); /* another target */
}

/* The packet says that it is longer than what came: nothing behind the frame is read. */
static void a_length_beyond_the_frame(void **state)
{
	struct io_link l = network(0);
	uint8_t f[DAD_FRAME + 8] = { 0 };
	struct dad_conflict c = { 0 };

	(void)state;
	dad_probe(&l, 1, f);
	from_them(f);
	uw_put16(f + 18, 32);
	sum6(f);
	assert_true(dad_read(&l, f, 86, true, &c));
	assert_false(dad_read(&l, f, 78, true, &c));
}

/* RFC 5227 §2.3: two, two seconds apart. */
static void it_is_announced_twice(void **state)
{
	struct dad_defence d = { 0 };

	(void)state;
	assert_true(dad_announces(&d, 5));
	assert_false(dad_announces(&d, 5));
	assert_int_equal(dad_next_us(&d, 6), 5 + 2 * SECOND);
	assert_false(dad_announces(&d, 4 + 2 * SECOND));
	assert_true(dad_announces(&d, 5 + 2 * SECOND));
	assert_false(dad_announces(&d, 100 * SECOND));
	assert_true(dad_next_us(&d, 0) == UINT64_MAX);
}

/* RFC 5227 §2.4 (c): DEFEND_INTERVAL. */
static void it_is_defended_once_in_ten_seconds(void **state)
{
	struct dad_defence d = { 0 };

	(void)state;
	assert_true(dad_defends(&d, SECOND));
	assert_false(dad_defends(&d, 11 * SECOND - 1));
	assert_true(dad_defends(&d, 11 * SECOND));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_probe_of_ipv4),
		cmocka_unit_test(a_probe_of_ipv6),
		cmocka_unit_test(an_announcement),
		cmocka_unit_test(what_is_not_ours_to_ask_for),
		cmocka_unit_test(somebody_has_the_ipv4_address),
		cmocka_unit_test(somebody_has_the_ipv6_address),
		cmocka_unit_test(a_length_beyond_the_frame),
		cmocka_unit_test(it_is_announced_twice),
		cmocka_unit_test(it_is_defended_once_in_ten_seconds),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
