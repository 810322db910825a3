/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion queues and completion events. */
#include <stdlib.h>

#include <rdma/ib_user_verbs.h>

#include "cq.h"

/* Any thread, perhaps under the stack's lock. The preloaded library made the channel, and
 * ibv_get_cq_event() reads its descriptor. */
static void on_completion(void *arg)
{
	struct uwarp_cq *cq = arg;
	struct ib_uverbs_comp_event_desc d = { .cq_handle = (uintptr_t)&cq->vcq.cq };

	if (!uwarp_provider_host()->channel_post(cq->channel, &d, sizeof(d)))
		cq->comp_reported++;
}

static void on_error(void *arg)
{
	struct uwarp_cq *cq = arg;

	uwarp_async_post(&cq->async, IBV_EVENT_CQ_ERR);
}

/* As the kernel's CQ holds the channel's file: the program may give the descriptor another number.
 */
static int hold_channel(struct uwarp_cq *cq, const struct ibv_comp_channel *channel)
{
	if (!channel)
		return 0;
	cq->channel = uwarp_provider_host()->channel_hold(channel->fd);
	return cq->channel ? 0 : -EBADF;
}

static void let_channel_go(struct uwarp_cq *cq)
{
	if (cq->channel)
		uwarp_provider_host()->channel_let_go(cq->channel);
}

int uwarp_cq_new(struct ibv_context *ibctx, const struct uwarp_cq_params *p, struct uwarp_cq **out)
{
	/* Without a channel nobody hears of a completion: none is looked for. */
	struct uw_cq_attr attr = { .notify = p->channel ? on_completion : NULL, .error = on_error };
	struct uwarp_stack stack;
	struct uwarp_cq *cq;
	int rc;

	if (p->cqe < 1 || p->cqe > INT32_MAX)
		return -EINVAL;
	if (p->comp_vector >= (uint32_t)ibctx->num_comp_vectors)
		return -EINVAL;
	rc = uwarp_stack_get(&stack);
	if (rc)
		return rc;
	cq = calloc(1, sizeof(*cq));
	if (!cq)
		return -ENOMEM;
	cq->api = stack.api;
	cq->async.ctx = to_uwarp_context(ibctx);
	cq->async.element = (uintptr_t)&cq->vcq.cq;
	cq->stamps = attr.stamps = p->stamps;
	attr.ignore_overrun = p->ignore_overrun;
	attr.depth = p->cqe;
	attr.ctx = cq;
	rc = hold_channel(cq, p->channel);
	if (!rc)
		rc = cq->api->cq_create(stack.engine, &attr, &cq->uw);
	if (rc) {
		let_channel_go(cq);
		free(cq);
		return rc;
	}
	cq->vcq.cq.cqe = (int)p->cqe;
	pthread_mutex_init(&cq->poll_lock, NULL);
	*out = cq;
	return 0;
}

struct ibv_cq *uwarp_create_cq(struct ibv_context *ibctx, int cqe, struct ibv_comp_channel *channel,
			       int comp_vector)
{
	struct uwarp_cq_params p = {
		.cqe = (uint32_t)cqe,
		.comp_vector = (uint32_t)comp_vector,
		.channel = channel,
	};
	struct uwarp_cq *cq;
	int rc = uwarp_cq_new(ibctx, &p, &cq);

	return rc ? uwarp_fail(rc) : &cq->vcq.cq;
}

int uwarp_poll_cq(struct ibv_cq *ibcq, int n, struct ibv_wc *wc)
{
	struct uwarp_cq *cq = to_uwarp_cq(ibcq);

	/* The same layout: same_as_verbs.c. */
	int got = cq->api->cq_poll(cq->uw, n, (struct uw_wc *)wc);

	if (got < 0)
		errno = -got;
	return got;
}

int uwarp_req_notify_cq(struct ibv_cq *ibcq, int solicited_only)
{
	struct uwarp_cq *cq = to_uwarp_cq(ibcq);

	return cq->channel ? -cq->api->cq_arm(cq->uw, solicited_only) : 0;
}

int uwarp_modify_cq(struct ibv_cq *ibcq, struct ibv_modify_cq_attr *attr)
{
	struct uwarp_cq *cq = to_uwarp_cq(ibcq);

	if (attr->attr_mask != IBV_CQ_ATTR_MODERATE)
		return EINVAL;
	return -cq->api->cq_moderate(cq->uw, attr->moderate.cq_count, attr->moderate.cq_period);
}

int uwarp_resize_cq(struct ibv_cq *ibcq, int cqe)
{
	struct uwarp_cq *cq = to_uwarp_cq(ibcq);
	int rc;

	if (cqe < 1)
		return EINVAL;
	rc = cq->api->cq_resize(cq->uw, (uint32_t)cqe);
	if (rc)
		return -rc;
	ibcq->cqe = cqe;
	return 0;
}

/* Once the engine's CQ is gone, no event is raised any more. Events that the program has not read
 * are removed. Those that it has read it must acknowledge, and this waits for that. If it never
 * does, the CQ's memory is not freed, because a late acknowledgement would write into it. */
int uwarp_destroy_cq(struct ibv_cq *ibcq)
{
	struct uwarp_cq *cq = to_uwarp_cq(ibcq);
	int rc = cq->api->cq_destroy(cq->uw);
	int dropped = 0;

	if (rc)
		return -rc;
	if (cq->channel)
		dropped = uwarp_provider_host()->channel_drop(cq->channel, (uintptr_t)ibcq);
	let_channel_go(cq);
	if (dropped > 0)
		cq->comp_reported -= (uint32_t)dropped;
	uwarp_async_drop(&cq->async);
	if (!uwarp_acked(&ibcq->mutex, &ibcq->cond, &ibcq->comp_events_completed,
			 cq->comp_reported) ||
	    !uwarp_acked(&ibcq->mutex, &ibcq->cond, &ibcq->async_events_completed,
			 cq->async.reported))
		return 0;
	pthread_mutex_destroy(&cq->poll_lock);
	free(cq);
	return 0;
}
