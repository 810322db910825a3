/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client: each thread has a connection, with up to `window` requests under way on it. With
 * --load one thread writes every key first, so that what is counted finds it.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "peer.h"
#include "report.h"
#include "log.h"
#include "team.h"

#define ROOM	(1u << 21)
#define WAIT_NS 5000000000u

struct peer {
	const struct peer_options *options;
	bool loading;
	uint64_t misses;
};

struct asked {
	uint64_t at, key;
	enum op op;
};

struct talker {
	struct member *member;
	struct peer *peer;
	const struct peer_options *options;
	int fd;
	struct keys keys;
	uint64_t begun;
	struct asked *asked; /* a ring of `window` */
	unsigned first, under_way;
	uint64_t at; /* clock_ns() when something came, for all that came */
	uint8_t *in, *out;
	size_t filled;
	uint64_t bad, misses, wrong;
};

static int send_all(const struct talker *t, size_t n)
{
	for (size_t at = 0; at < n;) {
		ssize_t m = send(t->fd, t->out + at, n - at, MSG_NOSIGNAL);

		if (m < 0)
			return log_errno("send");
		at += (size_t)m;
	}
	return 0;
}

static bool goes_on(const struct talker *t)
{
	return t->peer->loading ? t->begun < t->options->keys : member_goes_on(t->member, t->begun);
}

/* Requests that there is room for go out in one go. */
static int fill(struct talker *t)
{
	unsigned window = t->options->common.window;
	size_t n = 0;

	for (; t->under_way < window && n + REQUEST_HEAD + t->options->value < ROOM && goes_on(t);
	     t->begun++) {
		struct asked *a = &t->asked[(t->first + t->under_way++) % window];

		*a = (struct asked){ .at = t->at, .key = t->begun, .op = OP_UPDATE };
		if (!t->peer->loading) {
			a->op = mix_next(t->options->mix, &t->member->random);
			a->key = keys_next(&t->keys, t->keys.n, &t->member->random);
		}
		n += t->options->protocol->request(t->out + n, a->op, a->key, t->options);
	}
	return n ? send_all(t, n) : 0;
}

static int wait_in(const struct talker *t)
{
	struct pollfd p = { .fd = t->fd, .events = POLLIN };

	return t->options->common.events && poll(&p, 1, WAIT_NS / 1000000) <= 0 ? -ETIMEDOUT : 0;
}

static int receive(struct talker *t)
{
	uint64_t end = 0;
	ssize_t n;
	int err = wait_in(t);

	for (unsigned round = 1; !err; round++) {
		n = recv(t->fd, t->in + t->filled, ROOM - t->filled, MSG_DONTWAIT);
		if (n > 0) {
			t->filled += (size_t)n;
			t->at = clock_ns();
			return 0;
		}
		if (!n || errno != EAGAIN)
			return n ? log_errno("recv") : -ECONNRESET;
		if (round % 1024)
			continue;
		end = end ? end : clock_ns() + WAIT_NS;
		err = clock_ns() > end ? -ETIMEDOUT : 0;
	}
	return err;
}

/* An answer to what was asked: a store has no value for a write, and no "done" for a read. */
static bool answers(const struct talker *t, enum op op, const struct reply *r)
{
	bool brings = op == OP_READ && t->options->protocol->brings;

	if (r->verdict == REPLY_GOOD)
		return brings == (r->value != NULL);
	return brings && r->verdict == REPLY_MISS;
}

/* Every octet of a value is looked at, as a client of uwarp-kv does. */
static void look_at(struct talker *t, const struct asked *a, const struct reply *r)
{
	t->bad += !answers(t, a->op, r);
	t->misses += r->verdict == REPLY_MISS;
	if (r->value)
		t->wrong += r->length != t->options->value ||
			    memcmp(r->value, value_of(a->key), r->length);
}

static void take(struct talker *t)
{
	struct reply r;
	size_t at = 0, n;

	while (t->under_way && (n = t->options->protocol->reply(t->in + at, t->filled - at, &r))) {
		const struct asked *a = &t->asked[t->first];

		member_done(t->member, 1, t->at - a->at);
		look_at(t, a, &r);
		t->first = (t->first + 1) % t->options->common.window;
		t->under_way--;
		at += n;
	}
	memmove(t->in, t->in + at, t->filled - at);
	t->filled -= at;
	t->in[t->filled] = 0; /* what reads numbers stops here */
}

static int run(struct member *m)
{
	struct talker *t = m->user;
	int err;

	t->at = clock_ns();
	err = fill(t);

	while (!err && t->under_way) {
		err = receive(t);
		take(t);
		if (!err)
			err = fill(t);
	}
	if (err)
		log_line("no answer: %s", strerror(-err));
	if (t->bad)
		log_line("%lu requests were refused, or answered as another kind of request is",
			 t->bad);
	if (t->wrong)
		log_line("%lu values are not what was written", t->wrong);
	return err ? err : t->bad || t->wrong ? -EBADMSG : 0;
}

static int open_talker(struct member *m)
{
	struct peer *peer = m->team->user;
	const struct peer_options *o = peer->options;
	struct talker *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	m->user = t;
	t->member = m;
	t->peer = peer;
	t->options = o;
	t->fd = -1;
	t->keys.dist = o->mix->dist;
	t->keys.theta = 0.99;
	if (o->dist)
		keys_parse(&t->keys, o->dist);
	keys_open(&t->keys, o->keys);
	t->asked = calloc(o->common.window, sizeof(*t->asked));
	t->in = malloc(ROOM + 1);
	t->out = malloc(ROOM);
	if (!t->asked || !t->in || !t->out)
		return -ENOMEM;
	t->fd = peer_connect(&o->common.server);
	return t->fd < 0 ? t->fd : 0;
}

static void close_talker(struct member *m)
{
	struct talker *t = m->user;

	t->peer->misses += t->misses;
	if (t->fd >= 0)
		close(t->fd);
	free(t->asked);
	free(t->in);
	free(t->out);
	free(t);
}

static const struct team_ops ops = { .open = open_talker, .run = run, .close = close_talker };

static int load(struct peer *peer)
{
	struct options walk = peer->options->common;
	struct team team;
	int err;

	walk.threads = 1;
	walk.ops = UINT64_MAX; /* it ends with the last key */
	walk.series = NULL;
	peer->loading = true;
	err = team_run(&team, &walk, &ops, peer);
	team_close(&team);
	peer->loading = false;
	return err;
}

static int count(struct peer *peer)
{
	const struct peer_options *o = peer->options;
	uint64_t cpu = cpu_ns();
	struct report r;
	struct team team;
	int err;

	peer->misses = 0;
	err = team_run(&team, &o->common, &ops, peer);
	if (!err) {
		report_open(&r, "uwarp-tcp-peer");
		report_text(&r, "protocol", o->protocol->name);
		report_team(&r, &team, "operations");
		report_hist(&r, "", team.hist);
		report_count(&r, "misses", peer->misses);
		report_cpu(&r, &team, cpu_ns() - cpu);
		err = report_close(&r, &o->common, team.hist);
	}
	team_close(&team);
	return err;
}

int peer_run(const struct peer_options *o)
{
	struct peer peer = { .options = o };
	int err = values_open();

	if (!err && o->load)
		err = load(&peer);
	return err ? err : count(&peer);
}
