/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MADs of the communication manager: any octets, cut into any pieces; what is read is written so
 * that it reads the same. IBA volume 1, §12.11, §13.4.
 */
#include "bed.h"
#include "roce/mad.h"

static void again(const struct mad *m)
{
	uint8_t one[MAD_SIZE], two[MAD_SIZE];
	struct uw_span s = { one, MAD_SIZE };
	struct mad got;

	mad_encode(m, one);
	CHECK(mad_decode(uw_rope_of(&s), &got) == m->kind);
	CHECK(got.tid == m->tid && got.request_id == m->request_id);
	mad_encode(&got, two);
	CHECK(!memcmp(one, two, MAD_SIZE));
}

static void receive(struct uw_span s, struct feed *f)
{
	struct mad m;
	struct cut c;

	cut_make(&c, s, f);
	if (mad_decode(c.rope, &m) != MAD_OTHER)
		again(&m);
	cut_free(&c);
}

/* Octets that are hardly ever right by chance. */
static void repaired(struct feed *f)
{
	uint8_t octets[MAD_SIZE] = { 0 };

	feed_fill(f, octets, sizeof(octets));
	octets[0] = 1;
	octets[1] = 7;
	octets[2] = 2;
	octets[3] = 3;
	octets[16] = 0;
	octets[17] = feed_bool(f) ? 0x17 : 0x18;
	octets[40] &= 0x0f;
	receive((struct uw_span){ octets, sizeof(octets) }, f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };

	while (f.n) {
		if (feed_bool(&f))
			repaired(&f);
		else
			receive(feed_span(&f, feed_length(&f, 2 * MAD_SIZE)), &f);
	}
	return 0;
}
