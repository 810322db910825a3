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

/* The one GID of port 1: the EUI-64 GUID in the first 8 octets, zeros after it. (Kernel iWARP
 * drivers put their MAC address there in the same way.) */
void uverbs_gid(uint8_t gid[16]);

#endif
