/* SPDX-License-Identifier: BSD-3-Clause */
/* Octets from the kernel and to it, through one buffer each way that a connection has while there
 * is something in it. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>

#include "io/socket/sock.h"

#define EMSS_MAX   65535u
#define EMSS_FIRST (64u * 1024)	       /* the kernel's estimate grows with the first window */
#define EMSS_NEXT  (64u * 1024 * 1024) /* ... and changes with the path */

static void compact(struct sock_buf *b)
{
	if (!b->off)
		return;
	memmove(b->data, b->data + b->off, b->len - b->off);
	b->len -= b->off;
	b->off = 0;
}

/* ---- in -------------------------------------------------------------------------------------- */

/* False: the connection is no longer the user's. */
static bool offer(struct llp_conn *c)
{
	struct sock_buf *b = c->in;
	size_t used;

	do {
		struct uw_span s = { b->data + b->off, b->len - b->off };

		used = sock.cfg.user->rx(c->ctx, uw_rope_of(&s));
		if (c->state != SOCK_CONN_OPEN)
			return false;
		b->off += used;
	} while (used && b->off < b->len && !c->paused);
	if (b->off == b->len)
		sock_buf_put(&c->in);
	return true;
}

static void wait_for(struct llp_conn *c)
{
	uint32_t events = (c->paused || c->fin_came ? 0 : EPOLLIN) | (c->full ? EPOLLOUT : 0);

	if (!sock_watch(&c->w, events))
		c->error = errno; /* the next send or receive tells */
}

/* The peer has sent all it will. */
static void end_came(struct llp_conn *c)
{
	c->fin_came = true;
	if (c->state == SOCK_CONN_LEAVING) {
		sock_conn_leave(c);
		return;
	}
	if (c->error) {
		sock_conn_lost(c, c->error);
		return;
	}
	wait_for(c);
	sock.cfg.user->closed(c->ctx, UW_OK);
}

static void arrived(struct llp_conn *c, size_t n)
{
	sock.cfg.stats->tcp_rx_bytes += n;
	if (c->state == SOCK_CONN_LEAVING)
		return; /* nobody wants it any more */
	c->in->len += n;
	if (offer(c) && c->paused)
		wait_for(c);
}

void sock_receive(struct llp_conn *c)
{
	ssize_t n;

	if (!c->in)
		c->in = sock_buf_get();
	if (!c->in)
		return; /* again in the next round */
	if (c->state == SOCK_CONN_LEAVING)
		c->in->off = c->in->len = 0;
	compact(c->in);
	if (c->in->len == SOCK_BUF) { /* more than any FPDU, and of no use to anybody */
		sock_conn_lost(c, EPROTO);
		return;
	}
	n = recv(c->w.fd, c->in->data + c->in->len, SOCK_BUF - c->in->len, 0);
	if (n > 0) {
		arrived(c, (size_t)n);
		return;
	}
	if (!c->in->len)
		sock_buf_put(&c->in);
	if (!n)
		end_came(c);
	else if (errno != EAGAIN && errno != EINTR)
		sock_conn_lost(c, errno);
}

void sock_pause(struct llp_conn *c)
{
	c->paused = true;
}

void sock_resume(struct llp_conn *c)
{
	c->paused = false;
	if (c->in && !offer(c))
		return;
	wait_for(c);
}

/* ---- out ------------------------------------------------------------------------------------- */

static void look_at_emss(struct llp_conn *c)
{
	int mss = 0;
	socklen_t n = sizeof(mss);

	if (getsockopt(c->w.fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &n) || mss < (int)LLP_ROOM_LEAST)
		mss = LLP_ROOM_LEAST;
	c->emss_left = c->emss ? EMSS_NEXT : EMSS_FIRST;
	c->emss = mss > (int)EMSS_MAX ? EMSS_MAX : (uint32_t)mss;
}

uint8_t *sock_tx_begin(struct llp_conn *c, size_t *room)
{
	if (c->state != SOCK_CONN_OPEN || c->full || c->fin_due || c->error)
		return NULL;
	if (!c->emss_left)
		look_at_emss(c);
	if (c->out && SOCK_BUF - c->out->len < c->emss)
		sock_tx_flush(c);
	if (!c->out)
		c->out = sock_buf_get();
	if (!c->out || SOCK_BUF - c->out->len < c->emss)
		return NULL;
	*room = c->emss;
	return c->out->data + c->out->len;
}

void sock_tx_commit(struct llp_conn *c, size_t n)
{
	struct sock_buf *b = c->out;

	b->len += n;
	if (b->off == b->len)
		sock_buf_put(&c->out);
	if (!n)
		return;
	c->emss_left -= n < c->emss_left ? n : c->emss_left;
	sock.cfg.stats->tcp_tx_segments++;
	sock.cfg.stats->tcp_tx_bytes += n;
}

/* Nothing goes out any more; epoll reports the end, and then the user hears of it. */
static void give_up(struct llp_conn *c, int error)
{
	c->error = error;
	c->full = false;
	sock_buf_put(&c->out);
	if (c->state == SOCK_CONN_OPEN)
		wait_for(c);
}

static void send_queued(struct llp_conn *c)
{
	struct sock_buf *b = c->out;

	while (b->off < b->len) {
		ssize_t n = send(c->w.fd, b->data + b->off, b->len - b->off, MSG_NOSIGNAL);

		if (n > 0) {
			b->off += (size_t)n;
			continue;
		}
		if (errno != EAGAIN) {
			give_up(c, errno);
			return;
		}
		c->full = true;
		compact(b);
		if (c->state == SOCK_CONN_OPEN)
			wait_for(c);
		return;
	}
	sock_buf_put(&c->out);
}

void sock_tx_flush(struct llp_conn *c)
{
	bool was_full = c->w.events & EPOLLOUT;

	if (c->out && !c->full)
		send_queued(c);
	if (c->fin_due && !c->fin_sent && !c->out && !c->error) {
		c->fin_sent = true;
		shutdown(c->w.fd, SHUT_WR);
	}
	if (c->state == SOCK_CONN_LEAVING)
		sock_conn_went(c);
	else if (was_full && !c->full)
		wait_for(c);
}
