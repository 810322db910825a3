/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The uverbs node, /dev/infiniband/uverbsN. The provider answers most calls of libibverbs without
 * the kernel. This folder answers those that libibverbs always sends to the kernel: the GID table
 * (ioctl) and new completion channels (write).
 */
#ifndef UWARP_UVERBS_H
#define UWARP_UVERBS_H

#include <stdint.h>
#include <sys/socket.h>

/* open() of the node. A descriptor or a negative errno. */
int uverbs_open(int flags);

/* The GID of port 1 for `addr`, an address of this device: ::ffff:a.b.c.d for IPv4, the address
 * itself for IPv6. For any other address the GID with index 0. All zero without an engine. */
void uverbs_gid_of(const struct sockaddr_storage *addr, uint8_t gid[16]);

/* The index of a GID of this device. 0: it has no such GID. */
uint8_t uverbs_gid_index(const uint8_t gid[16]);

#endif
