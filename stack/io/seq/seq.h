/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared by the files of this folder, the transport over lwIP's sequential API. Two sides call
 * lwIP: lwIP's own thread, and the engine's thread that holds the stack lock. Both call lwIP under
 * lwIP's core lock, which is taken after the stack lock. lwIP's thread never waits for the stack
 * lock: the thread queues frames and events, and wakes the engine.
 */
#ifndef UWARP_SEQ_H
#define UWARP_SEQ_H

#include <assert.h>
#include <stdatomic.h>

#include "io/rx_queue.h"
#include "io/llp.h"
#include "lwip/api.h"
#include "lwip/netif.h"
#include "lwip/pbuf.h"
#include "lwip/tcpip.h"

#define SEQ_LINKS 4u
#define SEQ_BURST 256u
#define SEQ_OUT	  8192u
#define SEQ_SPARE 32u

/* A ring of packets to send. A thread with the core lock puts, a thread with the stack lock takes.
 */
struct seq_out {
	/* stored (release) by the putting side, loaded (acquire) by the taking side */
	_Alignas(64) _Atomic unsigned put;
	/* stored (release) by the taking side, loaded (acquire) by the putting side */
	_Alignas(64) _Atomic unsigned got;
	struct pbuf *v[SEQ_OUT];
	bool self[SEQ_OUT]; /* the packet goes to our own address */
};

struct seq_link {
	struct io_link *io;
	struct netif nif;
	struct seq_out out;
	struct io_frame *txq[SEQ_BURST];
	unsigned tx_n;
	unsigned held; /* frames that connections hold until the peer acknowledges them */
	/* Reserve for ACKs and retransmissions when connections hold most frames. */
	struct io_frame *spare[SEQ_SPARE];
	unsigned spares;
};

enum seq_event { SEQ_READ = 1, SEQ_WRITE = 2, SEQ_ERROR = 4, SEQ_UP = 8 };

/* A netconn, of a connection or a listener. An entry is on the list seq.ready at most once: the
 * thread that changes `queued` to true adds the entry. */
struct seq_end {
	struct seq_end *next;
	struct netconn *nc;
	void (*handle)(struct seq_end *x, unsigned events);
	_Atomic bool queued;
	_Atomic unsigned events;
	_Atomic uint32_t acked; /* connection: SND.UNA, written under the core lock */
	_Atomic bool wants; /* connection: the user waits for room to send, or to be connected */
	bool busy, dead;
};

struct llp_conn {
	struct seq_end x;
	struct llp_conn *next, **link; /* list: seq.conns */
	struct seq_link *sl;
	void *ctx;
	struct llp_addrs addrs;
	uint32_t emss;
	/* Sequence numbers: the end of what the user has committed, and the end of what lwIP has
	 * taken. */
	uint32_t sent, taken;
	/* Committed frames, from tx_first to tx_last, kept until the peer acknowledges them, since
	 * lwIP refers to their octets. lwIP has not taken all of the frame tx_new and none of later
	 * ones. */
	struct io_frame *building, *tx_first, *tx_last, *tx_new;
	struct rx_queue rx_queue;
	/* octets received for which the receive window was not opened again yet */
	size_t window_debt;
	bool full;  /* too much is in flight; tx_begin waits until an eighth of the limit is free */
	bool stuck; /* lwIP did not take all octets, and will report room */
	bool deaf;  /* received octets are discarded */
	bool connecting, paused, in_callback;
	bool fin;	     /* the peer's FIN came */
	bool shut, fin_sent; /* our FIN is wanted; is sent */
	enum seq_conn_end { SEQ_ON, SEQ_CLOSE, SEQ_ABORT } end;
};

/* Lies in llp[] of a frame that the user fills and lwIP refers to (NETCONN_NOCOPY). */
struct seq_tx {
	struct io_frame *next;
	uint8_t *p; /* the octets of the stream; f->data may be at the headers before them */
	uint32_t n;
	uint32_t end; /* sequence number after the last octet */
};
static_assert(sizeof(struct seq_tx) <= IO_LLP_ROOM, "it lies in each frame");

static inline struct seq_tx *seq_tx(struct io_frame *f)
{
	return (struct seq_tx *)f->llp;
}

/* The state of the transport, global since lwIP's state is global. Under the stack lock, except
 * `ready` and `freed`. */
