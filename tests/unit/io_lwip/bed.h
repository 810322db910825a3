/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The transport `raw` (stack/io/lwip) between a link whose other end is the test and a user that
 * notes what the transport tells it. The test writes TCP segments field by field and reads those
 * that the transport sends. Time passes only in bed_pass. There is one bed at a time, because
 * lwIP's state is global.
 */
#ifndef UWARP_TESTS_IO_LWIP_BED_H
#define UWARP_TESTS_IO_LWIP_BED_H

#include "io/llp.h"
#include "loss/cc.h"
#include "loss/option.h"
#include "uwtest.h"

#define BED_OURS   0x0a000001u /* 10.0.0.1, host order */
#define BED_THEIRS 0x0a000002u
#define BED_PORT   7471u /* a listener of ours */
#define BED_MTU	   1500u
#define BED_MSS	   1460u
#define BED_CONNS  2048u
#define BED_OUT	   8192u

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16, ECE = 64, CWR = 128 };

/* A TCP segment. Host order. */
struct bed_seg {
	uint32_t from;	       /* IPv4 address of the sender; 0: BED_THEIRS */
	uint16_t sport, dport; /* dport 0: BED_PORT */
	uint32_t seq, ack;
	uint8_t flags;
	uint16_t window;
	const void *data;
	size_t n;
	const uint8_t *options;
	unsigned options_n;	  /* a multiple of 4 */
	bool df;		  /* of what was sent: IP's flag */
	uint8_t ecn;		  /* of what was sent: IP's field, RFC 3168 §5 */
	struct loss_options read; /* of what was sent */
	uint8_t first;		  /* of what was sent: its first octet */
};

/* A connection as its user sees it. */
struct bed_conn {
	struct llp_conn *c;
	bool connected, closed;
	uw_status why;
	size_t got;   /* octets that rx used up */
	size_t grain; /* rx uses up whole ones of so many octets; 0: all */
	bool pause;   /* rx pauses and uses up nothing */
	unsigned writable;
	uint8_t sum; /* of the octets used up */
	struct {
		unsigned times;
		uint32_t arg; /* of the last */
	} note[LLP_NOTES];
};

struct bed {
	struct io_link link;
	_Atomic uint32_t doorbell;
	struct uw_stats stats;
	uint64_t now_us, seed;
	unsigned frames, pool; /* frames that exist; no more than these */
	struct llp_listener *ls;
	struct bed_conn conn[BED_CONNS];
	void (*in_rx)(void); /* the next rx calls it before it looks at the octets */
	unsigned conns;	     /* how many of them are in use; accepted ones in order */
	bool pause;	     /* new connections pause */
	size_t grain;	     /* of new connections */
	uint16_t fragment;   /* IP's flags and fragment offset of what comes */
	uint8_t ecn;	     /* IP's field of what comes, RFC 3168 §5 */
	bool damaged;	     /* what comes has a wrong TCP checksum */
	bool copy;	     /* what comes is a copy, and another stack has the frame itself */
	bool stuck;	     /* the link takes no frames; nobody calls bed_flush meanwhile */
	bool burst;	     /* bed_flush is left to the test: what comes meanwhile is one burst */
	unsigned announced;  /* ARP requests of ours for our own address */
	unsigned longs;	     /* frames that were cut */
	unsigned long_out;   /* frames of alloc_long that exist */
	bool arp;	     /* we were asked for their MAC */
	unsigned arps;	     /* how often */
	unsigned asked;	     /* ARP requests of ours for the MAC of anybody */
	uint8_t from_mac[6]; /* of the last frame that was sent */
	bool scaled; /* bed_connect offers window scaling: the window is 4 MiB, else 64 KiB */
	/* What was sent, the last BED_OUT of them; out[n % BED_OUT]. data is not kept. */
	struct bed_seg out[BED_OUT];
	unsigned sent;
};

extern struct bed bed;

void bed_open(void);
/* The same with another sequence of random numbers; bed_open's is 1. */
void bed_open_seeded(uint64_t seed);
/* From now on the link is a network, on which segments may be lost; BED_THEIRS asks for our
 * address, so its own is known. Of a bed that is open. */
void bed_be_network(void);
/* The link is a network's: with ARP, and IP checksums. */
void bed_open_network(void);
/* The same, and the link cuts long segments. */
void bed_open_cutting(void);
/* As bed_open_network, and a peer is asked after so much silence. */
void bed_open_asking(uint32_t ms);
/* As bed_open_network, and timestamps are wanted. */
void bed_open_stamps(void);
/* The same between processes. */
void bed_open_stamps_between(void);
/* As bed_open_network, and ECN is wanted; the policy (loss/cc.h), NULL: the default. */
void bed_open_ecn(const struct cc_ops *congestion);
/* Ends every connection. Checks that no frame is left. */
void bed_close(void);

/* A segment comes; what it leads to is done when this returns. */
void bed_in(const struct bed_seg *s);
/* A frame as it is. */
void bed_in_frame(const void *p, size_t n);
/* An IPv4 packet of any protocol and content. */
void bed_in_ip(uint8_t proto, const void *p, size_t n);
void bed_pass(uint64_t us);
/* Hand what is queued to the link. */
void bed_flush(void);

/* The last segment sent to that port of theirs, NULL: none since `since` were sent. */
const struct bed_seg *bed_last(uint16_t port, unsigned since);

/* A peer that has connected from a port: what comes next of it. */
struct bed_peer {
	uint32_t from;
	uint16_t port;
	uint32_t seq, ack; /* its next octet, ours */
	uint16_t window;
	struct bed_conn *user;
};
/* The handshake; asserts that it succeeds. */
struct bed_peer bed_connect(uint16_t port);
/* The same with this window and n octets of options in the SYN. */
struct bed_peer bed_connect_with(uint16_t port, uint16_t window, const uint8_t *options,
				 unsigned n);
/* The user sends n full segments; the octets of each are its number. Returns their length. */
size_t bed_send_full(const struct bed_peer *p, unsigned n);
/* Octets of the peer at an offset from its next one; p->seq stays. */
void bed_data(const struct bed_peer *p, uint32_t at, size_t n);
/* The same with any flags. */
void bed_segment(const struct bed_peer *p, uint32_t at, size_t n, uint8_t flags);

#endif
