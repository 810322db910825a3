/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What two processes of the fabric tell each other over their control connection, one record per
 * message. The connection lives as long as the pair: its end is the peer's end.
 *
 *   caller                            callee
 *   HELLO who mtu more + doorbells ->
 *                                 <-  WELCOME who mtu slot more + doorbells, or REFUSE why
 *   (its memif client comes up)
 *   READY                         ->
 *                                 <-  READY: both may send
 *   ...
 *   BYE either way: take what is in the ring, send nothing more, hang up
 */
#ifndef UWARP_IO_RENDEZVOUS_MSG_H
#define UWARP_IO_RENDEZVOUS_MSG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { MSG_MAGIC = 0x70776d66, MSG_VERSION = 1 };

enum msg_type { MSG_HELLO = 1, MSG_WELCOME, MSG_REFUSE, MSG_READY, MSG_BYE };

enum msg_why {
	MSG_CROSSED = 1, /* I am calling you: wait for me */
	MSG_NO_PORT,	 /* no memif port can be had here */
	MSG_NOT_ME,	 /* another version, or addresses that do not fit */
	MSG_CLOSING,
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
	uint32_t slot; /* WELCOME: the server port to connect to */
};
_Static_assert(sizeof(struct msg) == 28, "sent as it is");

/* 0 or -errno. pass: a descriptor that goes along, -1 for none. */
int msg_send(int fd, const struct msg *m, int pass);

/* 1: *m is a valid message, and *passed the descriptor that came along or -1; 0: the end, or
 * rubbish; -EAGAIN: nothing yet. */
int msg_receive(int fd, struct msg *m, int *passed);

/* The same, waiting for it until deadline_ms (registry_now's clock): -ETIMEDOUT. */
int msg_await(int fd, uint64_t deadline_ms, struct msg *m, int *passed);

/* Doorbells: a page that peers map, with a word for each queue. NULL if it cannot be had. */
_Atomic uint32_t *bell_make(int *fd);
/* Map the peer's; takes fd, which may be -1. */
_Atomic uint32_t *bell_map(int fd);
void bell_unmap(_Atomic uint32_t *bell);

enum { BELL_SIZE = 4096, BELL_LINE = 64 };

/* Of one queue; each has a line of its own. */
static inline _Atomic uint32_t *bell_word(_Atomic uint32_t *bell, unsigned queue)
{
	return bell + queue * (BELL_LINE / sizeof(*bell));
}

#endif
