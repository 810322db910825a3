/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by plain and extended completion queues. */
#ifndef UWARP_PROVIDER_CQ_H
#define UWARP_PROVIDER_CQ_H

#include "provider.h"

struct uwarp_cq_params {
	uint32_t cqe, comp_vector;
	struct ibv_comp_channel *channel;
	bool stamps, ignore_overrun;
};

int uwarp_cq_new(struct ibv_context *ibctx, const struct uwarp_cq_params *p, struct uwarp_cq **out);

#endif
