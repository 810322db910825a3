/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of a client and the uwarpd over their control connection, a SOCK_SEQPACKET socket: one
 * record per message. The client lives as long as the connection. Descriptors of shared memory
 * travel along.
 *
 *   client                                     uwarpd
 *   HELLO flags + doorbell, wake socket    ->
 *                                         <-   REFUSE why; or WELCOME link
 *                                              + region, eventfd, page of its doorbell
 *                                         <-   ADDRESS, for each of IPv6
 *   READY + region                         ->
 *                                         <-   READY: both may send frames
 *   CLAIM serial port version              ->
 *                                         <-   ANSWER serial status
 *   RELEASE port version                   ->
 *   CLAIM_QP, RELEASE_QP: the same for a QP of datagrams, or of RC without rdma_cm
 *
 *   STATUS, instead of HELLO               ->
 *                                         <-   one record of text for each line
 *
 * The doorbell of the client is a page with one word (base/doorbell.h), which the uwarpd maps for
 * writing. SWITCH_BELL_RINGS words further it counts its rings by the wake socket, for the word
 * IO_ASLEEP_FD; the client takes their octets out. The doorbell of the uwarpd is a page that
 * clients map for reading: a number that is odd while the uwarpd sleeps, and another one at each
 * sleep. A client that finds it odd writes to the eventfd, once for each such number.
 * SWITCH_BELL_CPU words further is 1 + the CPU that the uwarpd was last on.
 */
#ifndef UWARP_IO_SWITCH_MSG_H
#define UWARP_IO_SWITCH_MSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SWITCH_MAGIC = 0x64777775, SWITCH_VERSION = 2, SWITCH_FDS = 3, SWITCH_PATH_MAX = 108 };
enum { SWITCH_BELL_CPU = 16, SWITCH_BELL_RINGS = 16 }; /* on a line of its own */

enum switch_msg_type {
	SWITCH_HELLO = 1,
	SWITCH_WELCOME,
	SWITCH_REFUSE,
	SWITCH_READY,
	SWITCH_CLAIM,
	SWITCH_ANSWER_TO,
	SWITCH_RELEASE,
	SWITCH_STATUS,
	SWITCH_CLAIM_QP,
	SWITCH_RELEASE_QP,
	SWITCH_ADDRESS,
};

/* Why a HELLO or a CLAIM is refused. */
enum switch_msg_why {
	SWITCH_GRANTED,
	SWITCH_IN_USE,	  /* the port, or the QP number */
	SWITCH_NO_RIGHT,  /* a port below 1024, and the client is not root */
	SWITCH_LIMIT,	  /* too many clients, clients of this user, ports, or QPs */
	SWITCH_NOT_YOURS, /* another version of uwarp */
	SWITCH_NO_MEMORY,
};

struct switch_msg {
	uint32_t magic;
	uint16_t version;
	uint8_t type;
	uint8_t why; /* REFUSE, ANSWER_TO */
	union {
		struct {
			/* WELCOME: the link. Addresses in network order. */
			uint32_t addr, mask, mtu;
			/* enum switch_msg_flags: WELCOME; HELLO, CLAIM, RELEASE: SWITCH_FLAG_IP6 */
			uint32_t flags;
		};
		uint8_t ip6[16]; /* ADDRESS */
	};
	uint64_t bps;
	uint8_t mac[6];
	uint16_t port; /* CLAIM, RELEASE: network order */
	union {
		uint32_t serial; /* CLAIM, CLAIM_QP, ANSWER_TO: chosen by the client */
		uint32_t scope;	 /* WELCOME: sin6_scope_id of the link-local address */
	};
	union {
		uint32_t qpn;	/* CLAIM_QP, RELEASE_QP */
		uint32_t n_ip6; /* WELCOME: addresses of IPv6 */
		uint32_t bits;	/* ADDRESS: length of its prefix */
	};
};
_Static_assert(sizeof(struct switch_msg) == 48, "sent as it is");

enum switch_msg_flags {
	SWITCH_FLAG_SUMS = 1,	/* checksums are left to the port, which also verifies them */
	SWITCH_FLAG_MERGES = 2, /* merged frames may be sent, and come */
	SWITCH_FLAG_WAKES = 4,	/* it rings by the wake socket */
	/* HELLO: the client knows of IPv6, and is told addresses; CLAIM, RELEASE: a port of it.
	 * Those of before IPv6 have zero there. */
	SWITCH_FLAG_IP6 = 8,
};

/* Descriptors that came with a message, in the order in which they were sent; -1: none. */
struct switch_fds {
	int fd[SWITCH_FDS];
	bool lost; /* some could not come: this process has no descriptor left */
};

struct switch_msg switch_msg_of(enum switch_msg_type type);

/* Send m with n descriptors. Does not block. 0 or -errno. */
int switch_send(int fd, const struct switch_msg *m, const int *fds, unsigned n);
/* 1: *m is a message of this version, or of another one with its head alone, and the caller owns
 * *fds. 0: the connection ended or the record is no message. -EAGAIN: none is there. */
int switch_receive(int fd, struct switch_msg *m, struct switch_fds *fds);
/* As switch_receive, but waits at most ms: -ETIMEDOUT. */
int switch_await(int fd, unsigned ms, struct switch_msg *m, struct switch_fds *fds);

/* Descriptor i, which the caller owns from now on. */
int switch_fds_take(struct switch_fds *fds, unsigned i);
void switch_fds_close(struct switch_fds *fds);

/* A socket connected to the uwarpd at path; -errno. */
int switch_connect(const char *path);

#endif
