/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames from conduits to the port and to other conduits, and from the port to conduits. */
#include <linux/futex.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/doorbell.h"
#include "io/switch/answer.h"
#include "server.h"

/* A client's share of a round, and the port's. */
enum { OUT_FRAMES = 32, OUT_OCTETS = 256 << 10, IN_FRAMES = 32, IN_OCTETS = 512 << 10 };
enum { REST_FRAMES = 4096 };
/* Of a client's threads, woken at once: its RX thread, and those that poll and make room for us
 * (sched/app_poll.c). Others look by themselves soon. Each costs us microseconds, and a client may
 * have tens of thousands of them wait. */
enum { WAKE_MOST = 8 };
#define BURST_SECONDS 0.02 /* a client with a rate may save up so much */

/* ---- to a client --------------------------------------------------------------------------- */

struct frame {
	const uint8_t *head, *rest;
	uint32_t head_len, rest_len;
	bool waits; /* in the port, and head is only its begin */
	struct conduit_meta meta;
};

/* False: it is lost. */
static bool fill(const struct server *s, const struct frame *f, uint8_t *to)
{
	if (f->waits)
		return s->uplink->ops->fetch(s->uplink, to);
	memcpy(to, f->head, f->head_len);
	if (f->rest_len)
		memcpy(to + f->head_len, f->rest, f->rest_len);
	return true;
}

static void deliver(struct server *s, struct client *c, const struct frame *f)
{
	uint32_t len = f->head_len + f->rest_len;
	enum conduit_result r = CONDUIT_NONE;
	uint8_t *to;

	if (c && c->state == CLIENT_UP)
		r = conduit_room(&c->conduit.out, len, &to);
	if (r == CONDUIT_FAULT) {
		c->state = CLIENT_ENDED;
		s->faults++;
	}
	if (r != CONDUIT_OK) {
		if (c)
			c->drops.by[SWITCH_WHY_room]++;
		return;
	}
	if (!fill(s, f, to))
		return;
	conduit_put(&c->conduit.out, len, &f->meta);
	c->rx_frames++;
	c->rx_octets += len;
	c->touched = true;
}

static void deliver_all(struct server *s, const struct frame *f)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->active[i]->state == CLIENT_UP)
			deliver(s, s->active[i], f);
}

/* To those that take part in rdma_cm's datagrams, sender apart. */
static void deliver_cm(struct server *s, const struct client *sender, const struct frame *f)
{
	for (unsigned i = 0; i < s->n; i++) {
		struct client *c = s->active[i];

		if (c != sender && s->table.qps->manages[c->id])
			deliver(s, c, f);
	}
}

/* The count says that there is an octet to take out. It comes first: the client may run at once, on
 * this very CPU. Never blocks, whatever the client makes of its socket. */
