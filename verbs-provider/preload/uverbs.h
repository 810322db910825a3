/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The uverbs node: only what libibverbs asks of a kernel without letting the provider answer, the
 * GID table and completion channels.
 */
#ifndef UWARP_UVERBS_H
#define UWARP_UVERBS_H

#include <stdint.h>

/* A descriptor or a negative errno. */
int uverbs_open(int flags);

/* The one GID of port 1: ::ffff:a.b.c.d, as RoCEv2 makes one of an IPv4 address. Zeros without an
 * engine. */
void uverbs_gid(uint8_t gid[16]);

#endif
