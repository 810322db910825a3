/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the preloaded shim gives the provider: one process has one engine, whoever asks first.
 * The provider finds the table with dlsym(RTLD_DEFAULT, "uwarp_host").
 */
#ifndef UWARP_HOST_H
#define UWARP_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "uwarp/uwarp.h"

#define UWARP_HOST_VERSION 1u

struct uwarp_host {
	uint32_t version; /* UWARP_HOST_VERSION */
	/* libuwarp.so's table; loads the library at the first call, and a private copy of it in a
	 * forked child whose parent had started it. NULL (one line on stderr said why). */
	const struct uw_api *(*api)(void);
	/* This process's engine, opened from the environment at the first call. NULL as above. */
	struct uw_engine *(*engine)(void);
	/* Queue one event record on a completion channel that the shim made (fd = the program's
	 * end). Never blocks; thread-safe. 0, or -EAGAIN full, -EBADF not one of ours. */
	int (*channel_post)(int fd, const void *event, size_t len);
	/* Drop the unread ib_uverbs_comp_event_desc records whose cq_handle is `handle`; returns
	 * how many were dropped. */
	int (*channel_drop)(int fd, uint64_t handle);
};

/* Exported by libuwarp-preload.so under this name. */
const struct uwarp_host *uwarp_host(uint32_t version);

#endif
