/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An engine with a link whose other end is the target's: frames are made out of fields, and what
 * the engine sends is taken apart. There is no TCP on this side, and time is the target's.
 * Frames that go in are blocks of exactly their octets, so that reading on is seen.
 */
#ifndef UWARP_FUZZ_RAW_H
#define UWARP_FUZZ_RAW_H

#include "engine/engine.h"
#include "fuzz.h"

#define RAW_MTU	   1500u
#define RAW_OURS   0x0a000001u /* the engine's address, 10.0.0.1 */
#define RAW_THEIRS 0x0a000002u
#define RAW_NET6   "\xfd\0\0\0\0\0\0\0\0\0\0" /* ... and fd00::10.0.0.1; 12 octets */

enum { RAW_FIN = 1, RAW_SYN = 2, RAW_RST = 4, RAW_PSH = 8, RAW_ACK = 16, RAW_URG = 32 };

struct raw_tcp {
	uint16_t sport, dport; /* host order, as everything here */
	uint32_t seq, ack;
	uint8_t flags;
	uint16_t window, urgent;
	const uint8_t *options;
	unsigned options_n; /* multiple of 4, at most 40 */
	const uint8_t *data;
	size_t n;
};

struct raw_frame;

struct raw {
	struct io_link link; /* first: the link's functions find the rest */
	struct uw_engine *e;
	_Atomic uint32_t doorbell;
	struct raw_frame *in, *out; /* on their way; oldest first */
	unsigned frames;	    /* that exist */
	unsigned pool;		    /* and no more than these */
	unsigned split;	  /* frames that go in are chains: the first buffer's octets, 0 whole */
	bool answers_arp; /* and neighbour solicitations */
	bool six;	  /* raw_tcp speaks IPv6 */
	uint32_t marks;	  /* of frames that go in: enum io_marks */
	uint8_t tos;	  /* of IP packets that go in, with ECN's bits */
	uint32_t from;	  /* their source; 0: RAW_THEIRS */
	/* A TCP segment from the engine. */
	void (*on_tcp)(void *arg, const struct raw_tcp *t);
	void *arg;
};

/* An engine on a cable of its own; flags: of the link (IO_P2P: no ARP, no TCP checksums). */
void raw_open(struct raw *r, const struct uw_config *cfg, unsigned flags);
/* Ends every TCP connection and the engine; nothing may be left over. */
void raw_close(struct raw *r);

/* A frame of n octets as it is. */
void raw_send(struct raw *r, const uint8_t *p, size_t n);
/* An IP packet with a right header around n octets of protocol `proto`. */
void raw_ip(struct raw *r, uint8_t proto, const uint8_t *p, size_t n);
void raw_ip6(struct raw *r, uint8_t next, const uint8_t *p, size_t n);
/* An IP packet of either version as it is, at least its first octet. */
void raw_packet(struct raw *r, const uint8_t *p, size_t n);
/* n octets of ICMPv6, at least 4, with a right checksum. */
void raw_icmp6(struct raw *r, const uint8_t *p, size_t n);
void raw_tcp(struct raw *r, const struct raw_tcp *t);
void raw_arp(struct raw *r, uint16_t op, uint32_t sender, uint32_t target);

/* Let the engine work until it has nothing to do, and hear what it says. */
void raw_run(struct raw *r);
/* The same while us microseconds pass. */
void raw_pass(struct raw *r, uint64_t us);

#endif
