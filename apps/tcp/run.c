/* SPDX-License-Identifier: BSD-3-Clause */
/* The client: each thread has a connection, with up to `window` requests under way on it. */
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

struct talker {
	struct member *member;
	const struct peer_options *options;
	int fd;
	struct keys keys;
	uint64_t begun, loaded, *began; /* a ring of `window` times */
	unsigned first, under_way;
	uint64_t at; /* clock_ns() when something came, for all that came */
	uint8_t *in, *out;
	size_t filled;
	uint64_t bad;
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

/* Requests that there is room for go out in one go. */
static int fill(struct talker *t)
{
	unsigned window = t->options->common.window;
	size_t n = 0;

	while (t->under_way < window && n + REQUEST_HEAD + t->options->value < ROOM &&
	       member_goes_on(t->member, t->begun)) {
		bool loading = t->loaded < t->options->keys;
		enum op op = loading ? OP_UPDATE : mix_next(t->options->mix, &t->member->random);
		uint64_t key =
			loading ? t->loaded++ : keys_next(&t->keys, t->keys.n, &t->member->random);

		n += t->options->protocol->request(t->out + n, op, key, t->options);
		t->began[(t->first + t->under_way++) % window] = t->at;
		t->begun += !loading;
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

static void take(struct talker *t)
{
	size_t at = 0, n;
	bool good;

	while (t->under_way &&
	       (n = t->options->protocol->reply(t->in + at, t->filled - at, &good))) {
		member_done(t->member, 1, t->at - t->began[t->first]);
		t->first = (t->first + 1) % t->options->common.window;
		t->under_way--;
		t->bad += !good;
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
		log_line("%lu requests were refused", t->bad);
	return err ? err : t->bad ? -EBADMSG : 0;
}

static int open_talker(struct member *m)
{
	const struct peer_options *o = m->team->user;
	struct talker *t = calloc(1, sizeof(*t));

	if (!t)
		return -ENOMEM;
	m->user = t;
	t->member = m;
	t->options = o;
	t->fd = -1;
	t->loaded = o->load && !m->index ? 0 : o->keys;
	t->keys.dist = o->mix->dist;
	t->keys.theta = 0.99;
	if (o->dist)
		keys_parse(&t->keys, o->dist);
	keys_open(&t->keys, o->keys);
	t->began = calloc(o->common.window, sizeof(*t->began));
	t->in = malloc(ROOM + 1);
	t->out = malloc(ROOM);
	if (!t->began || !t->in || !t->out)
		return -ENOMEM;
	t->fd = peer_connect(&o->common.server);
	return t->fd < 0 ? t->fd : 0;
}

static void close_talker(struct member *m)
{
	struct talker *t = m->user;

	if (t->fd >= 0)
		close(t->fd);
	free(t->began);
	free(t->in);
	free(t->out);
	free(t);
}

int peer_run(const struct peer_options *o)
{
	static const struct team_ops ops = { .open = open_talker,
					     .run = run,
					     .close = close_talker };
	uint64_t cpu = cpu_ns();
	struct report r;
	struct team team;
	int err = team_run(&team, &o->common, &ops, (void *)o);

	if (!err) {

		report_open(&r, "uwarp-tcp-peer");
		report_text(&r, "protocol", o->protocol->name);
		report_team(&r, &team, "operations");
		report_hist(&r, "", team.hist);
		report_cpu(&r, &team, cpu_ns() - cpu);
		err = report_close(&r, &o->common, team.hist);
	}
	team_close(&team);
	return err;
}
