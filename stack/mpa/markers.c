/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpa/markers.h"

#include <string.h>

#include "wire/mpa_wire.h"

#define BETWEEN (MPA_MARKER_STEP - MPA_MARKER_SIZE) /* FPDU octets from one marker to the next */

/* FPDU octets before the first marker. */
static size_t lead(unsigned phase)
{
	return phase ? MPA_MARKER_STEP - phase : 0;
}

static size_t count(unsigned phase, size_t n)
{
	size_t first = lead(phase);

	return n <= first ? 0 : 1 + (n - first - 1) / BETWEEN;
}

size_t mpa_marked_size(unsigned phase, size_t n)
{
	return n + MPA_MARKER_SIZE * count(phase, n);
}

size_t mpa_markers_insert(uint8_t *p, unsigned phase, size_t n)
{
	size_t k = count(phase, n), total = n + MPA_MARKER_SIZE * k;

	/* From the end, so that nothing is overwritten before it has moved. */
	while (k) {
		size_t from = lead(phase) + (k - 1) * BETWEEN; /* octets before marker k */
		size_t at = from + (k - 1) * MPA_MARKER_SIZE;

		memmove(p + at + MPA_MARKER_SIZE, p + from, n - from);
		uw_put16(p + at, 0);
		/* The marker in front of ULPDU_Length has pointer 0. */
		uw_put16(p + at + 2, (uint16_t)(from ? at - (phase ? 0 : MPA_MARKER_SIZE) : 0));
		n = from;
		k--;
	}
	return total;
}

size_t mpa_markers_strip(struct uw_rope r, unsigned phase, uint8_t *dst, size_t n, int *fpduptr_ok)
{
	size_t used = 0, origin = phase ? 0 : MPA_MARKER_SIZE, first = lead(phase), done = 0;

	*fpduptr_ok = 1;
	while (done < n) {
		size_t run = done < first ? first - done : 0;

		if (!run) { /* a marker stands here */
			uint8_t m[MPA_MARKER_SIZE];
			uint16_t ptr;

			uw_rope_copy(uw_rope_sub(r, used, MPA_MARKER_SIZE), m, sizeof(m));
			/* RFC 5044 §4.3: the low two bits are not looked at. */
			ptr = uw_be16(m + 2) & 0xfffc;
			if (ptr != (done ? used - origin : 0))
				*fpduptr_ok = 0;
			used += MPA_MARKER_SIZE;
			first = done + BETWEEN;
			continue;
		}
		if (run > n - done)
			run = n - done;
		uw_rope_copy(uw_rope_sub(r, used, run), dst + done, run);
		used += run;
		done += run;
	}
	return used;
}
