/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program of datagrams in a world: a UD QP, a member of a group now and then, a listener of
 * RDMA_PS_UDP and endpoints that ask for others; and peers whose packets of RoCEv2 get past the
 * ICRC, to that QP, to the group, to the QP of management. Nobody of them is honest.
 */
#ifndef UWARP_FUZZ_DATAGRAMS_H
#define UWARP_FUZZ_DATAGRAMS_H

#include "roce/mad.h"
#include "roce/packet.h"
#include "world.h"

struct datagrams {
	struct world *w; /* NULL: nothing of it is there yet */
	struct uw_qp *qp;
	struct uw_cq *cq;
	struct uw_mr *mr;
	uint8_t *mem;
};

/* Something happens; the first time makes the program. */
void datagrams_play(struct datagrams *d, struct world *w, struct feed *f);
/* From a host of the peers' to us, or to the group. */
struct roce_path datagrams_path(const struct datagrams *d, uint32_t host, bool to_group);
/* A message from QP 1 to QP 1, whole or damaged. */
void datagrams_manage(struct datagrams *d, const struct roce_path *path, const struct mad *m,
		      struct feed *f);
/* Before world_close. */
void datagrams_close(struct datagrams *d);

#endif
