/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where to split the keys between two servers that both have all of them: where look-ups take as
 * long at the one as at the other. With many under way that is where both are busy.
 */
#ifndef BTREE_BALANCE_H
#define BTREE_BALANCE_H

#include <stdint.h>

struct balance {
	uint64_t keys, split; /* keys from this number on are the second server's */
	uint64_t ns[2];	      /* of the look-ups since the last step, and how many there were */
	unsigned count[2];
};

void balance_open(struct balance *b, uint64_t keys, uint64_t split);
/* A look-up at server 0 or 1 took so long. Moves the split now and then. */
void balance_note(struct balance *b, unsigned server, uint64_t ns);

#endif
