/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One of many processes, each of which is connected with each of another set, with public verbs
 * only. A server takes N connections at one port and returns what comes; a client connects to N
 * ports from PORT on and compares. All connections of a process are up before the first message.
 *
 * usage: mesh serve PORT N MESSAGES
 *        mesh call ADDRESS PORT N MESSAGES
 */
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/rdma_verbs.h>

enum { ROOM = 20000, PEERS = 64, TRIES = 100, PAUSE_US = 100000 };

struct end {
	struct rdma_cm_id *id;
	struct ibv_mr *mr;
	unsigned messages, number;
	uint8_t out[ROOM], in[ROOM];
};

static void die(const char *what)
{
	fprintf(stderr, "mesh: %s: %s\n", what, strerror(errno));
	exit(1);
}

static uint32_t size_of(unsigned n)
{
	return 1 + n * 7919 % ROOM;
}

static void fill(const struct end *e, uint8_t *p, unsigned n)
{
	for (uint32_t i = 0; i < size_of(n); i++)
		p[i] = (uint8_t)((i * 2654435761u + n + e->number) >> 11);
}

static struct rdma_cm_id *make_id(const char *addr, unsigned port, int flags)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP }, *found;
	struct ibv_qp_init_attr attr = {
		.cap = { .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1 },
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = 1,
	};
	struct rdma_cm_id *id = NULL;
	char text[16];

	snprintf(text, sizeof(text), "%u", port);
	if (rdma_getaddrinfo(addr, text, &hints, &found))
		die("rdma_getaddrinfo");
	if (rdma_create_ep(&id, found, NULL, &attr))
		id = NULL;
	rdma_freeaddrinfo(found);
	return id;
}

static struct end *end_of(struct rdma_cm_id *id, unsigned messages, unsigned number)
{
	struct end *e = calloc(1, sizeof(*e));

	if (!e)
		die("calloc");
	e->id = id;
	e->messages = messages;
	e->number = number;
	e->mr = rdma_reg_msgs(id, e->out, 2 * ROOM);
	if (!e->mr || rdma_post_recv(id, NULL, e->in, ROOM, e->mr))
		die("rdma_post_recv");
	return e;
}

static uint32_t receive(struct end *e)
{
	struct ibv_wc wc;

	if (rdma_get_recv_comp(e->id, &wc) != 1 || wc.status)
		die("receive");
	return wc.byte_len;
}

static void send_one(struct end *e, uint8_t *p, uint32_t n)
{
	struct ibv_wc wc;

	if (rdma_post_send(e->id, NULL, p, n, e->mr, 0) || rdma_get_send_comp(e->id, &wc) != 1 ||
	    wc.status)
		die("send");
}

static void again(struct end *e, unsigned n)
{
	if (n + 1 < e->messages && rdma_post_recv(e->id, NULL, e->in, ROOM, e->mr))
		die("rdma_post_recv");
}

/* ---- the server ---------------------------------------------------------------------------- */

static void *echo(void *arg)
{
	struct end *e = arg;

	for (unsigned n = 0; n < e->messages; n++) {
		uint32_t len = receive(e);

		memcpy(e->out, e->in, len);
		again(e, n);
		send_one(e, e->out, len);
	}
	return NULL;
}

static void serve(unsigned port, unsigned peers, unsigned messages)
{
	struct rdma_cm_id *listener = make_id(NULL, port, RAI_PASSIVE), *id;
	pthread_t thread[PEERS];
	struct end *e[PEERS];

	if (!listener || rdma_listen(listener, PEERS))
		die("rdma_listen");
	for (unsigned i = 0; i < peers; i++) {
		if (rdma_get_request(listener, &id))
			die("rdma_get_request");
		e[i] = end_of(id, messages, i);
		if (rdma_accept(id, NULL))
			die("rdma_accept");
		if (pthread_create(&thread[i], NULL, echo, e[i]))
			die("pthread_create");
	}
	for (unsigned i = 0; i < peers; i++)
		pthread_join(thread[i], NULL);
	/* What was sent last is on its way: the clients hang up first. */
	for (unsigned i = 0; i < peers; i++) {
		struct ibv_wc wc;

		if (rdma_post_recv(e[i]->id, NULL, e[i]->in, ROOM, e[i]->mr) == 0)
			rdma_get_recv_comp(e[i]->id, &wc);
	}
}

/* ---- the client ---------------------------------------------------------------------------- */

/* The server may come later than we do. */
static struct end *call_one(const char *addr, unsigned port, unsigned messages)
{
	for (unsigned i = 0; i < TRIES; i++) {
		struct rdma_cm_id *id = make_id(addr, port, 0);
		struct end *e = id ? end_of(id, messages, port) : NULL;

		if (e && !rdma_connect(id, NULL))
			return e;
		if (e) {
			rdma_dereg_mr(e->mr);
			rdma_destroy_ep(id);
			free(e);
		}
		usleep(PAUSE_US);
	}
	die("rdma_connect");
	return NULL;
}

static void exchange(struct end *e, unsigned n)
{
	uint32_t len = size_of(n);

	fill(e, e->out, n);
	send_one(e, e->out, len);
	if (receive(e) != len || memcmp(e->out, e->in, len)) {
		fprintf(stderr, "mesh: message %u of port %u came back wrong\n", n, e->number);
		exit(1);
	}
	again(e, n);
}

static void call(const char *addr, unsigned port, unsigned peers, unsigned messages)
{
	struct end *e[PEERS];

	for (unsigned i = 0; i < peers; i++)
		e[i] = call_one(addr, port + i, messages);
	for (unsigned n = 0; n < messages; n++)
		for (unsigned i = 0; i < peers; i++)
			exchange(e[i], n);
	for (unsigned i = 0; i < peers; i++)
		rdma_disconnect(e[i]->id);
	printf("all came back\n");
}

int main(int argc, char **argv)
{
	unsigned long v[4] = { 0 };

	for (int i = 2; i < argc && i < 6; i++)
		v[i - 2] = strtoul(argv[i], NULL, 10);
	if (argc == 5 && !strcmp(argv[1], "serve") && v[1] <= PEERS)
		serve((unsigned)v[0], (unsigned)v[1], (unsigned)v[2]);
	else if (argc == 6 && !strcmp(argv[1], "call") && v[2] <= PEERS)
		call(argv[2], (unsigned)v[1], (unsigned)v[2], (unsigned)v[3]);
	else
		return 2;
	return 0;
}
