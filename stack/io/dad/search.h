/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the network, before a link is used, whether another host has its addresses (dad.h). */
#ifndef UWARP_IO_DAD_SEARCH_H
#define UWARP_IO_DAD_SEARCH_H

#include "io/dad/dad.h"

/* Who asks: the addresses and the frames out are those of link[0], and answers may come on any of
 * the n links, which nobody else uses meanwhile. */
struct dad_search {
	struct io_link *const *link;
	unsigned n;
	/* The stack locks of link[i], under which its functions run. */
	void (*lock)(void *arg, unsigned i);
	void (*unlock)(void *arg, unsigned i);
	void *arg;
	unsigned ms; /* how long to wait for answers; 0: only ask, once */
};

/* Blocks for s->ms. UW_E_ADDR_IN_USE: *who has an address of ours. What else comes is dropped. */
UW_CHECK uw_status dad_search_run(const struct dad_search *s, struct dad_conflict *who);

/* Send a frame of dad.h. Under the link's stack lock. */
void dad_send(struct io_link *l, const uint8_t *frame, size_t n);

#endif
