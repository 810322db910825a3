/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "fixture.h"

struct ibv_context *verbs_open_device(struct ibv_device *device, void *private_data);

static void make_channel(struct world *w)
{
	int fd[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, fd), 0);
	fake_host.channel_rd = fd[0];
	fake_host.channel_wr = fd[1];
	w->channel = calloc(1, sizeof(*w->channel));
	w->channel->context = w->ctx;
	w->channel->fd = fd[0];
}

struct ibv_cq *world_cq(struct world *w, struct uw_cq **uw)
{
	struct ibv_cq *cq = ibv_create_cq(w->ctx, 32, NULL, w->channel, 0);

	assert_non_null(cq);
	if (uw)
		*uw = fake.cq;
	return cq;
}

struct ibv_qp *world_qp(struct world *w, uint64_t send_ops)
{
	struct ibv_qp_init_attr_ex attr = {
		.qp_context = w,
		.send_cq = w->cq,
		.recv_cq = w->cq,
		.cap = { 6, 8, 2, 3, 16 },
		.qp_type = IBV_QPT_RC,
		.comp_mask =
			IBV_QP_INIT_ATTR_PD | (send_ops ? IBV_QP_INIT_ATTR_SEND_OPS_FLAGS : 0u),
		.pd = w->pd,
		.send_ops_flags = send_ops,
	};
	struct ibv_qp *qp = ibv_create_qp_ex(w->ctx, &attr);

	assert_non_null(qp);
	return qp;
}

int world_up(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	fake_host_reset();
	strcpy(w->sysfs.ibdev_name, "uwarp0");
	assert_true(uwarp_device_ops.match_device(&w->sysfs));
	w->dev = uwarp_device_ops.alloc_device(&w->sysfs);
	w->dev->ops = uwarp_abi_ops();
	assert_non_null(w->dev->ops);
	w->dev->device.node_type = IBV_NODE_RNIC;
	w->dev->device.transport_type = IBV_TRANSPORT_IWARP;
	atomic_init(&w->dev->refcount, 1);
	/* without sysfs libibverbs opens no /dev/infiniband/uverbs0 */
	w->ctx = verbs_open_device(&w->dev->device, NULL);
	assert_non_null(w->ctx);
	assert_int_equal(fake_host.engine_asked, 0);
	w->pd = ibv_alloc_pd(w->ctx);
	assert_non_null(w->pd);
	make_channel(w);
	w->cq = world_cq(w, NULL);
	*state = w;
	return 0;
}

int world_down(void **state)
{
	struct world *w = *state;

	assert_int_equal(ibv_destroy_cq(w->cq), 0);
	assert_int_equal(ibv_dealloc_pd(w->pd), 0);
	assert_int_equal(fake.live, 0);
	assert_int_equal(fake_host.held, 0);
	assert_int_equal(w->channel->refcnt, 0);
	close(fake_host.channel_rd);
	close(fake_host.channel_wr);
	free(w->channel);
	assert_int_equal(ibv_close_device(w->ctx), 0);
	uwarp_device_ops.uninit_device(w->dev);
	free(w);
	return 0;
}

double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}
