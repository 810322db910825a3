/* SPDX-License-Identifier: BSD-3-Clause */
#include "world.h"

#include <netinet/in.h>
#include <time.h>

#include "uwtest.h"

#define ROUNDS 20000u

static uint8_t pattern(size_t i)
{
	return (uint8_t)(i * 7 + i / 251);
}

/* ---- the user ------------------------------------------------------------------------------- */

static void on_connected(void *ctx)
{
	((struct side *)ctx)->connected = true;
}

static void *on_accepted(void *listener_ctx, struct llp_conn *c)
{
	struct side *ls = listener_ctx;

	if (ls->refuse)
		return NULL;
	ls->child->c = c;
	ls->child->connected = true;
	return ls->child;
}

static size_t on_rx(void *ctx, struct uw_rope in)
{
	struct side *s = ctx;
	size_t n = s->grain ? in.len - in.len % s->grain : in.len;

	s->calls++;
	if (s->drop) {
		s->n_dropped += in.len;
		return in.len;
	}
	if (s->most && n > s->most - s->n_got)
		n = s->most - s->n_got;
	assert_in_range(s->n_got + n, 0, SIDE_ROOM);
	uw_rope_copy(in, s->got + s->n_got, n);
	s->n_got += n;
	if (s->most && s->n_got == s->most)
		llp_socket.pause(s->c);
	if (s->close_in_rx)
		llp_socket.close(s->c);
	else if (s->abort_in_rx)
		llp_socket.abort(s->c);
	return n;
}

static void on_writable(void *ctx)
{
	((struct side *)ctx)->writable++;
}

static void on_closed(void *ctx, uw_status why)
{
	struct side *s = ctx;

	assert_false(s->closed && !s->why);
	s->closed = true;
	s->why = why;
}

static const struct llp_user user = { on_connected, on_accepted, on_rx, on_writable,
				      on_closed,    NULL,	 NULL };

/* ---- the world ------------------------------------------------------------------------------ */

static uint64_t now_us(void *arg)
{
	const struct world *w = arg;
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return w->later_us + (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

void world_open(struct world *w, uint32_t mtu)
{
	const struct host_config host = { .addr = htonl(INADDR_LOOPBACK),
					  .mask = htonl(0xff000000),
					  .mtu = mtu };
	struct llp_config cfg = { .user = &user, .now_us = now_us, .arg = w, .stats = &w->stats };
	struct side *sides[] = { &w->server, &w->accepted, &w->client };

	memset(w, 0, sizeof(*w));
	for (unsigned i = 0; i < COUNT(sides); i++)
		assert_non_null(sides[i]->got = malloc(SIDE_ROOM));
	w->server.child = &w->accepted;
	assert_status(llp_socket.init(&cfg), UW_OK);
	assert_status(host_link_open(&host, NULL, &w->link), UW_OK);
	llp_socket.add_link(w->link);
}

void world_close(struct world *w)
{
	if (w->server.ls)
		llp_socket.unlisten(w->server.ls);
	llp_socket.remove_link(w->link);
	w->link->ops->close(w->link);
	free(w->server.got);
	free(w->accepted.got);
	free(w->client.got);
}

void world_rounds(struct world *w, unsigned n)
{
	(void)w;
	while (n--) {
		llp_socket.timers();
		if (!llp_socket.poll())
			llp_socket.sleep(1000);
	}
}

void world_until(struct world *w, const bool *flag)
{
	for (unsigned i = 0; i < ROUNDS && !*flag; i++)
		world_rounds(w, 1);
	assert_true(*flag);
}

void world_until_got(struct world *w, const struct side *s, size_t n)
{
	for (unsigned i = 0; i < ROUNDS && s->n_got < n; i++)
		world_rounds(w, 1);
	assert_int_equal(s->n_got, n);
}

void world_connect(struct world *w)
{
	struct llp_place at = { .addr = uw_ip_v4(htonl(INADDR_LOOPBACK)) };
	struct llp_addrs a = { .local = at.addr, .remote = at.addr };
	struct sockaddr_storage bound;
	socklen_t len = sizeof(bound);
	struct uw_ip ip;

	assert_status(llp_socket.listen(w->link, &at, 8, &w->server, &w->server.ls), UW_OK);
	assert_int_equal(getsockname(w->server.ls->w.fd, (struct sockaddr *)&bound, &len), 0);
	sock_addr_read(&bound, &ip, &a.rport);
	assert_status(llp_socket.connect(w->link, &a, &w->client, &w->client.c), UW_OK);
	if (w->server.refuse) /* which may come as soon as that it is there */
		return;
	world_until(w, &w->client.connected);
	world_until(w, &w->accepted.connected);
}

size_t world_send(struct side *s, size_t at, size_t n)
{
	size_t done = 0, room;
	uint8_t *p;

	while (done < n && (p = llp_socket.tx_begin(s->c, &room))) {
		size_t k = n - done < room ? n - done : room;

		for (size_t i = 0; i < k; i++)
			p[i] = pattern(at + done + i);
		llp_socket.tx_commit(s->c, k);
		done += k;
	}
	llp_socket.tx_flush(s->c);
	return done;
}

void world_check(const struct side *s)
{
	for (size_t i = 0; i < s->n_got; i++) {
		if (s->got[i] != pattern(i))
			fail_msg("octet %zu of %zu is wrong", i, s->n_got);
	}
}
