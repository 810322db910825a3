/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes for the tests of the DPDK links. The EAL can be started once per process and never in
 * a fork of one that did, so the test itself stays clean: it forks a child per process it needs,
 * and each child tells by its exit code how its part went.
 */
#ifndef UWARP_TESTS_NODE_H
#define UWARP_TESTS_NODE_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>
#include <unistd.h>

#include "uwtest.h"

#include "io/dpdk/dpdk.h"

enum { NODE_MAX = 40, DOWN_MAX = 4096, WAIT_MS = 10000 };
/* A child's exit code: it may not do here what it has to. */
enum { SKIPPED = 77 };

/* Shared by the test and its children. */
struct board {
	_Atomic int step;
	_Atomic int count[NODE_MAX];
	char dir[64];
	uint64_t word[16];
};

struct node {
	struct board *board;
	struct io_link *l;
	uint32_t addr;
	pthread_mutex_t lock;
	uint32_t down[DOWN_MAX]; /* what peer_down said, in order */
	_Atomic unsigned downs;
	struct io_frame *early; /* a frame of somebody else than the one waited for */
	bool by_mac;		/* the peer, whatever its number, has peer_mac */
	uint8_t peer_mac[6];
};

typedef int (*node_fn)(struct node *n, int arg);

/* In the test. */
struct board *board_new(void);
void board_free(struct board *b); /* removes the run directory, too */
pid_t spawn(struct board *b, node_fn fn, int arg);
/* Exit code, 1000 + signal, or -1 if it did not end in time (then it is killed). */
int reap(pid_t pid, unsigned ms);
/* SIGSTOP, and wait until it has stopped. */
void stop(pid_t pid);
/* Files left under the run directory. */
unsigned files_left(const struct board *b);

/* In both. */
void board_step(struct board *b, int step);
bool board_wait(struct board *b, int step);
uint64_t ms_now(void);
void ms_sleep(unsigned ms);
/* What fn prints on stderr, up to size. */
void capture_stderr(void (*fn)(void *arg), void *arg, char *out, size_t size);

/* A shell's command went well. */
bool run(const char *command);
/* From here on this process has network interfaces of its own; false: it may not. */
bool own_namespace(void);

/* In a child: a failed check ends it. */
#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "%s:%d: child %d: %s\n", __FILE__, __LINE__,               \
				(int)getpid(), #cond);                                             \
			_exit(99);                                                                 \
		}                                                                                  \
	} while (0)

/* 127.0.0.host */
uint32_t host(unsigned h);
uw_status node_open(struct node *n, unsigned h, unsigned mtu);
uw_status node_open_with(struct node *n, const struct dpdk_config *cfg);
void node_open_ok(struct node *n, unsigned h);
void node_close(struct node *n);
/* The link's resolve, for IPv4. */
uw_status node_way(struct node *n, uint32_t *addr, uint16_t port, unsigned timeout_ms);
uw_status node_resolve(struct node *n, unsigned h);

/* Frames with a pattern that seed and length determine. parts > 1: a chain. */
bool node_send(struct node *n, unsigned to, unsigned len, unsigned seed, unsigned parts);
/* Next frame of that sender, checked against its pattern: its seed, or -1 after ms. */
int node_receive(struct node *n, unsigned from, unsigned ms);
/* Descriptors open in this process. */
unsigned fds_open(void);
bool node_wait_down(struct node *n, unsigned h, unsigned ms);

#endif
