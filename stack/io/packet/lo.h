/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's own connections to the address that it shares with us: a program of this host that
 * uses the kernel's TCP sends to the address over lo, where the link hears it. The kernel takes
 * nothing from its own address that comes in over an interface, so what goes back is sent by a raw
 * IP socket. All under the stack lock.
 */
#ifndef UWARP_IO_PACKET_LO_H
#define UWARP_IO_PACKET_LO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "io/io.h"

struct lo {
	int fd[2];	/* raw sockets of IPv4 and IPv6; -1: none */
	uint32_t scope; /* the interface's index, for link-local addresses */
	/* One bit for each port (host order) of IPv4 and IPv6 from which the kernel last sent. */
	uint64_t kernels[2][65536 / 64];
};

/* No sockets yet. */
void lo_init(struct lo *lo);
/* Without a socket the kernel's programs wait in vain. */
void lo_open(struct lo *lo, uint32_t scope);
void lo_close(struct lo *lo);

/* A frame came over lo. The kernel's have no MAC, those of other processes with uwarp our own. Only
 * those from the shared address to itself say whose a port is. */
void lo_learn(struct lo *lo, const uint8_t *frame, size_t n);
/* Does this frame go from our address to itself, to a program that uses the kernel's TCP? */
bool lo_is_kernels(const struct lo *lo, const struct io_frame *f);
/* Send it; scratch has room for a whole frame. 0 or an errno. */
int lo_send(const struct lo *lo, const struct io_frame *f, uint8_t *scratch);

#endif
