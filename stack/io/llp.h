/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TCP, the lower layer protocol (LLP, RFC 5044 §2), as the rooms above use it: a table of functions
 * that each transport fills in (doc/adr/0008). Each stack of a process has its own transport, since
 * lwIP's state is global. Every function here runs under the stack lock unless its comment says
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

/* RFC 5044 §4.5: room for an FPDU of 128 octets, a marker and padding, whatever the peer announces
 * for its segments and its window. With less there might be no room for a header, and nothing would
 * ever be sent. */
#define LLP_ROOM_LEAST 140u

struct llp_conn;
struct cc_ops;
struct llp_listener;

/* Where to listen. 0.0.0.0 and 127.0.0.1 stand for all IPv4 addresses of the link, ::1 for all IPv6
 * ones, and :: for both, unless only6 is set. */
struct llp_place {
	struct uw_ip addr;
	uint16_t port;
	bool only6;
	/* if addr is the any address: only addresses of the link, not others of the host */
	bool own;
	uint8_t tos; /* DS field of accepted connections, as set_tos */
};

struct llp_addrs {
	struct uw_ip local, remote;
	uint16_t lport, rport;
	uint8_t tos; /* for connect(): DS field, as set_tos; addrs() sets it to 0 */
};

/* What TCP does about a connection that is not seen in its octets, for the connection's history
 * (conn/history.h). */
enum llp_note {
	LLP_SENT_AGAIN, /* a segment was sent again; arg: its first sequence number */
	LLP_RTO,	/* the retransmission timer fired; arg: the next RTO in ms */
	LLP_PROBE,	/* a tail loss probe was sent (RFC 8985 §7) */
	LLP_TIMEOUTS,	/* LLP_UNANSWERED follows; arg: timeouts since the last progress, not 0 */
	/* why the connection is gone; `closed` follows */
	LLP_RESET,	  /* the peer sent an RST */
	LLP_UNANSWERED,	  /* nothing was acknowledged; arg: for how many ms, 0: not known */
	LLP_SILENT,	  /* no keepalive was answered; arg: for how many ms nothing came */
	LLP_PROCESS_GONE, /* the peer's process has ended */
	LLP_NOTES
};

/* What a transport knows of a connection. Whatever it does not know is 0 or NULL. Times are in
 * microseconds, windows and the like in octets. */
struct llp_info {
	uint32_t mss, cwnd, ssthresh, in_flight, unsent;
	uint32_t peer_window, own_window; /* what the peer takes, what we offered */
	uint64_t srtt_us, rttvar_us, min_rtt_us, rto_us;
	uint64_t reorder_us; /* how late a segment may be and not count as lost (RFC 8985) */
	uint64_t delivered;  /* octets, since the connection came up */
	/* segments sent again; recoveries by ACKs; by the timer; tail loss probes, and those of
	 * them that repaired a loss */
	uint64_t sent_again, recoveries, timeouts, probes, probe_losses;
	/* segments that came twice, as the peer says; recoveries and timeouts without a loss;
	 * segments that the peer dropped after it had acknowledged them selectively; windows
	 * reduced for ECN */
	uint64_t duplicates, undone, spurious, reneged, marked;
	uint32_t rx_held;    /* octets received that the user has not taken */
	uint32_t rx_buffers; /* the link's buffers that these and those out of order hold */
	bool reordering;     /* segments were seen out of order */
	bool paused;	     /* the user takes no octets now */
	const char *control; /* "cubic", ... */
	const char *phase;   /* "open", "recovery", "timeout" */
};

/* Callbacks into the user of TCP. ctx is the connection's; that of `accepted` is the listener's. */
struct llp_user {
	/* The connect succeeded. */
	void (*connected)(void *ctx);
	/* A connection was accepted. Returns the ctx of the connection; NULL refuses the
	 * connection. */
	void *(*accepted)(void *listener_ctx, struct llp_conn *c);
	/* Octets came, in order. Returns how many are used up. The transport keeps the rest and
	 * offers the rest again when more arrives. */
	size_t (*rx)(void *ctx, struct uw_rope in);
	/* The peer acknowledged octets: tx_begin may have room again. */
	void (*writable)(void *ctx);
	/* UW_OK: the peer's FIN came; the connection lives until close() or abort(). Any other
	 * status (UW_E_REFUSED, UW_E_TIMEOUT, UW_E_LLP_CLOSED): the connection is gone and c is
	 * freed. */
	void (*closed)(void *ctx, uw_status why);
	/* For the connection's history (conn/history.h): the callee calls no function of the
	 * transport. NULL: no history is kept. */
	void (*note)(void *ctx, enum llp_note what, uint32_t arg);
	/* A packet to UDP port 4791 (RoCEv2) of an address of the link, from its IP header on. It
	 * may be of any form. arg is that of llp_config. The octets are valid during the call. */
	void (*packet)(void *arg, struct io_link *l, struct uw_rope packet);
};

