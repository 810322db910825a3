/* SPDX-License-Identifier: BSD-3-Clause */
#include "ledger.h"

void ledger_posted(struct ledger *l, uint64_t length, bool signalled)
{
	CHECK(l->posted < LEDGER_MAX);
	l->v[l->posted].length = length;
	l->v[l->posted].signalled = signalled;
	l->v[l->posted].done = false;
	l->posted++;
}

static bool known_status(uint32_t status)
{
	switch (status) {
	case UW_WC_SUCCESS:
	case UW_WC_LOC_LEN_ERR:
	case UW_WC_LOC_QP_OP_ERR:
	case UW_WC_LOC_PROT_ERR:
	case UW_WC_WR_FLUSH_ERR:
	case UW_WC_MW_BIND_ERR:
	case UW_WC_BAD_RESP_ERR:
	case UW_WC_LOC_ACCESS_ERR:
	case UW_WC_REM_INV_REQ_ERR:
	case UW_WC_REM_ACCESS_ERR:
	case UW_WC_REM_OP_ERR:
	case UW_WC_RETRY_EXC_ERR:
	case UW_WC_RNR_RETRY_EXC_ERR:
	case UW_WC_FATAL_ERR:
	case UW_WC_GENERAL_ERR:
		return true;
	default:
		return false;
	}
}

void ledger_completed(struct ledger *l, const struct uw_wc *wc)
{
	CHECK(known_status(wc->status));
	CHECK(wc->wr_id < l->posted && !l->v[wc->wr_id].done);
	CHECK(wc->status != UW_WC_SUCCESS || l->v[wc->wr_id].signalled);
	CHECK(wc->status != UW_WC_SUCCESS || wc->byte_len <= l->v[wc->wr_id].length);
	/* After the first that failed all others are flushed. */
	if (l->failed && !l->any_order)
		CHECK(wc->status != UW_WC_SUCCESS);
	l->failed += wc->status != UW_WC_SUCCESS;
	l->v[wc->wr_id].done = true;
	if (l->any_order)
		return;
	while (l->seen < wc->wr_id) { /* passed over: went well, and nobody wanted to know */
		CHECK(l->lossy || l->v[l->seen].done || !l->v[l->seen].signalled);
		l->v[l->seen++].done = true;
	}
	CHECK(l->lossy || l->seen == wc->wr_id);
	l->seen = (uint32_t)wc->wr_id + 1;
}

void ledger_forget(struct ledger *l)
{
	while (l->seen < l->posted)
		l->v[l->seen++].done = true;
	l->failed = 0;
}

void ledger_check_empty(const struct ledger *l)
{
	for (uint32_t i = 0; i < l->posted && !l->lossy; i++)
		CHECK(l->v[i].done || !l->v[i].signalled);
}
