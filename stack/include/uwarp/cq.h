/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues; conventions are in uwarp.h. */
#ifndef UWARP_CQ_H
#define UWARP_CQ_H

#include "uwarp/config.h"

/* notify(ctx) is called at most once per uw_cq_arm, from any thread; NULL if uw_cq_arm is never
 * called. It may not block nor call the engine; it is over when uw_cq_destroy returns. error(ctx)
 * is called once when the CQ overflows; its QPs then go to error. depth: entries, at least 1. */
struct uw_cq_attr {
	uint32_t depth;
	void (*notify)(void *ctx);
	void (*error)(void *ctx);
	void *ctx;
	bool stamps;	     /* uw_cq_poll_stamped will be used */
	bool ignore_overrun; /* drop completions that do not fit, instead of an error */
};
int uw_cq_create(struct uw_engine *e, const struct uw_cq_attr *attr, struct uw_cq **out);
/* -EINVAL: the CQ holds more than depth entries */
int uw_cq_resize(struct uw_cq *cq, uint32_t depth);
int uw_cq_destroy(struct uw_cq *cq); /* -EBUSY while QPs use the CQ */

/* Take up to n completions into wc; returns their number, or a negative errno if the CQ is in
 * error. A poll of an empty CQ runs the stack (the `adaptive` thread model, doc/adr/0010). */
int uw_cq_poll(struct uw_cq *cq, int n, struct uw_wc *wc);

/* Take one completion and the time at which the completion was added, in nanoseconds of
 * CLOCK_MONOTONIC; else as uw_cq_poll. */
int uw_cq_poll_stamped(struct uw_cq *cq, struct uw_wc *wc, uint64_t *stamp_ns);

/* Delay notify() until `count` completions wait or `us` microseconds have passed since the first; 0
 * in either: no delay. */
int uw_cq_moderate(struct uw_cq *cq, uint16_t count, uint16_t us);

/* Ask for one notify() at the next completion; solicited_only: at the next solicited or failed one.
 * As with verbs, poll again after arming. A later call with solicited_only does not weaken an
 * earlier one without. */
int uw_cq_arm(struct uw_cq *cq, bool solicited_only);

#endif