struct llp_config {
	const struct llp_user *user;
	uint64_t (*now_us)(void *arg); /* monotonic */
	/* unpredictable numbers, for initial sequence numbers, ports, keys */
	uint32_t (*random)(void *arg);
	/* Called with every frame sent or received. NULL: no capture. */
	void (*capture)(void *arg, const struct io_frame *f);
	/* Any thread, no lock needed: there is work for poll() or flush_links(). */
	void (*wake)(void *arg);
	void *arg;
	const struct cc_ops *congestion; /* loss/cc.h; NULL: CUBIC */
	bool ecn;	 /* use explicit congestion notification (RFC 3168) if the peer does */
	bool timestamps; /* use timestamps (RFC 7323) if the peer does */
	uint32_t keepalive_ms; /* probe a peer that was silent for this time; 0: never */
	struct uw_stats *stats;
};

/* Which of the ACKs that are due to send: */
enum llp_acks {
	LLP_ACKS_ALL,
	/* The program hears of what came, or nothing came, and it calls again soon: an ACK that its
	 * answer may carry may be left for one of the next calls. */
	LLP_ACKS_URGENT,
};

struct llp_ops {
	/* Called once per process, and again if another engine is opened, or after an error. */
	UW_CHECK uw_status (*init)(const struct llp_config *cfg);
	void (*add_link)(struct io_link *l);
	void (*remove_link)(struct io_link *l);
	/* The link's routes or its MTU have changed. NULL: neither may change while the link is in
	 * use. */
	void (*link_changed)(struct io_link *l);
	/* The link carries frames again after it did not: send again what waits for a timeout.
	 * NULL: the transport waits. */
	void (*link_up)(struct io_link *l);

	/* Process one received frame; the transport owns f from now on. May call the user. */
	void (*input)(struct io_link *l, struct io_frame *f);
	/* Process input that came by other ways than input(): packets of this process to itself,
	 * events of another thread or of the kernel. Returns how many there were. */
	unsigned (*poll)(void);
	/* Is there work for poll() or flush_links()? Asked just before sleeping. NULL: never. */
	bool (*pending)(void);
	/* No lock held: wait until poll() has work, at most `us` microseconds, or until rouse().
	 * NULL: the links have their own way to wait (io.h). */
	void (*sleep)(uint64_t us);
	/* Any thread, no lock needed: end sleep(). NULL together with sleep. */
	void (*rouse)(void);
	/* Send the ACKs that are due. Called after a burst of input and after the output that the
	 * burst caused. */
	void (*acks)(enum llp_acks which);
	/* Was an ACK left that nothing has carried since, and that may not wait for a timer? NULL:
	 * none ever is. */
	bool (*acks_left)(void);
	/* Hand queued frames to the links. True: some frames stay queued. */
	bool (*flush_links)(void);
	/* Run the timers that are due. */
	void (*timers)(void);
	/* Microseconds until the next timer; UINT64_MAX: none is set. */
	uint64_t (*next_timer_us)(void);

	/* Is the local port free as far as the transport knows? NULL: the transport cannot tell;
	 * take the port as free. */
	bool (*port_free)(uint16_t port);
	/* Listen; UW_E_ADDR_IN_USE: the port is taken. */
	uw_status (*listen)(struct io_link *l, const struct llp_place *at, int backlog, void *ctx,
			    struct llp_listener **out);
	void (*unlisten)(struct llp_listener *ls);
	/* a->local must be an address of the link; a->lport 0: any port. `connected` or `closed`
	 * tells the outcome. */
	uw_status (*connect)(struct io_link *l, const struct llp_addrs *a, void *ctx,
			     struct llp_conn **out);
	/* Send a FIN after the queued octets. c must not be used any more, and no callback follows.
	 */
	void (*close)(struct llp_conn *c);
	/* Send a FIN after the queued octets. Receiving goes on; `closed` follows. */
	void (*shutdown)(struct llp_conn *c);
	/* Send an RST. c must not be used any more, and no callback follows. */
	void (*abort)(struct llp_conn *c);
	/* The process with this address (0: whoever the link leads to) has ended: call
	 * closed(UW_E_LLP_CLOSED) for every connection to the address. */
	void (*peer_down)(struct io_link *l, uint32_t addr);
	/* The number of connections that still have to finish closing. */
	unsigned (*lingering)(void);

