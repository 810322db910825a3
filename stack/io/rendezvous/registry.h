/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How the processes of a user find each other: by files in the run directory. A process holds an
 * flock on its files. The kernel drops the lock when the process ends, so an unlocked file belongs
 * to a dead process.
 *
 *   ctl/ADDR.lock   held by the process that has the address
 *   ctl/ADDR        its control socket
 *   port/PORT       held by the process that listens on the TCP port; contains its address
 *
 * Any process may remove the files of a dead one. So a process that has opened and locked a file
 * looks up the file's name once more: if the name is gone or names another file, the locked file
 * was removed in between.
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
	const char *dir; /* the run directory; created with mode 0700 if missing */
	uint32_t addr;	 /* network order; 0: the first free one of 127.0.0.2 to 127.0.0.254 */
	/* A descriptor of DIR/ctl/ADDR.lock on which the process that started us holds an flock, so
	 * that no other process can take the address in between; -1: none. registry_open does not
	 * close the descriptor. */
	int addr_fd;
	bool addr_auto; /* the user did not ask for addr: if addr is in use, take another */
};

struct registry {
	char dir[REGISTRY_DIR_MAX + 1];
	uint32_t addr;
	int lock_fd; /* -1: the process that started us holds the lock */
	int listen_fd;
	pthread_mutex_t claims_lock;
	struct registry_claim *claims;
};

/* Make or check the directory, take the address and listen on its control socket. After a failure,
 * too, registry_close must be called. */
UW_CHECK uw_status registry_open(struct registry *r, const struct registry_config *cfg);
/* Remove our files and those of dead processes. */
void registry_close(struct registry *r);

/* Connect to the control socket of addr; the caller closes *fd by fds_close. UNREACHABLE: no
 * process has the address. TIMEOUT: the process does not answer. */
UW_CHECK uw_status registry_connect(struct registry *r, uint32_t addr, uint64_t deadline_ms,
				    int *fd);

/* The addresses of the processes that are there, ours among them; at most max, returns how many. */
unsigned registry_list(const struct registry *r, uint32_t *addr, unsigned max);

/* Remove the files of dead processes. */
void registry_sweep(struct registry *r);

/* Claim a port (network order) for this process. Claims are counted: a process may claim a port
 * twice. */
UW_CHECK uw_status registry_claim(struct registry *r, uint16_t port);
void registry_release(struct registry *r, uint16_t port);
/* The address of the process that has claimed the port. REFUSED: none has. */
UW_CHECK uw_status registry_owner(struct registry *r, uint16_t port, uint32_t *addr);

#endif
