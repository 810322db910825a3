/* SPDX-License-Identifier: BSD-3-Clause */
#include "bed.h"

#include <stdlib.h>

static struct bed_port *port_of(struct uplink *p)
{
	return (struct bed_port *)p;
}

static bool port_send(struct uplink *p, const struct uplink_out *f)
{
	struct bed_port *b = port_of(p);
	struct octets *to = &b->sent[b->n_sent];

	if (b->full)
		return false;
	assert_true(b->n_sent < BED_FRAMES && f->head_len + f->rest_len <= sizeof(to->h));
	memcpy(to->h, f->head, f->head_len);
	if (f->rest_len)
		memcpy(to->h + f->head_len, f->rest, f->rest_len);
	to->len = f->head_len + f->rest_len;
	b->n_sent++;
	return true;
}

static void port_flush(struct uplink *p)
{
	port_of(p)->flushed = port_of(p)->n_sent;
}

static bool port_receive(struct uplink *p, struct uplink_in *f)
{
	struct bed_port *b = port_of(p);

	b->looks++;
	if (b->taken == b->n_coming)
		return false;
	*f = (struct uplink_in){ .octets = b->coming[b->taken].h, .len = b->coming[b->taken].len };
	if (b->waits) {
		memcpy(b->begin, f->octets, sizeof(b->begin));
		f->octets = b->begin;
		f->waits = true;
	}
	b->taken++;
	return true;
}

static bool port_fetch(struct uplink *p, uint8_t *to)
{
	struct bed_port *b = port_of(p);
	const struct octets *f = &b->coming[b->taken - 1];

	b->fetched++;
	if (!b->loses)
		memcpy(to, f->h, f->len);
	return !b->loses;
}

static enum switch_msg_why port_claim(struct uplink *p, uint16_t port, enum io_versions v)
{
	port_of(p)->version = v;
	port_of(p)->claimed++;
	return ntohs(port) == port_of(p)->refuses ? SWITCH_IN_USE : SWITCH_GRANTED;
}

static void port_release(struct uplink *p, uint16_t port, enum io_versions v)
{
	(void)port;
	(void)v;
	port_of(p)->released++;
}

static enum switch_msg_why port_claim_packets(struct uplink *p)
{
	return port_of(p)->deaf ? SWITCH_IN_USE : SWITCH_GRANTED;
}

static const struct uplink_ops ops = { .send = port_send,
				       .flush = port_flush,
				       .receive = port_receive,
				       .fetch = port_fetch,
				       .claim = port_claim,
				       .claim_packets = port_claim_packets,
				       .release = port_release };

static void join(struct bed *b, uint16_t id)
{
	struct client *c = &b->c[id];
	int ours, theirs;

	*c = (struct client){ .id = id,
			      .state = CLIENT_UP,
			      .fd = -1,
			      .ring_fd = -1,
			      .wake_fd = -1,
			      .uid = 1000,
			      .ports = 1 };
	c->bell = b->bell[id];
	assert_status(conduit_make(&c->conduit, &ours), UW_OK);
	assert_status(conduit_make(&b->theirs[id], &theirs), UW_OK);
	assert_status(conduit_attach(&c->conduit, theirs), UW_OK);
	assert_status(conduit_attach(&b->theirs[id], ours), UW_OK);
	b->s.client[id] = c;
	b->s.active[b->s.n++] = c;
}

int bed_up(void **state)
{
	struct bed *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	table_up(NULL);
	b->port.p.ops = &ops;
	b->s.uplink = &b->port.p;
	b->s.table = table;
	b->s.table.qps = calloc(1, sizeof(*b->s.table.qps));
	assert_non_null(b->s.table.qps);
	b->s.take = 1;
	b->s.o.max_per_user = 4;
	b->s.o.max_ports = 5;
	b->s.user_ports = PORTS;
	join(b, ALICE);
	join(b, BOB);
	*state = b;
	return 0;
}

int bed_down(void **state)
{
	struct bed *b = *state;

	for (unsigned id = ALICE; id <= BOB; id++) {
		conduit_free(&b->c[id].conduit);
		conduit_free(&b->theirs[id]);
		free(b->c[id].qps);
	}
	qps_close(&b->s);
	free(b->s.table.qps);
	free(b);
	return 0;
}

void bed_put(struct bed *b, unsigned client, const struct octets *f)
{
	const struct conduit_meta meta = { .gso_size = f->gso_size, .sum = true };
	uint8_t *at;

	assert_int_equal(conduit_room(&b->theirs[client].out, f->len, &at), CONDUIT_OK);
	memcpy(at, f->h, f->len);
	conduit_put(&b->theirs[client].out, f->len, &meta);
}

bool bed_take(struct bed *b, unsigned client, struct octets *out)
{
	struct conduit_meta meta;
	const uint8_t *at;

	if (conduit_look(&b->theirs[client].in, &at, &out->len, &meta) != CONDUIT_OK)
		return false;
	assert_true(out->len <= sizeof(out->h));
	memcpy(out->h, at, out->len);
	conduit_step(&b->theirs[client].in);
	conduit_tell(&b->theirs[client].in);
	return true;
}
