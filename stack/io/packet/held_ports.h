/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP ports of this process on addresses that the kernel has too, all of one version of IP. For
 * each port and address a kernel socket listens behind a filter that drops every segment. So the
 * kernel answers none of our segments with RST, and no other program can take the port. The sockets
 * end with the process. Needs CAP_NET_ADMIN, which the kernel demands for a filter on a TCP socket.
 *
 * Any thread may call these functions; they take the lock of struct held_ports.
 */
#ifndef UWARP_IO_PACKET_HELD_PORTS_H
#define UWARP_IO_PACKET_HELD_PORTS_H

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/said.h"
#include "base/status.h"
#include "io/io.h"

struct held_port;

/* Addresses of the kernel's; `scope` is the interface's index, for those that are link-local. */
struct held_at {
	struct uw_ip ip[IO_IP6_MAX];
	unsigned n;
	uint32_t scope;
};

struct held_ports {
	struct held_at at;
	pthread_mutex_t *lock;
	/* One bit for each port that is held, by the port in host order. Read without the lock,
	 * relaxed: the first segments of a port come after its claim has returned. */
	_Atomic uint64_t bits[65536 / 64];
	/* The same for ports of the address that another program was found to have, and of these
	 * for the ones of which the kernel was asked since the last held_ports_tidy. */
	_Atomic uint64_t others[65536 / 64], asked[65536 / 64];
	/* Under the lock. */
	struct held_port *list;
	unsigned n;
	struct said said;	    /* of ports that could not be held */
	void (*changed)(void *arg); /* the set of ports changed; called under the lock */
	/* A port (network order) is held now, or is about to be given back. Under the lock. */
	void (*held)(void *arg, uint16_t port, bool on);
	void *arg;
};

/* UW_E_PERM: ports cannot be held; one line on stderr says so. */
UW_CHECK uw_status held_ports_open(struct held_ports *p, const struct held_at *at,
				   pthread_mutex_t *lock);
void held_ports_close(struct held_ports *p);

/* Add a user of a port (network order). UW_E_ADDR_IN_USE: another program has the port; of one that
 * is not `named` (IO_NAMED) also if only connections that have ended keep it. Of one that is named
 * a socket that is bound and neither listens nor is connected yet is not seen beside those.
 * UW_E_ADDR: the
 * interface has lost the address. UW_E_PERM, UW_E_NOMEM. UW_E_NO_FDS: a line on stderr tells of it
 * once a minute. */
UW_CHECK uw_status held_ports_claim(struct held_ports *p, uint16_t port, bool named);
/* Remove a user. A port without users is held for a while longer, since segments may come late;
 * held_ports_tidy, or a later claim or release, gives the port back. */
void held_ports_release(struct held_ports *p, uint16_t port);
/* To be called every few seconds. Whether another program has a port is asked anew after it. */
void held_ports_tidy(struct held_ports *p);
/* Give a port back at once, whoever uses it. */
void held_ports_forget(struct held_ports *p, uint16_t port);

/* Of one of the sets of ports above. */
static inline bool held_ports_bit(const _Atomic uint64_t *set, uint16_t port)
{
	unsigned at = ntohs(port);

	return atomic_load_explicit(&set[at / 64], memory_order_relaxed) >> (at % 64) & 1;
}

static inline bool held_ports_has(const struct held_ports *p, uint16_t port)
{
	return held_ports_bit(p->bits, port);
}

/* Keep the kernel silent on packets to a UDP port (network order) of its address `i` of *at.
 * Several processes may. A descriptor for fds_close, or a negative errno. */
int held_ports_deafen_udp(const struct held_at *at, unsigned i, uint16_t port);
/* Of a negative errno of bind(). */
uw_status held_ports_status(int err);

/* Is what goes to the port (network order) of the addresses for this process? False: another
 * program has it. True also if nobody has. Asks the kernel, which takes a few system calls; of a
 * port that another program has once between two calls of held_ports_tidy. If the kernel cannot
 * be asked the answer before stays. */
bool held_ports_is_ours(struct held_ports *p, uint16_t port);

/* Under the lock: copy at most max ports (network order) to out; returns how many are held. */
unsigned held_ports_list(const struct held_ports *p, uint16_t *out, unsigned max);

#endif
