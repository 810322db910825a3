/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A process that forks all the time while two threads of it connect to a third, which turns each of
 * them away. Every connection opens and closes descriptors and takes the stack's locks; every fork
 * needs all of these. It ends well after SECONDS, and says how much was done; who hangs is killed
 * from outside.
 *
 * usage: forks ADDRESS PORT SECONDS
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/rdma_cma.h>

static struct sockaddr_in address;
static atomic_bool stop;
static atomic_uint connections;

static void need(int bad, const char *what)
{
	if (!bad)
		return;
	while (stop) /* the process ends, and its device with it */
		pause();
	perror(what);
	exit(1);
}

static struct rdma_cm_id *new_id(void)
{
	struct rdma_event_channel *channel = rdma_create_event_channel();
	struct rdma_cm_id *id;

	need(!channel, "rdma_create_event_channel");
	need(rdma_create_id(channel, &id, NULL, RDMA_PS_TCP), "rdma_create_id");
	return id;
}

/* Waits for the next event; the id that it is about. */
static struct rdma_cm_id *event_of(struct rdma_cm_id *id, enum rdma_cm_event_type *type)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *about;

	need(rdma_get_cm_event(id->channel, &e), "rdma_get_cm_event");
	about = e->id;
	*type = e->event;
	rdma_ack_cm_event(e);
	return about;
}

static void *turn_away(void *arg)
{
	struct rdma_cm_id *listener = arg;
	enum rdma_cm_event_type type;

	for (;;) {
		struct rdma_cm_id *id = event_of(listener, &type);

		if (type != RDMA_CM_EVENT_CONNECT_REQUEST)
			continue;
		rdma_reject(id, NULL, 0);
		rdma_destroy_id(id);
	}
	return NULL;
}

static void connect_once(void)
{
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct rdma_conn_param param = { 0 };
	struct rdma_cm_id *id = new_id();
	struct rdma_event_channel *channel = id->channel;
	enum rdma_cm_event_type type;

	need(rdma_resolve_addr(id, NULL, (struct sockaddr *)&address, 2000), "rdma_resolve_addr");
	event_of(id, &type);
	need(rdma_resolve_route(id, 2000), "rdma_resolve_route");
	event_of(id, &type);
	need(rdma_create_qp(id, NULL, &attr), "rdma_create_qp");
	if (!rdma_connect(id, &param))
		event_of(id, &type);
	rdma_destroy_qp(id);
	rdma_destroy_id(id);
	rdma_destroy_event_channel(channel);
	connections++;
}

static void *connect_again(void *arg)
{
	while (!stop)
		connect_once();
	return arg;
}

static time_t now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec;
}

int main(int argc, char **argv)
{
	pthread_t server, client[2];
	struct rdma_cm_id *listener;
	unsigned forks = 0;
	time_t end;
	int status;

	if (argc != 4)
		return 2;
	address.sin_family = AF_INET;
	address.sin_port = htons((uint16_t)atoi(argv[2]));
	need(inet_pton(AF_INET, argv[1], &address.sin_addr) != 1, argv[1]);
	listener = new_id();
	need(rdma_bind_addr(listener, (struct sockaddr *)&address), "rdma_bind_addr");
	need(rdma_listen(listener, 64), "rdma_listen");
	need(pthread_create(&server, NULL, turn_away, listener), "pthread_create");
	for (int i = 0; i < 2; i++)
		need(pthread_create(&client[i], NULL, connect_again, NULL), "pthread_create");
	for (end = now() + atoi(argv[3]); now() < end; forks++) {
		pid_t pid = fork();

		if (!pid)
			_exit(0);
		need(pid < 0 || waitpid(pid, &status, 0) != pid || status, "a child");
	}
	stop = true;
	for (int i = 0; i < 2; i++)
		pthread_join(client[i], NULL);
	printf("%u connections, %u forks\n", atomic_load(&connections), forks);
	fflush(stdout);
	_exit(!connections || !forks);
}
