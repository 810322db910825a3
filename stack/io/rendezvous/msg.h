/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What two processes on a memif link tell each other over their control connection, a
 * SOCK_SEQPACKET socket: one record per message. The connection lives as long as the pair: its end
 * is the peer's end. Descriptors of shared memory travel along: a page of doorbells, and a region
 * of frames.
 *
 *   caller                              callee
 *   HELLO who mtu more + doorbells   ->
 *                                   <-  WELCOME who mtu more + doorbells, region; or REFUSE why
 *   READY + region                   ->
 *                                   <-  READY: both may send
 *   ...
 *   BYE either way: take what is in the ring, send nothing more, hang up
 */
#ifndef UWARP_IO_RENDEZVOUS_MSG_H
#define UWARP_IO_RENDEZVOUS_MSG_H

#include <stdbool.h>
#include <stdint.h>

enum { MSG_MAGIC = 0x70776d66, MSG_VERSION = 2, MSG_FDS = 2 };

enum msg_type { MSG_HELLO = 1, MSG_WELCOME, MSG_REFUSE, MSG_READY, MSG_BYE };

enum msg_why {
	MSG_CROSSED = 1, /* I am calling you: wait for me */
	MSG_FULL,	 /* I have as many peers as I can have */
	MSG_NOT_ME,	 /* another version, or addresses that do not fit */
	MSG_CLOSING,
	MSG_NO_FDS,    /* I have no file descriptor left */
	MSG_NO_MEMORY, /* I have no memory left */
};

struct msg {
	uint32_t magic;
	uint16_t version;
	uint8_t type;
	union {
		uint8_t why;  /* REFUSE */
		uint8_t more; /* HELLO: queues beyond the first; WELCOME: that both have */
	};
	uint32_t addr; /* the sender's, network order */
	uint32_t pid;
	uint32_t instance; /* of the sender's link: a number drawn when it was opened */
	uint32_t mtu;
	uint32_t unused; /* 0; a message of any version has this size */
};
_Static_assert(sizeof(struct msg) == 28, "sent as it is");

/* Descriptors that came with a message. */
struct msg_fds {
	int fd[MSG_FDS]; /* in their order; -1: none */
	bool lost;	 /* some did not arrive, as this process may open no more */
};

/* 0 or -errno. first, second: descriptors that go along, -1 for none. */
int msg_send(int fd, const struct msg *m, int first, int second);

/* 1: *m is a valid message, and the descriptors in *fds are the caller's; 0: the end of the
 * connection, or no message of ours; -EAGAIN: nothing yet. */
int msg_receive(int fd, struct msg *m, struct msg_fds *fds);

/* The same, waiting for it until deadline_ms (registry_now's clock): -ETIMEDOUT. */
int msg_await(int fd, uint64_t deadline_ms, struct msg *m, struct msg_fds *fds);

/* Close those that are still there. */
void msg_fds_close(struct msg_fds *fds);
/* The i-th, which is the caller's from now on. */
int msg_fds_take(struct msg_fds *fds, unsigned i);

#endif
