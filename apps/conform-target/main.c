/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <netdb.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "target.h"

#define RESOLVE_MS  2000
#define RETRY_MS    100
#define ORPHAN_MS   20000 /* a connection whose tester is gone without a word */
#define OVER_MS	    500
#define WAITING_MAX 16u

struct options {
	const char *bind, *connect;
	const char *port;
	bool once, quiet;
};

struct target {
	const struct options *opt;
	struct rdma_event_channel *events;
	struct rdma_cm_id *listener;
	struct memory mem;
	struct conn conn;
	bool active;
	unsigned count;
	struct outcome prior;
	/* Requests that came while a connection was active, with their events. */
	struct rdma_cm_event *waiting[WAITING_MAX];
	unsigned n_waiting;
};

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

/* ---- one connection ---------------------------------------------------------------------- */

static void drain_async(struct target *t)
{
	struct ibv_async_event ev;
	struct pollfd p = { .events = POLLIN };

	if (!t->mem.verbs)
		return;
	p.fd = t->mem.verbs->async_fd;
	while (poll(&p, 1, 0) == 1 && !ibv_get_async_event(t->mem.verbs, &ev)) {
		if (t->active)
			conn_event(&t->conn, &ev);
		ibv_ack_async_event(&ev);
	}
}

static void finish(struct target *t, enum prior how)
{
	struct outcome *o = &t->conn.out;

	conn_drain(&t->conn);
	drain_async(t);
	o->prior = how;
	t->prior = *o;
	if (!t->opt->quiet)
		printf("connection %u: %u completed, %u flushed, first error: %s, event: %s\n",
		       t->count, o->done, o->flushed,
		       o->status ? ibv_wc_status_str(o->status) : "none",
		       o->event ? ibv_event_type_str((enum ibv_event_type)(o->event - 1)) : "none");
	fflush(stdout);
	conn_close(&t->conn);
	t->active = false;
	t->count++;
	if (t->opt->once)
		stop = 1;
}

static const struct wish_wire *wish_of(const struct rdma_cm_event *ev)
{
	const struct wish_wire *w = ev->param.conn.private_data;

	if (ev->param.conn.private_data_len < sizeof(*w) || memcmp(w->magic, WIRE_MAGIC, 4) ||
	    w->version != WIRE_VERSION)
		return NULL;
	return w;
}

static int use_device(struct target *t, struct ibv_context *verbs)
{
	if (t->mem.verbs == verbs)
		return 0;
	if (t->mem.verbs) {
		fprintf(stderr, "uwarp-conform-target: a second RNIC; choose one with --bind\n");
		return -1;
	}
	return memory_open(&t->mem, verbs);
}

static void answer(struct target *t, struct rdma_cm_event *ev)
{
	const struct wish_wire *w = wish_of(ev);

	if (use_device(t, ev->id->verbs) || (w && (w->flags & WISH_REJECT))) {
		rdma_reject(ev->id, "rejected as asked", 17);
		rdma_destroy_id(ev->id);
		return;
	}
	t->active = true;
	if (conn_open(&t->conn, ev->id, &t->mem, w) ||
	    conn_accept(&t->conn, &ev->param.conn, &t->prior)) {
		perror("uwarp-conform-target: accept");
		finish(t, PRIOR_GAVE_UP);
	}
}

static void requested(struct target *t, struct rdma_cm_event *ev)
{
	if (t->active && t->n_waiting < WAITING_MAX) {
		t->waiting[t->n_waiting++] = ev;
		return;
	}
	answer(t, ev);
	rdma_ack_cm_event(ev);
}

static void next_waiting(struct target *t)
{
	while (!t->active && t->n_waiting) {
		struct rdma_cm_event *ev = t->waiting[0];

		t->n_waiting--;
		memmove(t->waiting, t->waiting + 1, t->n_waiting * sizeof(ev));
		answer(t, ev);
		rdma_ack_cm_event(ev);
	}
}

/* ---- events ------------------------------------------------------------------------------ */

