/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * memif ports, made once and used again for peer after peer: a port that is removed leaves some
 * memory and a listening socket behind in memif, one that is stopped and started does not. To
 * that end no port's arguments name a peer: a server port has a socket of its own under our
 * address, and a client port reaches the socket of whoever it is to join through a symbolic link
 * that is its own.
 */
#ifndef UWARP_IO_MEMIF_SLOT_H
#define UWARP_IO_MEMIF_SLOT_H

#include <sys/un.h>

#include "io/dpdk/dpdk.h"
#include "io/dpdk/frame.h"
#include "lane.h"
#include "io/dpdk/wrap.h"

enum { SLOT_MAX = RTE_MAX_ETHPORTS, SLOT_PATH = sizeof(((struct sockaddr_un *)0)->sun_path) };

struct slot {
	bool made, server, busy;
	unsigned index, queues;
	uint16_t port;
	char path[SLOT_PATH];
	struct wrap_listener listener;
	struct lane_shared shared[DPDK_QUEUES_MAX]; /* of each queue */
};

struct slot_set {
	const char *run_dir;
	uint32_t addr; /* ours, network order */
	unsigned mtu;
	struct rte_mempool *rx[DPDK_QUEUES_MAX]; /* of each queue */
	struct slot slot[SLOT_MAX];
};

/* Octets of one memif buffer and log2 of the ring's length. */
unsigned slot_buffer(unsigned mtu);
unsigned slot_ring(unsigned mtu);

/* Once, before anything else. */
void slot_init(struct slot *s);

/* A started server port with so many queues each way, or NULL: say why not with slot_complain. */
struct slot *slot_serve(struct slot_set *set, unsigned queues);
/* A started client port that connects to the server port `index` of the process at addr. */
struct slot *slot_dial(struct slot_set *set, uint32_t addr, unsigned index, unsigned queues);
uw_status slot_complain(const struct slot_set *set, uint32_t addr);

bool slot_up(const struct slot *s);
/* Its rings are gone on return; the port is free for the next peer. */
void slot_release(struct slot_set *set, struct slot *s);
void slot_close_all(struct slot_set *set);

#endif
