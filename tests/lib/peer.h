/* SPDX-License-Identifier: BSD-3-Clause */
/* One RDMAP stream with the simplest of ULPs above it, which writes down what it is told. */
#ifndef UWARP_TESTS_PEER_H
#define UWARP_TESTS_PEER_H

#include "arena.h"
#include "rdmap/rdmap.h"
#include "ulpdu.h"

#define PEER_READS 4
#define PEER_RECVS 16
#define PEER_SINK  0x00abcd00u /* the first private STag */

struct peer {
	struct arena mem;
	struct uw_stats stats;
	struct rdmap_stream s;
	struct rdmap_irq_entry irq[PEER_READS];
	struct rdmap_orq_entry orq[PEER_READS];

	struct mem_sgl recv[PEER_RECVS];
	unsigned posted, taken;
	struct rdmap_delivery got[PEER_RECVS];
	unsigned delivered, reads_done, terminated;
	struct rdmap_term term; /* what the peer's Terminate said */
};

void peer_init(struct peer *p, uint16_t ird, uint16_t ord);
void peer_post(struct peer *p, const struct mem_sgl *sgl);

uw_status peer_rx(struct peer *p, const struct ulpdu *u);
/* The next segment of the message in transmission, at most max octets. */
struct ulpdu peer_segment(struct peer *p, size_t max);
/* All segments of the message in transmission to the other side; stops at the first that fails. */
uw_status peer_carry(struct peer *from, struct peer *to, size_t max);
/* Begin the Terminate about `why` and return its ULPDU. */
struct ulpdu peer_terminate(struct peer *p, uw_status why);

#endif
