/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the processes of a user find each other: by files in the run directory. A process holds an
 * flock on its files. The lock ends with the process, so a file without a lock is of a dead
 * process.
 *
 *   ctl/ADDR.lock   held by the process that has the address
 *   ctl/ADDR        its control socket
 *   port/PORT       held by the process that listens on the TCP port; says at which address
 *
 * Any process may remove the files of a dead one. So who has opened and locked a file looks up its
 * name once more: if it names another file, or none, the locked one was removed in between.
 */
#ifndef UWARP_IO_RENDEZVOUS_REGISTRY_H
#define UWARP_IO_RENDEZVOUS_REGISTRY_H

#include <pthread.h>

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

enum { REGISTRY_DIR_MAX = 60 }; /* so that every path below fits a socket address */

struct registry_claim;

struct registry_config {
	const char *dir; /* the run directory; made if it is missing, mode 0700 */
	uint32_t addr;	 /* network order; 0: the first free one of 127.0.0.2 to 127.0.0.254 */
	/* An open descriptor of DIR/ctl/ADDR.lock on which the process that started us holds an
	 * flock, so that nobody can take the address in between; -1: none. It stays the caller's.
	 */
	int addr_fd;
	bool addr_auto; /* nobody asked for addr: if it is in use, take another */
};

struct registry {
	char dir[REGISTRY_DIR_MAX + 1];
	uint32_t addr;
	int lock_fd; /* -1: whoever started us holds the lock */
	int listen_fd;
	pthread_mutex_t claims_lock;
	struct registry_claim *claims;
};

/* Make or check the directory, take the address and listen on its control socket. Also after a
 * failure registry_close is due. */
UW_CHECK uw_status registry_open(struct registry *r, const struct registry_config *cfg);
/* Remove what is ours and what the dead left. */
void registry_close(struct registry *r);

/* A connection to the control socket of addr; *fd is the caller's to fds_close. UNREACHABLE:
 * nobody has the address. TIMEOUT: it does not answer. */
UW_CHECK uw_status registry_connect(struct registry *r, uint32_t addr, uint64_t deadline_ms,
				    int *fd);

/* Remove the files of dead processes. */
void registry_sweep(struct registry *r);

/* port in network order; claims are counted, so the same process may claim a port twice. */
UW_CHECK uw_status registry_claim(struct registry *r, uint16_t port);
void registry_release(struct registry *r, uint16_t port);
/* Whose is it? REFUSED: nobody's. */
UW_CHECK uw_status registry_owner(struct registry *r, uint16_t port, uint32_t *addr);

/* ms on the clock that deadlines are given on */
uint64_t registry_now(void);

#endif
