/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the stock verbs programs do not measure, with public verbs and rdma_cm only.
 *
 *   verbs_bench -S -a ADDR [-p PORT]      serve until killed
 *   verbs_bench -a ADDR [-p PORT] [-c CONNECTIONS] [-t SECONDS] [-w WINDOW] [-n BUFFERS]
 *               [-b ADDR -k PID] MODE:OCTETS
 *
 * send, write, read   a stream of messages of which every octet is checked where it arrives
 * flow                the send stream, unchecked; the receiver says after SECONDS what it got, and
 *                     both ends sleep while they wait: for networks that lose
 * plain               the send stream, unchecked, over all connections in turn
 * echo                a message to and fro on each connection in turn, WINDOW under way in all
 * idle                connections that do nothing
 * -n: messages of flow and plain leave from BUFFERS buffers in turn, and arrive in as many; 1 if it
 * is not given, as in perftest and in tcp_bench, which has the same option. The other modes have a
 * buffer for each message that is under way, since what is in them is checked.
 * -b: one more connection, to the server there, whose process PID is stopped (SIGSTOP) at half
 * time. One line of JSON.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <rdma/rdma_cma.h>

#include "perf.h"

enum {
	PORT = 18700,
	DEPTH_MAX = 64,
	STREAM_ROOM = 4 << 20, /* under way on a connection */
	NOTE = 64,	       /* octets of a credit or a notice, and at least of a buffer */
	CQ_ROOM = 32768,
	WAVE = 64,	 /* connections being set up at a time */
	PATIENCE = 4000, /* empty polls before a server sleeps */
	CM_MS = 10000,
	LONGEST_S = 60,
	LINE = 64,
};

enum mode {
	MODE_SEND,
	MODE_WRITE,
	MODE_READ,
	MODE_PLAIN,
	MODE_ECHO,
	MODE_IDLE,
	MODE_FLOW,
	MODE_COUNT
};

static const char *const mode_name[] = { "send", "write", "read", "plain", "echo", "idle", "flow" };

/* Private data of a connection request, and of its answer. */
struct hello {
	uint32_t mode, octets, depth, ms; /* ms: flow, how long to count */
	uint32_t slots;			  /* buffers each way */
};

struct offer {
	uint64_t addr;
	uint32_t rkey;
};

/* What a message touches is one cache line. */
struct conn {
	struct ibv_qp *qp;
	/* slots that go out, as many that come in, behind them a note for each message under way */
	uint8_t *room;
	uint32_t slot, lkey;
	struct hello h;
	unsigned index;
	uint64_t sent, done; /* messages begun; messages known to have arrived */
	uint64_t seen;	     /* a server's: messages that arrived */
	uint64_t first_ns;   /* flow: when the first one arrived */

	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	struct offer peer;
};

struct bench {
	struct rdma_event_channel *channel;
	struct ibv_context *verbs;
	struct ibv_pd *pd;
	struct ibv_cq *cq;
	struct ibv_comp_channel *bell;
	struct conn **conn;
	unsigned conns, up, room;
	uint64_t echoed;
	uint64_t bad;
	uint64_t flowed, flowed_ns; /* flow: messages that arrived, in that time */
	bool serves;
};

struct options {
	struct sockaddr_in peer, other;
	bool serve;
	unsigned connections, window, buffers;
	double seconds;
	pid_t victim;
};

