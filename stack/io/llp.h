/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The lower layer protocol (TCP) as the engine sees it: a table of functions that each transport
 * fills in. Each stack of an engine has one, and no other has the same, because lwIP's state is
 * global (doc/adr/0008-transports.md). Everything here runs under the stack lock unless it says
 * otherwise.
 */
#ifndef UWARP_IO_LLP_H
#define UWARP_IO_LLP_H

#include "base/ip.h"
#include "base/span.h"
#include "base/stats.h"
#include "base/status.h"
#include "base/warm.h"
#include "io/io.h"

struct llp_conn;
struct cc_ops;
struct llp_listener;

/* Where to listen. Any address and a loopback one mean all that the link has: 0.0.0.0 and 127.0.0.1
 * of IPv4, ::1 of IPv6, :: of both, unless only6. */
struct llp_place {
	struct uw_ip addr;
	uint16_t port; /* network order */
	bool only6;
	/* Of any address: not what the host has besides the link's own. */
	bool own;
	uint8_t tos; /* of connections that come in, as set_tos */
};

struct llp_addrs {
	struct uw_ip local, remote;
	uint16_t lport, rport; /* network order */
	uint8_t tos;	       /* to connect with, as set_tos; addrs() leaves it 0 */
	uint64_t serial;       /* addrs(): of a connection that came in, of its SYN, or 0 */
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
	/* Any thread, no lock needed: something waits for poll() or flush_links(). */
	void (*wake)(void *arg);
	/* The number of a SYN that came: they count up, in all stacks. NULL: nobody asks. */
	uint64_t (*serial)(void *arg);
	void *arg;
	const struct cc_ops *congestion; /* loss/cc.h; NULL: CUBIC */
	bool ecn;			 /* RFC 3168: offer it, and agree to it */
	uint32_t keepalive_ms; /* ask a peer that is silent for so long; 0: never */
	struct uw_stats *stats;
};

/* Octets that stay where they are, in the middle of a segment: `at` of its own stand before them.
 */
struct llp_ref {
	size_t at;
	struct uw_span octets;
};

/* Ports in network order everywhere. */
struct llp_ops {
	/* Once per process, and again when another engine follows. */
	void (*init)(const struct llp_config *cfg);
	void (*add_link)(struct io_link *l);
	void (*remove_link)(struct io_link *l);

	/* Take one received frame in (ownership passes). Callbacks come from within. */
	void (*input)(struct io_link *l, struct io_frame *f);
	/* Take in what came other than as a link's frame: what this process sent to itself, what
	 * another thread or the kernel has for it. Returns how much there was. */
	unsigned (*poll)(void);
	/* Does something wait for poll() or flush_links() that no link tells of? Asked just before
	 * sleeping. NULL: never. */
	bool (*pending)(void);
	/* No lock held: wait until poll() has something to do, so many microseconds at most, or
	 * until rouse(). NULL: only links know, see io.h. */
	void (*sleep)(uint64_t us);
	void (*rouse)(void); /* any thread, no lock needed */
	/* Acknowledge what came since the last call and has not been yet: after a burst, and after
	 * what it made the user send. */
	void (*acks)(void);
	/* Hand what is queued to the links; true if something had to stay queued. */
	bool (*flush_links)(void);
	/* Run the timers that are due. */
	void (*timers)(void);
	/* Microseconds until the next timer that matters; UINT64_MAX when no connection exists. */
	uint64_t (*next_timer_us)(void);

	/* Has nobody the port but those that the engine knows of? NULL: so it is. */
	bool (*port_free)(uint16_t port);
	/* UW_E_ADDR_IN_USE. */
	uw_status (*listen)(struct io_link *l, const struct llp_place *at, int backlog, void *ctx,
			    struct llp_listener **out);
	void (*unlisten)(struct llp_listener *ls);
	/* a->local is an address of the link; a->lport 0: any. The outcome is `connected` or
	 * `closed`. */
	uw_status (*connect)(struct io_link *l, const struct llp_addrs *a, void *ctx,
			     struct llp_conn **out);
	/* Orderly: FIN behind what is queued. No callback after it, the conn is no longer the
	 * caller's. */
	void (*close)(struct llp_conn *c);
	/* FIN behind what is queued; receiving goes on, `closed` follows. */
	void (*shutdown)(struct llp_conn *c);
	/* RST. No callback after it. */
	void (*abort)(struct llp_conn *c);
	/* Every connection to that address is dead (its process ended): closed(UW_E_LLP_CLOSED). */
	void (*peer_down)(struct io_link *l, uint32_t addr);
	/* Connections that still have to finish closing (for a drain). */
	unsigned (*lingering)(void);

