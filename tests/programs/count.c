/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts work requests and completions while things fail around it. Both ends keep Sends, Writes
 * and Reads outstanding on each connection, and receives; every request must complete once, in the
 * order of posting, with success until one fails, and flushed behind that. Public verbs only.
 *
 * usage: count [options] ADDRESS PORT           a server; ends when its last connection has
 *        count [options] -c ADDRESS PORT        a client
 *   -n N       connections of the client (1)
 *   -s N       octets of a message (4096)
 *   -d N       requests outstanding on a connection (32)
 *   -p US      pause between two requests (0)
 *   -q         post receives only
 *   -k         a server that goes on for ever
 *   -C N       completions that a CQ holds (all that may come)
 *   -f N       of an orderly end: disconnect after N requests (never)
 *   -u N       unmap the memory of the requests after N of them, and post more
 *   -w         sleep in poll() on a completion channel, for as long as there is nothing to post
 *
 * Each connection's end prints one line:
 *   conn I: sent N ok N failed N flushed N received N recvs N flushed N; lost N wrong N; first
 * STATUS; heard MS `heard` is CLOCK_BOOTTIME in ms when the program first learned that something is
 * over; `lost` are requests without a completion 5 s later. Exit code 0: none lost, none wrong; 3:
 * some; 1: no start.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

#define CONNS	 64u
#define DRAIN_MS 5000u
#define START_MS 10000u

struct offer {
	uint64_t addr;
	uint32_t rkey;
};

/* One queue of a QP. */
struct queue {
	uint64_t posted, done, ok, failed, flushed;
};

struct conn {
	struct rdma_cm_id *id;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	uint8_t *buf; /* what goes, what comes, what the peer reads and writes */
	struct offer peer;
	struct queue sq, rq;
	uint64_t wrong; /* completions of no request, doubled, out of turn, or of a status that
			   cannot be */
	enum ibv_wc_status first;
	uint64_t heard_ms, next_us;
	bool up, over, told, unmapped;
};

static struct {
	bool client, quiet, keeps, waits;
	unsigned n, size, depth, pause_us, cqe;
	uint64_t finish, unmap;
} opt = { .n = 1, .size = 4096, .depth = 32 };
static struct conn conns[CONNS];
static unsigned n_conns, n_over;
static struct rdma_event_channel *channel;
static struct ibv_comp_channel *completions; /* -w */
static bool any_bad;

