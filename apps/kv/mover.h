/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host's thread that gives keys to the SoC and takes them back, while clients go on. One key at
 * a time, and always in this order, so that no moment has two owners who let it be written:
 *
 *   out:  host FROZEN -> SoC PENDING -> host MOVED -> SoC HERE
 *   in:   SoC FROZEN -> host PENDING -> SoC forgets -> host HERE
 *
 * A node that dies takes along what it owned, and no more: the one that is left makes HERE of what
 * was FROZEN or PENDING (store_settle()). This supposes that a connection is only lost when a node
 * is; a host that has lost its SoC never talks to it again. A SoC that is silent has not died: the
 * key that is on its way stays FROZEN, to be read and not to be written, until the SoC goes on or
 * the device says that the connection is lost.
 *
 * Which keys move is asked for by clients (mover_ask()), or follows from what clients have counted.
 */
#ifndef KV_MOVER_H
#define KV_MOVER_H

#include "kv.h"
#include "report.h"
#include "store.h"

struct mover;

int mover_open(struct mover **m, const struct kv_options *o, struct store *store);
/* The thread ends; then mover_report() and mover_close(). */
void mover_stop(struct mover *m);
void mover_report(const struct mover *m, struct report *r);
void mover_close(struct mover *m);

/* Called by workers. An array of struct kv_hot. 0 or -EINVAL. */
int mover_hear(struct mover *m, struct span counts);
/* 0: noted; -EAGAIN: too much is noted already; -ENODATA: there is no SoC any more. */
int mover_ask(struct mover *m, struct span key, bool out);

#endif
