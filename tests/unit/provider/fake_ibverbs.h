/* SPDX-License-Identifier: BSD-3-Clause */
/* What a test sees of the libibverbs that it has put under the provider (fake_ibverbs.c). */
#ifndef UWARP_TEST_FAKE_IBVERBS_H
#define UWARP_TEST_FAKE_IBVERBS_H

#include "pabi.h"

#define FAKE_OPS 93 /* at most as many as the provider hands over to the newest version */

struct fake_ibverbs {
	const struct verbs_device_ops *driver; /* the driver that registered */
	unsigned registered;		       /* how often one did */
	void *ops[FAKE_OPS];		       /* as handed to verbs_set_ops() */
	struct verbs_context *start, *ended;   /* of the newest context */
	struct ibv_context *ibctx;
};

#endif
