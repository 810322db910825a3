/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the preloaded library gives the provider: the engine of this process, and completion
 * channels. The provider finds uwarp_host() with dlsym(RTLD_DEFAULT, "uwarp_host").
 */
#ifndef UWARP_HOST_H
#define UWARP_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "uwarp/uwarp.h"

#define UWARP_HOST_VERSION 2u

struct uwarp_host {
	uint32_t version; /* UWARP_HOST_VERSION */
	/* The table of libuwarp.so, which the first call loads. In a forked child whose parent had
	 * started its engine this is a copy of the library. NULL: a line on stderr said why. */
	const struct uw_api *(*api)(void);
	/* This process's engine, which the first call opens as the environment says. NULL as above.
	 */
	struct uw_engine *(*engine)(void);
	/* Queue one event record on the completion channel fd. Never blocks; any thread. -EAGAIN:
	 * no memory; -EBADF: fd is no completion channel. */
	int (*channel_post)(int fd, const void *event, size_t len);
	/* Remove the unread records (struct ib_uverbs_comp_event_desc) with this cq_handle. Returns
	 * how many there were. */
	int (*channel_drop)(int fd, uint64_t handle);
	/* From now on call fn() whenever somebody begins to look for devices: that may be another
	 * copy of libibverbs than the one that loaded the provider. */
	void (*on_discovery)(void (*fn)(void));
};

/* Exported by libuwarp-preload.so under this name. */
const struct uwarp_host *uwarp_host(uint32_t version);

#endif
