/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/transport.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

static const struct transport transports[] = {
	{ "raw", &llp_raw, llp_raw_instance, NULL },
	{ "seq", &llp_seq, NULL, NULL },
	{ "socket", &llp_socket, NULL, link_open_host },
};

#define TRANSPORTS (sizeof(transports) / sizeof(transports[0]))

static void say_known(const char *name)
{
	char list[128] = "";
	size_t n = 0;

	for (unsigned i = 0; i < TRANSPORTS && n < sizeof(list); i++)
		n += (size_t)snprintf(list + n, sizeof(list) - n, "%s%s", n ? ", " : "",
				      transports[i].name);
	uw_log("UWARP_TRANSPORT=%s: no such transport; there is: %s", name, list);
}

const struct transport *transport_find(const char *name)
{
	const struct transport *t = transports;

	while (*name && t < transports + TRANSPORTS && strcmp(t->name, name))
		t++;
	if (t < transports + TRANSPORTS)
		return t;
	say_known(name);
	return NULL;
}
