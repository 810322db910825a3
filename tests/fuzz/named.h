/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * QPs without rdma_cm in a world (doc/adr/0006, 0048): a program that names peers, resets and
 * destroys; peers that call its QPs or are called by them, in TCP, with any hello; and questions
 * and answers about TCP ports between QP 1 and QP 1.
 */
#ifndef UWARP_FUZZ_NAMED_H
#define UWARP_FUZZ_NAMED_H

#include "datagrams.h"

#define NAMED_QPS 2u

struct named {
	struct datagrams *d; /* NULL: nothing of it is there yet */
	struct uw_cq *cq;
	struct uw_qp *qp[NAMED_QPS];
	struct raw_tcp call; /* the last SYN of ours to a port that nobody of the world has */
	bool called;
};

/* Something happens; the first time makes the program. d is there already. */
void named_play(struct named *n, struct datagrams *d, struct feed *f);
/* Before datagrams_close. */
void named_close(struct named *n);

#endif
