/* SPDX-License-Identifier: BSD-3-Clause */
/* A port that DPDK drives, with single frames and an address that nobody else has. */
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "io/dpdk/dpdk.h"
#include "uplink.h"

enum { BURST = 32 };

struct link_uplink {
	struct uplink p; /* first */
	struct io_link *l;
	struct io_frame *out[BURST], *in[BURST];
	unsigned n_out, n_in, at_in;
	uint8_t whole[CONDUIT_FRAME_MAX]; /* a frame of several buffers */
};

static struct link_uplink *link_uplink_of(struct uplink *p)
{
	return (struct link_uplink *)p;
}

static void nothing(void *arg)
{
	(void)arg;
}

/* ---- frames -------------------------------------------------------------------------------- */

static void link_flush(struct uplink *p)
{
	struct link_uplink *lp = link_uplink_of(p);
	unsigned sent = lp->n_out ? lp->l->ops->tx(lp->l, lp->out, lp->n_out) : 0;

	lp->n_out -= sent;
	memmove(lp->out, lp->out + sent, lp->n_out * sizeof(lp->out[0]));
}

static bool link_send(struct uplink *p, const struct uplink_out *f)
{
	struct link_uplink *lp = link_uplink_of(p);
	struct io_frame *to;

	if (lp->n_out == BURST)
		link_flush(p);
	if (lp->n_out == BURST)
		return false;
	to = lp->l->ops->alloc(lp->l);
	if (!to)
		return false;
	if (f->head_len + f->rest_len > to->room - (uint32_t)(to->data - to->buf)) {
		lp->l->ops->free(to);
		p->lost++;
		return true;
	}
	memcpy(to->data, f->head, f->head_len);
	if (f->rest_len)
		memcpy(to->data + f->head_len, f->rest, f->rest_len);
	to->len = f->head_len + f->rest_len;
	lp->out[lp->n_out++] = to;
	return true;
}

/* False: it is too long. */
static bool join(struct link_uplink *lp, const struct io_frame *f, struct uplink_in *out)
{
	uint32_t len = 0;

	for (; f; f = f->next) {
		if (f->len > sizeof(lp->whole) - len)
			return false;
		memcpy(lp->whole + len, f->data, f->len);
		len += f->len;
	}
	*out = (struct uplink_in){ .octets = lp->whole, .len = len };
	return true;
}

static bool link_receive(struct uplink *p, struct uplink_in *out)
{
	struct link_uplink *lp = link_uplink_of(p);
	bool good = false;

	while (!good) {
		if (lp->at_in == lp->n_in) {
			lp->at_in = 0;
			lp->n_in = lp->l->ops->rx(lp->l, lp->in, BURST);
		}
		if (!lp->n_in)
			return false;
		struct io_frame *f = lp->in[lp->at_in++];

		good = join(lp, f, out);
		if (good)
			out->meta.sum = f->marks & IO_FRAME_SUM_GOOD;
		io_free_chain(f);
	}
	return true;
}

/* ---- life ---------------------------------------------------------------------------------- */

static void link_close(struct uplink *p)
{
	struct link_uplink *lp = link_uplink_of(p);

	while (lp->at_in < lp->n_in)
		io_free_chain(lp->in[lp->at_in++]);
	for (unsigned i = 0; i < lp->n_out; i++)
		io_free_chain(lp->out[i]);
	lp->l->ops->close(lp->l);
	free(lp);
}

static const struct uplink_ops ops = {
	.send = link_send,
	.receive = link_receive,
	.flush = link_flush,
	.close = link_close,
};

/* The checksums of what clients send are computed by them. */
struct uplink *uplink_open_link(const struct options *o)
{
	const struct dpdk_config cfg = { .link = o->link,
					 .addr = o->addr,
					 .mask = o->mask,
					 .ip6 = o->ip6,
					 .n_ip6 = o->n_ip6,
					 .mtu = o->mtu,
					 .addr_fd = -1,
					 .tso = DPDK_TSO_OFF,
					 .verbose = o->verbose };
	const struct io_env env = { .lock = nothing, .unlock = nothing };
	struct link_uplink *lp = calloc(1, sizeof(*lp));

	if (!lp)
		return NULL;
	if (!o->addr) {
		uw_log("link %s has no address of its own; give one with --ip A/N", o->link);
		free(lp);
		return NULL;
	}
	if (dpdk_link_open(&cfg, &env, &lp->l)) {
		free(lp);
		return NULL;
	}
	lp->p = (struct uplink){ .ops = &ops,
				 .addr = lp->l->addr,
				 .mask = lp->l->mask,
				 .mtu = lp->l->mtu,
				 .bps = lp->l->bps,
				 .own = true,
				 .fd = -1 };
	memcpy(lp->p.mac, lp->l->mac, 6);
	lp->p.n_ip6 = lp->l->n_ip6;
	memcpy(lp->p.ip6, lp->l->ip6, sizeof(lp->p.ip6));
	lp->p.scope = lp->l->scope;
	return &lp->p;
}
