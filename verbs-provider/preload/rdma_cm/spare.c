/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The QP of an id whose program has none for it. InfiniBand's connection manager believes any QP
 * number: UCX names that of a UD QP, exchanges private data, and connects its RC QPs without
 * rdma_cm. Here no stream comes up without an RC QP, so such an id gets one, which takes and sends
 * nothing.
 */
#include <errno.h>
#include <stdlib.h>

#include "loader/loader.h"
#include "rdma_cm.h"

struct cm_spare {
	struct uw_pd *pd;
	struct uw_cq *cq;
	struct uw_qp *qp;
};

static int make(struct cm_spare *s, const struct uw_api *api)
{
	const struct uw_cq_attr cq = { .depth = 1 };
	struct uw_qp_attr qp = { .type = UW_QPT_RC, .max_send_wr = 1, .max_send_sge = 1 };
	int err = api->pd_alloc(loader_engine(), &s->pd);

	if (!err)
		err = api->cq_create(loader_engine(), &cq, &s->cq);
	if (err)
		return err;
	qp.send_cq = qp.recv_cq = s->cq;
	return api->qp_create(s->pd, &qp, &s->qp);
}

static void unmake(struct cm_spare *s, const struct uw_api *api)
{
	if (s->qp)
		api->qp_destroy(s->qp);
	if (s->cq)
		api->cq_destroy(s->cq);
	if (s->pd)
		api->pd_dealloc(s->pd);
	free(s);
}

int cm_spare_qp(struct cm_id *id, uint32_t *qpn)
{
	struct cm_spare *s = id->spare;
	int err;

	if (!s) {
		s = calloc(1, sizeof(*s));
		err = s ? make(s, id->api) : -ENOMEM;
		if (err) {
			if (s)
				unmake(s, id->api);
			return err;
		}
		id->spare = s;
	}
	*qpn = id->api->qp_num(s->qp);
	return 0;
}

void cm_spare_drop(struct cm_id *id)
{
	if (id->spare)
		unmake(id->spare, id->api);
	id->spare = NULL;
}
