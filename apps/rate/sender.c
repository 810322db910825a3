/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections of the client, made and closed. */
#include <errno.h>
#include <stdlib.h>

#include "drive.h"
#include "log.h"

static bool is_atomic(enum rate_op op)
{
	return op == RATE_FAA || op == RATE_CAS;
}

static int join(struct driver *d, struct sender *l)
{
	const struct rate_options *o = d->options;
	struct conn_wish wish = { .service = RATE_SERVICE,
				  .cq = d->comp.cq,
				  .sends = drive_slots(d),
				  .receives = 1,
				  .inline_data = d->point.inline_data };
	struct hello hello = { { 0 } };
	int err;

	memcpy(hello.octets, &l->wish, sizeof(l->wish));
	err = conn_open(&l->conn, &d->device, &o->common.server, &wish, &hello);
	if (err)
		return err;
	memcpy(&l->offer, hello.octets, sizeof(l->offer));
	if (o->op == RATE_SEND && d->point.size > l->offer.message) {
		log_line("--size %u: the server was told to receive at most %u octets (--message)",
			 d->point.size, l->offer.message);
		return -EMSGSIZE;
	}
	return 0;
}

static int open_sender(struct driver *d, struct sender *l, unsigned index)
{
	uint32_t slots = drive_slots(d), size = d->point.size;
	int err;

	l->wish = (struct rate_wish){ .seed = mix64(d->options->common.seed + index +
						    1000u * d->member->index),
				      .size = size,
				      .slots = slots,
				      .verify = d->options->verify };
	l->posted_at = calloc(slots, sizeof(*l->posted_at));
	if (!l->posted_at)
		return -ENOMEM;
	err = region_open(&l->local, &d->device, (size_t)slots * (size < 8 ? 8 : size),
			  REGION_SINK);
	if (err)
		return err;
	for (uint32_t i = 0; !is_atomic(d->options->op) && i < slots; i++)
		rate_fill(l->local.base + (size_t)i * size, size, l->wish.seed, i);
	return join(d, l);
}

int drive_open(struct member *m)
{
	const struct rate_job *job = m->team->user;
	const struct options *o = m->team->options;
	struct driver *d = calloc(1, sizeof(*d));
	int err;

	if (!d)
		return -ENOMEM;
	m->user = d;
	d->member = m;
	d->options = job->options;
	d->point = job->point;
	d->sender = calloc(d->options->qps, sizeof(*d->sender));
	if (!d->sender)
		return -ENOMEM;
	err = device_open_to(&d->device, o->server.host, o->server.port);
	if (!err && is_atomic(d->options->op))
		err = device_need_atomics(&d->device);
	if (!err)
		err = comp_open(&d->comp, &d->device, (unsigned)d->options->qps * o->window + 16,
				o->events);
	for (unsigned i = 0; !err && i < d->options->qps; i++)
		err = open_sender(d, &d->sender[i], i);
	return err;
}

void drive_close(struct member *m)
{
	struct driver *d = m->user;

	for (unsigned i = 0; d->sender && i < d->options->qps; i++) {
		conn_close(&d->sender[i].conn);
		region_close(&d->sender[i].local);
		free(d->sender[i].posted_at);
	}
	free(d->sender);
	comp_close(&d->comp);
	device_close(&d->device);
	free(d);
}
