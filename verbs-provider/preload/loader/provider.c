/* SPDX-License-Identifier: BSD-3-Clause */
/* What the libibverbs provider gets from this library, and how libibverbs finds the provider. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libc/raw.h"
#include "loader.h"
#include "netlink/netlink.h"
#include "uverbs/channel.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT const struct uwarp_host *uwarp_host(uint32_t version)
{
	static const struct uwarp_host table = {
		.version = UWARP_HOST_VERSION,
		.api = loader_api,
		.engine = loader_engine,
		.channel_hold = channel_hold,
		.channel_let_go = channel_let_go,
		.channel_post = channel_post,
		.channel_drop = channel_drop,
		.on_discovery = netlink_on_open,
	};

	return version == UWARP_HOST_VERSION ? &table : NULL;
}

/* libibverbs appends one of these to a name in IBV_DRIVERS: one suffix per private ABI. */
static const char *const provider_suffix[] = { "-rdmav34.so", "-rdmav57.so", "-rdmav59.so",
					       "-rdmav64.so", "-rdmav65.so" };

/* uwarp-run sets IBV_DRIVERS. With LD_PRELOAD alone the provider is the one beside this library. */
__attribute__((constructor)) static void name_provider(void)
{
	char dir[PATH_MAX], path[PATH_MAX + 32];

	if (getenv("IBV_DRIVERS") || !loader_own_dir(dir))
		return;
	for (size_t i = 0; i < sizeof(provider_suffix) / sizeof(provider_suffix[0]); i++) {
		snprintf(path, sizeof(path), "%s/libuwarp%s", dir, provider_suffix[i]);
		if (syscall(SYS_faccessat, AT_FDCWD, path, R_OK))
			continue;
		path[strlen(path) - strlen(provider_suffix[i])] = '\0';
		setenv("IBV_DRIVERS", path, 0);
		return;
	}
}
