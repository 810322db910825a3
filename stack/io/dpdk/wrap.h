/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Corrections to the DPDK that is linked into us, made by the linker (--wrap, see meson.build):
 * calls that leave DPDK's archives for the names in wrap.c arrive there instead. They reach
 * nothing outside this library.
 */
#ifndef UWARP_IO_DPDK_WRAP_H
#define UWARP_IO_DPDK_WRAP_H

/* In the interrupt thread: the packet sockets that are made from now on are so many that share what
 * comes, connection by connection. 1: each gets all of it. */
void wrap_packet_sockets(unsigned n);

#endif
