/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the kernel for the routes and addresses of an interface (rtnetlink(7)), and hears of their
 * changes. Needs no right. One thread at a time. */
#ifndef UWARP_IO_ROUTE_KERNEL_H
#define UWARP_IO_ROUTE_KERNEL_H

#include "io/route/message.h"

struct route_watch {
	int ask, hear;	      /* netlink sockets: for questions, and for news */
	int bell;	      /* an eventfd that ends route_watch_wait() */
	_Atomic bool stopped; /* ... for good */
	_Atomic bool taken;   /* the program has closed our descriptors, or has others there */
	int index;	      /* of the interface */
	uint32_t seq;
};

/* UW_E_NO_LINK: there is no such interface, or no netlink socket. */
UW_CHECK uw_status route_watch_open(struct route_watch *w, const char *interface);
void route_watch_close(struct route_watch *w);
/* Read everything into *k, whose routes the caller clears (route_clear). The routes are sorted.
 * False: the kernel did not answer; *k has what came. */
bool route_watch_read(struct route_watch *w, struct route_kernel *k);
enum route_wait {
	ROUTE_STOPPED, /* route_watch_stop() was called, or the program has closed a descriptor */
	ROUTE_QUIET,   /* the time is over */
	ROUTE_NEWS,
};
/* Wait until something changes, or for so long; -1: without a limit. */
enum route_wait route_watch_wait(struct route_watch *w, int timeout_ms);
/* Any thread. */
void route_watch_stop(struct route_watch *w);

#endif