static bool about_conn(const struct target *t, const struct rdma_cm_event *ev)
{
	return t->active && ev->id == t->conn.id;
}

static void take_event(struct target *t, struct rdma_cm_event *ev)
{
	bool ours = about_conn(t, ev);
	enum rdma_cm_event_type type = ev->event;

	if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
		requested(t, ev);
		return;
	}
	rdma_ack_cm_event(ev);
	if (!ours)
		return;
	if (type == RDMA_CM_EVENT_ESTABLISHED)
		conn_established(&t->conn);
	else if (type == RDMA_CM_EVENT_DISCONNECTED || type == RDMA_CM_EVENT_CONNECT_ERROR ||
		 type == RDMA_CM_EVENT_REJECTED || type == RDMA_CM_EVENT_UNREACHABLE ||
		 type == RDMA_CM_EVENT_DEVICE_REMOVAL)
		finish(t, PRIOR_TOLD);
}

static void take_completions(struct target *t)
{
	struct ibv_cq *cq;
	void *ctx;

	if (ibv_get_cq_event(t->conn.channel, &cq, &ctx))
		return;
	ibv_ack_cq_events(cq, 1);
	ibv_req_notify_cq(cq, 0);
	conn_completions(&t->conn);
}

/* Wait for something and deal with it; 0 if nothing came in time. */
static int step(struct target *t, int ms)
{
	struct pollfd p[3] = { { .fd = t->events->fd, .events = POLLIN },
			       { .fd = -1, .events = POLLIN },
			       { .fd = -1, .events = POLLIN } };
	struct rdma_cm_event *ev;
	int n;

	if (t->mem.verbs)
		p[1].fd = t->mem.verbs->async_fd;
	if (t->active && t->conn.channel)
		p[2].fd = t->conn.channel->fd;
	n = poll(p, 3, ms);
	if (n <= 0)
		return 0;
	if (p[2].revents)
		take_completions(t);
	if (p[1].revents)
		drain_async(t);
	if ((p[0].revents & POLLIN) && !rdma_get_cm_event(t->events, &ev))
		take_event(t, ev);
	return n;
}

/* A tester has one connection at a time: another request means that this one is over, even if the
 * RNIC does not say so. */
static void serve_connection(struct target *t)
{
	while (t->active && !stop) {
		if (!step(t, t->n_waiting ? OVER_MS : ORPHAN_MS) && t->active && !stop)
			finish(t, PRIOR_GAVE_UP);
	}
}

/* ---- as a server, as a client ------------------------------------------------------------ */

static int resolve(const char *host, const char *port, struct sockaddr_storage *out)
{
	struct addrinfo hints = { .ai_family = host ? AF_UNSPEC : AF_INET,
				  .ai_socktype = SOCK_STREAM,
				  .ai_flags = AI_PASSIVE };
	struct addrinfo *list;
	int err = getaddrinfo(host, port, &hints, &list);

	if (err) {
		fprintf(stderr, "uwarp-conform-target: %s port %s: %s\n", host ? host : "*", port,
			gai_strerror(err));
		return -1;
	}
	memcpy(out, list->ai_addr, list->ai_addrlen);
	freeaddrinfo(list);
	return 0;
}

static int serve(struct target *t)
{
	struct sockaddr_storage addr = { 0 };

	if (resolve(t->opt->bind, t->opt->port, &addr))
		return 1;
	if (rdma_create_id(t->events, &t->listener, NULL, RDMA_PS_TCP) ||
	    rdma_bind_addr(t->listener, (struct sockaddr *)&addr) || rdma_listen(t->listener, 16)) {
		perror("uwarp-conform-target: listen");
		return 1;
	}
	printf("listening on port %s\n", t->opt->port);
	fflush(stdout);
	while (!stop) {
		step(t, -1);
		serve_connection(t);
		next_waiting(t);
	}
	return 0;
}

