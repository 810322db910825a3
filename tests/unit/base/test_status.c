/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/status.h"

#include <errno.h>

#include "uwarp/types.h"
#include "uwtest.h"

static const struct {
	uw_status st;
	uint8_t layer, etype, code;
} told[] = {
	/* RFC 5044 §8 */
	{ UW_E_LLP_CLOSED, 2, 0, 0x01 },
	{ UW_E_MPA_CRC, 2, 0, 0x02 },
	{ UW_E_MPA_MARKER, 2, 0, 0x03 },
	{ UW_E_MPA_FRAME, 2, 0, 0x04 },
	/* RFC 6581 §8 */
	{ UW_E_MPA_LOCAL, 2, 0, 0x05 },
	{ UW_E_MPA_IRD, 2, 0, 0x06 },
	{ UW_E_MPA_RTR, 2, 0, 0x07 },
	/* RFC 5041 §7.2 */
	{ UW_E_DDP_LOCAL, 1, 0, 0x00 },
	{ UW_E_DDP_STAG, 1, 1, 0x00 },
	{ UW_E_DDP_BOUNDS, 1, 1, 0x01 },
	{ UW_E_DDP_STREAM, 1, 1, 0x02 },
	{ UW_E_DDP_WRAP, 1, 1, 0x03 },
	{ UW_E_DDP_T_VERSION, 1, 1, 0x04 },
	{ UW_E_DDP_QN, 1, 2, 0x01 },
	{ UW_E_DDP_NO_BUFFER, 1, 2, 0x02 },
	{ UW_E_DDP_MSN, 1, 2, 0x03 },
	{ UW_E_DDP_MO, 1, 2, 0x04 },
	{ UW_E_DDP_TOO_LONG, 1, 2, 0x05 },
	{ UW_E_DDP_U_VERSION, 1, 2, 0x06 },
	/* RFC 5040 §4.8 */
	{ UW_E_RDMAP_LOCAL, 0, 0, 0x00 },
	{ UW_E_RDMAP_STAG, 0, 1, 0x00 },
	{ UW_E_RDMAP_BOUNDS, 0, 1, 0x01 },
	{ UW_E_RDMAP_ACCESS, 0, 1, 0x02 },
	{ UW_E_RDMAP_STREAM, 0, 1, 0x03 },
	{ UW_E_RDMAP_WRAP, 0, 1, 0x04 },
	{ UW_E_RDMAP_NOT_INV, 0, 1, 0x09 },
	{ UW_E_RDMAP_VERSION, 0, 2, 0x05 },
	{ UW_E_RDMAP_OPCODE, 0, 2, 0x06 },
	{ UW_E_RDMAP_STREAM_CATASTROPHIC, 0, 2, 0x07 },
	{ UW_E_RDMAP_GLOBAL, 0, 2, 0x08 },
	{ UW_E_RDMAP_UNSPEC, 0, 2, 0xff },
};

/* RFC 5040 §4.8, RFC 5041 §7.2, RFC 5044 §8, RFC 6581 §8: layer, type and code of each error. */
static void terminate_codes_are_those_of_the_rfcs(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(told); i++) {
		struct uw_term_code t = uw_status_term(told[i].st);

		assert_int_equal(t.layer, told[i].layer);
		assert_int_equal(t.etype, told[i].etype);
		assert_int_equal(t.code, told[i].code);
		assert_true(t.sends);
	}
}

static void nothing_else_is_told_to_the_peer(void **state)
{
	(void)state;
	for (unsigned st = 0; st < UW_STATUS_COUNT; st++) {
		bool listed = false;

		for (size_t i = 0; i < COUNT(told); i++)
			listed |= told[i].st == st;
		assert_int_equal(!!uw_status_term((uw_status)st).sends, listed);
	}
}

static void a_received_code_finds_its_status(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(told); i++)
		assert_status(uw_status_from_term(told[i].layer, told[i].etype, told[i].code),
			      told[i].st);
}

