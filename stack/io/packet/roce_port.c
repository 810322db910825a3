/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/packet/roce_port.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "io/fds.h"
#include "io/packet/filter.h"

/* 0 or a negative errno. An address that the interface has lost is passed over: engine/routes.c
 * says so. */
static int hold_at(struct roce_port *r, const struct held_at *at)
{
	for (unsigned i = 0; at && i < at->n; i++) {
		int fd = held_ports_deafen_udp(at, i, htons(ROCE_PORT));

		if (fd == -EADDRNOTAVAIL)
			continue;
		if (fd < 0)
			return fd;
		r->fd[r->n++] = fd;
	}
	return 0;
}

static const char *advice(int err)
{
	switch (err) {
	case -EADDRINUSE:
		return ": unload rdma_rxe, or give an unused address (--ip)";
	case -EMFILE: /* the process's limit; ENFILE is the machine's */
		return ": raise ulimit -n";
	default:
		return "";
	}
}

uw_status roce_port_hold(struct roce_port *r, const struct held_at *four, const struct held_at *six,
			 const char *interface)
{
	int err;

	if (r->n)
		return UW_OK;
	err = hold_at(r, four);
	if (!err)
		err = hold_at(r, six);
	if (!err && r->n)
		return UW_OK;
	if (!err)
		err = -EADDRNOTAVAIL;
	roce_port_release(r);
	uw_log("UDP port %u of %s is not to be had (%s)%s", ROCE_PORT, interface, strerror(-err),
	       advice(err));
	return held_ports_status(err);
}

void roce_port_release(struct roce_port *r)
{
	while (r->n)
		fds_close(r->fd[--r->n]);
}
