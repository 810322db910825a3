/* SPDX-License-Identifier: BSD-3-Clause */
/* Octets as rtnetlink messages, as frames with ICMP errors, and as the options of routes. */
#include <stdlib.h>

#include "fuzz.h"
#include "io/route/icmp.h"
#include "io/route/message.h"
#include "io/route/options.h"

static void messages(const uint8_t *p, size_t n)
{
	struct route_kernel k = { .index = 2 };

	(void)route_read(&k, p, n, 1);
	route_sort(&k.routes);
	for (unsigned i = 1; i < k.routes.n; i++)
		CHECK(k.routes.at[i - 1].net.bits >= k.routes.at[i].net.bits);
	for (unsigned i = 0; i < k.routes.n; i++)
		CHECK(k.routes.at[i].net.bits <= 128);
	CHECK(k.n_addr <= ROUTE_ADDRS_MAX);
	for (unsigned i = 0; i < k.routes.n_near; i++)
		CHECK(route_mac(&k.routes, &k.routes.near[i].ip));
	(void)route_is_news(p, n, k.index);
	route_clear(&k.routes);
}

static void options(const uint8_t *p, size_t n)
{
	struct route_table t = { 0 };
	char text[512], bad[64];

	n = n < sizeof(text) - 1 ? n : sizeof(text) - 1;
	memcpy(text, p, n);
	text[n] = 0;
	(void)route_parse_gateways(text, &t, bad, sizeof(bad));
	(void)route_parse_list(text, &t, bad, sizeof(bad));
	route_clear(&t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct icmp_error e;
	uint8_t *own;

	if (size < 2)
		return 0;
	/* a block of its own, aligned as a socket's buffer is: reading on is seen */
	own = malloc(size - 1);
	CHECK(own);
	memcpy(own, data + 1, size - 1);
	switch (data[0] % 3) {
	case 0:
		messages(own, size - 1);
		break;
	case 1:
		(void)icmp_read(own, size - 1, &e);
		break;
	default:
		options(own, size - 1);
		break;
	}
	free(own);
	return 0;
}
