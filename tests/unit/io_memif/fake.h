/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A peer on the memif link that is only its messages and its shared memory: it needs no EAL, so one
 * process can be many of them, and it can write whatever it likes.
 */
#ifndef UWARP_TESTS_FAKE_H
#define UWARP_TESTS_FAKE_H

#include "io_dpdk/node.h"

#include "io/memif/ring.h"
#include "io/rendezvous/msg.h"

struct fake {
	uint32_t addr; /* its own, network order */
	int fd;	       /* control connection; -1: none */
	struct ring_shape shape;
	struct ring_region ours;
	struct ring_view theirs;
	uint32_t lends; /* octets of memory that READY says comes along */
	int lent_fd;
	unsigned why;		/* of the REFUSE that answered READY; 0: none did */
	_Atomic uint32_t *bell; /* the victim's */
	struct ring_writer writer;
	struct ring_reader reader;
};

enum { FAKE_MTU = 9000, FAKE_LENDS = 16384 };

/* Connect to the process at .2 and say nothing. */
int fake_connect(struct board *b);
/* Call it and take its WELCOME; false: it refused, its reason in *why, or hung up (0). */
bool fake_call(struct fake *k, struct board *b, uint32_t addr, unsigned *why);
/* Send READY with this region, and the memory that k lends; false: it hung up. */
bool fake_ready(struct fake *k, int region_fd);
/* All of that with a region as it should be, lending FAKE_LENDS octets of zeros. */
void fake_join(struct fake *k, struct board *b, uint32_t addr);
void fake_leave(struct fake *k);

struct ring_slot *fake_slot(struct fake *k, unsigned i);
/* Ring the victim's doorbell. */
void fake_ring(struct fake *k);
/* Has it hung up within ms? */
bool fake_hung_up(struct fake *k, unsigned ms);

#endif
