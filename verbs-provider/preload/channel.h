/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels: sockets that the program polls and read()s event records from. */
#ifndef UWARP_CHANNEL_H
#define UWARP_CHANNEL_H

#include <stddef.h>
#include <stdint.h>

/* A new channel's descriptor (close-on-exec) or a negative errno. */
int channel_open(void);

/* See host.h. */
int channel_post(int fd, const void *event, size_t len);
int channel_drop(int fd, uint64_t handle);

#endif
