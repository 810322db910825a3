/* SPDX-License-Identifier: BSD-3-Clause */
/* ULPDUs put together by hand from offsets, apart from the code under test (RFC 5041 §4, RFC 5040
 * §4), and taken apart the same way. */
#ifndef UWARP_TESTS_ULPDU_H
#define UWARP_TESTS_ULPDU_H

#include "uwtest.h"

#define ULPDU_MAX 2048

struct ulpdu {
	uint8_t p[ULPDU_MAX];
	size_t n;
};

/* Control words: T 0x8000, L 0x4000, DV 1, RV 1 and the opcode. */
#define CTRL_UNTAGGED	   0x0140u
#define CTRL_TAGGED	   0x8140u
#define CTRL_LAST	   0x4000u
#define CTRL_WRITE	   (CTRL_TAGGED | CTRL_LAST | 0x0)
#define CTRL_READ_REQUEST  (CTRL_UNTAGGED | CTRL_LAST | 0x1)
#define CTRL_READ_RESPONSE (CTRL_TAGGED | CTRL_LAST | 0x2)
#define CTRL_SEND	   (CTRL_UNTAGGED | CTRL_LAST | 0x3)
#define CTRL_SEND_INV	   (CTRL_UNTAGGED | CTRL_LAST | 0x4)
#define CTRL_SEND_SE	   (CTRL_UNTAGGED | CTRL_LAST | 0x5)
#define CTRL_SEND_SE_INV   (CTRL_UNTAGGED | CTRL_LAST | 0x6)
#define CTRL_TERMINATE	   (CTRL_UNTAGGED | CTRL_LAST | 0x7)
#define CTRL_IMM	   (CTRL_UNTAGGED | CTRL_LAST | 0x8)
#define CTRL_IMM_SE	   (CTRL_UNTAGGED | CTRL_LAST | 0x9)
#define CTRL_ATOMIC	   (CTRL_UNTAGGED | CTRL_LAST | 0xa)
#define CTRL_ATOMIC_RESP   (CTRL_UNTAGGED | CTRL_LAST | 0xb)
#define CTRL_SEND_IMM	   (CTRL_UNTAGGED | CTRL_LAST | 0xf) /* doc/adr/0004 */

struct ulpdu ulpdu_tagged(unsigned ctrl, uint32_t stag, uint64_t to, const void *payload, size_t n);
struct ulpdu ulpdu_untagged(unsigned ctrl, const uint32_t qn_msn_mo[3], const void *payload,
			    size_t n);
/* A Send in one segment. */
struct ulpdu ulpdu_send(uint32_t msn, const void *payload, size_t n);
struct ulpdu ulpdu_read_request(uint32_t msn, uint32_t sink_stag, uint32_t size, uint32_t src_stag,
				uint64_t src_to);

static inline uint64_t octets(const uint8_t *p, unsigned n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

static inline void put_octets(uint8_t *p, unsigned n, uint64_t v)
{
	while (n--) {
		p[n] = (uint8_t)v;
		v >>= 8;
	}
}

#endif
