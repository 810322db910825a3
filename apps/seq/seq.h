/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uwarp-seq: a sequencer. Every ticket is a number that nobody else gets. A client takes tickets
 * by FETCH_ADD on the server's counter, which costs the server nothing, or by a call; either way
 * one at a time or a batch.
 *
 * The two ways have a counter each, since a device's atomics need not be atomic to the CPU
 * (IBV_ATOMIC_HCA). Beside each counter is a ledger with a word for each ticket: with --verify the
 * owner enters itself by CMP_SWAP from 0, so that a ticket given twice is seen at once, and one
 * whose owner was killed is found by `uwarp-seq audit`, which may adopt it.
 */
#ifndef SEQ_H
#define SEQ_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"

enum seq_way { SEQ_FAA, SEQ_RPC, SEQ_WAYS };

#define SEQ_SERVICE	 ((struct service){ "uwarp-seq", 0x20716573u })
#define SEQ_COUNTER_SIZE 4096u /* octets before the ledger; the counter is the first word */
#define SEQ_MESSAGE	 64u
#define SEQ_OP_NEXT	 1u /* calls: a u64, how many; replies: a u64, the first */

/* What the server says when a client joins; the client's has nothing but the magic. */
struct seq_hello {
	uint32_t magic, rkey;
	uint64_t base; /* address of the first way's counter; the second's is `stride` further */
	uint64_t stride;
	uint64_t entries; /* of each ledger */
};

struct seq_options {
	struct options common;
	enum seq_way way;
	uint64_t batch, entries, id;
	bool verify, adopt, twice;
};

static inline uint64_t seq_counter(const struct seq_hello *h, enum seq_way way)
{
	return h->base + way * h->stride;
}

static inline uint64_t seq_entry(const struct seq_hello *h, enum seq_way way, uint64_t ticket)
{
	return seq_counter(h, way) + SEQ_COUNTER_SIZE + ticket * sizeof(uint64_t);
}

int seq_serve(const struct seq_options *o);
int seq_take(const struct seq_options *o);
int seq_audit(const struct seq_options *o);

#endif
