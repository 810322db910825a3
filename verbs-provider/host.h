/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Functions that the preloaded library gives the provider: the engine of this process, and
 * completion channels. The provider finds uwarp_host() with dlsym(RTLD_DEFAULT, "uwarp_host").
 */
#ifndef UWARP_HOST_H
#define UWARP_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "uwarp/uwarp.h"

#define UWARP_HOST_VERSION 3u

/* A completion channel. */
struct channel;

struct uwarp_host {
	uint32_t version; /* UWARP_HOST_VERSION */
	/* The function table of libuwarp.so; the first call loads the library. A forked child whose
	 * parent had started its engine loads a second copy of the library. NULL: failed; a line on
	 * stderr said why. */
	const struct uw_api *(*api)(void);
	/* The engine of this process; the first call opens the engine with the configuration of the
	 * environment. NULL: failed; a line on stderr said why. */
	struct uw_engine *(*engine)(void);
	/* The channel behind the descriptor fd, for its events whatever number it gets, as the
	 * kernel's CQs hold the file. NULL: fd is no completion channel. Let it go once. */
	struct channel *(*channel_hold)(int fd);
	void (*channel_let_go)(struct channel *c);
	/* Queue one event record on a channel. Never blocks; any thread. -EAGAIN: no memory;
	 * -EBADF: the program has closed it. */
	int (*channel_post)(struct channel *c, const void *event, size_t len);
	/* Remove the unread records (struct ib_uverbs_comp_event_desc) with this cq_handle. Returns
	 * how many there were. */
	int (*channel_drop)(struct channel *c, uint64_t handle);
	/* Call fn() whenever a copy of libibverbs, maybe another one than that which loaded the
	 * provider, begins to look for devices. */
	void (*on_discovery)(void (*fn)(void));
};

/* Exported by libuwarp-preload.so under this name. */
const struct uwarp_host *uwarp_host(uint32_t version);

#endif
