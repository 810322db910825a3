/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of two processes on a memif link over their control connection, a SOCK_SEQPACKET socket:
 * one record per message. The connection lives as long as the pair: a side that closes the
 * connection leaves the pair. Descriptors travel along: of shared memory, a page of doorbells, a
 * region of frames and the memory of frames to send ("sent"), and the eventfd that rings a doorbell
 * (base/doorbell.h).
 *
 *   caller                              callee
 *   HELLO who mtu more + doorbells, ring ->
 *                                   <-  WELCOME who mtu more + doorbells, region; or REFUSE why
 *   READY lends + region, sent       ->
 *                                   <-  READY lends + ring, sent: both may send
 *   ...
 *   BYE from either side: the receiver takes the frames out of the ring, sends no more, and closes
 */
#ifndef UWARP_IO_RENDEZVOUS_MSG_H
#define UWARP_IO_RENDEZVOUS_MSG_H

#include <stdbool.h>
#include <stdint.h>

enum { MSG_MAGIC = 0x70776d66, MSG_VERSION = 4, MSG_FDS = 2 };

enum msg_type { MSG_HELLO = 1, MSG_WELCOME, MSG_REFUSE, MSG_READY, MSG_BYE };

enum msg_why {
	/* the calls crossed: the refusing side is calling too; wait for that call */
	MSG_CROSSED = 1,
	MSG_FULL,   /* the refusing process has the most peers that it can have */
	MSG_NOT_ME, /* the other side has another version, or its address does not fit */
	MSG_CLOSING,
	MSG_NO_FDS,    /* no file descriptor left */
	MSG_NO_MEMORY, /* no memory left */
};

struct msg {
	uint32_t magic;
	uint16_t version;
	uint8_t type;
	union {
		uint8_t why; /* REFUSE */
		/* queues beyond the first; HELLO: of the caller, WELCOME: of both sides */
		uint8_t more;
	};
	uint32_t addr; /* IPv4 address of the sender, network order */
	uint32_t pid;
	uint32_t instance; /* random number of the sender's link, drawn when the link was opened */
	uint32_t mtu;
	/* READY: octets of the sender's memory of frames to send, which comes along; 0: none. Every
	 * version of struct msg has the same size, so that versions can refuse each other. */
	uint32_t lends;
};
_Static_assert(sizeof(struct msg) == 28, "sent as it is");

/* Descriptors that came with a message. */
struct msg_fds {
	int fd[MSG_FDS]; /* in the order in which they were sent; -1: none */
	bool lost;	 /* some did not arrive: this process has no descriptor left */
};

/* Send m with the descriptors first and second (-1: none). 0 or -errno. */
int msg_send(int fd, const struct msg *m, int first, int second);

/* 1: *m is a valid message, and the caller owns the descriptors in *fds. 0: the connection ended,
 * or the record is no valid message. -EAGAIN: no message yet. */
int msg_receive(int fd, struct msg *m, struct msg_fds *fds);

/* As msg_receive, but waits until deadline_ms (by uw_clock_ms): -ETIMEDOUT. */
int msg_await(int fd, uint64_t deadline_ms, struct msg *m, struct msg_fds *fds);

/* Close the descriptors that msg_fds_take has not taken. */
void msg_fds_close(struct msg_fds *fds);
/* Descriptor i, which the caller owns from now on. */
int msg_fds_take(struct msg_fds *fds, unsigned i);

#endif
