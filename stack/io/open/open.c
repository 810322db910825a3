/* SPDX-License-Identifier: BSD-3-Clause */
#include <string.h>

#include "io/dpdk/dpdk.h"
#include "io/memif/fabric.h"
#include "io/port/port.h"
#include "io/log.h"

static const struct {
	const char *prefix;
	enum port_kind kind;
	bool whole; /* the prefix is part of the device's name */
} kinds[] = {
	{ "af_packet:", PORT_AF_PACKET, false },
	{ "af_xdp:", PORT_AF_XDP, false },
	{ "pci:", PORT_PCI, false },
	{ "net_", PORT_DEVARGS, true },
};

uw_status dpdk_links_open(const struct dpdk_config *cfg, const struct io_env *envs,
			  struct io_link **out)
{
	const char *link = cfg->link ? cfg->link : "";

	if (cfg->queues > DPDK_QUEUES_MAX)
		return log_error(UW_E_UNSUPPORTED, "%u queues are asked for: there are %d at most",
				 cfg->queues, DPDK_QUEUES_MAX);
	if (strcmp(link, "memif") == 0)
		return fabric_open(cfg, envs, out);
	for (unsigned i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		size_t len = strlen(kinds[i].prefix);

		if (strncmp(link, kinds[i].prefix, len) == 0)
			return port_open(kinds[i].kind, kinds[i].whole ? link : link + len, cfg,
					 envs, out);
	}
	return log_error(UW_E_INVAL,
			 "unknown link \"%s\": use memif, the name of an interface, af_packet:IF, "
			 "af_xdp:IF, pci:ADDR or net_...",
			 link);
}

uw_status dpdk_link_open(const struct dpdk_config *cfg, const struct io_env *env,
			 struct io_link **out)
{
	struct dpdk_config one = *cfg;

	one.queues = 1;
	return dpdk_links_open(&one, env, out);
}