	/* From within rx(): what it does not use up waits. Nothing is offered again until resume,
	 * and the peer's window closes with what it sends meanwhile. */
	void (*pause)(struct llp_conn *c);
	/* Offer it all again; not from within a callback. */
	void (*resume)(struct llp_conn *c);

	/* Begin a segment: where its octets go and how many fit (the EMSS); NULL when the window,
	 * the queue or the frame pool has no room (writable() comes later). */
	uint8_t *(*tx_begin)(struct llp_conn *c, size_t *room);
	/* The segment is n octets; 0 gives it back. Sent by tx_flush or with the next output. */
	void (*tx_commit)(struct llp_conn *c, size_t n);
	void (*tx_flush)(struct llp_conn *c);
	/* Octets of tx_commit's that the peer has not acknowledged; NULL: this transport does not
	 * know. */
	uint32_t (*in_flight)(const struct llp_conn *c);
	/* The peer's program waits for our ACK: none is to wait for a timer, or for the next
	 * segment. NULL: none does. */
	void (*ack_promptly)(struct llp_conn *c);
	struct llp_addrs (*addrs)(const struct llp_conn *c);
	/* What is sent from now on has this DS field, or traffic class (IPv6); its lower two bits
	 * are 0: they are ECN's (RFC 3168 §5). */
	void (*set_tos)(struct llp_conn *c, uint8_t tos);

	/* These frames come to input() next: fetch what their connections keep. NULL: no use. */
	void (*expect)(struct io_frame *const *v, unsigned n);
	/* What a segment of c touches: t has its user's places, this side's are filled in. Returns
	 * a copy, which the user keeps right as long as c lives. NULL: no use. */
	struct uw_touches *(*touches)(struct llp_conn *c, struct uw_touches *t);

