/* SPDX-License-Identifier: BSD-3-Clause */
#include "server.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "io/shm.h"
#include "listen.h"

#define TICK_US		  10000u  /* timers, rates */
#define ENDS_US		  250000u /* between looks for clients that hung up, and for the port */
#define MESSAGES_PER_TICK 256u
#define LOOK_US		  100u	  /* connections are looked at no more often while frames come */
#define HEAR_US		  100u	  /* messages are heard for no longer at a time: frames wait */
#define SPIN_US		  60u	  /* without work, before it sleeps */
#define KEEP_US		  20u	  /* ... without giving way, if all clients sleep */
#define LONG_YIELD_US	  300u	  /* somebody else needs the core: sleep at once */
#define NO_YIELD_US	  100000u /* ... for so long */
#define SLEEP_MS	  1000
#define SLEEP_BUSY_MS	  1 /* a client is throttled, or the port cannot be waited on */
#define EVENTS		  64

/* ---- clients come and go ------------------------------------------------------------------- */

static struct client *client_new(struct server *s)
{
	struct client *c = NULL;

	for (uint16_t id = 1; id <= SWITCH_CLIENTS_MAX && !c; id++) {
		if (s->client[id])
			continue;
		c = calloc(1, sizeof(*c));
		if (!c)
			return NULL;
		c->id = id;
		c->ring_fd = -1;
		c->wake_fd = -1;
		c->messages = MESSAGES_PER_TICK;
		c->deadline_us = s->now_us + HELLO_US;
	}
	return c;
}

/* Without a word, if it is to be left alone. */
static void turn_away(struct server *s, struct conn *n, enum switch_msg_why why)
{
	struct client c = { .conn = n, .fd = conn_box(n)->fd, .uid = conn_box(n)->uid };

	client_takes_cost(s, &c);
	if (wake_cost_is_over(&c.wake_cost, uw_clock_us()))
		client_refuse(s, &c, why);
	else
		s->refused++;
	client_hang_up(s, &c);
}

/* More may connect than may join, so that the refusal can be said. */
static void take_in(struct server *s, struct conn *n)
{
	const struct mail_box *box = conn_box(n);
	bool full = s->n == SWITCH_CLIENTS_MAX;
	struct client *c = full ? NULL : client_new(s);

	if (!c) {
		turn_away(s, n, full ? SWITCH_LIMIT : SWITCH_NO_MEMORY);
		return;
	}
	c->conn = n;
	c->fd = box->fd;
	c->uid = box->uid;
	c->pid = box->pid;
	client_takes_cost(s, c);
	s->client[c->id] = c;
	s->active[s->n++] = c;
}

static void remove_ended(struct server *s)
{
	for (unsigned i = 0; i < s->n;) {
		struct client *c = s->active[i];

		if (c->state != CLIENT_ENDED) {
			i++;
			continue;
		}
		s->active[i] = s->active[--s->n];
		client_free(s, c);
	}
}

/* A message at a time: its thread reads the next one meanwhile. */
static void hear(struct server *s, struct client *c)
{
	const struct mail *m = c->state == CLIENT_ENDED ? NULL : conn_mail(c->conn);

	if (!m)
		return;
	if ((!c->messages || !wake_cost_is_over(&c->wake_cost, s->now_us)) && !m->ended) {
		s->muted = true;
		return;
	}
	client_hear(s, c, m);
	conn_go_on(c->conn);
}

/* A claim may cost a socket, a filter and a change of nf_tables, and a user may have many clients
 * that claim: those that are not heard in time come first in the next look. */
static void hear_all(struct server *s)
{
	uint64_t until = uw_clock_us() + HEAR_US;

	for (unsigned i = 0; i < s->n; i++) {
		hear(s, s->active[(s->heard + i) % s->n]);
		if (uw_clock_us() < until)
			continue;
		s->heard += i + 1;
		s->behind = true;
		return;
	}
}

static void control(struct server *s)
{
	struct conn *n;

	if (!conns_stirs(s->conns) && !s->muted && !s->behind)
		return;
	s->muted = s->behind = false;
	while ((n = conns_next(s->conns)))
		take_in(s, n);
	s->refused += conns_refused(s->conns);
	hear_all(s);
	conns_reap(s->conns);
}

/* ---- time ---------------------------------------------------------------------------------- */