static int await(struct target *t, enum rdma_cm_event_type want)
{
	struct pollfd p = { .fd = t->events->fd, .events = POLLIN };
	struct rdma_cm_event *ev;
	enum rdma_cm_event_type got;

	if (poll(&p, 1, RESOLVE_MS) != 1 || rdma_get_cm_event(t->events, &ev))
		return -1;
	got = ev->event;
	rdma_ack_cm_event(ev);
	return got == want ? 0 : -1;
}

static int dial(struct target *t, struct sockaddr *to)
{
	struct rdma_cm_id *id;

	if (rdma_create_id(t->events, &id, NULL, RDMA_PS_TCP))
		return -1;
	if (rdma_resolve_addr(id, NULL, to, RESOLVE_MS) || await(t, RDMA_CM_EVENT_ADDR_RESOLVED) ||
	    rdma_resolve_route(id, RESOLVE_MS) || await(t, RDMA_CM_EVENT_ROUTE_RESOLVED) ||
	    use_device(t, id->verbs)) {
		rdma_destroy_id(id);
		return -1;
	}
	t->active = true;
	if (conn_open(&t->conn, id, &t->mem, NULL) || conn_connect(&t->conn, &t->prior)) {
		finish(t, PRIOR_GAVE_UP);
		return -1;
	}
	return 0;
}

static int call(struct target *t)
{
	struct sockaddr_storage addr = { 0 };

	if (resolve(t->opt->connect, t->opt->port, &addr))
		return 1;
	while (!stop) {
		if (!dial(t, (struct sockaddr *)&addr))
			serve_connection(t);
		if (!stop)
			usleep(RETRY_MS * 1000);
	}
	return 0;
}

/* ---- command line ------------------------------------------------------------------------ */

static const char usage[] =
	"usage: uwarp-conform-target [--port N] [--bind ADDR] [--connect ADDR] [--once] [--quiet]\n"
	"\n"
	"The program behind the RNIC under test that uwarp-conform talks to. It waits for\n"
	"connections (or, with --connect, makes them, again and again), offers registered memory,\n"
	"sends back what it receives and does what the tester asks. Never run it where strangers\n"
	"can reach the port.\n"
	"\n"
	"  --port N        TCP port, default 7471\n"
	"  --bind ADDR     listen on this local address only\n"
	"  --connect ADDR  connect to a tester that waits there (uwarp-conform --role responder)\n"
	"  --once          end after the first connection\n"
	"  --quiet         no line per connection\n";

static int options(int argc, char **argv, struct options *o)
{
	static const struct option table[] = {
		{ "port", required_argument, NULL, 'p' },
		{ "bind", required_argument, NULL, 'b' },
		{ "connect", required_argument, NULL, 'c' },
		{ "once", no_argument, NULL, '1' },
		{ "quiet", no_argument, NULL, 'q' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int x;

	*o = (struct options){ .port = "7471" };
	while ((x = getopt_long(argc, argv, "p:b:c:1qh", table, NULL)) != -1) {
		switch (x) {
		case 'p':
			o->port = optarg;
			break;
		case 'b':
			o->bind = optarg;
			break;
		case 'c':
			o->connect = optarg;
			break;
		case '1':
			o->once = true;
			break;
		case 'q':
			o->quiet = true;
			break;
		case 'h':
			fputs(usage, stdout);
			exit(0);
		default:
			return -1;
		}
	}
	return optind == argc ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_signal };
	static struct target t;
	struct options o;
	int rc;

	if (options(argc, argv, &o)) {
		fputs(usage, stderr);
		return 2;
	}
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	t.opt = &o;
	t.events = rdma_create_event_channel();
	if (!t.events) {
		perror("uwarp-conform-target: no RDMA device");
		return 1;
	}
	rc = o.connect ? call(&t) : serve(&t);
	if (t.active)
		conn_close(&t.conn);
	if (t.listener)
		rdma_destroy_id(t.listener);
	memory_close(&t.mem);
	rdma_destroy_event_channel(t.events);
	return rc;
}