	/* Zero copy; NULL where there is none. May tx_commit_around be called? */
	bool (*refers)(const struct llp_conn *c);
	/* As tx_commit: of the n octets those behind r->at follow on r->octets, which have to stay
	 * as they are until they are acknowledged or copied by one of the two below. */
	void (*tx_commit_around)(struct llp_conn *c, size_t n, const struct llp_ref *r);
	/* Copy what is still referred to: by this connection (close() does it, too), or by any and
	 * within the n octets at p. */
	void (*own)(struct llp_conn *c);
	void (*own_all)(const void *p, size_t n);
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

/* ---- as the engine calls them ------------------------------------------------------------- */

static inline void llp_init(const struct llp_ops *t, const struct llp_config *cfg)
{
	t->init(cfg);
}
static inline void llp_add_link(const struct llp_ops *t, struct io_link *l)
{
	t->add_link(l);
}
static inline void llp_remove_link(const struct llp_ops *t, struct io_link *l)
{
	t->remove_link(l);
}
static inline void llp_input(const struct llp_ops *t, struct io_link *l, struct io_frame *f)
{
	t->input(l, f);
}
static inline void llp_expect(const struct llp_ops *t, struct io_frame *const *v, unsigned n)
{
	if (t->expect)
		t->expect(v, n);
}
static inline struct uw_touches *llp_touches(const struct llp_ops *t, struct llp_conn *c,
					     struct uw_touches *w)
{
	return t->touches ? t->touches(c, w) : NULL;
}
static inline unsigned llp_poll(const struct llp_ops *t)
{
	return t->poll();
}
static inline bool llp_pending(const struct llp_ops *t)
{
	return t->pending && t->pending();
}
static inline void llp_acks(const struct llp_ops *t)
{
	t->acks();
}
static inline bool llp_flush_links(const struct llp_ops *t)
{
	return t->flush_links();
}
static inline void llp_timers(const struct llp_ops *t)
{
	t->timers();
}
static inline uint64_t llp_next_timer_us(const struct llp_ops *t)
{
	return t->next_timer_us();
}
static inline void llp_unlisten(const struct llp_ops *t, struct llp_listener *ls)
{
	t->unlisten(ls);
}
static inline void llp_close(const struct llp_ops *t, struct llp_conn *c)
{
	t->close(c);
}
static inline void llp_shutdown(const struct llp_ops *t, struct llp_conn *c)
{
	t->shutdown(c);
}
static inline void llp_abort(const struct llp_ops *t, struct llp_conn *c)
{
	t->abort(c);
}
static inline void llp_peer_down(const struct llp_ops *t, struct io_link *l, uint32_t addr)
{
	t->peer_down(l, addr);
}
static inline unsigned llp_lingering(const struct llp_ops *t)
{
	return t->lingering();
}
static inline void llp_pause(const struct llp_ops *t, struct llp_conn *c)
{
	t->pause(c);
}
static inline void llp_resume(const struct llp_ops *t, struct llp_conn *c)
{
	t->resume(c);
}
static inline uint8_t *llp_tx_begin(const struct llp_ops *t, struct llp_conn *c, size_t *room)
{
	return t->tx_begin(c, room);
}
static inline void llp_tx_commit(const struct llp_ops *t, struct llp_conn *c, size_t n)
{
	t->tx_commit(c, n);
}
static inline bool llp_refers(const struct llp_ops *t, const struct llp_conn *c)
{
	return t->refers && t->refers(c);
}
static inline void llp_tx_commit_around(const struct llp_ops *t, struct llp_conn *c, size_t n,
					const struct llp_ref *r)
{
	t->tx_commit_around(c, n, r);
}
static inline void llp_own(const struct llp_ops *t, struct llp_conn *c)
{
	if (t->own)
		t->own(c);
}
static inline void llp_own_all(const struct llp_ops *t, const void *p, size_t n)
{
	if (t->own_all)
		t->own_all(p, n);
}
static inline void llp_tx_flush(const struct llp_ops *t, struct llp_conn *c)
{
	t->tx_flush(c);
}
static inline bool llp_knows_in_flight(const struct llp_ops *t)
{
	return t->in_flight != NULL;
}
static inline uint32_t llp_in_flight(const struct llp_ops *t, const struct llp_conn *c)
{
	return t->in_flight ? t->in_flight(c) : 0;
}
static inline void llp_ack_promptly(const struct llp_ops *t, struct llp_conn *c)
{
	if (t->ack_promptly)
		t->ack_promptly(c);
}
static inline UW_CHECK uw_status llp_listen(const struct llp_ops *t, struct io_link *l,
					    const struct llp_place *at, int backlog, void *ctx,
					    struct llp_listener **out)
{
	return t->listen(l, at, backlog, ctx, out);
}
static inline UW_CHECK uw_status llp_connect(const struct llp_ops *t, struct io_link *l,
					     const struct llp_addrs *a, void *ctx,
					     struct llp_conn **out)
{
	return t->connect(l, a, ctx, out);
}
static inline bool llp_sleeps(const struct llp_ops *t)
{
	return t->sleep != NULL;
}
static inline void llp_sleep(const struct llp_ops *t, uint64_t us)
{
	t->sleep(us);
}
static inline void llp_rouse(const struct llp_ops *t)
{
	if (t->rouse)
		t->rouse();
}
static inline bool llp_port_free(const struct llp_ops *t, uint16_t port)
{
	return !t->port_free || t->port_free(port);
}
static inline struct llp_addrs llp_addrs(const struct llp_ops *t, const struct llp_conn *c)
{
	return t->addrs(c);
}
static inline void llp_set_tos(const struct llp_ops *t, struct llp_conn *c, uint8_t tos)
{
	t->set_tos(c, tos);
}

#endif
