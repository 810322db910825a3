/* SPDX-License-Identifier: BSD-3-Clause */
#include "fake_llp.h"

struct fake_llp fake_llp;
static uint8_t segment[FAKE_OCTETS];

void fake_llp_reset(void)
{
	for (unsigned i = 0; i < fake_llp.n_conns; i++)
		free(fake_llp.conn[i]);
	memset(&fake_llp, 0, sizeof(fake_llp));
}

struct llp_conn *fake_llp_conn(void *ctx)
{
	struct llp_conn *c = calloc(1, sizeof(*c));

	assert_non_null(c);
	assert_true(fake_llp.n_conns < FAKE_CONNS);
	c->ctx = ctx;
	c->room = 1000;
	c->room_octets = FAKE_SEGMENT;
	fake_llp.conn[fake_llp.n_conns++] = c;
	return c;
}

static bool flush_links(void)
{
	if (fake_llp.on_flush)
		fake_llp.on_flush();
	return false;
}

static void nothing(void)
{
}

static void no_acks(enum llp_acks which)
{
	(void)which;
}

static unsigned none(void)
{
	return 0;
}

static uint64_t never(void)
{
	return UINT64_MAX;
}

static bool port_free(uint16_t port)
{
	return port != fake_llp.taken_port;
}

static uw_status listen_on(struct io_link *l, const struct llp_place *at, int backlog, void *ctx,
			   struct llp_listener **out)
{
	struct llp_listener *ls = &fake_llp.listener[fake_llp.n_listeners];

	(void)backlog;
	assert_true(fake_llp.n_listeners < FAKE_LISTENERS);
	if (++fake_llp.n_listeners == fake_llp.listen_fails_at)
		return UW_E_ADDR_IN_USE;
	*ls = (struct llp_listener){ .l = l, .at = *at, .ctx = ctx, .on = true };
	*out = ls;
	return UW_OK;
}

static void unlisten(struct llp_listener *ls)
{
	assert_true(ls->on);
	ls->on = false;
}

static uw_status connect_to(struct io_link *l, const struct llp_addrs *a, void *ctx,
			    struct llp_conn **out)
{
	(void)l;
	fake_llp.connects++;
	if (fake_llp.connect)
		return fake_llp.connect;
	*out = fake_llp_conn(ctx);
	(*out)->addrs = *a;
	return UW_OK;
}

/* No longer its user's. */
static void end(struct llp_conn *c, bool *how)
{
	assert_false(c->closed || c->aborted);
	*how = true;
}

static void close_it(struct llp_conn *c)
{
	end(c, &c->closed);
}

static void abort_it(struct llp_conn *c)
{
	end(c, &c->aborted);
}

static void shut(struct llp_conn *c)
{
	c->shut = true;
}

static void pause_it(struct llp_conn *c)
{
	c->paused = true;
}

static void resume(struct llp_conn *c)
{
	c->paused = false;
	c->resumes++;
	if (c->on_resume)
		c->on_resume(c);
}

static uint8_t *tx_begin(struct llp_conn *c, size_t *room)
{
	assert_false(c->closed || c->aborted);
	fake_llp.begins++;
	*room = c->room_octets;
	return c->room ? segment : NULL;
}

static void tx_commit(struct llp_conn *c, size_t n)
{
	if (!n)
		return;
	assert_true(c->n_sent + n <= FAKE_OCTETS && n <= c->room_octets);
	memcpy(c->sent + c->n_sent, segment, n);
	c->n_sent += n;
	c->room--;
	c->segments++;
	assert_true(fake_llp.n_order < COUNT(fake_llp.order));
	fake_llp.order[fake_llp.n_order++] = c;
}

static void tx_flush(struct llp_conn *c)
{
	assert_false(c->closed || c->aborted);
}

static struct llp_addrs addrs(const struct llp_conn *c)
{
	return c->addrs;
}

static void set_tos(struct llp_conn *c, uint8_t tos)
{
	c->addrs.tos = tos;
}

static bool has_way(const struct io_link *l, const struct uw_ip *to)
{
	(void)l;
	(void)to;
	return !fake_llp.no_way;
}

const struct llp_ops fake_llp_ops = {
	.poll = none,
	.acks = no_acks,
	.flush_links = flush_links,
	.timers = nothing,
	.next_timer_us = never,
	.port_free = port_free,
	.listen = listen_on,
	.unlisten = unlisten,
	.connect = connect_to,
	.close = close_it,
	.shutdown = shut,
	.abort = abort_it,
	.lingering = none,
	.pause = pause_it,
	.resume = resume,
	.tx_begin = tx_begin,
	.tx_commit = tx_commit,
	.tx_flush = tx_flush,
	.addrs = addrs,
	.set_tos = set_tos,
	.has_way = has_way,
};