static void ring(struct server *s, struct client *c)
{
	struct wake_cost_time since = wake_cost_begin(&c->wake_cost);

	atomic_fetch_add_explicit(c->bell + SWITCH_BELL_RINGS, 1, memory_order_relaxed);
	if (send(c->wake_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1)
		atomic_fetch_sub_explicit(c->bell + SWITCH_BELL_RINGS, 1, memory_order_relaxed);
	client_woken(s, c, since);
}

static void wake(struct server *s, struct client *c)
{
	uint32_t was = doorbell_swap(c->bell);

	c->touched = false;
	if (was == IO_ASLEEP)
		syscall(SYS_futex, c->bell, FUTEX_WAKE, WAKE_MOST, NULL, NULL, 0);
	else if (was == IO_ASLEEP_FD && c->wake_fd >= 0)
		ring(s, c);
}

/* The fence pairs with the one between the sleeper's store of a word for sleep and its look at the
 * conduit. */
static void wake_touched(struct server *s)
{
	atomic_thread_fence(memory_order_seq_cst);
	s->late = false;
	for (unsigned i = 0; i < s->n; i++) {
		struct client *c = s->active[i];

		if (c->touched && wake_cost_is_over(&c->wake_cost, s->now_us))
			wake(s, c);
		s->late |= c->touched;
	}
}

void forward_wake_late(struct server *s)
{
	if (s->late)
		wake_touched(s);
}

/* ---- from a client ------------------------------------------------------------------------- */

/* Answers of ours are given to send, too; and what the port did not take goes with the next. */
static void flush(struct server *s)
{
	if (s->uplink->ops->flush)
		s->uplink->ops->flush(s->uplink);
}

/* A frame that was looked at: its head is ours, so that it does not change after the verdict. */
struct looked {
	uint8_t head[SWITCH_HEAD_MAX];
	struct frame f;
	struct switch_result r;
};

static void look(const struct server *s, const struct client *c, const uint8_t *at, uint32_t len,
		 struct looked *out)
{
	uint32_t head = len < SWITCH_HEAD_MAX ? len : SWITCH_HEAD_MAX;
	struct switch_frame f = { out->head, head, len, out->f.meta.gso_size };

	memcpy(out->head, at, head);
	out->r = switch_out(&s->table, c->id, &f);
	if (out->r.headers)
		head = out->r.headers;
	out->f = (struct frame){ .head = out->head,
				 .rest = at + head,
				 .head_len = head,
				 .rest_len = len - head,
				 .meta = out->f.meta };
}

/* Nobody holds the port of the shared address that c sent to: refused at once. */
static void answer_client(struct server *s, struct client *c, const struct looked *l)
{
	const struct switch_frame f = { .head = l->f.head,
					.head_len = l->f.head_len,
					.len = l->f.head_len + l->f.rest_len };
	uint8_t octets[SWITCH_ANSWER_MAX];
	struct frame a = { .head = octets };

	a.head_len = switch_answer(&s->table, &f, octets);
	if (!a.head_len)
		return;
	deliver(s, c, &a);
	s->answered++;
}

/* False: the port has no room. */
static bool hand_on(struct server *s, struct client *c, const struct looked *l)
{
	const struct uplink_out out = { .head = l->f.head,
					.head_len = l->f.head_len,
					.rest = l->f.rest,
					.rest_len = l->f.rest_len,
					.tcp = l->r.tcp,
					.meta = l->f.meta };

	switch (l->r.verdict) {
	case SWITCH_TO_PORT:
		return s->uplink->ops->send(s->uplink, &out);
	case SWITCH_TO_CLIENT:
		deliver(s, s->client[l->r.client], &l->f);
		return true;
	case SWITCH_TO_CM:
		deliver_cm(s, c, &l->f);
		return true;
	case SWITCH_ANSWER:
		answer_client(s, c, l);
		return true;
	default:
		c->drops.by[l->r.why]++;
		return true;
	}
}

static void count_out(struct server *s, struct client *c, uint32_t len)
{
	c->tx_frames++;
	c->tx_octets += len;
	if (s->o.rate > 0)
		c->may_send -= len;
}

static bool throttled(const struct server *s, const struct client *c)
{
	return s->o.rate > 0 && c->may_send <= 0;
}

static unsigned from_client(struct server *s, struct client *c, unsigned frames, uint32_t octets)
{
	enum conduit_result r = CONDUIT_OK;
	unsigned n = 0;

	c->blocked = false;
	while (n < frames && octets && !throttled(s, c)) {
		struct looked l;
		const uint8_t *at;
		uint32_t len;

		r = conduit_look(&c->conduit.in, &at, &len, &l.f.meta);
		if (r != CONDUIT_OK)
			break;
		look(s, c, at, len, &l);
		if (!hand_on(s, c, &l)) {
			c->blocked = s->uplink->fd >= 0;
			break;
		}
		conduit_step(&c->conduit.in);
		count_out(s, c, len);
		octets -= len < octets ? len : octets;
		n++;
	}
	if (n)
		conduit_tell(&c->conduit.in);
	if (r == CONDUIT_FAULT) {
		c->state = CLIENT_ENDED;
		s->faults++;
	}
	return n;
}

void forward_rest(struct server *s, struct client *c)
{
	if (c->conduit.theirs)
		from_client(s, c, REST_FRAMES, CONDUIT_OCTETS);
	flush(s);
	wake_touched(s);
}

/* ---- from the port ------------------------------------------------------------------------- */

static void answer(struct server *s, const struct switch_frame *f)
{
	uint8_t octets[SWITCH_ANSWER_MAX];
	struct uplink_out out = { .head = octets };

	out.head_len = switch_answer(&s->table, f, octets);
	if (out.head_len && s->uplink->ops->send(s->uplink, &out))
		s->answered++;
}

/* A frame that goes to several clients can be fetched only once. False: it is lost. */
static bool bring(struct server *s, struct frame *f)
{
	if (f->waits && !s->uplink->ops->fetch(s->uplink, s->whole))
		return false;
	if (f->waits)
		f->head = s->whole;
	f->waits = false;
	return true;
}

static void from_port(struct server *s, const struct uplink_in *in)
{
	const struct switch_frame f = { .head = in->octets,
					.head_len = in->waits ? SWITCH_HEAD_MAX : in->len,
					.len = in->len };
	struct frame whole = {
		.head = in->octets, .head_len = in->len, .waits = in->waits, .meta = in->meta
	};
	struct switch_result r = switch_in(&s->table, &f);

	s->rx_frames++;
	switch (r.verdict) {
	case SWITCH_TO_CLIENT:
		deliver(s, s->client[r.client], &whole);
		break;
	case SWITCH_TO_ALL:
		if (bring(s, &whole))
			deliver_all(s, &whole);
		break;
	case SWITCH_TO_CM:
		if (bring(s, &whole))
			deliver_cm(s, NULL, &whole);
		break;
	case SWITCH_ANSWER:
		answer(s, &f);
		break;
	default:
		s->drops.by[r.why]++;
		break;
	}
}

/* ---- a round ------------------------------------------------------------------------------- */

static unsigned all_clients(struct server *s)
{
	unsigned done = 0;

	s->turn = s->turn + 1 < s->n ? s->turn + 1 : 0;
	for (unsigned i = 0; i < s->n; i++) {
		struct client *c = s->active[(s->turn + i) % s->n];

		if (c->state == CLIENT_UP)
			done += from_client(s, c, OUT_FRAMES, OUT_OCTETS);
	}
	flush(s);
	return done;
}

/* A look may be a system call, which a frame that came alone does not wait for. */
static void learn(struct server *s, unsigned in)
{
	if (in < s->take)
		s->take = 1;
	else if (s->take < IN_FRAMES)
		s->take *= 2;
}

unsigned forward_round(struct server *s)
{
	unsigned out = all_clients(s), in = 0;
	uint32_t octets = 0;
	struct uplink_in f;

	while (in < s->take && octets < IN_OCTETS && s->uplink->ops->receive(s->uplink, &f)) {
		from_port(s, &f);
		octets += f.len;
		in++;
	}
	learn(s, in);
	if (in)
		flush(s);
	if (out || in)
		wake_touched(s);
	return out + in;
}

static bool sleeps(const struct client *c)
{
	uint32_t bell = atomic_load_explicit(c->bell, memory_order_relaxed);

	return bell == IO_ASLEEP || bell == IO_ASLEEP_FD;
}

bool forward_all_asleep(const struct server *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		const struct client *c = s->active[i];

		if (c->state == CLIENT_UP && !sleeps(c))
			return false;
	}
	return true;
}

bool forward_pending(const struct server *s)
{
	for (unsigned i = 0; i < s->n; i++) {
		const struct client *c = s->active[i];

		if (c->state == CLIENT_UP && !throttled(s, c) && !c->blocked &&
		    conduit_has(&c->conduit.in))
			return true;
	}
	return false;
}

bool forward_blocked(const struct server *s)
{
	for (unsigned i = 0; i < s->n; i++)
		if (s->active[i]->blocked)
			return true;
	return false;
}

bool forward_throttled(const struct server *s)
{
	for (unsigned i = 0; i < s->n; i++)
		if (throttled(s, s->active[i]))
			return true;
	return false;
}

void forward_refill(struct server *s, double seconds)
{
	double octets = s->o.rate / 8, most = octets * BURST_SECONDS;

	for (unsigned i = 0; s->o.rate > 0 && i < s->n; i++) {
		struct client *c = s->active[i];

		c->may_send += octets * seconds;
		if (c->may_send > most)
			c->may_send = most;
	}
}
