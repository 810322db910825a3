/* SPDX-License-Identifier: BSD-3-Clause */
/* The state that all files of the folder share, and what lwIP asks the process for: the time and
 * random numbers. */
#include "io/lwip/edge.h"

#include "io/lwip/hooks.h"

#include "lwip/sys.h"

struct edge edge;

uint64_t uw_lwip_now_us(void)
{
	return edge.cfg.now_us(edge.cfg.arg);
}

u32_t sys_now(void)
{
	return (u32_t)(uw_lwip_now_us() / 1000);
}

uint32_t uw_lwip_random(void)
{
	return edge.cfg.random(edge.cfg.arg);
}
