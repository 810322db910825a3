/* SPDX-License-Identifier: BSD-3-Clause */
/* The port of a uwarpd: where frames leave the machine and come in. */
#ifndef UWARPD_UPLINK_H
#define UWARPD_UPLINK_H

#include <stdbool.h>
#include <stdint.h>

#include "io/io.h"
#include "io/switch/conduit.h"
#include "io/switch/msg.h"
#include "options.h"

struct uplink;

/* A frame to send: headers that nobody else can change, and the rest, which is read once. */
struct uplink_out {
	const uint8_t *head, *rest;
	uint32_t head_len, rest_len;
	uint32_t tcp; /* where the TCP header begins; 0: no TCP */
	struct conduit_meta meta;
};

struct uplink_in {
	const uint8_t *octets; /* valid until the next receive */
	uint32_t len;	       /* of the whole frame */
	bool waits; /* only its first SWITCH_HEAD_MAX octets are there, and fetch brings all */
	struct conduit_meta meta;
};

struct uplink_ops {
	/* False: the port has no room now, and the frame is to be sent again later. */
	bool (*send)(struct uplink *p, const struct uplink_out *f);
	/* False: there is no frame. */
	bool (*receive)(struct uplink *p, struct uplink_in *f);
	/* Once, before the next receive, of a frame that waits: write all of it to `to`. False: it
	 * is lost. NULL: no frame ever waits. */
	bool (*fetch)(struct uplink *p, uint8_t *to);
	/* May clients have this port (network order) of the addresses of this version? NULL: yes.
	 */
	enum switch_msg_why (*claim)(struct uplink *p, uint16_t port, enum io_versions v);
	void (*release)(struct uplink *p, uint16_t port, enum io_versions v);
	/* May clients have packets of RoCEv2 (UDP port 4791)? May be asked again. NULL: yes. */
	enum switch_msg_why (*claim_packets)(struct uplink *p);
	/* Frames were given to send: the end of a burst. NULL: nothing to do. */
	void (*flush)(struct uplink *p);
	/* Has the port been removed from the system? It never comes back then. One line on stderr
	 * says so. NULL: that cannot be. */
	bool (*gone)(struct uplink *p);
	void (*close)(struct uplink *p);
};

struct uplink {
	const struct uplink_ops *ops;
	uint32_t addr, mask;	       /* IPv4, network order */
	struct uw_net ip6[IO_IP6_MAX]; /* the link-local one first */
	unsigned n_ip6;
	uint32_t scope; /* sin6_scope_id of the link-local address */
	uint8_t mac[6];
	uint32_t mtu;	  /* octets of an IP packet */
	uint64_t bps;	  /* nominal speed */
	uint32_t flags;	  /* enum switch_msg_flags */
	bool own;	  /* nobody else has the addresses */
	bool needs_admin; /* claims need CAP_NET_ADMIN */
	int fd;		  /* to wait on for frames; -1: there is none */
	uint64_t lost;	  /* frames that it refused to send */
	uint64_t missed;  /* frames that came, and for which it had no room */
};

/* With an IPv4 address of its own: the link-local one that ends in it, and those of the options. */
void uplink_own_ip6(struct uplink *p, const struct options *o);

/* NULL: one line on stderr says why. */
struct uplink *uplink_open(const struct options *o);
/* The three kinds. */
struct uplink *uplink_open_none(const struct options *o);
struct uplink *uplink_open_packet(const struct options *o, const char *interface);
struct uplink *uplink_open_link(const struct options *o);

#endif
