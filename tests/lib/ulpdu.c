/* SPDX-License-Identifier: BSD-3-Clause */
#include "ulpdu.h"

static struct ulpdu with(unsigned ctrl, size_t hdr, const void *payload, size_t n)
{
	struct ulpdu u = { .n = hdr + n };

	assert_in_range(u.n, hdr, sizeof(u.p));
	put_octets(u.p, 2, ctrl);
	if (n)
		memcpy(u.p + hdr, payload, n);
	return u;
}

struct ulpdu ulpdu_tagged(unsigned ctrl, uint32_t stag, uint64_t to, const void *payload, size_t n)
{
	struct ulpdu u = with(ctrl, 14, payload, n);

	put_octets(u.p + 2, 4, stag);
	put_octets(u.p + 6, 8, to);
	return u;
}

struct ulpdu ulpdu_untagged(unsigned ctrl, const uint32_t qn_msn_mo[3], const void *payload,
			    size_t n)
{
	struct ulpdu u = with(ctrl, 18, payload, n);

	for (unsigned i = 0; i < 3; i++)
		put_octets(u.p + 6 + 4 * i, 4, qn_msn_mo[i]);
	return u;
}

struct ulpdu ulpdu_send(uint32_t msn, const void *payload, size_t n)
{
	return ulpdu_untagged(CTRL_SEND, (const uint32_t[]){ 0, msn, 0 }, payload, n);
}

struct ulpdu ulpdu_read_request(uint32_t msn, uint32_t sink_stag, uint32_t size, uint32_t src_stag,
				uint64_t src_to)
{
	uint8_t b[28];

	put_octets(b, 4, sink_stag);
	put_octets(b + 4, 8, 0);
	put_octets(b + 12, 4, size);
	put_octets(b + 16, 4, src_stag);
	put_octets(b + 20, 8, src_to);
	return ulpdu_untagged(CTRL_READ_REQUEST, (const uint32_t[]){ 1, msn, 0 }, b, sizeof(b));
}
