/* SPDX-License-Identifier: BSD-3-Clause */
/* What was posted to a QP and what has come back: each request completes once at most, in order,
 * and silently only if it was to be silent and went well. */
#ifndef UWARP_FUZZ_LEDGER_H
#define UWARP_FUZZ_LEDGER_H

#include "fuzz.h"
#include "uwarp/types.h"

#define LEDGER_MAX 1024u

struct ledger {
	struct {
		uint64_t length; /* a receive: what fits */
		bool signalled;
		bool done;
	} v[LEDGER_MAX];
	uint32_t posted; /* the wr_id of the next one */
	uint32_t seen;	 /* all before it are completed */
	uint32_t failed;
	bool any_order; /* several QPs share the queue */
	bool lossy;	/* the CQ may overflow, or a reset QP had one of the SRQ */
};

static inline bool ledger_full(const struct ledger *l)
{
	return l->posted == LEDGER_MAX;
}
void ledger_posted(struct ledger *l, uint64_t length, bool signalled);
void ledger_completed(struct ledger *l, const struct uw_wc *wc);
/* What was posted is gone in silence: the verbs' RESET. */
void ledger_forget(struct ledger *l);
/* Nothing is outstanding any more. */
void ledger_check_empty(const struct ledger *l);

#endif
