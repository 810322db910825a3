/* SPDX-License-Identifier: BSD-3-Clause */
/* What lwIP wants to know of the platform. */
#ifndef UWARP_LWIP_CC_H
#define UWARP_LWIP_CC_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/time.h>

#define LWIP_ERRNO_STDINCLUDE 1
#define LWIP_NO_UNISTD_H      0
#define LWIP_TIMEVAL_PRIVATE  0

uint32_t uw_lwip_random(void);
uint64_t uw_lwip_now_us(void); /* monotonic */
#define LWIP_RAND() uw_lwip_random()

/* A failed assertion of lwIP never ends the program: doc/adr/0020. Those of memp.c ask whether the
 * pools are aligned, which no packet changes; without them a segment costs a third less there. */
void uw_lwip_assertion_failed(const char *what, const char *file, int line) __attribute__((cold));
#define LWIP_PLATFORM_ASSERT(x)                                                                    \
	do {                                                                                       \
		if (!__builtin_strstr(__FILE__, "/memp.c"))                                        \
			uw_lwip_assertion_failed(x, __FILE__, __LINE__);                           \
	} while (0)
#define LWIP_PLATFORM_DIAG(x)                                                                      \
	do {                                                                                       \
	} while (0)

/* One instruction each, not a call. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define lwip_htons(x) ((u16_t)__builtin_bswap16(x))
#define lwip_htonl(x) ((u32_t)__builtin_bswap32(x))
#endif

/* By vectors (doc/adr/0001). */
uint16_t uw_lwip_checksum(const void *data, int len);
#define LWIP_CHKSUM uw_lwip_checksum

#endif
