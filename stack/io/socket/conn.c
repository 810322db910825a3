/* SPDX-License-Identifier: BSD-3-Clause */
/* A connection's life: made, opened, ended. Its octets: stream.c. */
#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>

#include "io/fds.h"
#include "io/socket/sock.h"

#define NEW_FOR_US 2000000u
#define LEAVE_US   5000000u  /* for the peer's FIN after ours */
#define STALL_US   60000000u /* for a peer that takes none of the queued octets */
#define LOOK_US	   1000000u  /* between looks at whether it does */

static void into(struct llp_conn *c, struct llp_conn **list)
{
	c->next = *list;
	c->link = list;
	if (c->next)
		c->next->link = &c->next;
	*list = c;
}

struct llp_conn *sock_conn_new(int fd, void *ctx)
{
	struct llp_conn *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->w.fd = fd;
	c->ctx = ctx;
	into(c, &sock.conns);
	return c;
}

static void out_of_list(struct llp_conn *c)
{
	*c->link = c->next;
	if (c->next)
		c->next->link = c->link;
}

void sock_conn_kill(struct llp_conn *c)
{
	epoll_ctl(sock.epoll, EPOLL_CTL_DEL, c->w.fd, NULL);
	fds_close(c->w.fd);
	c->w.fd = -1;
	out_of_list(c);
	c->state = SOCK_CONN_DEAD;
	c->ctx = NULL;
	into(c, &sock.dead);
}

static int so_error(const struct llp_conn *c)
{
	int error = 0;
	socklen_t n = sizeof(error);

	getsockopt(c->w.fd, SOL_SOCKET, SO_ERROR, &error, &n);
	return error;
}

void sock_conn_lost(struct llp_conn *c, int error)
{
	uw_status why = c->state == SOCK_CONN_CONNECTING ? sock_status(error) : UW_E_LLP_CLOSED;
	void *ctx = c->ctx;

	sock_conn_kill(c);
	if (ctx)
		sock.cfg.user->closed(ctx, why);
}

static void name_ends(struct llp_conn *c)
{
	struct sockaddr_storage a;
	socklen_t n = sizeof(a);

	if (!getsockname(c->w.fd, (struct sockaddr *)&a, &n))
		sock_addr_read(&a, &c->addrs.local, &c->addrs.lport);
	n = sizeof(a);
	if (!getpeername(c->w.fd, (struct sockaddr *)&a, &n))
		sock_addr_read(&a, &c->addrs.remote, &c->addrs.rport);
}

void sock_conn_opened(struct llp_conn *c)
{
	c->state = SOCK_CONN_OPEN;
	name_ends(c);
	sock.young_us = sock_now_us() + NEW_FOR_US;
}

static void connected(struct llp_conn *c)
{
	int error = c->error ? c->error : so_error(c);

	if (error || !sock_watch(&c->w, EPOLLIN)) {
		sock_conn_lost(c, error ? error : errno);
		return;
	}
	sock_conn_opened(c);
	sock.cfg.user->connected(c->ctx);
}

/* Reported although nothing was asked for: the connection has broken, or both sides have ended and
 * the user still has to look at what came. Nothing more is going to happen in the latter case. */
static void broken(struct llp_conn *c)
{
	int error = c->error ? c->error : so_error(c);

	if (error)
		sock_conn_lost(c, error);
	else if (c->w.added && !epoll_ctl(sock.epoll, EPOLL_CTL_DEL, c->w.fd, NULL))
		c->w.added = false;
}

static void readable(struct llp_conn *c)
{
	if (c->paused || c->fin_came)
		broken(c);
	else
		sock_receive(c);
}

void sock_conn_event(struct llp_conn *c, uint32_t events)
{
	if (c->state == SOCK_CONN_CONNECTING) {
		connected(c);
		return;
	}
	if (c->state != SOCK_CONN_DEAD && events & ~EPOLLOUT)
		readable(c);
	if (c->state == SOCK_CONN_DEAD || !(events & EPOLLOUT))
		return;
	c->full = false;
	sock_tx_flush(c);
	if (c->state == SOCK_CONN_LEAVING)
		sock_conn_leave(c);
	else if (!c->full)
		sock.cfg.user->writable(c->ctx);
}

/* ---- connecting ------------------------------------------------------------------------------ */

