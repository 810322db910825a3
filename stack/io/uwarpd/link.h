/* SPDX-License-Identifier: BSD-3-Clause */
/* The state of a uwarpd link; private to this folder. */
#ifndef UWARP_IO_UWARPD_LINK_H
#define UWARP_IO_UWARPD_LINK_H

#include <pthread.h>
#include <sys/types.h>

#include "io/packet/frames.h"
#include "io/switch/conduit.h"
#include "io/switch/msg.h"

/* What belongs to one uwarpd. */
struct uwarpd_peer {
	int fd;	       /* control connection; -1: none */
	int ring_fd;   /* the eventfd that wakes the uwarpd; -1: none */
	uint32_t rung; /* its doorbell when we last wrote to ring_fd */
	const _Atomic uint32_t *bell;
	struct conduit conduit;
	struct switch_msg welcome;
	struct uw_net ip6[IO_IP6_MAX]; /* the link-local one first */
	unsigned n_ip6;
};

/* Ports of IPv4 by their numbers in host order, then those of IPv6. */
enum { UWARPD_PORTS = 2 * 65536 };
#define QP_OWED (UINT32_C(1) << 31)

struct uwarpd_link {
	struct io_link l; /* first: an io_link * is a uwarpd_link * */
	pid_t pid;	  /* the process that opened the link; a forked child leaves it alone */
	char path[SWITCH_PATH_MAX];
	bool verbose;
	int bell_fd;		/* the page of our doorbell */
	_Atomic uint32_t *bell; /* l.doorbell, too */
	/* What a sleeping thread of the program polls, and the other end, which uwarpds get. */
	int wake[2];
	int wait_fd; /* ... and the eventfd by which threads of this process wake it */

	/* Under the stack lock. */
	bool up;
	struct uwarpd_peer peer; /* written by the session thread, while up is false */
	struct frames frames;
	uint32_t rings;		    /* octets that were taken out of the wake socket */
	_Atomic uint32_t mover_cpu; /* l.mover_cpu: what the uwarpd last said of itself */

	/* The session thread, session.c. */
	pthread_t thread;
	bool runs;
	int stop_fd;	   /* an eventfd that ends its waiting: we close, or owe something */
	_Atomic bool deaf; /* that is not ours any more: the program has closed it */
	_Atomic bool closing;
	const char *refused; /* why, at the last try; NULL: we joined */

	/* Under `lock`, which may be taken under the stack lock, and not the other way round. */
	pthread_mutex_t lock;
	pthread_cond_t answered;
	bool connected;
	uint32_t serial;	  /* of the last CLAIM */
	bool waits;		  /* an answer to it is awaited */
	enum switch_msg_why why;  /* the answer */
	uint64_t refuse_until_ms; /* claim nothing before: there was a limit or no answer */
	uint16_t *users;	  /* by port_at (claims.c): how often it was claimed */
	uint32_t *qps; /* QP numbers that were claimed, or are owed (QP_OWED), in no order */
	unsigned n_qps, qps_room;
	/* What was released, and the uwarpd has yet to hear of: the connection had no room. */
	uint64_t owed[UWARPD_PORTS / 64]; /* ports, by port_at */
	unsigned owes;			  /* ports and QPs */
};

static inline struct uwarpd_link *uwarpd_link_of(const struct io_link *l)
{
	return (struct uwarpd_link *)(uintptr_t)l;
}

/* move.c: rx, tx and pending of struct io_ops. */
unsigned uwarpd_rx(struct io_link *l, struct io_frame **v, unsigned n);
unsigned uwarpd_tx(struct io_link *l, struct io_frame **v, unsigned n);
bool uwarpd_pending(struct io_link *l);

/* session.c */
/* Connect, and fill in peer. say: an error writes one line to stderr; a refusal does in any case,
 * unless the last one was for the same reason. */
UW_CHECK uw_status session_join(struct uwarpd_link *u, bool say);
/* Start the thread that answers and connects again. */
UW_CHECK uw_status session_start(struct uwarpd_link *u);
void session_stop(struct uwarpd_link *u);
/* Under the stack lock: the uwarpd wrote an invalid value; the session ends. */
void session_fault(struct uwarpd_link *u);

/* claims.c: claim_port, is_ours and release_port of struct io_ops. */
uw_status uwarpd_claim(struct io_link *l, uint16_t port, unsigned versions);
/* What goes to another port of the address is another client's, or nobody's: the uwarpd knows. */
bool uwarpd_is_ours(struct io_link *l, uint16_t port, enum io_versions version);
void uwarpd_release(struct io_link *l, uint16_t port, unsigned versions);
/* qps.c: claim_packets and release_packets of struct io_ops. */
uw_status uwarpd_claim_qp(struct io_link *l, uint32_t qpn);
void uwarpd_release_qp(struct io_link *l, uint32_t qpn);
/* As claims_renew. */
bool qps_renew(struct uwarpd_link *u);
/* With u->lock held: as claims_pay. */
void qps_pay(struct uwarpd_link *u);

/* With u->lock held: send a CLAIM or CLAIM_QP, and wait for its answer. UW_E_NO_LINK: there is
 * none. */
uw_status claims_ask(struct uwarpd_link *u, struct switch_msg *m);
/* With u->lock held: one more RELEASE is owed, which the session thread sends. */
void claims_owe(struct uwarpd_link *u);
/* The session thread: is anything owed? */
bool claims_owes(struct uwarpd_link *u);
/* ... send of it what the connection has room for. */
void claims_pay(struct uwarpd_link *u);
/* The session thread, before the link is up: the same as claims_ask; false: the uwarpd hung up. */
bool claims_ask_alone(struct uwarpd_link *u, struct switch_msg *m);
/* The session thread: an ANSWER came. */
void claims_answered(struct uwarpd_link *u, const struct switch_msg *m);
/* The session thread: claim all ports again, of a new uwarpd. False: it hung up. */
bool claims_renew(struct uwarpd_link *u);

#endif
