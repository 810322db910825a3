/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A QP with work in both directions; the input is what TCP brings, octet for octet, behind a few
 * that set the QP up and say where it is cut. Recorded streams of other implementations are seeds.
 */
#include "bed.h"

#define SETUP 112u /* four octets, six receives, six requests: see seeds */
#define CUTS  8u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };
	struct uw_span first = feed_span(&f, SETUP), where = feed_span(&f, CUTS);
	struct feed setup = { first.p, first.n }, cuts = { where.p, where.n };
	static struct bed b;

	bed_open(&b, &setup);
	for (unsigned i = 0; i < 6; i++) {
		bed_post_recv(&b, &setup);
		bed_post_send(&b, &setup);
	}
	bed_pull_all(&b, 1460);
	while (f.n && b.qp->state == UW_QPS_RTS) {
		struct uw_span s = feed_span(&f, 1 + feed_length(&cuts, 3000));

		if (!cuts.n)
			s.n += feed_span(&f, f.n).n; /* the rest at once */
		bed_arrive(&b, s.p, s.n);
		bed_deliver(&b, &cuts);
		bed_pull_all(&b, 1460);
	}
	bed_close(&b);
	return 0;
}