/* Its thread may be in a close that blocks (mail.h), and does not tell then. */
static bool hung_up(const struct client *c)
{
	struct pollfd p = { .fd = c->fd }; /* POLLHUP comes unasked */

	return !conn_mail(c->conn) && poll(&p, 1, 0) > 0;
}

static void look_for_ends(struct server *s)
{
	if (s->now_us - s->ends_us < ENDS_US)
		return;
	s->ends_us = s->now_us;
	s->port_gone |= s->uplink->ops->gone && s->uplink->ops->gone(s->uplink);
	for (unsigned i = 0; i < s->n; i++) {
		struct client *c = s->active[i];

		if (c->state == CLIENT_UP && hung_up(c))
			c->state = CLIENT_ENDED;
	}
}

static void tick(struct server *s)
{
	uint64_t elapsed = s->now_us - s->tick_us;

	if (elapsed < TICK_US)
		return;
	s->tick_us = s->now_us;
	forward_refill(s, (double)elapsed / 1e6);
	forward_wake_late(s);
	qps_tick(s);
	look_for_ends(s);
	for (unsigned i = 0; i < s->n; i++) {
		struct client *c = s->active[i];

		c->messages = MESSAGES_PER_TICK;
		if (c->state < CLIENT_UP && s->now_us > c->deadline_us)
			c->state = CLIENT_ENDED;
	}
}

/* ---- sleeping ------------------------------------------------------------------------------ */

/* An interface that went down is an error of the port's socket (ENETDOWN), which would end each
 * sleep until somebody has asked for it. */
static void forget_error(const struct uplink *p)
{
	socklen_t n = sizeof(int);
	int error;

	if (getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &error, &n))
		uw_log("uwarpd: the port does not tell its error: %s", strerror(errno));
}

/* Also for room in the port. */
static void wait_for_room(const struct server *s, bool on)
{
	struct epoll_event e = { .events = on ? EPOLLIN | EPOLLOUT : EPOLLIN,
				 .data.ptr = s->uplink };

	epoll_ctl(s->wait_fd, EPOLL_CTL_MOD, s->uplink->fd, &e);
}

static void wait_for_work(struct server *s, int ms)
{
	struct epoll_event e[EVENTS];
	bool blocked = forward_blocked(s);
	int n;

	if (blocked)
		wait_for_room(s, true);
	n = epoll_wait(s->wait_fd, e, EVENTS, ms);
	if (blocked)
		wait_for_room(s, false);
	for (int i = 0; i < n; i++)
		if (e[i].data.ptr == s->uplink && e[i].events & EPOLLERR)
			forget_error(s->uplink);
}

/* Announce the sleep, look once more, sleep. Clients store their frames, fence and read the word;
 * we store the word, fence and look for frames. */
