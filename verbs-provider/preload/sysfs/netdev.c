/* SPDX-License-Identifier: BSD-3-Clause */
#include "netdev.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* The interface of such a link: what stands between the colon and a comma. */
static bool named_by_link(char name[IF_NAMESIZE])
{
	static const char *const kinds[] = { "af_packet:", "af_xdp:", "packet:" };
	const char *link = secure_getenv("UWARP_LINK");
	size_t len;

	for (size_t i = 0; link && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strncmp(link, kinds[i], strlen(kinds[i])) != 0)
			continue;
		link += strlen(kinds[i]);
		len = strcspn(link, ",");
		if (!len || len >= IF_NAMESIZE)
			return false;
		memcpy(name, link, len);
		name[len] = '\0';
		return true;
	}
	return false;
}

void netdev_find(struct netdev *dev)
{
	if (!named_by_link(dev->name))
		strcpy(dev->name, "lo");
	dev->index = if_nametoindex(dev->name);
}
