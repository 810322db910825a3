/* SPDX-License-Identifier: BSD-3-Clause */
/* A management datagram on its way out. */
#include <string.h>

#include "conn/dgram/sidr.h"

/* IBA §13.5.1.1: from QP 1 to QP 1. */
bool mad_send(struct stack *s, struct io_link *l, const struct roce_path *path,
	      const uint8_t mad[MAD_SIZE], enum mad_for whom)
{
	struct roce_head h = {
		.path = path,
		.op = { .transport = ROCE_UD, .first = true, .last = true },
		.bth = { .pkey = ROCE_PKEY, .dest_qp = MAD_QPN, .psn = s->sidr_psn },
		.deth = { .qkey = MAD_QKEY, .src_qp = MAD_QPN },
	};
	size_t room, n = 0;
	uint8_t *out;

	if (stack_is_without_links(s)) /* l is freed: as lost on its way */
		return true;
	out = s->llp->packet_begin(l, NULL, &room);
	if (!out)
		return false;
	if (roce_head_size(&h) + MAD_SIZE + ROCE_TAIL_MAX <= room) {
		memcpy(out + roce_head_size(&h), mad, MAD_SIZE);
		n = roce_packet_write(&h, out, MAD_SIZE);
	}
	s->llp->packet_end(l, n, &path->dst, whom == MAD_FOR_OTHERS);
	s->sidr_psn = (s->sidr_psn + 1) & ROCE_PSN_MASK;
	return true;
}
