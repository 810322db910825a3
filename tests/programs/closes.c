/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * closes ADDRESS PORT WAY: a server that, once a client is connected, takes the library's
 * descriptors away and ends: by a limit of none (nofile), by closing all (closefrom), or by putting
 * others in their place: /dev/null (dup2), or a pipe without a reader (pipe).
 */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <rdma/rdma_cma.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define NEED(what)                                                                                 \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			perror("closes: " #what);                                                  \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

enum { LAST = 300 };

static struct rdma_cm_id *next(struct rdma_event_channel *ch, enum rdma_cm_event_type type)
{
	struct rdma_cm_event *e;
	struct rdma_cm_id *id;

	NEED(!rdma_get_cm_event(ch, &e));
	NEED(e->event == type);
	id = e->id;
	rdma_ack_cm_event(e);
	return id;
}

static void serve(const char *address, const char *port)
{
	struct sockaddr_in a = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)) };
	struct ibv_qp_init_attr attr = { .cap = { 4, 4, 1, 1, 0 }, .qp_type = IBV_QPT_RC };
	struct rdma_event_channel *ch = rdma_create_event_channel();
	struct rdma_conn_param param = { .responder_resources = 1, .initiator_depth = 1 };
	struct rdma_cm_id *listener, *id;

	NEED(inet_pton(AF_INET, address, &a.sin_addr) == 1);
	NEED(ch && !rdma_create_id(ch, &listener, NULL, RDMA_PS_TCP));
	NEED(!rdma_bind_addr(listener, (void *)&a) && !rdma_listen(listener, 1));
	id = next(ch, RDMA_CM_EVENT_CONNECT_REQUEST);
	attr.send_cq = attr.recv_cq = ibv_create_cq(id->verbs, 8, NULL, NULL, 0);
	NEED(attr.send_cq && !rdma_create_qp(id, NULL, &attr));
	NEED(!rdma_accept(id, &param));
	next(ch, RDMA_CM_EVENT_ESTABLISHED);
}

/* EBUSY: another thread is just about to get this number from the kernel, by an open() of its own
 * (dup(2)). It has it a moment later. */
static void replace(int fd, int other)
{
	int got;

	do
		got = dup2(other, fd);
	while (got < 0 && errno == EBUSY);
	NEED(got == fd);
}

static void take_away(const char *way)
{
	const struct rlimit none = { 0, 0 };
	int other = open("/dev/null", O_RDWR), ends[2];

	NEED(other >= 0);
	if (!strcmp(way, "pipe")) {
		NEED(!pipe(ends) && !close(ends[0]));
		other = ends[1];
	}
	if (!strcmp(way, "nofile"))
		NEED(!setrlimit(RLIMIT_NOFILE, &none));
	else if (!strcmp(way, "closefrom"))
		closefrom(3);
	else
		for (int fd = 3; fd < LAST; fd++)
			replace(fd, other);
}

/* Stopped and continued 100 ms from now, when the descriptors are gone: that interrupts each wait
 * of the library's threads. */
static void stop_for_a_moment(void)
{
	pid_t us = getpid(), pid = fork();

	NEED(pid >= 0);
	if (pid)
		return;
	usleep(100000);
	kill(us, SIGSTOP);
	usleep(50000);
	kill(us, SIGCONT);
	_exit(0);
}

int main(int argc, char **argv)
{
	if (argc != 4)
		return 2;
	serve(argv[1], argv[2]);
	stop_for_a_moment();
	take_away(argv[3]);
	usleep(300000); /* the library's threads come upon it before they are told to end */
	puts("taken");
	fflush(stdout);
	return 0;
}
