/* SPDX-License-Identifier: BSD-3-Clause */
/* MPA markers: what is inserted comes out as it went in, wherever it starts and however TCP cuts
 * it; a strip of anything keeps to its octets. RFC 5044 §4.3. */
#include "fuzz.h"
#include "mpa/markers.h"
#include "wire/mpa_wire.h"

/* RFC 5044 §4.3 read by itself: where markers stand and what they say. */
static void check_marked(const uint8_t *p, size_t total, unsigned phase)
{
	size_t origin = phase ? 0 : MPA_MARKER_SIZE;

	for (size_t i = 0; i < total; i += 4) {
		if ((phase + i) % 512)
			continue;
		CHECK(uw_be16(p + i) == 0);
		CHECK(uw_be16(p + i + 2) == (i ? i - origin : 0));
	}
}

static void round_trip(struct feed *f, unsigned phase, size_t n)
{
	size_t total = mpa_marked_size(phase, n), used;
	uint8_t *plain = fuzz_alloc(n), *marked = fuzz_alloc(total), *back = fuzz_alloc(n);
	struct cut c;
	int ok;

	feed_fill(f, plain, n);
	memcpy(marked, plain, n);
	CHECK(mpa_markers_insert(marked, phase, n) == total);
	check_marked(marked, total, phase);
	cut_make(&c, (struct uw_span){ marked, total }, f);
	used = mpa_markers_strip(c.rope, phase, back, n, &ok);
	CHECK(used == total && ok && !memcmp(plain, back, n));
	cut_free(&c);
	free(plain);
	free(marked);
	free(back);
}

static void strip_anything(struct feed *f, unsigned phase, size_t n)
{
	size_t total = mpa_marked_size(phase, n);
	uint8_t *in = fuzz_alloc(total), *out = fuzz_alloc(n);
	struct cut c;
	int ok;

	feed_fill(f, in, total);
	cut_make(&c, (struct uw_span){ in, total }, f);
	CHECK(mpa_markers_strip(c.rope, phase, out, n, &ok) == total);
	cut_free(&c);
	free(in);
	free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };
	unsigned phase = 0;

	while (f.n) {
		bool anything = feed_bool(&f);
		/* FPDUs are multiples of 4, so phases are too. */
		size_t n = 4 * (1 + feed_length(&f, 2048));

		(anything ? strip_anything : round_trip)(&f, phase, n);
		phase = feed_bool(&f) ? 4 * feed_below(&f, 128)
				      : mpa_phase_add(phase, mpa_marked_size(phase, n));
	}
	return 0;
}