/* Who is asked from outside 127.0.0.0/8 could not answer to it: there the kernel chooses. */
static int bind_local(int fd, const struct llp_addrs *a)
{
	bool named = !uw_ip_is_any(&a->local) &&
		     (!sock_is_own_net(&a->local) || sock_is_own_net(&a->remote));
	struct uw_ip any = uw_ip_is_v4(&a->remote) ? uw_ip_v4(INADDR_ANY) : (struct uw_ip){ { 0 } };
	struct sockaddr_storage from;
	socklen_t n = sock_addr_make(named ? &a->local : &any, a->lport, &from);
	int one = 1;

	if (!named && !a->lport)
		return 0;
	if (!a->lport)
		setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
	return bind(fd, (struct sockaddr *)&from, n);
}

static int start(int fd, const struct llp_addrs *a)
{
	struct sockaddr_storage to;
	socklen_t n = sock_addr_make(&a->remote, a->rport, &to);

	if (!connect(fd, (struct sockaddr *)&to, n) || errno == EINPROGRESS)
		return 0;
	return errno;
}

uw_status sock_connect(struct io_link *l, const struct llp_addrs *a, void *ctx,
		       struct llp_conn **out)
{
	int fd = sock_new(uw_ip_is_v4(&a->remote) ? AF_INET : AF_INET6, l);
	struct llp_conn *c;
	uw_status st;

	if (fd < 0)
		return sock_status(errno);
	if (bind_local(fd, a)) {
		st = sock_status(errno);
		fds_close(fd);
		return st;
	}
	c = sock_conn_new(fd, ctx);
	if (!c) {
		fds_close(fd);
		return UW_E_NOMEM;
	}
	if (a->tos)
		sock_mark(fd, a->tos);
	c->error = start(fd, a);
	/* What failed at once is reported like what fails later: epoll finds such a socket ready.
	 */
	if (!sock_watch(&c->w, EPOLLOUT)) {
		sock_conn_kill(c);
		return UW_E_NOMEM;
	}
	*out = c;
	return UW_OK;
}

/* ---- ending ---------------------------------------------------------------------------------- */

static void wait_from(struct llp_conn *c, uint64_t now_us)
{
	c->leave_us = now_us + (c->fin_sent ? LEAVE_US : STALL_US);
}

void sock_conn_went(struct llp_conn *c)
{
	wait_from(c, sock_now_us());
}

/* The kernel has room for more only when about a third of its send buffer is empty, some megabytes
 * for which a slow peer may need minutes. What the peer acknowledged is seen at once. */
void sock_conn_look(struct llp_conn *c, uint64_t now_us)
{
	int held;

	c->look_us = now_us + LOOK_US;
	if (ioctl(c->w.fd, SIOCOUTQ, &held))
		return;
	if (held < c->held)
		wait_from(c, now_us);
	c->held = held;
}

/* A FIN in the middle of what was queued would be taken for the end of it. */
void sock_conn_overdue(struct llp_conn *c)
{
	if (c->fin_sent)
		sock_conn_kill(c);
	else
		sock_abort(c);
}

void sock_conn_leave(struct llp_conn *c)
{
	uint32_t events = (c->fin_came ? 0 : EPOLLIN) | (c->full ? EPOLLOUT : 0);

	if (c->error || (c->fin_came && c->fin_sent) || !sock_watch(&c->w, events))
		sock_conn_overdue(c);
}

/* A socket that is closed while the peer still sends answers with an RST, which may cost the peer
 * what we sent last: so go on reading until its FIN. */
void sock_close(struct llp_conn *c)
{
	if (c->state == SOCK_CONN_CONNECTING) {
		sock_conn_kill(c);
		return;
	}
	out_of_list(c);
	into(c, &sock.leaving);
	c->state = SOCK_CONN_LEAVING;
	c->ctx = NULL;
	c->paused = false;
	c->fin_due = true;
	sock_tx_flush(c);
	sock_conn_leave(c);
}

void sock_shutdown(struct llp_conn *c)
{
	c->fin_due = true;
	sock_tx_flush(c);
}

void sock_abort(struct llp_conn *c)
{
	const struct linger reset = { .l_onoff = 1 };

	setsockopt(c->w.fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
	sock_conn_kill(c);
}

/* What the kernel has taken it delivers without us. */
unsigned sock_lingering(void)
{
	unsigned n = 0;

	for (const struct llp_conn *c = sock.leaving; c; c = c->next)
		n += c->out != NULL;
	return n;
}

struct llp_addrs sock_addrs(const struct llp_conn *c)
{
	return c->addrs;
}

void sock_set_tos(struct llp_conn *c, uint8_t tos)
{
	sock_mark(c->w.fd, tos);
}
