/* SPDX-License-Identifier: BSD-3-Clause */
/* The instance: what epoll reports goes to whom it concerns. */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "io/fds.h"
#include "io/socket/sock.h"

#define EVENTS	   64
#define SPARE_MAX  64u
#define YOUNG_TICK 10000u
#define IDLE_TICK  250000u

struct sock sock = { .epoll = -1, .bell = -1 };

/* ---- what is asked of epoll ---------------------------------------------------------------- */

bool sock_watch(struct sock_watch *w, uint32_t events)
{
	struct epoll_event ev = { .events = events, .data = { .ptr = w } };

	if (w->added && w->events == events)
		return true;
	if (epoll_ctl(sock.epoll, w->added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, w->fd, &ev))
		return false;
	w->added = true;
	w->events = events;
	return true;
}

/* ---- buffers -------------------------------------------------------------------------------- */

struct sock_buf *sock_buf_get(void)
{
	struct sock_buf *b = sock.spare;

	if (b) {
		sock.spare = b->next;
		sock.n_spare--;
	} else {
		b = malloc(sizeof(*b));
	}
	if (b)
		b->off = b->len = 0;
	return b;
}

void sock_buf_put(struct sock_buf **p)
{
	struct sock_buf *b = *p;

	*p = NULL;
	if (!b)
		return;
	if (sock.n_spare >= SPARE_MAX) {
		free(b);
		return;
	}
	b->next = sock.spare;
	sock.spare = b;
	sock.n_spare++;
}

/* ---- rounds --------------------------------------------------------------------------------- */

static void bury(void)
{
	struct llp_listener *ls;
	struct llp_conn *c;

	while ((ls = sock.unheard)) {
		sock.unheard = ls->next;
		free(ls);
	}
	while ((c = sock.dead)) {
		sock.dead = c->next;
		sock_buf_put(&c->in);
		sock_buf_put(&c->out);
		free(c);
	}
}

static void silence_bell(void)
{
	fds_rung(sock.bell); /* if nobody rang after all it does not matter */
}

static void handle(const struct epoll_event *ev)
{
	struct sock_watch *w = ev->data.ptr;

	if (!w)
		silence_bell();
	else if (w->fd < 0)
		return; /* it ended in this round */
	else if (w->listens)
		sock_accept((struct llp_listener *)w);
	else
		sock_conn_event((struct llp_conn *)w, ev->events);
}

unsigned sock_poll(void)
{
	struct epoll_event v[EVENTS];
	int n = epoll_wait(sock.epoll, v, EVENTS, 0);

	for (int i = 0; i < n; i++)
		handle(&v[i]);
	bury();
	return n > 0 ? (unsigned)n : 0;
}

void sock_sleep(uint64_t us)
{
	struct timespec t = { .tv_sec = (time_t)(us / 1000000),
			      .tv_nsec = (long)(us % 1000000 * 1000) };
	struct pollfd p = { .fd = sock.epoll, .events = POLLIN };

	ppoll(&p, 1, &t, NULL);
}

void sock_rouse(void)
{
	fds_ring(sock.bell);
}

/* ---- time ----------------------------------------------------------------------------------- */

void sock_timers(void)
{
	uint64_t now = sock_now_us();
	struct llp_conn *next;

	for (struct llp_conn *c = sock.leaving; c; c = next) {
		next = c->next;
		if (now >= c->look_us)
			sock_conn_look(c, now);
		if (now >= c->leave_us)
			sock_conn_overdue(c);
	}
	for (struct llp_listener *ls = sock.listeners; ls; ls = ls->next) {
		if (ls->again_us && now >= ls->again_us && sock_watch(&ls->w, EPOLLIN))
			ls->again_us = 0;
	}
}

/* TCP's timers are the kernel's; the user has some of his own while a connection is new. */
uint64_t sock_next_timer_us(void)
{
	if (!sock.conns && !sock.leaving)
		return UINT64_MAX;
	return sock_now_us() < sock.young_us ? YOUNG_TICK : IDLE_TICK;
}

/* ---- set-up --------------------------------------------------------------------------------- */

uw_status sock_init(const struct llp_config *cfg)
{
	sock.cfg = *cfg;
	return UW_OK;
}

void sock_add_link(struct io_link *l)
{
	struct epoll_event ev = { .events = EPOLLIN };

	(void)l;
	if (sock.epoll >= 0)
		return;
	sock.epoll = fds_keep(epoll_create1(EPOLL_CLOEXEC));
	sock.bell = fds_keep(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
	/* Without them nothing comes and nothing connects, and every call says so. */
	if (sock.epoll >= 0 && sock.bell >= 0)
		epoll_ctl(sock.epoll, EPOLL_CTL_ADD, sock.bell, &ev);
}

void sock_remove_link(struct io_link *l)
{
	(void)l;
	while (sock.conns)
		sock_conn_kill(sock.conns);
	while (sock.leaving)
		sock_conn_overdue(sock.leaving);
	bury();
	while (sock.spare) {
		struct sock_buf *b = sock.spare;

		sock.spare = b->next;
		free(b);
	}
	sock.n_spare = 0;
	fds_close(sock.epoll);
	fds_close(sock.bell);
	sock.epoll = sock.bell = -1;
}
