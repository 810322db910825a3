/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lower layer protocol (LLP, RFC 5044 §2), TCP, as the rooms above see it: a table of functions
 * that each transport fills in (doc/adr/0008). Each stack of a process has a transport of its own,
 * since lwIP's state is global. Everything here runs under the stack lock unless its line says
 * otherwise. Ports are in network order.
 */
#ifndef UWARP_IO_LLP_H
#define UWARP_IO_LLP_H

#include "base/ip.h"
#include "base/span.h"
#include "base/stats.h"
#include "base/status.h"
#include "base/prefetch.h"
#include "io/io.h"

struct llp_conn;
struct cc_ops;
struct llp_listener;

/* Where to listen. 0.0.0.0 and 127.0.0.1 stand for all IPv4 addresses of the link, ::1 for all IPv6
 * ones, and :: for both, unless only6 is set. */
struct llp_place {
	struct uw_ip addr;
	uint16_t port;
	bool only6;
	bool own;    /* `addr` is any: the link's addresses alone, not others that the host has */
	uint8_t tos; /* of connections that come in, as set_tos */
};

struct llp_addrs {
	struct uw_ip local, remote;
	uint16_t lport, rport;
	uint8_t tos; /* connect(): as set_tos; addrs() leaves it 0 */
};

/* What TCP tells its user. ctx is the connection's (or the listener's for `accepted`). */
struct llp_user {
	/* The connect succeeded. */
	void (*connected)(void *ctx);
	/* A connection came in on a listener. Returns its ctx; NULL refuses it. */
	void *(*accepted)(void *listener_ctx, struct llp_conn *c);
	/* Octets in order. Returns how many are used up; the others are offered again, together
	 * with more, when more arrives. */
	size_t (*rx)(void *ctx, struct uw_rope in);
	/* The peer acknowledged something: there may be room to send. */
	void (*writable)(void *ctx);
	/* UW_OK: the peer's FIN came; the connection lives until close() or abort(). Anything else
	 * (UW_E_REFUSED, UW_E_TIMEOUT, UW_E_LLP_CLOSED): the connection is gone, and c with it. */
	void (*closed)(void *ctx, uw_status why);
};

struct llp_config {
	const struct llp_user *user;
	uint64_t (*now_us)(void *arg); /* monotonic */
	uint32_t (*random)(void *arg); /* unpredictable: initial sequence numbers, ports, keys */
	/* Called with every frame that goes out or comes in. NULL: no capture. */
	void (*capture)(void *arg, const struct io_frame *f);
	/* Any thread, no lock needed: something waits for poll() or flush_links(). */
	void (*wake)(void *arg);
	void *arg;
	const struct cc_ops *congestion; /* loss/cc.h; NULL: CUBIC */
	bool ecn;			 /* RFC 3168: offer it, and agree to it */
	uint32_t keepalive_ms; /* probe a peer that was silent for so long; 0: never */
	struct uw_stats *stats;
};

struct llp_ops {
	/* Once per process, and again when another engine follows. */
	void (*init)(const struct llp_config *cfg);
	void (*add_link)(struct io_link *l);
	void (*remove_link)(struct io_link *l);

	/* Take in one received frame, whose ownership passes. Callbacks come from within. */
	void (*input)(struct io_link *l, struct io_frame *f);
	/* Take in what came by other ways than a link's frame: what this process sent to itself,
	 * what another thread or the kernel has for it. Returns how much there was. */
	unsigned (*poll)(void);
	/* Would poll() or flush_links() find something? Asked just before sleeping. NULL: never. */
	bool (*pending)(void);
	/* No lock held: wait until poll() would find something, at most `us` microseconds, or until
	 * rouse(). NULL: links tell (io.h). */
	void (*sleep)(uint64_t us);
	/* Any thread, no lock needed: end sleep(). NULL together with sleep. */
	void (*rouse)(void);
	/* Acknowledge what came since the last call and is not acknowledged yet: after a burst, and
	 * after what it made the user send. */
	void (*acks)(void);
	/* Hand what is queued to the links. True: something had to stay queued. */
	bool (*flush_links)(void);
	/* Run the timers that are due. */
	void (*timers)(void);
	/* Microseconds until the next timer; UINT64_MAX: none is set. */
	uint64_t (*next_timer_us)(void);

