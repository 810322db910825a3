/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the files of this folder share. Two sides meet here: lwIP's own thread, and whoever holds
 * the stack lock (the engine). Both run lwIP under its core lock, which is taken after the stack
 * lock. lwIP's thread never waits for that one: it leaves frames and events behind and wakes the
 * engine.
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

/* Packets on their way out: who has the core lock puts, who has the stack lock takes. */
struct seq_out {
	_Alignas(64) _Atomic unsigned put; /* release by who puts, acquire by who takes */
	_Alignas(64) _Atomic unsigned got; /* the other way round */
	struct pbuf *v[SEQ_OUT];
	bool self[SEQ_OUT]; /* to our own address */
};

struct seq_link {
	struct io_link *io;
	struct netif nif;
	struct seq_out out;
	struct io_frame *txq[SEQ_BURST];
	unsigned tx_n;
	unsigned held; /* frames that connections have */
	/* For ACKs and what is sent again when they have all others. */
	struct io_frame *spare[SEQ_SPARE];
	unsigned spares;
};

enum seq_event { SEQ_READ = 1, SEQ_WRITE = 2, SEQ_ERROR = 4, SEQ_UP = 8 };

/* A netconn of ours, connection or listener. It is on the list of those that have something new at
 * most once; who turns `queued` on puts it there. */
struct seq_end {
	struct seq_end *next;
	struct netconn *nc;
	void (*handle)(struct seq_end *x, unsigned events);
	_Atomic bool queued;
	_Atomic unsigned events;
	_Atomic uint32_t acked; /* sequence number, of a connection */
	_Atomic bool wants;	/* it waits for room to send, or to be connected */
	bool busy, dead;
};

struct llp_conn {
	struct seq_end x;
	struct llp_conn *next, **link; /* seq.conns */
	struct seq_link *sl;
	void *ctx;
	struct llp_addrs addrs;
	uint32_t emss;
	/* Sequence numbers: behind what the user has committed, and behind what lwIP was given. */
	uint32_t sent, taken;
	/* What lwIP refers to or will: it is freed when it was acknowledged. lwIP was not given all
	 * of the one at tx_new. */
	struct io_frame *building, *tx_first, *tx_last, *tx_new;
	struct rx_queue rx_queue;
	size_t window_debt; /* taken from lwIP, which was not told yet that there is room again */
	bool full;	    /* so much is in flight that it waits for room worth speaking of */
	bool stuck;	    /* lwIP did not take all: it says when it has room */
	bool deaf;	    /* what comes is thrown away */
	bool connecting, paused, in_callback;
	bool fin;	     /* the peer's came */
	bool shut, fin_sent; /* ours is wanted; it is out */
	enum seq_conn_end { SEQ_ON, SEQ_CLOSE, SEQ_ABORT } end;
};

/* A frame that the user fills and lwIP refers to (NETCONN_NOCOPY), in its llp[]. */
struct seq_tx {
	struct io_frame *next;
	uint8_t *p; /* the octets, wherever the frame begins */
	uint32_t n;
	uint32_t end; /* sequence number behind them */
};
static_assert(sizeof(struct seq_tx) <= IO_LLP_ROOM, "it lies in each frame");

static inline struct seq_tx *seq_tx(struct io_frame *f)
{
	return (struct seq_tx *)f->llp;
}

/* The instance: lwIP's state is global, so this is too. The stack lock's, but for the two lists. */
struct seq {
	struct llp_config cfg;
	struct seq_link links[SEQ_LINKS];
	struct llp_conn *conns;
	_Atomic(struct seq_end *) ready;  /* who has something new */
	_Atomic(struct io_frame *) freed; /* frames that lwIP has done with */
	bool taking;			  /* a frame is given to lwIP */
	/* What lwIP is being given now: frames from here on have not been sent yet. */
	struct io_frame *fresh;
};
extern struct seq seq;

struct seq_link *seq_link_of(const struct io_link *l);

/* Run fn(arg) under the core lock. */
err_t seq_call(err_t (*fn)(void *arg), void *arg);

/* thread.c */
void seq_init(const struct llp_config *cfg);
/* Any thread. */
void seq_ring(struct seq_end *x, unsigned events);
void seq_end_free(struct seq_end *x);
bool seq_pending(void);
unsigned seq_poll(void);

/* netif.c */
void seq_add_link(struct io_link *l);
void seq_remove_link(struct io_link *l);
void seq_input(struct io_link *l, struct io_frame *f);
bool seq_flush_links(void);
/* A frame for a connection's octets; NULL: there is none, or the link is behind. */
struct io_frame *seq_frame(struct seq_link *sl);
void seq_frame_done(struct seq_link *sl, struct io_frame *f);
void seq_give_back(void);

/* conn.c */
struct llp_conn *seq_conn_new(struct seq_link *sl, void *ctx);
void seq_on_event(struct netconn *nc, enum netconn_evt evt, u16_t len);
/* It ended, or cannot go on: the record goes, the user hears. */
void seq_conn_gone(struct llp_conn *c, uw_status why);
/* With an RST; the user does not hear. */
void seq_conn_drop(struct llp_conn *c);
/* Carry out what the user asked for, now that nobody is at work on it. It may be no more. */
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

/* setup.c: under the core lock. */
struct seq_setup {
	struct llp_conn *c;
	struct netconn *nc;
};
/* A netconn that is new: options of its pcb. */
err_t seq_prepare(void *netconn);
struct seq_tos {
	struct netconn *nc;
	uint8_t tos;
};
err_t seq_mark(void *tos);
/* A connection that has come up: from now on its events are c's. */
err_t seq_came_up(void *setup);

/* stream.c */
void seq_read(struct llp_conn *c);
void seq_write_rest(struct llp_conn *c);
void seq_pause(struct llp_conn *c);
void seq_resume(struct llp_conn *c);
uint8_t *seq_tx_begin(struct llp_conn *c, size_t *room);
void seq_tx_commit(struct llp_conn *c, size_t n);
void seq_tx_flush(struct llp_conn *c);
/* lwIP refers to nothing before that sequence number any more; or to nothing at all. */
bool seq_tx_full(struct llp_conn *c);
void seq_tx_acked(struct llp_conn *c, uint32_t to);
void seq_tx_forget(struct llp_conn *c);

#endif