static void die(const char *what)
{
	fprintf(stderr, "verbs_bench: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void must(int rc, const char *what)
{
	if (rc)
		die(what);
}

/* --- patterns: each word says which message it belongs to and where --- */

static uint64_t word_of(uint64_t message, uint32_t at)
{
	return message * 0x9e3779b97f4a7c15u + at * 0xc2b2ae3d27d4eb4fu;
}

static void fill(uint8_t *p, uint32_t n, uint64_t message)
{
	for (uint32_t at = 0; at + 8 <= n; at += 8) {
		uint64_t w = word_of(message, at);

		memcpy(p + at, &w, 8);
	}
	for (uint32_t at = n & ~7u; at < n; at++)
		p[at] = (uint8_t)(message + at);
}

/* Octets that are wrong, in eights. */
static uint64_t wrong(const uint8_t *p, uint32_t n, uint64_t message)
{
	uint64_t bad = 0, w;

	for (uint32_t at = 0; at + 8 <= n; at += 8) {
		memcpy(&w, p + at, 8);
		bad += w != word_of(message, at);
	}
	for (uint32_t at = n & ~7u; at < n; at++)
		bad += p[at] != (uint8_t)(message + at);
	return bad;
}

/* --- a connection's memory and posts --- */

static uint8_t *out_slot(const struct conn *c, uint64_t n)
{
	return c->room + n % c->h.slots * c->slot;
}

static uint8_t *in_slot(const struct conn *c, uint64_t n)
{
	return out_slot(c, n) + (size_t)c->h.slots * c->slot;
}

static uint8_t *note(const struct conn *c, uint64_t n)
{
	return c->room + (size_t)2 * c->h.slots * c->slot + n % c->h.depth * NOTE;
}

enum kind { KIND_SEND, KIND_RECV, KIND_READ, KIND_NOTE };

static uint64_t wr_id(const struct conn *c, enum kind kind, uint64_t n)
{
	return (uint64_t)c->index << 32 | (uint64_t)kind << 28 | (n & 0xfffffff);
}

static void post_recv(struct conn *c, uint64_t n)
{
	struct ibv_sge s = { (uintptr_t)in_slot(c, n), c->slot, c->lkey };
	struct ibv_recv_wr wr = { .wr_id = wr_id(c, KIND_RECV, n), .sg_list = &s, .num_sge = 1 },
			   *bad;

	must(ibv_post_recv(c->qp, &wr, &bad), "post_recv");
}

static void post_send(struct conn *c, enum kind kind, void *from, uint32_t len, uint64_t n)
{
	struct ibv_sge s = { (uintptr_t)from, len, c->lkey };
	struct ibv_send_wr wr = { .wr_id = wr_id(c, kind, n),
				  .sg_list = &s,
				  .num_sge = 1,
				  .opcode = IBV_WR_SEND,
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	must(ibv_post_send(c->qp, &wr, &bad), "post_send");
}

/* A WRITE of slot n of the peer's room with a notice behind it, or a READ of it. */
static void post_rdma(struct conn *c, uint64_t n)
{
	uint64_t remote = c->peer.addr + n % c->h.depth * c->slot;
	bool reads = c->h.mode == MODE_READ;
	struct ibv_sge s = { (uintptr_t)(reads ? in_slot(c, n) : out_slot(c, n)), c->h.octets,
			     c->lkey };
	struct ibv_send_wr wr = { .wr_id = wr_id(c, KIND_READ, n),
				  .sg_list = &s,
				  .num_sge = 1,
				  .opcode = reads ? IBV_WR_RDMA_READ : IBV_WR_RDMA_WRITE,
				  .send_flags = reads ? IBV_SEND_SIGNALED : 0,
				  .wr.rdma = { remote, c->peer.rkey } },
			   *bad;

	must(ibv_post_send(c->qp, &wr, &bad), "post_send");
	if (!reads)
		post_send(c, KIND_NOTE, note(c, n), 8, n);
}

static void post_message(struct conn *c)
{
	uint64_t n = c->sent++;

	if (c->h.mode == MODE_SEND || c->h.mode == MODE_WRITE)
		fill(out_slot(c, n), c->h.octets, n);
	if (c->h.mode == MODE_WRITE || c->h.mode == MODE_READ)
		post_rdma(c, n);
	else
		post_send(c, KIND_SEND, out_slot(c, n), c->h.octets, n);
}

/* --- what completes --- */

/* How many messages came after the first, and how long that took: once. */
static void on_flow(struct conn *c, uint64_t n)
{
	uint64_t now = now_ns(), what[2] = { c->seen - 1, now - c->first_ns };

	post_recv(c, n);
	if (c->seen == 1)
		c->first_ns = now;
	if (c->seen == 1 || c->done || now - c->first_ns < c->h.ms * 1000000ull)
		return;
	c->done = 1;
	memcpy(note(c, 0), what, sizeof(what));
	post_send(c, KIND_NOTE, note(c, 0), sizeof(what), 0);
}

static void on_message(struct bench *b, struct conn *c, uint64_t n)
{
	uint64_t first = c->seen++;

	if (c->h.mode == MODE_FLOW) {
		on_flow(c, n);
		return;
	}

	if (c->h.mode == MODE_SEND)
		b->bad += wrong(in_slot(c, n), c->h.octets, first);
	else if (c->h.mode == MODE_WRITE)
		b->bad += wrong(out_slot(c, first), c->h.octets, first);
	if (c->h.mode == MODE_ECHO) {
		memcpy(out_slot(c, n), in_slot(c, n), c->h.octets);
		post_recv(c, n);
		post_send(c, KIND_SEND, out_slot(c, n), c->h.octets, n);
		return;
	}
	post_recv(c, n);
	if (c->seen % (c->h.depth / 4) == 0) {
		uint64_t what[2] = { c->seen, b->bad };

		memcpy(note(c, c->seen), what, sizeof(what));
		post_send(c, KIND_NOTE, note(c, c->seen), sizeof(what), c->seen);
	}
}

/* A client's receive: the echo, or how far the server is. */
static void on_answer(struct bench *b, struct conn *c, uint64_t n)
{
	uint64_t what[2];

	memcpy(what, in_slot(c, n), sizeof(what));
	post_recv(c, n);
	if (c->h.mode == MODE_ECHO) {
		c->done++;
		b->echoed++;
		return;
	}
	if (c->h.mode == MODE_FLOW) {
		b->flowed = what[0];
		b->flowed_ns = what[1];
		return;
	}
	c->done = what[0];
	b->bad = what[1];
}

static void on_completion(struct bench *b, const struct ibv_wc *wc)
{
	struct conn *c = b->conn[wc->wr_id >> 32];
	enum kind kind = wc->wr_id >> 28 & 0xf;
	uint64_t n = wc->wr_id & 0xfffffff;

	if (wc->status == IBV_WC_WR_FLUSH_ERR)
		return;
	if (wc->status) {
		fprintf(stderr, "verbs_bench: completion: %s\n", ibv_wc_status_str(wc->status));
		exit(1);
	}
	if (kind == KIND_RECV && b->serves)
		on_message(b, c, n);
	else if (kind == KIND_RECV)
		on_answer(b, c, n);
	else if (kind == KIND_SEND && c->h.mode == MODE_FLOW && !b->serves)
		c->done++;
	else if (kind == KIND_READ) {
		b->bad += wrong(in_slot(c, n), c->h.octets, n % c->h.depth);
		memset(in_slot(c, n), 0, c->h.octets); /* the next one reads the same */
		c->done++;
	}
}

static int drain(struct bench *b)
{
	struct ibv_wc wc[32];
	int n = ibv_poll_cq(b->cq, 32, wc);

	for (int i = 0; i < n; i++)
		on_completion(b, &wc[i]);
	return n;
}

/* --- set-up --- */

static void open_device(struct bench *b, struct ibv_context *verbs)
{
	if (b->verbs)
		return;
	b->verbs = verbs;
	b->pd = ibv_alloc_pd(verbs);
	b->bell = ibv_create_comp_channel(verbs);
	b->cq = ibv_create_cq(verbs, CQ_ROOM, NULL, b->bell, 0);
	if (!b->pd || !b->bell || !b->cq)
		die("device");
	fcntl(b->bell->fd, F_SETFL, O_NONBLOCK);
}

static struct conn *add(struct bench *b, struct rdma_cm_id *id, const struct hello *h)
{
	struct conn *c = aligned_alloc(LINE, (sizeof(*c) + LINE - 1) & ~(size_t)(LINE - 1));

	if (b->conns == b->room) {
		b->room = b->room ? 2 * b->room : 64;
		b->conn = realloc(b->conn, b->room * sizeof(*b->conn));
	}
	if (!c || !b->conn)
		die("memory");
	memset(c, 0, sizeof(*c));
	c->id = id;
	c->h = *h;
	c->index = b->conns;
	c->slot = h->octets < NOTE ? NOTE : (h->octets + 63) & ~63u;
	b->conn[b->conns++] = c;
	id->context = c;
	return c;
}

static void prepare(struct bench *b, struct conn *c)
{
	size_t len = (size_t)c->h.slots * 2 * c->slot + (size_t)c->h.depth * NOTE;
	struct ibv_qp_init_attr attr = {
		.cap = { 3 * c->h.depth, c->h.depth, 1, 1, 0 },
		.qp_type = IBV_QPT_RC,
	};

	open_device(b, c->id->verbs);
	attr.send_cq = attr.recv_cq = b->cq;
	if (posix_memalign((void **)&c->room, 64, len))
		die("memory");
	memset(c->room, 0, len);
	c->mr = ibv_reg_mr(b->pd, c->room, len,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ);
	if (!c->mr)
		die("reg_mr");
	c->lkey = c->mr->lkey;
	must(rdma_create_qp(c->id, b->pd, &attr), "create_qp");
	c->qp = c->id->qp;
	for (unsigned i = 0; i < c->h.depth; i++) {
		if (b->serves && c->h.mode == MODE_READ)
			fill(out_slot(c, i), c->h.octets, i);
		post_recv(c, i);
	}
}

static void answer(struct bench *b, struct rdma_cm_event *e)
{
	struct hello h;
	struct rdma_conn_param p = { .responder_resources = 16, .initiator_depth = 16 };

	memcpy(&h, e->param.conn.private_data, sizeof(h));
	struct conn *c = add(b, e->id, &h);
	prepare(b, c);
	struct offer o = { (uintptr_t)c->room, c->mr->rkey };
	p.private_data = &o;
	p.private_data_len = sizeof(o);
	must(rdma_accept(e->id, &p), "accept");
}

static void ask(struct bench *b, struct conn *c)
{
	struct rdma_conn_param p = { .responder_resources = 16, .initiator_depth = 16 };

	prepare(b, c);
	p.private_data = &c->h;
	p.private_data_len = sizeof(c->h);
	must(rdma_connect(c->id, &p), "connect");
}

static void gone(struct bench *b, struct conn *c)
{
	if (!b->serves)
		return;
	rdma_destroy_qp(c->id);
	while (drain(b) > 0)
		; /* nothing names its memory after this */
	ibv_dereg_mr(c->mr);
	free(c->room);
	c->room = NULL;
}

static void on_event(struct bench *b, struct rdma_cm_event *e)
{
	struct conn *c = e->id->context;

	switch (e->event) {
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		must(rdma_resolve_route(e->id, CM_MS), "resolve_route");
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		ask(b, c);
		break;
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		answer(b, e);
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (!b->serves && e->param.conn.private_data_len >= sizeof(c->peer))
			memcpy(&c->peer, e->param.conn.private_data, sizeof(c->peer));
		b->up++;
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		if (c->room)
			gone(b, c);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		fprintf(stderr, "verbs_bench: %s, status %d\n", rdma_event_str(e->event),
			e->status);
		if (!b->serves)
			exit(1);
	}
}

/* All events that are there; sleeps for the first one if wait is set. */
static void events(struct bench *b, bool wait)
{
	struct pollfd fd = { b->channel->fd, POLLIN, 0 };
	struct rdma_cm_event *e;

	while (poll(&fd, 1, wait ? CM_MS : 0) > 0) {
		wait = false;
		must(rdma_get_cm_event(b->channel, &e), "get_cm_event");
		struct rdma_cm_id *id = e->event == RDMA_CM_EVENT_DISCONNECTED ? e->id : NULL;
		on_event(b, e);
		rdma_ack_cm_event(e);
		if (id && b->serves && id->context) {
			id->context = NULL;
			rdma_destroy_id(id);
		}
	}
}

/* --- the server --- */

static void doze(struct bench *b)
{
	struct pollfd fd[2] = { { b->channel->fd, POLLIN, 0 },
				{ b->bell ? b->bell->fd : -1, POLLIN, 0 } };
	struct ibv_cq *cq;
	void *context;

	if (b->cq && (ibv_req_notify_cq(b->cq, 0) || drain(b) > 0))
		return;
	poll(fd, 2, -1);
	while (b->bell && ibv_get_cq_event(b->bell, &cq, &context) == 0)
		ibv_ack_cq_events(cq, 1);
}

static void serve(struct bench *b, const struct options *o)
{
	struct rdma_cm_id *listener;
	unsigned empty = 0;

	b->serves = true;
	must(rdma_create_id(b->channel, &listener, NULL, RDMA_PS_TCP), "create_id");
	must(rdma_bind_addr(listener, (struct sockaddr *)&o->peer), "bind_addr");
	must(rdma_listen(listener, 1024), "listen");
	for (;;) {
		if (b->cq && drain(b) > 0) {
			empty = 0;
			continue;
		}
		if (++empty % 256 == 0)
			events(b, false);
		if (empty >
		    (b->conns && b->conn[b->conns - 1]->h.mode == MODE_FLOW ? 0 : PATIENCE)) {
			doze(b);
			events(b, false);
			empty = 0;
		}
	}
}

/* --- the client --- */

static void begin(struct bench *b, const struct sockaddr_in *to, const struct hello *h)
{
	struct rdma_cm_id *id;

	must(rdma_create_id(b->channel, &id, NULL, RDMA_PS_TCP), "create_id");
	add(b, id, h);
	must(rdma_resolve_addr(id, NULL, (struct sockaddr *)to, CM_MS), "resolve_addr");
}

static void connect_all(struct bench *b, const struct options *o, const struct hello *h)
{
	unsigned all = o->connections + (o->victim > 0);

	while (b->up < all) {
		while (b->conns < all && b->conns - b->up < WAVE)
			begin(b, b->conns < o->connections ? &o->peer : &o->other, h);
		events(b, true);
	}
}

static uint64_t arrived(const struct bench *b, unsigned conns)
{
	uint64_t n = 0;

	for (unsigned i = 0; i < conns; i++)
		n += b->conn[i]->done;
	return n;
}

/* Post wherever a window is open, in turn; returns how many went. */
static unsigned push(struct bench *b, unsigned *at, unsigned most)
{
	unsigned posted = 0;

	for (unsigned tried = 0; tried < b->conns && posted < most; tried++) {
		struct conn *c = b->conn[(*at)++ % b->conns];
		uint64_t depth = c->h.mode == MODE_ECHO ? c->h.depth : c->h.depth / 2;

		if (c->sent - c->done < depth) {
			post_message(c);
			posted++;
		}
	}
	return posted;
}

struct result {
	double first, second; /* messages per us, in both halves */
	uint64_t messages;
};

static void stream(struct bench *b, const struct options *o, struct result *r)
{
	uint64_t start = now_ns(), half = start + (uint64_t)(o->seconds * 5e8), t = start;
	uint64_t end = half + (uint64_t)(o->seconds * 5e8), at_half = 0, half_at = 0;
	unsigned at = 0;

	while (t < end) {
		push(b, &at, 32);
		drain(b);
		t = now_ns();
		if (!half_at && t >= half) {
			at_half = arrived(b, o->connections);
			half_at = t;
			if (o->victim > 0)
				kill(o->victim, SIGSTOP);
		}
	}
	r->messages = arrived(b, o->connections);
	r->first = (double)at_half * 1000 / (double)(half_at - start);
	r->second = (double)(r->messages - at_half) * 1000 / (double)(t - half_at);
	if (o->victim > 0)
		kill(o->victim, SIGCONT);
}

/* Until the receiver has said what it got; a program that sleeps while there is nothing to do. */
static void flow(struct bench *b, struct result *r)
{
	unsigned at = 0;

	while (!b->flowed_ns) {
		if (!push(b, &at, 32) && !drain(b))
			doze(b);
		drain(b);
	}
	r->messages = b->flowed;
	r->first = r->second = (double)b->flowed * 1000 / (double)b->flowed_ns;
}

static struct perf_times times; /* of each echo, where one is under way */

/* WINDOW messages under way, each on the connection whose turn it is. */
static void echo(struct bench *b, const struct options *o, struct result *r)
{
	uint64_t start = now_ns(), end = start + (uint64_t)(o->seconds * 1e9), t = start;
	uint64_t sent = 0, last = start;
	unsigned at = 0;

	for (; t < end; t = now_ns()) {
		uint64_t before = b->echoed;

		sent += push(b, &at, o->window - (unsigned)(sent - b->echoed));
		drain(b);
		if (o->window > 1 || b->echoed == before || times.n == PERF_SAMPLES)
			continue;
		t = now_ns();
		times.v[times.n++] = (float)(t - last) / 1000;
		last = t;
	}
	r->messages = b->echoed;
	r->first = r->second = (double)b->echoed * 1000 / (double)(t - start);
}

static bool all_back(struct bench *b)
{
	for (unsigned i = 0; i < b->conns; i++)
		if (b->conn[i]->h.mode == MODE_READ && b->conn[i]->done < b->conn[i]->sent)
			return false;
	return true;
}

/* Of all threads of this process. */
static double cpu_seconds(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static struct hello hello_of(const struct options *o, enum mode mode, unsigned octets)
{
	unsigned depth = STREAM_ROOM / octets;
	struct hello h = { mode, octets,
			   depth < 8	       ? 8
			   : depth > DEPTH_MAX ? DEPTH_MAX
					       : depth,
			   (uint32_t)(o->seconds * 1e3), 0 };

	if (o->connections > 1)
		h.depth = 8;
	if (mode == MODE_ECHO && o->connections == 1)
		h.depth = o->window < 8 ? 8 : o->window;
	h.slots = mode == MODE_FLOW || mode == MODE_PLAIN ? o->buffers : h.depth;
	return h;
}

static int client(struct bench *b, const struct options *o, enum mode mode, unsigned octets)
{
	struct hello h = hello_of(o, mode, octets);
	struct result r = { 0 };

	uint64_t t = now_ns();
	connect_all(b, o, &h);
	double up_s = (double)(now_ns() - t) / 1e9, cpu_s = cpu_seconds();
	if (mode == MODE_IDLE)
		usleep((useconds_t)(o->seconds * 1e6));
	else if (mode == MODE_ECHO)
		echo(b, o, &r);
	else if (mode == MODE_FLOW)
		flow(b, &r);
	else
		stream(b, o, &r);
	for (int i = 0; i < 1000 && !all_back(b); i++) {
		drain(b);
		usleep(100);
	}
	cpu_s = cpu_seconds() - cpu_s;
	printf("{");
	if (times.n) {
		perf_print_times(&times);
		printf(", ");
	}
	printf("\"mode\": \"%s\", \"octets\": %u, \"connections\": %u, \"up_s\": %.4f, "
	       "\"messages\": %llu, \"mps\": %.5f, \"first\": %.5f, \"second\": %.5f, "
	       "\"gbps\": %.5f, \"cpu_s\": %.4f, \"bad\": %llu}\n",
	       mode_name[mode], octets, b->up, up_s, (unsigned long long)r.messages,
	       (r.first + r.second) / 2, r.first, r.second,
	       (r.first + r.second) / 2 * octets * 8 / 1000, cpu_s, (unsigned long long)b->bad);
	return b->bad != 0;
}

static int run(struct bench *b, const struct options *o, const char *word)
{
	const char *colon = word ? strchr(word, ':') : NULL;

	for (int mode = 0; colon && mode < MODE_COUNT; mode++)
		if (!strncmp(word, mode_name[mode], (size_t)(colon - word)) && atoi(colon + 1) > 0)
			return client(b, o, (enum mode)mode, (unsigned)atoi(colon + 1));
	return 2;
}

int main(int argc, char **argv)
{
	struct bench b = { 0 };
	struct options o = { .connections = 1, .window = 1, .seconds = 1, .buffers = 1 };
	int c;

	o.peer.sin_family = o.other.sin_family = AF_INET;
	o.peer.sin_port = o.other.sin_port = htons(PORT);
	while ((c = getopt(argc, argv, "Sa:b:p:c:t:w:k:n:")) != -1) {
		switch (c) {
		case 'S':
			o.serve = true;
			break;
		case 'a':
			inet_aton(optarg, &o.peer.sin_addr);
			break;
		case 'b':
			inet_aton(optarg, &o.other.sin_addr);
			break;
		case 'p':
			o.peer.sin_port = o.other.sin_port = htons((uint16_t)atoi(optarg));
			break;
		case 'c':
			o.connections = (unsigned)atoi(optarg);
			break;
		case 't':
			o.seconds = atof(optarg) < LONGEST_S ? atof(optarg) : LONGEST_S;
			break;
		case 'w':
			o.window = (unsigned)atoi(optarg);
			break;
		case 'k':
			o.victim = (pid_t)atoi(optarg);
			break;
		case 'n':
			o.buffers = perf_buffers(optarg);
			break;
		default:
			return 2;
		}
	}
	b.channel = rdma_create_event_channel();
	if (!b.channel)
		die("event channel");
	if (o.serve)
		serve(&b, &o);
	return run(&b, &o, argv[optind]);
}
