/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider under the real libibverbs: a device made by the provider's own operations, opened
 * by libibverbs, so that the tests call nothing but public verbs.
 */
#ifndef UWARP_TEST_FIXTURE_H
#define UWARP_TEST_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "fake_host.h"
#include "provider.h"

struct world {
	struct verbs_sysfs_dev sysfs;
	struct verbs_device *dev;
	struct ibv_context *ctx;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel; /* made here: the real one is the shim's */
	struct ibv_cq *cq;
};

int world_up(void **state);
/* Checks that everything the provider made in the engine is gone. */
int world_down(void **state);

/* One more CQ on the channel; the double's object goes to *uw. */
struct ibv_cq *world_cq(struct world *w, struct uw_cq **uw);
struct ibv_qp *world_qp(struct world *w, uint64_t send_ops);
double now_s(void);

#endif
