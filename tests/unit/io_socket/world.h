/* SPDX-License-Identifier: BSD-3-Clause */
/* The transport `socket` with a user that notes what it is told. */
#ifndef UWARP_TESTS_IO_SOCKET_WORLD_H
#define UWARP_TESTS_IO_SOCKET_WORLD_H

#include "io/socket/sock.h"

#define SIDE_ROOM (4u << 20)

/* One end: a listener, or a connection. */
struct side {
	struct llp_conn *c;
	struct llp_listener *ls;
	struct side *child; /* a listener's: the next connection that comes */
	bool connected, closed, refuse;
	uw_status why;
	unsigned writable, calls; /* calls of rx */
	size_t grain;		  /* use up whole ones of that many octets only; 0: all */
	size_t most;		  /* then pause; 0: never */
	bool close_in_rx, abort_in_rx;
	bool drop; /* what comes is of no interest */
	size_t n_dropped;
	uint8_t *got;
	size_t n_got;
};

struct world {
	uint64_t later_us; /* than the system's clock */
	struct io_link *link;
	struct uw_stats stats;
	struct side server, accepted, client;
};

/* Over 127.0.0.1; mtu 0: the kernel's. */
void world_open(struct world *w, uint32_t mtu);
void world_close(struct world *w);
/* Rounds until *flag. */
void world_until(struct world *w, const bool *flag);
void world_until_got(struct world *w, const struct side *s, size_t n);
/* So many rounds, whatever happens. */
void world_rounds(struct world *w, unsigned n);
/* A listener, and a client that is connected to it. */
void world_connect(struct world *w);
/* Octets at, at + 1, ... of the pattern; how many of them were taken: all, or the connection is
 * full. */
size_t world_send(struct side *s, size_t at, size_t n);
/* What s got is the pattern from its first octet on. */
void world_check(const struct side *s);

#endif
