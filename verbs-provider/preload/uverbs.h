/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The uverbs node: only what libibverbs asks of a kernel without letting the provider answer, the
 * GID table and completion channels.
 */
#ifndef UWARP_UVERBS_H
#define UWARP_UVERBS_H

#include <stdint.h>
#include <sys/socket.h>

/* A descriptor or a negative errno. */
int uverbs_open(int flags);

/* The GID of port 1 that is this address of ours, as RoCEv2 makes one: ::ffff:a.b.c.d of IPv4, IPv6
 * as it is. The first one for a wildcard; zeros without an engine. */
void uverbs_gid_of(const struct sockaddr_storage *addr, uint8_t gid[16]);

#endif
