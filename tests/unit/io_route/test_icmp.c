/* SPDX-License-Identifier: BSD-3-Clause */
/* ICMP errors as octets (RFC 792, RFC 4443). What io/lwip makes of them: io_lwip/test_path.c. */
#include "io/route/icmp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/be.h"

struct made {
	uint8_t b[256];
	size_t n;
};

static void put_sum(uint8_t *p, size_t n, uint32_t sum)
{
	uw_put16(p + 2, 0);
	for (size_t i = 0; i < n; i += 2)
		sum += uw_be16(p + i);
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	uw_put16(p + 2, (uint16_t)~sum);
}

static struct made made4(uint8_t type, uint8_t code)
{
	struct made m = { .n = 14 + 20 + 8 + 28 };
	uint8_t *ip = m.b + 14, *icmp = ip + 20, *in = icmp + 8;

	uw_put16(m.b + 12, 0x0800);
	ip[0] = 0x45;
	uw_put16(ip + 2, 56);
	ip[9] = 1;
	icmp[0] = type;
	icmp[1] = code;
	uw_put16(icmp + 6, 1400);
	in[0] = 0x45;
	uw_put16(in + 2, 1500);
	in[9] = 6;
	uw_put32(in + 12, 0x0a000001);
	uw_put32(in + 16, 0x0a000002);
	uw_put16(in + 20, 1);
	uw_put16(in + 22, 2);
	uw_put32(in + 24, 77);
	put_sum(icmp, 36, 0);
	return m;
}

static struct made made6(uint8_t type, uint8_t code)
{
	struct made m = { .n = 14 + 40 + 8 + 48 };
	uint8_t *ip = m.b + 14, *icmp = ip + 40, *in = icmp + 8;
	uint32_t sum = 56 + 58;

	uw_put16(m.b + 12, 0x86dd);
	ip[0] = 0x60;
	uw_put16(ip + 4, 56);
	ip[6] = 58;
	ip[8] = ip[24] = 0xfd;
	icmp[0] = type;
	icmp[1] = code;
	uw_put32(icmp + 4, 1300);
	in[0] = 0x60;
	uw_put16(in + 4, 1460);
	in[6] = 6;
	in[8] = 0xfd;
	in[24] = 0xfe;
	uw_put32(in + 44, 77);
	for (unsigned i = 8; i < 40; i += 2)
		sum += uw_be16(ip + i);
	put_sum(icmp, 56, sum);
	return m;
}

static enum icmp_kind kind(const struct made *m)
{
	struct icmp_error e;

	assert_true(icmp_read(m->b, m->n, &e));
	return e.kind;
}

static void too_big(void **state)
{
	struct made m = made4(3, 4);
	struct icmp_error e;

	(void)state;
	assert_true(icmp_read(m.b, m.n, &e));
	assert_int_equal(e.kind, ICMP_TOO_BIG);
	assert_int_equal(e.mtu, 1400);
	assert_int_equal(e.length, 1500);
	assert_int_equal(e.seq, 77);
	assert_int_equal(be16toh(e.lport), 1);
	assert_int_equal(be16toh(e.rport), 2);
	assert_int_equal(be32toh(uw_ip_v4_be(&e.remote)), 0x0a000002);
	m = made6(2, 0);
	assert_true(icmp_read(m.b, m.n, &e));
	assert_int_equal(e.kind, ICMP_TOO_BIG);
	assert_int_equal(e.mtu, 1300);
	assert_int_equal(e.length, 1500);
	assert_int_equal(e.remote.b[0], 0xfe);
	assert_int_equal(e.seq, 77);
}

static void unreachable(void **state)
{
	static const enum icmp_kind four[] = { ICMP_SOFT, ICMP_SOFT, ICMP_REFUSED, ICMP_REFUSED };
	static const enum icmp_kind six[] = { ICMP_SOFT,    ICMP_HARD, ICMP_SOFT, ICMP_SOFT,
					      ICMP_REFUSED, ICMP_HARD, ICMP_HARD, ICMP_SOFT };
	struct made m;

	(void)state;
	for (uint8_t i = 0; i < 4; i++) {
		m = made4(3, i);
		assert_int_equal(kind(&m), four[i]);
	}
	m = made4(3, 13);
	assert_int_equal(kind(&m), ICMP_HARD);
	m = made4(3, 99);
	assert_int_equal(kind(&m), ICMP_OTHER);
	for (uint8_t i = 0; i < 8; i++) {
		m = made6(1, i);
		assert_int_equal(kind(&m), six[i]);
	}
}

static void others(void **state)
{
	struct made m = made4(8, 0);
	struct icmp_error e;

	(void)state;
	assert_false(icmp_read(m.b, m.n, &e)); /* an echo request */
	m = made6(135, 0);
	assert_false(icmp_read(m.b, m.n, &e)); /* a neighbour solicitation */
	m = made4(3, 4);
	m.b[14 + 9] = 6;
	assert_false(icmp_read(m.b, m.n, &e)); /* TCP */
	m = made4(3, 4);
	m.b[14 + 20 + 8 + 9] = 17;
	put_sum(m.b + 34, 36, 0);
	assert_int_equal(kind(&m), ICMP_OTHER); /* about UDP */
}

/* RFC 1122 §3.2.2, RFC 4443 §2.3 */
static void damaged(void **state)
{
	struct made m = made4(3, 4);

	(void)state;
	m.b[60] ^= 1;
	assert_int_equal(kind(&m), ICMP_BAD);
	m = made6(2, 0);
	m.b[14 + 8] ^= 1;
	assert_int_equal(kind(&m), ICMP_BAD);
}

/* Nothing beyond the octets is read (asan looks). */
static void cut_short(void **state)
{
	struct icmp_error e;

	(void)state;
	for (unsigned version = 0; version < 2; version++) {
		struct made m = version ? made6(2, 0) : made4(3, 4);

		for (size_t n = 0; n < m.n; n++) {
			uint8_t *exact = malloc(n ? n : 1);

			assert_non_null(exact);
			memcpy(exact, m.b, n);
			assert_true(!icmp_read(exact, n, &e) || e.kind == ICMP_OTHER ||
				    e.kind == ICMP_BAD);
			free(exact);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(too_big), cmocka_unit_test(unreachable), cmocka_unit_test(others),
		cmocka_unit_test(damaged), cmocka_unit_test(cut_short),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
