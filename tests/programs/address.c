/* SPDX-License-Identifier: BSD-3-Clause */
/* Says the process's address, as the device's GID 0 and as the interface uwarp0 have it, and stays
 * until the end of its input. */
#include <arpa/inet.h>
#include <ifaddrs.h>
#include <stdio.h>
#include <string.h>

#include <infiniband/verbs.h>

static int gid_of(struct ibv_context *ctx, char text[INET_ADDRSTRLEN])
{
	union ibv_gid gid;
	struct ibv_pd *pd = ibv_alloc_pd(ctx); /* the stack runs now, and the address is settled */

	if (!pd || ibv_query_gid(ctx, 1, 0, &gid))
		return 1;
	inet_ntop(AF_INET, gid.raw + 12, text, INET_ADDRSTRLEN);
	return ibv_dealloc_pd(pd);
}

static int interface_of(char text[INET_ADDRSTRLEN])
{
	struct ifaddrs *all, *one;

	strcpy(text, "none");
	if (getifaddrs(&all))
		return 1;
	for (one = all; one; one = one->ifa_next) {
		const struct sockaddr_in *in = (struct sockaddr_in *)(void *)one->ifa_addr;

		if (in && in->sin_family == AF_INET && !strcmp(one->ifa_name, "uwarp0"))
			inet_ntop(AF_INET, &in->sin_addr, text, INET_ADDRSTRLEN);
	}
	freeifaddrs(all);
	return 0;
}

int main(void)
{
	char gid[INET_ADDRSTRLEN], interface[INET_ADDRSTRLEN];
	struct ibv_device **list = ibv_get_device_list(NULL);
	struct ibv_context *ctx = list && list[0] ? ibv_open_device(list[0]) : NULL;

	if (!ctx || gid_of(ctx, gid) || interface_of(interface))
		return 1;
	printf("GID %s interface %s\n", gid, interface);
	fflush(stdout);
	while (getchar() != EOF)
		;
	ibv_free_device_list(list);
	return ibv_close_device(ctx);
}
