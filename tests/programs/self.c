/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that talks to itself, with public verbs only: one thread listens at an address, the
 * other connects to it. Messages of many sizes come back as they were sent, a region is written and
 * read back. With -x the client writes with an STag that nobody has, which must end the connection
 * and nothing else, and then does all the rest on a new one.
 *
 * usage: self [-x] ADDRESS [PORT]
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>

#define ROOM (1u << 20)

static const uint32_t sizes[] = { 1, 2, 63, 64, 1439, 1500, 8973, 65536, 65537, ROOM };
#define N_SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* What the server lets the client write to and read from. */
struct offer {
	uint64_t addr;
	uint32_t rkey, len;
};

struct end {
	struct rdma_cm_id *id;
	uint8_t *out, *in, *region; /* in follows out */
	struct ibv_mr *mr, *region_mr;
};

struct server {
	struct rdma_cm_id *listener;
	unsigned connections;
	sem_t listening;
};

static void die(const char *what)
{
	fprintf(stderr, "self: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void must(int rc, const char *what)
{
	if (rc < 0)
		die(what);
}

static void fill(uint8_t *p, uint32_t n, uint32_t seed)
{
	for (uint32_t i = 0; i < n; i++)
		p[i] = (uint8_t)((i * 2654435761u + seed) >> 13);
}

static void expect(const uint8_t *p, uint32_t n, uint32_t seed)
{
	for (uint32_t i = 0; i < n; i++) {
		if (p[i] != (uint8_t)((i * 2654435761u + seed) >> 13)) {
			fprintf(stderr, "self: octet %u of %u came wrong\n", i, n);
			exit(1);
		}
	}
}

/* ---- both ends -------------------------------------------------------------------------- */

static struct ibv_qp_init_attr qp_attr(void)
{
	return (struct ibv_qp_init_attr){
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
}

static struct rdma_cm_id *make_id(const char *addr, const char *port, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP }, *found;
	struct ibv_qp_init_attr attr = qp_attr();
	struct rdma_cm_id *id;

	must(rdma_getaddrinfo(addr, port, &hints, &found), "rdma_getaddrinfo");
	must(rdma_create_ep(&id, found, NULL, &attr), "rdma_create_ep");
	rdma_freeaddrinfo(found);
	return id;
}

static void open_end(struct end *e, struct rdma_cm_id *id)
{
	e->id = id;
	e->out = malloc(2 * ROOM);
	e->in = e->out + ROOM;
	e->region = malloc(ROOM);
	if (!e->out || !e->region)
		die("malloc");
	e->mr = rdma_reg_msgs(id, e->out, 2 * ROOM);
	e->region_mr = ibv_reg_mr(id->pd, e->region, ROOM,
				  IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
					  IBV_ACCESS_REMOTE_READ);
	if (!e->mr || !e->region_mr)
		die("registering memory");
}

static void close_end(struct end *e)
{
	must(rdma_dereg_mr(e->mr), "rdma_dereg_mr");
	must(rdma_dereg_mr(e->region_mr), "rdma_dereg_mr");
	rdma_destroy_ep(e->id);
	free(e->out);
	free(e->region);
}

static void must_complete(struct end *e, bool send, uint32_t len)
{
	struct ibv_wc wc;
	int n = send ? rdma_get_send_comp(e->id, &wc) : rdma_get_recv_comp(e->id, &wc);

	must(n, "waiting for a completion");
	if (wc.status != IBV_WC_SUCCESS || (!send && wc.byte_len != len)) {
		fprintf(stderr, "self: %s: %s, %u octets instead of %u\n",
			send ? "send" : "receive", ibv_wc_status_str(wc.status), wc.byte_len, len);
		exit(1);
	}
}

static void post_recv(struct end *e)
{
	must(rdma_post_recv(e->id, NULL, e->in, ROOM, e->mr), "rdma_post_recv");
}

static void send_out(struct end *e, uint32_t len)
{
	must(rdma_post_send(e->id, NULL, e->out, len, e->mr, 0), "rdma_post_send");
	must_complete(e, true, 0);
}

/* ---- server ----------------------------------------------------------------------------- */

/* Send everything back; then offer the region, and see in the end what the client wrote there. */
static void serve(struct end *e)
{
	struct offer offer = { (uintptr_t)e->region, e->region_mr->rkey, ROOM };

	for (unsigned i = 0; i < N_SIZES; i++) {
		must_complete(e, false, sizes[i]);
		expect(e->in, sizes[i], i);
		memcpy(e->out, e->in, sizes[i]);
		post_recv(e);
		send_out(e, sizes[i]);
	}
	must_complete(e, false, 1); /* it asks for the region */
	memcpy(e->out, &offer, sizeof(offer));
	post_recv(e);
	send_out(e, sizeof(offer));
	must_complete(e, false, 1); /* it has written and read */
	expect(e->region, ROOM, N_SIZES);
	send_out(e, 1);
}

/* What the bad write brings: nothing but the end. */
static void serve_bad(struct end *e)
{
	struct ibv_wc wc;

	must(rdma_get_recv_comp(e->id, &wc), "waiting for the flushed receive");
	if (wc.status != IBV_WC_WR_FLUSH_ERR) {
		fprintf(stderr, "self: the receive ended with %s\n", ibv_wc_status_str(wc.status));
		exit(1);
	}
}

static void *server_main(void *arg)
{
	struct server *s = arg;

	must(rdma_listen(s->listener, 4), "rdma_listen");
	sem_post(&s->listening);
	for (unsigned i = 0; i < s->connections; i++) {
		struct rdma_cm_id *id;
		struct end e;

		must(rdma_get_request(s->listener, &id), "rdma_get_request");
		open_end(&e, id);
		post_recv(&e);
		must(rdma_accept(id, NULL), "rdma_accept");
		if (i + 1 < s->connections)
			serve_bad(&e);
		else
			serve(&e);
		rdma_disconnect(id);
		close_end(&e);
	}
	return NULL;
}

/* ---- client ----------------------------------------------------------------------------- */

/* Send so much of `out`, and wait for an answer of that length. */
static void ask(struct end *e, uint32_t len, uint32_t answer)
{
	post_recv(e);
	send_out(e, len);
	must_complete(e, false, answer);
}

static void echo_all(struct end *e)
{
	for (unsigned i = 0; i < N_SIZES; i++) {
		fill(e->out, sizes[i], i);
		ask(e, sizes[i], sizes[i]);
		expect(e->in, sizes[i], i);
	}
}

static void write_and_read(struct end *e)
{
	struct offer o;

	ask(e, 1, sizeof(o));
	memcpy(&o, e->in, sizeof(o));
	fill(e->region, o.len, N_SIZES);
	must(rdma_post_write(e->id, NULL, e->region, o.len, e->region_mr, 0, o.addr, o.rkey),
	     "rdma_post_write");
	must_complete(e, true, 0);
	memset(e->region, 0, o.len);
	must(rdma_post_read(e->id, NULL, e->region, o.len, e->region_mr, 0, o.addr, o.rkey),
	     "rdma_post_read");
	must_complete(e, true, 0);
	expect(e->region, o.len, N_SIZES);
	ask(e, 1, 1);
}

/* The local end of a write need not wait for the remote one: what counts is that a later request
 * on the connection fails, and soon. */
static void write_badly(struct end *e)
{
	struct ibv_wc wc = { .status = IBV_WC_SUCCESS };

	must(rdma_post_write(e->id, NULL, e->region, 64, e->region_mr, 0, 0, 0x12345678),
	     "rdma_post_write");
	must(rdma_get_send_comp(e->id, &wc), "waiting for the bad write");
	while (wc.status == IBV_WC_SUCCESS) {
		must(rdma_post_read(e->id, NULL, e->region, 1, e->region_mr, 0, 0, 0x12345678),
		     "rdma_post_read");
		must(rdma_get_send_comp(e->id, &wc), "waiting for the bad read");
	}
	printf("bad STag: %s\n", ibv_wc_status_str(wc.status));
}

static void client(const char *addr, const char *port, bool bad)
{
	struct end e;

	open_end(&e, make_id(addr, port, 0));
	must(rdma_connect(e.id, NULL), "rdma_connect");
	if (bad) {
		write_badly(&e);
	} else {
		echo_all(&e);
		write_and_read(&e);
	}
	rdma_disconnect(e.id);
	close_end(&e);
}

int main(int argc, char **argv)
{
	bool bad = argc > 1 && !strcmp(argv[1], "-x");
	const char *addr = argv[1 + bad], *port = argc > 2 + bad ? argv[2 + bad] : "7471";
	struct server s = { .connections = 1 + bad };
	pthread_t thread;

	if (argc < 2 + bad) {
		fprintf(stderr, "usage: self [-x] ADDRESS [PORT]\n");
		return 2;
	}
	setvbuf(stdout, NULL, _IOLBF, 0);
	sem_init(&s.listening, 0, 0);
	s.listener = make_id(addr, port, RAI_PASSIVE);
	if (pthread_create(&thread, NULL, server_main, &s))
		die("pthread_create");
	sem_wait(&s.listening);
	if (bad)
		client(addr, port, true);
	client(addr, port, false);
	pthread_join(thread, NULL);
	rdma_destroy_ep(s.listener);
	printf("self: all came back\n");
	return 0;
}