static void die(const char *what)
{
	fprintf(stderr, "count: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static void hear(struct conn *c)
{
	if (!c->heard_ms)
		c->heard_ms = now_us() / 1000;
}

/* ---- requests ---------------------------------------------------------------------------- */

static void post_recv(struct conn *c)
{
	struct ibv_sge sge = { (uintptr_t)c->buf + opt.size, opt.size, c->mr->lkey };
	struct ibv_recv_wr wr = { .wr_id = c->rq.posted << 1 | 1, .sg_list = &sge, .num_sge = 1 },
			   *bad;

	if (!ibv_post_recv(c->id->qp, &wr, &bad))
		c->rq.posted++;
}

static void post_send(struct conn *c)
{
	static const enum ibv_wr_opcode turn[] = { IBV_WR_SEND, IBV_WR_RDMA_WRITE,
						   IBV_WR_RDMA_READ };
	struct ibv_sge sge = { (uintptr_t)c->buf, opt.size, c->mr->lkey };
	struct ibv_send_wr wr = { .wr_id = c->sq.posted << 1,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = turn[c->sq.posted % 3],
				  .send_flags = IBV_SEND_SIGNALED },
			   *bad;

	wr.wr.rdma.remote_addr = c->peer.addr;
	wr.wr.rdma.rkey = c->peer.rkey;
	if (!ibv_post_send(c->id->qp, &wr, &bad))
		c->sq.posted++;
}

static void unmap(struct conn *c)
{
	c->unmapped = true;
	if (munmap(c->buf, 3 * (size_t)opt.size))
		die("munmap");
}

static void post(struct conn *c)
{
	while (!opt.quiet && c->sq.posted - c->sq.done < opt.depth && now_us() >= c->next_us) {
		if (opt.unmap && c->sq.posted >= opt.unmap && !c->unmapped)
			unmap(c);
		post_send(c);
		c->next_us = now_us() + opt.pause_us;
		if (opt.pause_us)
			break;
	}
}

static void finished(struct conn *c, const struct ibv_wc *wc)
{
	struct queue *q = wc->wr_id & 1 ? &c->rq : &c->sq;

	if (wc->wr_id >> 1 != q->done || q->done >= q->posted) {
		fprintf(stderr, "count: completion of %s %llu, where %llu was due, of %llu\n",
			wc->wr_id & 1 ? "receive" : "request", (unsigned long long)wc->wr_id >> 1,
			(unsigned long long)q->done, (unsigned long long)q->posted);
		c->wrong++;
	}
	q->done++;
	if (wc->status == IBV_WC_SUCCESS && (q->failed || q->flushed)) {
		fprintf(stderr, "count: success behind a failure\n");
		c->wrong++;
	}
	if (wc->status == IBV_WC_SUCCESS)
		q->ok++;
	else if (wc->status == IBV_WC_WR_FLUSH_ERR)
		q->flushed++;
	else
		q->failed++;
	if (wc->status == IBV_WC_SUCCESS)
		return;
	if (c->first == IBV_WC_SUCCESS || c->first == IBV_WC_WR_FLUSH_ERR)
		c->first = wc->status;
	hear(c);
}

/* True: there were some. */
static bool reap(struct conn *c)
{
	struct ibv_wc wc[32];
	int n = ibv_poll_cq(c->cq, 32, wc);

	if (n < 0)
		hear(c); /* the CQ is in error */
	for (int i = 0; i < n; i++) {
		finished(c, &wc[i]);
		if (wc[i].wr_id & 1 && wc[i].status == IBV_WC_SUCCESS && !c->heard_ms)
			post_recv(c);
	}
	return n > 0;
}

/* ---- the end ----------------------------------------------------------------------------- */

static bool all_done(const struct conn *c)
{
	return c->sq.done == c->sq.posted && c->rq.done == c->rq.posted;
}

static void report(struct conn *c)
{
	uint64_t lost = c->sq.posted - c->sq.done + c->rq.posted - c->rq.done;

	printf("conn %u: sent %llu ok %llu failed %llu flushed %llu received %llu recvs %llu "
	       "flushed %llu; "
	       "lost %lld wrong %llu; first %s; heard %llu\n",
	       (unsigned)(c - conns), (unsigned long long)c->sq.posted,
	       (unsigned long long)c->sq.ok, (unsigned long long)c->sq.failed,
	       (unsigned long long)c->sq.flushed, (unsigned long long)c->rq.ok,
	       (unsigned long long)c->rq.posted, (unsigned long long)c->rq.flushed, (long long)lost,
	       (unsigned long long)c->wrong, ibv_wc_status_str(c->first),
	       (unsigned long long)c->heard_ms);
	fflush(stdout);
	any_bad = any_bad || lost || c->wrong;
}

static void release(struct conn *c)
{
	rdma_destroy_qp(c->id);
	ibv_dereg_mr(c->mr);
	ibv_destroy_cq(c->cq);
	munmap(c->buf, c->unmapped ? 0 : 3 * (size_t)opt.size);
	c->over = true;
	n_over++;
}

/* It ended before it was up: a server that serves many goes on. */
static void end_early(struct conn *c, const char *why)
{
	fprintf(stderr, "count: %s\n", why);
	if (!c || !opt.keeps)
		exit(1);
	if (!c->over)
		release(c);
}

/* The program does what is usual: it disconnects, and destroys all when everything has completed.
 */
static void end(struct conn *c)
{
	uint64_t until = c->heard_ms + DRAIN_MS;

	if (!c->told) {
		c->told = true;
		rdma_disconnect(c->id);
	}
	if (!all_done(c) && now_us() / 1000 < until)
		return;
	report(c);
	release(c);
}

/* ---- connections ------------------------------------------------------------------------- */

static void make(struct conn *c, struct rdma_cm_id *id)
{
	int all = (int)(3 * opt.depth + 8), cqe = opt.cqe ? (int)opt.cqe : all;
	struct ibv_qp_init_attr attr = { .cap = { opt.depth + 4, 2 * opt.depth, 1, 1, 0 },
					 .qp_type = IBV_QPT_RC };

	c->id = id;
	id->context = c;
	c->buf = mmap(NULL, 3 * (size_t)opt.size, PROT_READ | PROT_WRITE,
		      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (c->buf == MAP_FAILED)
		die("mmap");
	if (opt.waits && !completions)
		completions = ibv_create_comp_channel(id->verbs);
	if (opt.waits && !completions)
		die("ibv_create_comp_channel");
	c->cq = ibv_create_cq(id->verbs, cqe, NULL, completions, 0);
	if (!c->cq || (opt.waits && ibv_req_notify_cq(c->cq, 0)))
		die("ibv_create_cq");
	attr.send_cq = attr.recv_cq = c->cq;
	if (rdma_create_qp(id, NULL, &attr))
		die("rdma_create_qp");
	c->mr = ibv_reg_mr(id->pd, c->buf, 3 * (size_t)opt.size,
			   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
				   IBV_ACCESS_REMOTE_READ);
	if (!c->mr)
		die("ibv_reg_mr");
	for (unsigned i = 0; i < 2 * opt.depth; i++)
		post_recv(c);
}

/* One that is not used yet, or that of a connection that is over. */
static struct conn *place(void)
{
	for (unsigned i = 0; opt.keeps && i < n_conns; i++) {
		struct rdma_cm_id *id = conns[i].id;

		if (!conns[i].over)
			continue;
		conns[i] = (struct conn){ 0 };
		n_over--;
		rdma_destroy_id(id);
		return &conns[i];
	}
	return n_conns < CONNS ? &conns[n_conns++] : NULL;
}

static struct rdma_conn_param param_of(const struct conn *c, struct offer *o)
{
	*o = (struct offer){ (uintptr_t)c->buf + 2 * (size_t)opt.size, c->mr->rkey };
	return (struct rdma_conn_param){ .private_data = o,
					 .private_data_len = sizeof(*o),
					 .responder_resources = 16,
					 .initiator_depth = 16,
					 .retry_count = 7,
					 .rnr_retry_count = 7 };
}

static void take_offer(struct conn *c, const struct rdma_cm_event *e)
{
	if (e->param.conn.private_data_len >= sizeof(c->peer))
		memcpy(&c->peer, e->param.conn.private_data, sizeof(c->peer));
}

static void on_event(const struct rdma_cm_event *e)
{
	struct conn *c = e->id->context;
	struct rdma_conn_param p;
	struct offer o;

	switch (e->event) {
	case RDMA_CM_EVENT_CONNECT_REQUEST:
		c = place();
		if (!c) {
			rdma_reject(e->id, NULL, 0);
			break;
		}
		make(c, e->id);
		take_offer(c, e);
		p = param_of(c, &o);
		if (rdma_accept(e->id, &p))
			end_early(c, "rdma_accept: the client is gone");
		break;
	case RDMA_CM_EVENT_ADDR_RESOLVED:
		if (rdma_resolve_route(e->id, 2000))
			die("rdma_resolve_route");
		break;
	case RDMA_CM_EVENT_ROUTE_RESOLVED:
		make(c, e->id);
		p = param_of(c, &o);
		if (rdma_connect(e->id, &p))
			die("rdma_connect");
		break;
	case RDMA_CM_EVENT_ESTABLISHED:
		if (opt.client)
			take_offer(c, e);
		c->up = true;
		printf("up %u\n", (unsigned)(c - conns));
		fflush(stdout);
		break;
	case RDMA_CM_EVENT_DISCONNECTED:
		hear(c);
		break;
	case RDMA_CM_EVENT_TIMEWAIT_EXIT:
		break;
	default:
		fprintf(stderr, "count: %s: %d\n", rdma_event_str(e->event), e->status);
		if (c && c->up)
			hear(c);
		else
			end_early(c, "before it was up");
	}
}

/* What has completed meanwhile is reaped after that. */
static void take_notice(void)
{
	struct ibv_cq *cq;
	void *context;

	if (ibv_get_cq_event(completions, &cq, &context))
		die("ibv_get_cq_event");
	ibv_ack_cq_events(cq, 1);
	if (ibv_req_notify_cq(cq, 0))
		die("ibv_req_notify_cq");
}

/* True: there is an event of rdma_cm. */
static bool wait_for_events(int wait_ms)
{
	struct pollfd p[] = { { .fd = channel->fd, .events = POLLIN },
			      { .fd = completions ? completions->fd : -1, .events = POLLIN } };

	if (poll(p, 2, wait_ms) <= 0)
		return false;
	if (p[1].revents)
		take_notice();
	return p[0].revents;
}

static void serve_events(int wait_ms)
{
	struct rdma_cm_event *e, copy;
	uint8_t data[256];

	while (wait_for_events(wait_ms) && !rdma_get_cm_event(channel, &e)) {
		copy = *e;
		if (e->param.conn.private_data_len && e->event <= RDMA_CM_EVENT_ESTABLISHED &&
		    e->event >= RDMA_CM_EVENT_CONNECT_REQUEST) {
			memcpy(data, e->param.conn.private_data, e->param.conn.private_data_len);
			copy.param.conn.private_data = data;
		}
		rdma_ack_cm_event(e);
		on_event(&copy);
		wait_ms = 0;
	}
}

static void run(struct conn *c, bool *busy)
{
	if (!c->up || c->over)
		return;
	*busy = reap(c) || *busy;
	if (opt.finish && c->sq.done >= opt.finish)
		hear(c);
	if (c->heard_ms)
		end(c);
	else
		post(c);
}

/* In milliseconds; -1: until an event comes. */
static int may_wait(void)
{
	bool any = !opt.waits;

	for (unsigned i = 0; i < n_conns && !any; i++) {
		const struct conn *c = &conns[i];

		any = !c->over && (!c->up || c->heard_ms ||
				   (!opt.quiet && c->sq.posted - c->sq.done < opt.depth));
	}
	return any ? 1 : -1;
}

static bool all_over(uint64_t start_us)
{
	if (n_conns && n_over == n_conns && !opt.keeps)
		return true;
	for (unsigned i = 0; opt.client && i < n_conns; i++) {
		if (!conns[i].up && now_us() - start_us > START_MS * 1000ull)
			die("no connection in time");
	}
	return false;
}

static void loop(void)
{
	uint64_t start = now_us();

	while (!all_over(start)) {
		bool busy = false;

		for (unsigned i = 0; i < n_conns; i++)
			run(&conns[i], &busy);
		serve_events(busy ? 0 : may_wait());
	}
}

/* ---- the start --------------------------------------------------------------------------- */

static void parse(int argc, char **argv)
{
	int o;

	while ((o = getopt(argc, argv, "cn:s:d:p:qkC:f:u:w")) != -1) {
		unsigned long v = optarg ? strtoul(optarg, NULL, 10) : 0;

		switch (o) {
		case 'c':
			opt.client = true;
			break;
		case 'n':
			opt.n = (unsigned)v;
			break;
		case 's':
			opt.size = (unsigned)v;
			break;
		case 'd':
			opt.depth = (unsigned)v;
			break;
		case 'p':
			opt.pause_us = (unsigned)v;
			break;
		case 'k':
			opt.keeps = true;
			break;
		case 'q':
			opt.quiet = true;
			break;
		case 'C':
			opt.cqe = (unsigned)v;
			break;
		case 'f':
			opt.finish = v;
			break;
		case 'u':
			opt.unmap = v;
			break;
		case 'w':
			opt.waits = true;
			break;
		default:
			exit(2);
		}
	}
	if (argc - optind != 2 || !opt.n || opt.n > CONNS || !opt.size || !opt.depth)
		exit(2);
}

static void begin(const char *address, const char *port)
{
	struct rdma_addrinfo hints = { .ai_port_space = RDMA_PS_TCP }, *a;
	struct rdma_cm_id *id;

	hints.ai_flags = opt.client ? 0 : RAI_PASSIVE;
	if (rdma_getaddrinfo(address, port, &hints, &a))
		die("rdma_getaddrinfo");
	for (unsigned i = 0; i < (opt.client ? opt.n : 1); i++) {
		if (rdma_create_id(channel, &id, opt.client ? &conns[i] : NULL, RDMA_PS_TCP))
			die("rdma_create_id");
		if (opt.client && rdma_resolve_addr(id, NULL, a->ai_dst_addr, 2000))
			die("rdma_resolve_addr");
		if (!opt.client && (rdma_bind_addr(id, a->ai_src_addr) || rdma_listen(id, 64)))
			die("rdma_listen");
	}
	n_conns = opt.client ? opt.n : 0;
	rdma_freeaddrinfo(a);
}

int main(int argc, char **argv)
{
	parse(argc, argv);
	channel = rdma_create_event_channel();
	if (!channel)
		die("rdma_create_event_channel");
	begin(argv[optind], argv[optind + 1]);
	if (!opt.client) {
		printf("listens\n");
		fflush(stdout);
	}
	loop();
	return any_bad ? 3 : 0;
}
