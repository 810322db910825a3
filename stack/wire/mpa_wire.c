/* SPDX-License-Identifier: BSD-3-Clause */
#include "wire/mpa_wire.h"

#include <string.h>

/* RFC 5044 §7.1.1 */
static const char key_request[16] = { 'M', 'P', 'A', ' ', 'I', 'D', ' ', 'R',
				      'e', 'q', ' ', 'F', 'r', 'a', 'm', 'e' };
static const char key_reply[16] = { 'M', 'P', 'A', ' ', 'I', 'D', ' ', 'R',
				    'e', 'p', ' ', 'F', 'r', 'a', 'm', 'e' };

#define HIGH 0x8000u
#define NEXT 0x4000u

static void put_enhanced(const struct mpa_start *s, struct mpa_enhanced_wire *w)
{
	unsigned a = s->ird & MPA_RD_NO_NEGO, c = s->ord & MPA_RD_NO_NEGO;

	/* RFC 6581 §9.2: without A the RTR bits are zero. */
	if (s->p2p) {
		a |= HIGH | (s->rtr & MPA_RTR_SEND ? NEXT : 0);
		c |= (s->rtr & MPA_RTR_WRITE ? HIGH : 0) | (s->rtr & MPA_RTR_READ ? NEXT : 0);
	}
	uw_put16(w->ird, (uint16_t)a);
	uw_put16(w->ord, (uint16_t)c);
}

static void get_enhanced(const struct mpa_enhanced_wire *w, struct mpa_start *s)
{
	unsigned a = uw_be16(w->ird), c = uw_be16(w->ord);

	s->ird = a & MPA_RD_NO_NEGO;
	s->ord = c & MPA_RD_NO_NEGO;
	s->p2p = a & HIGH;
	/* RFC 6581 §9.2: ignored on receipt unless A. */
	if (s->p2p)
		s->rtr = (a & NEXT ? MPA_RTR_SEND : 0u) | (c & HIGH ? MPA_RTR_WRITE : 0u) |
			 (c & NEXT ? MPA_RTR_READ : 0u);
}

size_t mpa_start_encode(const struct mpa_start *s, uint8_t *out)
{
	struct mpa_start_wire *w = (struct mpa_start_wire *)out;
	uint8_t *pd = out + sizeof(*w);
	size_t n = s->pd.n + (s->enhanced ? sizeof(struct mpa_enhanced_wire) : 0);

	memcpy(w->key, s->reply ? key_reply : key_request, sizeof(w->key));
	/* RFC 5044 §7.1.1: Res bits 0; R in a Request 0. */
	w->bits =
		(uint8_t)((s->markers ? MPA_BIT_M : 0) | (s->crc ? MPA_BIT_C : 0) |
			  (s->reply && s->reject ? MPA_BIT_R : 0) | (s->enhanced ? MPA_BIT_S : 0));
	w->rev = s->rev;
	uw_put16(w->pd_length, (uint16_t)n);
	if (s->enhanced) {
		put_enhanced(s, (struct mpa_enhanced_wire *)pd);
		pd += sizeof(struct mpa_enhanced_wire);
	}
	if (s->pd.n)
		memcpy(pd, s->pd.p, s->pd.n);
	return sizeof(*w) + n;
}

/* A wrong key shows in its first octets; say so at once rather than wait for a frame that a peer
 * of another protocol will never send. */
static uw_status check_key(struct uw_span in, bool *reply)
{
	size_t n = in.n < sizeof(key_request) ? in.n : sizeof(key_request);

	if (n && memcmp(in.p, key_request, n) && memcmp(in.p, key_reply, n))
		return UW_E_MPA_FRAME;
	*reply = n == sizeof(key_reply) && !memcmp(in.p, key_reply, n);
	return UW_OK;
}

uw_status mpa_start_decode(struct uw_span in, struct mpa_start *s, size_t *used)
{
	const struct mpa_start_wire *w = (const struct mpa_start_wire *)in.p;
	const uint8_t *pd = in.p + sizeof(*w);
	size_t n;
	uw_status st;

	*used = 0;
	memset(s, 0, sizeof(*s));
	st = check_key(in, &s->reply);
	if (st)
		return st;
	if (in.n < sizeof(*w))
		return UW_MORE;
	n = uw_be16(w->pd_length);
	if (n > MPA_PD_MAX)
		return UW_E_MPA_FRAME;
	s->markers = w->bits & MPA_BIT_M;
	s->crc = w->bits & MPA_BIT_C;
	s->reject = s->reply && (w->bits & MPA_BIT_R);
	s->rev = w->rev;
	/* RFC 6581 §9: S has a meaning from revision 2 on; before that it is a reserved bit. */
	s->enhanced = s->rev >= 2 && (w->bits & MPA_BIT_S);
	if (s->enhanced && n < sizeof(struct mpa_enhanced_wire))
		return UW_E_MPA_FRAME;
	if (in.n < sizeof(*w) + n)
		return UW_MORE;
	*used = sizeof(*w) + n;
	if (s->enhanced) {
		get_enhanced((const struct mpa_enhanced_wire *)pd, s);
		pd += sizeof(struct mpa_enhanced_wire);
		n -= sizeof(struct mpa_enhanced_wire);
	}
	s->pd = (struct uw_span){ pd, n };
	return UW_OK;
}
