/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lower layer protocol (TCP) as the engine sees it. io/lwip implements it; there is one
 * instance per process because lwIP's state is global. Everything here runs under the stack lock.
 */
#ifndef UWARP_IO_LLP_H
#define UWARP_IO_LLP_H

#include "base/ip.h"
#include "base/span.h"
#include "base/stats.h"
#include "base/status.h"
#include "io/io.h"

struct llp_conn;
struct llp_listener;

struct llp_addrs {
	struct uw_ip local, remote;
	uint16_t lport, rport; /* network order */
};

/* What TCP tells its user. ctx is the connection's (or the listener's for `accepted`). */
struct llp_user {
	/* The connect succeeded. */
	void (*connected)(void *ctx);
	/* A connection came in on a listener: returns its ctx, NULL refuses it. */
	void *(*accepted)(void *listener_ctx, struct llp_conn *c);
	/* Octets in order; returns how many are used up. The others are offered again, with more,
	 * when more arrives. */
	size_t (*rx)(void *ctx, struct uw_rope in);
	/* The peer acknowledged something: there may be room to send. */
	void (*writable)(void *ctx);
	/* UW_OK: the peer's FIN; the connection lives until llp_close or llp_abort.
	 * Anything else (UW_E_REFUSED, UW_E_TIMEOUT, UW_E_LLP_CLOSED): it is gone, forget it. */
	void (*closed)(void *ctx, uw_status why);
};

struct llp_config {
	const struct llp_user *user;
	uint64_t (*now_us)(void *arg); /* monotonic */
	uint32_t (*random)(void *arg); /* initial sequence numbers, ports */
	/* Sees every frame that goes out or comes in; NULL: nobody looks. */
	void (*capture)(void *arg, const struct io_frame *f);
	void *arg;
	uint32_t keepalive_ms; /* ask a peer that is silent for so long; 0: never */
	struct uw_stats *stats;
};

/* Once per process. */
void llp_init(const struct llp_config *cfg);
void llp_add_link(struct io_link *l);
void llp_remove_link(struct io_link *l);

/* Take one received frame in (ownership passes). Callbacks come from within. */
void llp_input(struct io_link *l, struct io_frame *f);
/* Frames that this process sent to itself; returns how many were taken in. */
unsigned llp_input_self(void);
/* Acknowledge what came since the last call and has not been yet: after a burst, and after what it
 * made the user send. */
void llp_acks(void);
/* Hand what is queued to the links; true if something had to stay queued. */
bool llp_flush_links(void);
/* Run the timers that are due. */
void llp_timers(void);
/* Microseconds until the next timer that matters; UINT64_MAX when no connection exists. */
uint64_t llp_next_timer_us(void);

/* port in network order everywhere. UW_E_ADDR_IN_USE. */
uw_status llp_listen(struct io_link *l, uint16_t port, int backlog, void *ctx,
		     struct llp_listener **out) UW_CHECK;
void llp_unlisten(struct llp_listener *ls);
/* a->local is an address of the link; a->lport 0: any. The outcome is `connected` or `closed`. */
uw_status llp_connect(struct io_link *l, const struct llp_addrs *a, void *ctx,
		      struct llp_conn **out) UW_CHECK;
/* Orderly: FIN behind what is queued. No callback after it, the conn is no longer the caller's. */
void llp_close(struct llp_conn *c);
/* FIN behind what is queued; receiving goes on, `closed` follows. */
void llp_shutdown(struct llp_conn *c);
/* RST. No callback after it. */
void llp_abort(struct llp_conn *c);
/* Every connection to that address is dead (its process ended): closed(UW_E_LLP_CLOSED). */
void llp_peer_down(struct io_link *l, uint32_t addr);

/* Connections that still have to finish closing (for a drain). */
unsigned llp_lingering(void);

/* From within rx(): what it does not use up waits. Nothing is offered again until llp_resume, and
 * the peer's window closes with what it sends meanwhile. */
void llp_pause(struct llp_conn *c);
/* Offer it all again; not from within a callback. */
void llp_resume(struct llp_conn *c);

/* The EMSS: largest segment payload now. */
uint32_t llp_emss(const struct llp_conn *c);
/* Begin a segment: where its octets go and how many fit; NULL when the window, the queue or the
 * frame pool has no room (writable() comes later). */
uint8_t *llp_tx_begin(struct llp_conn *c, size_t *room);
/* The segment is n octets; 0 gives it back. Sent by llp_tx_flush or with the next output. */
void llp_tx_commit(struct llp_conn *c, size_t n);
void llp_tx_flush(struct llp_conn *c);
/* Octets sent and not acknowledged. */
uint32_t llp_in_flight(const struct llp_conn *c);

struct llp_addrs llp_addrs(const struct llp_conn *c);

#endif