	/* Is the local port free as far as the transport knows? NULL: it knows of no other users.
	 */
	bool (*port_free)(uint16_t port);
	/* UW_E_ADDR_IN_USE. */
	uw_status (*listen)(struct io_link *l, const struct llp_place *at, int backlog, void *ctx,
			    struct llp_listener **out);
	void (*unlisten)(struct llp_listener *ls);
	/* a->local is an address of the link; a->lport 0: any. The outcome is a call of `connected`
	 * or `closed`. */
	uw_status (*connect)(struct io_link *l, const struct llp_addrs *a, void *ctx,
			     struct llp_conn **out);
	/* A FIN goes behind what is queued. No callback afterwards; c is not the caller's any more.
	 */
	void (*close)(struct llp_conn *c);
	/* A FIN goes behind what is queued. Receiving goes on; `closed` follows. */
	void (*shutdown)(struct llp_conn *c);
	/* RST. No callback afterwards; c is not the caller's any more. */
	void (*abort)(struct llp_conn *c);
	/* The process at that address has ended: closed(UW_E_LLP_CLOSED) for every connection to
	 * it. */
	void (*peer_down)(struct io_link *l, uint32_t addr);
	/* The number of connections that still have to finish closing. */
	unsigned (*lingering)(void);

	/* From within rx(): what it did not use up waits. Nothing is offered until resume(), and
	 * the peer's window closes with what it sends meanwhile. */
	void (*pause)(struct llp_conn *c);
	/* Offer it all again. Not from within a callback. */
	void (*resume)(struct llp_conn *c);

	/* Begin a segment. Returns where its octets go, and in *room how many fit (the EMSS); NULL:
	 * the window, the queue or the frame pool has no room, and writable() follows. */
	uint8_t *(*tx_begin)(struct llp_conn *c, size_t *room);
	/* The segment has n octets; 0 gives it back. It is sent by tx_flush or the next output. */
	void (*tx_commit)(struct llp_conn *c, size_t n);
	void (*tx_flush)(struct llp_conn *c);
	/* The octets of tx_commit that the peer has not acknowledged. NULL: the transport does not
	 * know. */
	uint32_t (*in_flight)(const struct llp_conn *c);
	/* The peer's program waits for our ACKs (doc/adr/0014): send each at once. NULL: no effect.
	 */
	void (*ack_promptly)(struct llp_conn *c);
	struct llp_addrs (*addrs)(const struct llp_conn *c);
	/* The DS field (IPv4) or traffic class (IPv6) of what is sent from now on. The lower two
	 * bits are 0: they are ECN's (RFC 3168 §5). */
	void (*set_tos)(struct llp_conn *c, uint8_t tos);

	/* These frames come to input() next: prefetch what their connections keep. NULL: no use. */
	void (*prefetch)(struct io_frame *const *v, unsigned n);
	/* t has the addresses of what the user touches for a segment of c; fill in the transport's.
	 * Returns a copy that the user keeps up to date as long as c lives. NULL: no use. */
	struct uw_prefetch_list *(*prefetch_list)(struct llp_conn *c, struct uw_prefetch_list *t);
};

/* io/lwip: lwIP's raw API, in the thread that drives. */
extern const struct llp_ops llp_raw;
/* The same several times in one process, each with an lwIP and a lock of its own: what one does, no
 * other sees. 0 is llp_raw; NULL: there are no more. */
#define LLP_RAW_INSTANCES 8u
const struct llp_ops *llp_raw_instance(unsigned i);
/* io/seq: lwIP's sequential API, with lwIP's own thread. */
extern const struct llp_ops llp_seq;
/* io/socket: the kernel's TCP. */
extern const struct llp_ops llp_socket;

#endif
