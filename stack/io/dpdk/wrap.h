/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Corrections to the copy of DPDK that is linked into this library. The linker (--wrap, see
 * meson.build) makes DPDK call the functions of wrap.c in place of some functions of libc. Code
 * outside this library is not affected.
 */
#ifndef UWARP_IO_DPDK_WRAP_H
#define UWARP_IO_DPDK_WRAP_H

/* Called in the interrupt thread before DPDK opens a packet-socket port of n queues. The n sockets
 * of the port will share the frames of the interface: each connection belongs to one socket. */
void wrap_packet_sockets(unsigned n);

#endif