static void codes_without_meaning_are_unspecified(void **state)
{
	(void)state;
	assert_status(uw_status_from_term(2, 0, 0x08), UW_E_RDMAP_UNSPEC);
	assert_status(uw_status_from_term(1, 3, 0x00), UW_E_RDMAP_UNSPEC);
	assert_status(uw_status_from_term(3, 0, 0x00), UW_E_RDMAP_UNSPEC);
	assert_status(uw_status_from_term(0, 1, 0xff), UW_E_RDMAP_UNSPEC);
}

static void every_status_has_a_name_of_its_own(void **state)
{
	(void)state;
	for (unsigned a = 0; a < UW_STATUS_COUNT; a++) {
		const char *name = uw_status_name((uw_status)a);

		assert_true(*name);
		for (unsigned b = 0; b < a; b++)
			assert_string_not_equal(name, uw_status_name((uw_status)b));
	}
}

static void only_ok_has_no_errno_and_completes_successfully(void **state)
{
	(void)state;
	assert_int_equal(uw_status_errno(UW_OK), 0);
	assert_int_equal(uw_status_wc(UW_OK), UW_WC_SUCCESS);
	for (unsigned st = 1; st < UW_STATUS_COUNT; st++) {
		assert_true(uw_status_errno((uw_status)st) > 0);
		assert_int_not_equal(uw_status_wc((uw_status)st), UW_WC_SUCCESS);
	}
}

static void completions_that_programs_look_for(void **state)
{
	static const struct {
		uw_status st;
		uint32_t wc;
	} rows[] = {
		{ UW_E_FLUSHED, UW_WC_WR_FLUSH_ERR },
		{ UW_E_LKEY, UW_WC_LOC_PROT_ERR },
		{ UW_E_LEN, UW_WC_LOC_LEN_ERR },
		{ UW_E_RDMAP_STAG, UW_WC_REM_ACCESS_ERR },
		{ UW_E_RDMAP_BOUNDS, UW_WC_REM_ACCESS_ERR },
		{ UW_E_RDMAP_ACCESS, UW_WC_REM_ACCESS_ERR },
		{ UW_E_DDP_STAG, UW_WC_REM_ACCESS_ERR },
		{ UW_E_DDP_NO_BUFFER, UW_WC_RNR_RETRY_EXC_ERR },
		{ UW_E_LLP_CLOSED, UW_WC_RETRY_EXC_ERR },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		assert_int_equal(uw_status_wc(rows[i].st), rows[i].wc);
	assert_int_equal(uw_status_errno(UW_E_NOMEM), ENOMEM);
	assert_int_equal(uw_status_errno(UW_E_INVAL), EINVAL);
	assert_int_equal(uw_status_errno(UW_E_BUSY), EBUSY);
	assert_int_equal(uw_status_errno(UW_E_REFUSED), ECONNREFUSED);
	assert_int_equal(uw_status_errno(UW_E_UNREACHABLE), EHOSTUNREACH);
	assert_int_equal(uw_status_errno(UW_E_NO_ROUTE), ENETUNREACH);
}

static void a_value_out_of_range_is_survived(void **state)
{
	(void)state;
	assert_non_null(uw_status_name((uw_status)UW_STATUS_COUNT));
	assert_true(uw_status_errno((uw_status)1000) > 0);
	assert_int_not_equal(uw_status_wc((uw_status)1000), UW_WC_SUCCESS);
}

static const struct CMUnitTest tests[] = {
	cmocka_unit_test(terminate_codes_are_those_of_the_rfcs),
	cmocka_unit_test(nothing_else_is_told_to_the_peer),
	cmocka_unit_test(a_received_code_finds_its_status),
	cmocka_unit_test(codes_without_meaning_are_unspecified),
	cmocka_unit_test(every_status_has_a_name_of_its_own),
	cmocka_unit_test(only_ok_has_no_errno_and_completes_successfully),
	cmocka_unit_test(completions_that_programs_look_for),
	cmocka_unit_test(a_value_out_of_range_is_survived),
};

UWTEST_MAIN(tests)
