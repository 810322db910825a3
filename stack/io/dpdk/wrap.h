/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Corrections to the DPDK that is linked into us, made by the linker (--wrap, see meson.build):
 * calls that leave DPDK's archives for the names in wrap.c arrive there instead. They reach
 * nothing outside this library.
 */
#ifndef UWARP_IO_DPDK_WRAP_H
#define UWARP_IO_DPDK_WRAP_H

#include <rte_interrupts.h>

/* From now on the interrupt thread unmaps memory only after pass(arg), which comes back once each
 * stack lock was free, one after the other. NULL: no more. */
struct wrap_barrier {
	void (*pass)(void *arg);
	void *arg;
};
void wrap_unmap_after(const struct wrap_barrier *b);

/* A socket that a driver listens on by the interrupt thread. */
struct wrap_listener {
	const struct rte_intr_handle *handle;
	rte_intr_callback_fn fn;
	void *arg;
};

/* In the interrupt thread: what was registered since the last call, handle NULL if nothing. */
struct wrap_listener wrap_take_listener(void);

/* In the interrupt thread, before the device goes: stop listening and close the socket, which
 * memif itself never does. */
void wrap_close_listener(struct wrap_listener *w);

/* In the interrupt thread: the packet sockets that are made from now on are so many that share what
 * comes, connection by connection. 1: each gets all of it. */
void wrap_packet_sockets(unsigned n);

#endif