	/* Called within rx(): keep the octets that rx() does not use up, and do not call rx() until
	 * resume(). The window shrinks by what the peer sends meanwhile. */
	void (*pause)(struct llp_conn *c);
	/* Offer the kept octets again. Not within a callback. */
	void (*resume)(struct llp_conn *c);

	/* Begin a segment. Returns where its octets go; *room: how many fit (the EMSS), at least
	 * LLP_ROOM_LEAST. NULL: no room in the window, the queue or the frame pool; writable()
	 * follows. */
	uint8_t *(*tx_begin)(struct llp_conn *c, size_t *room);
	/* As tx_begin, for several segments of *each octets, one behind the other, the last of
	 * which may be shorter. NULL: take tx_begin; as a member: always. */
	uint8_t *(*tx_begin_many)(struct llp_conn *c, size_t *room, size_t *each);
	/* End the segment, or the segments, with n octets; 0 discards it. Until tx_flush, which
	 * sends what was committed, only these four are called: nothing comes in, and no timer
	 * runs. */
	void (*tx_commit)(struct llp_conn *c, size_t n);
	void (*tx_flush)(struct llp_conn *c);
	/* The committed octets that the peer has not acknowledged. NULL: the transport does not
	 * know. */
	uint32_t (*in_flight)(const struct llp_conn *c);
	/* Let no ACK wait for a timer, since the peer completes requests by ACKs (doc/adr/0014).
	 * One may wait a few rounds for an answer (doc/adr/0073). NULL: no effect. */
	void (*ack_promptly)(struct llp_conn *c);
	struct llp_addrs (*addrs)(const struct llp_conn *c);
	/* Fill in what is known of c; *out is all zero. NULL: nothing is known. */
	void (*info)(const struct llp_conn *c, struct llp_info *out);
	/* Set the DS field (IPv4) or traffic class (IPv6) of packets sent from now on. The lower
	 * two bits are 0: they belong to ECN (RFC 3168 §5). */
	void (*set_tos)(struct llp_conn *c, uint8_t tos);

	/* Begin an IP packet that the user makes, its IP header included, for one of the link's
	 * neighbours. to: where it goes, if it shall wait for a receiver that is behind; NULL: it
	 * is lost then. Returns where its octets go; *room: how many fit. NULL: there is no room
	 * now. packet_end sends n octets; 0 discards the packet. A packet may be lost on its way.
	 * others: one to an own address is not for this process but for another one that shares
	 * the address, if there is any (IO_SHARED). NULL: the transport has no packets but those of
	 * TCP. */
	uint8_t *(*packet_begin)(struct io_link *l, const struct uw_ip *to, size_t *room);
	void (*packet_end)(struct io_link *l, size_t n, const struct uw_ip *to, bool others);
	/* Tell the network of the link that it is, or is no more, a member of a multicast group, as
	 * long as it is one. Only for links that do not do it themselves (io_ops.group).
	 * UW_E_NOMEM: too many groups. NULL: the transport does not. */
	uw_status (*group)(struct io_link *l, const struct uw_ip *group, bool in);
	/* Is the MAC known that packets to this address go to? If not, the network is asked for it;
	 * of packets sent meanwhile only the last one waits. */
	bool (*neighbour)(struct io_link *l, const struct uw_ip *to);
	/* Is there a way to this address: a network of the link, a route, the address itself, or
	 * is it a multicast group, whose members are on the link?
	 * NULL: the transport cannot tell. */
	bool (*has_way)(const struct io_link *l, const struct uw_ip *to);

	/* The frames in v go to input() next: prefetch the state of their connections. NULL: not
	 * needed. */
	void (*prefetch)(struct io_frame *const *v, unsigned n);
	/* t lists the memory that the user touches for a segment of c; add the memory of the
	 * transport. Returns the transport's copy of the list, which the user keeps up to date as
	 * long as c lives. NULL: not needed. */
	struct uw_prefetch_list *(*prefetch_list)(struct llp_conn *c, struct uw_prefetch_list *t);
};

/* io/lwip: lwIP's raw API, in the thread that drives. */
extern const struct llp_ops llp_raw;
/* Several instances of llp_raw in one process. Each has its own lwIP and lock, and shares no state
 * with the others. Instance 0 is llp_raw; NULL: i is LLP_RAW_INSTANCES or more. */
#define LLP_RAW_INSTANCES 8u
const struct llp_ops *llp_raw_instance(unsigned i);
/* io/seq: lwIP's sequential API, with lwIP's own thread. */
extern const struct llp_ops llp_seq;
/* io/socket: the kernel's TCP. */
extern const struct llp_ops llp_socket;

#endif
