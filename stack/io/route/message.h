/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of rtnetlink(7), read from octets: the kernel's routes, addresses and fixed neighbours
 * (`nud permanent`) of one interface.
 * No function here does I/O.
 */
#ifndef UWARP_IO_ROUTE_MESSAGE_H
#define UWARP_IO_ROUTE_MESSAGE_H

#include "io/route/table.h"

#define ROUTE_ADDRS_MAX 32u

/* What the kernel knows of an interface. */
struct route_kernel {
	int index;  /* of the interface; in */
	bool there; /* it exists, in our network namespace */
	unsigned mtu;
	bool has_mac;
	uint8_t mac[6];
	bool up;
	bool running;		   /* up, and with a carrier */
	struct route_table routes; /* and neighbours */
	/* its IPv4 addresses, with their prefixes, the primary one first; more are not kept */
	struct uw_net addr[ROUTE_ADDRS_MAX];
	unsigned n_addr;
	/* its IPv6 addresses that stay (no temporary ones, RFC 8981), in the kernel's order */
	struct uw_net addr6[ROUTE_ADDRS_MAX];
	uint32_t deprecated6; /* bit i: addr6[i] is not for new connections (RFC 4862 §5.5.4) */
	unsigned n_addr6;
	bool tentative; /* of some it is not yet known whether another host has them */
};

enum route_read {
	ROUTE_MORE,  /* everything was read, and more messages follow */
	ROUTE_DONE,  /* the kernel's answer ends here */
	ROUTE_ERROR, /* the kernel refused */
	ROUTE_AGAIN, /* something changed meanwhile: ask again */
};

/* Read the messages in n octets (4-octet aligned) that answer the request `seq` into *k. Messages
 * that are cut short, of other interfaces, and of kinds that are not known are passed over. */
enum route_read route_read(struct route_kernel *k, const void *octets, size_t n, uint32_t seq);
/* Does anything in n octets of messages that the kernel sent of its own accord matter to us? */
bool route_is_news(const void *octets, size_t n, int index);

#endif