struct seq {
	struct llp_config cfg;
	struct seq_link links[SEQ_LINKS];
	struct llp_conn *conns;
	/* ends with events for the engine; push: release, take: acquire */
	_Atomic(struct seq_end *) ready;
	/* frames that lwIP's thread has released; push: release, take: acquire */
	_Atomic(struct io_frame *) freed;
	bool taking; /* seq_input is running */
	/* During a write: the first frame that lwIP has not sent yet. */
	struct io_frame *fresh;
};
extern struct seq seq;

struct seq_link *seq_link_of(const struct io_link *l);

/* Run fn(arg) under the core lock. */
err_t seq_call(err_t (*fn)(void *arg), void *arg);

/* thread.c */
uw_status seq_init(const struct llp_config *cfg) UW_CHECK;
/* Any thread: add events to x, queue x on seq.ready, and wake the engine. */
void seq_ring(struct seq_end *x, unsigned events);
void seq_end_free(struct seq_end *x);
bool seq_pending(void);
unsigned seq_poll(void);

/* netif.c */
void seq_add_link(struct io_link *l);
void seq_remove_link(struct io_link *l);
void seq_input(struct io_link *l, struct io_frame *f);
bool seq_flush_links(void);
/* A frame for octets of a connection; NULL: no frame is free, or the link is congested. */
struct io_frame *seq_frame(struct seq_link *sl);
void seq_frame_done(struct seq_link *sl, struct io_frame *f);
void seq_give_back(void);

/* conn.c */
struct llp_conn *seq_conn_new(struct seq_link *sl, void *ctx);
void seq_on_event(struct netconn *nc, enum netconn_evt evt, u16_t len);
/* The connection ended or failed: free c and call closed(). */
void seq_conn_gone(struct llp_conn *c, uw_status why);
/* Send an RST and free c; the user is not called. */
void seq_conn_drop(struct llp_conn *c);
/* Carry out the user's close(), shutdown() or abort(), outside of callbacks. May free c. */
void seq_settle(struct llp_conn *c);
bool seq_port_free(uint16_t port);
uw_status seq_connect(struct io_link *l, const struct llp_addrs *a, void *ctx,
		      struct llp_conn **out) UW_CHECK;
void seq_close(struct llp_conn *c);
void seq_shutdown(struct llp_conn *c);
void seq_abort(struct llp_conn *c);
void seq_peer_down(struct io_link *l, uint32_t addr);
unsigned seq_lingering(void);
uint64_t seq_next_timer_us(void);
struct llp_addrs seq_addrs(const struct llp_conn *c);
void seq_set_tos(struct llp_conn *c, uint8_t tos);

/* listen.c */
uw_status seq_listen(struct io_link *l, const struct llp_place *at, int backlog, void *ctx,
		     struct llp_listener **out) UW_CHECK;
void seq_unlisten(struct llp_listener *ls);

/* setup.c: all under the core lock. Arguments of seq_came_up. */
struct seq_setup {
	struct llp_conn *c;
	struct netconn *nc;
};
/* Set the options of a new netconn: non-blocking, SO_REUSEADDR, no Nagle. */
err_t seq_prepare(void *netconn);
struct seq_tos {
	struct netconn *nc;
	uint8_t tos;
};
err_t seq_mark(void *tos);
/* A connection is up: fill in s->c and direct events of the netconn to s->c. */
err_t seq_came_up(void *setup);

/* stream.c */
void seq_read(struct llp_conn *c);
void seq_write_rest(struct llp_conn *c);
void seq_pause(struct llp_conn *c);
void seq_resume(struct llp_conn *c);
/* seq_tx_begin, seq_tx_commit and seq_tx_flush are tx_begin, tx_commit and tx_flush of struct
 * llp_ops. */
uint8_t *seq_tx_begin(struct llp_conn *c, size_t *room);
void seq_tx_commit(struct llp_conn *c, size_t n);
void seq_tx_flush(struct llp_conn *c);
/* seq_tx_full: is the limit of octets in flight reached? seq_tx_acked: release frames that end at
 * or before sequence number `to`. seq_tx_forget: release all frames. */
bool seq_tx_full(struct llp_conn *c);
void seq_tx_acked(struct llp_conn *c, uint32_t to);
void seq_tx_forget(struct llp_conn *c);

#endif