static void sleep_until_work(struct server *s)
{
	uint32_t word = atomic_load_explicit(s->bell, memory_order_relaxed) + 1;
	bool poll = s->uplink->fd < 0 && strcmp(s->o.link, "none");
	bool soon = poll || forward_throttled(s) || s->linger_n || s->lingering_qps || s->muted ||
		    s->behind || s->late;

	atomic_store_explicit(s->bell, word, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (!forward_pending(s)) {
		s->sleeps++;
		wait_for_work(s, soon ? SLEEP_BUSY_MS : SLEEP_MS);
	}
	atomic_store_explicit(s->bell, word + 1, memory_order_relaxed);
}

/* Let others have the core: those that wait for what was forwarded, as long as they give it back
 * soon. False: they do not, and it is better to sleep, from which we are woken with priority. */
static bool give_way(struct server *s)
{
	uint64_t before = s->now_us;

	if (before < s->no_yield_us)
		return false;
	sched_yield();
	s->now_us = uw_clock_us();
	if (s->now_us - before > LONG_YIELD_US)
		s->no_yield_us = s->now_us + NO_YIELD_US;
	return true;
}

static void look_around(struct server *s)
{
	tick(s);
	ports_tick(s);
	control(s);
	remove_ended(s);
}

/* For clients: one that polls on this CPU would be in our way. */
static void say_cpu(struct server *s)
{
	atomic_store_explicit(s->bell + SWITCH_BELL_CPU, 1 + (uint32_t)sched_getcpu(),
			      memory_order_relaxed);
}

/* There is something to do, or soon may be. */
static bool goes_on(struct server *s, unsigned frames, uint64_t idle_us)
{
	if (s->behind)
		return frames || give_way(s);
	if (idle_us <= KEEP_US && forward_all_asleep(s))
		return true;
	return idle_us <= SPIN_US && give_way(s);
}

bool server_run(struct server *s, const volatile bool *ended)
{
	uint64_t idle_since = 0;

	s->conns = conns_start(s->listen_fd, s->stir_fd);
	if (!s->conns) {
		uw_log("uwarpd: no thread for the connections: %s", strerror(errno));
		return false;
	}
	s->began_us = s->tick_us = s->now_us = uw_clock_us();
	s->take = 1;
	say_cpu(s);
	while (!*ended && !s->port_gone) {
		unsigned frames = forward_round(s);

		s->now_us = uw_clock_us();
		if (s->now_us - s->looked_us >= LOOK_US) {
			say_cpu(s);
			look_around(s);
			s->looked_us = uw_clock_us();
		}
		if (frames || !idle_since)
			idle_since = s->now_us;
		if (goes_on(s, frames, s->now_us - idle_since))
			continue;
		if (!s->behind)
			look_around(s);
		if (!frames) {
			sleep_until_work(s);
			idle_since = 0;
		}
	}
	return !s->port_gone;
}

/* ---- life ---------------------------------------------------------------------------------- */

static bool fill_table(struct server *s)
{
	s->table.addr = s->uplink->addr;
	s->table.n_ip6 = s->uplink->n_ip6;
	for (unsigned i = 0; i < s->table.n_ip6; i++)
		s->table.ip6[i] = s->uplink->ip6[i].ip;
	memcpy(s->table.mac, s->uplink->mac, 6);
	s->table.mtu = s->uplink->mtu;
	s->table.own = s->uplink->own;
	s->table.merges = s->uplink->flags & SWITCH_FLAG_MERGES;
	s->table.qps = calloc(1, sizeof(*s->table.qps));
	return s->table.qps;
}

static bool watch(const struct server *s, int fd, uint32_t events, void *what)
{
	struct epoll_event e = { .events = events, .data.ptr = what };

	return !epoll_ctl(s->wait_fd, EPOLL_CTL_ADD, fd, &e);
}

/* Three quarters, of the ports, and where each is a socket as well (the kernel has them, too), of
 * the descriptors. */
static unsigned share_of_user(const struct server *s)
{
	struct rlimit r;
	rlim_t most = PORTS;

	if (!s->uplink->own && !getrlimit(RLIMIT_NOFILE, &r) && r.rlim_cur < most)
		most = r.rlim_cur;
	return (unsigned)most / 4 * 3;
}

bool server_open(struct server *s)
{
	s->wait_fd = s->stir_fd = s->listen_fd = s->bell_fd = -1;
	s->uplink = uplink_open(&s->o);
	if (!s->uplink)
		return false;
	if (!fill_table(s)) {
		uw_log("uwarpd: no memory");
		return false;
	}
	s->user_ports = share_of_user(s);
	s->listen_fd = listen_open(&s->o, &s->inherited);
	if (s->listen_fd < 0)
		return false;
	s->bell = shm_make("uwarpd-doorbell", CONDUIT_PAGE, SHM_READ_ONLY, &s->bell_fd);
	s->wait_fd = epoll_create1(EPOLL_CLOEXEC);
	s->stir_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (s->bell && s->wait_fd >= 0 && s->stir_fd >= 0 &&
	    watch(s, s->stir_fd, EPOLLIN | EPOLLET, NULL) &&
	    (s->uplink->fd < 0 || watch(s, s->uplink->fd, EPOLLIN, s->uplink)))
		return true;
	uw_log("uwarpd: %s", strerror(errno));
	return false;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* The socket stays open: to close it with connections that were not accepted is to close what was
 * sent over these (mail.h), and for a process that ends, the kernel does not linger. */
void server_close(struct server *s)
{
	for (unsigned i = 0; i < s->n; i++)
		s->active[i]->state = CLIENT_ENDED;
	remove_ended(s);
	if (s->listen_fd >= 0 && !s->inherited && unlink(s->o.path) && errno != ENOENT)
		uw_log("uwarpd: the socket %s stays, since its directory is not of --user %s: %s",
		       s->o.path, s->o.user, strerror(errno));
	if (conns_stop(s->conns))
		close_fd(s->stir_fd);
	close_fd(s->wait_fd);
	close_fd(s->bell_fd);
	shm_unmap(s->bell, CONDUIT_PAGE);
	qps_close(s);
	free(s->table.qps);
	if (s->uplink)
		s->uplink->ops->close(s->uplink);
}
