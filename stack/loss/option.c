/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/option.h"

#include "base/be.h"

enum { END = 0, NO_OPERATION = 1, SACK = 5, TIMESTAMPS = 8 };

static void read_blocks(const uint8_t *p, size_t n, struct loss_options *out)
{
	for (; n >= 8 && out->n_blocks < LOSS_BLOCKS; p += 8, n -= 8) {
		out->block[out->n_blocks].left = uw_be32(p);
		out->block[out->n_blocks++].right = uw_be32(p + 4);
	}
}

static void read_one(const uint8_t *p, size_t len, struct loss_options *out)
{
	if (p[0] == SACK && (len - 2) % 8 == 0) {
		read_blocks(p + 2, len - 2, out);
	} else if (p[0] == TIMESTAMPS && len == 10) {
		out->stamped = true;
		out->value = uw_be32(p + 2);
		out->echo = uw_be32(p + 6);
	}
}

bool loss_options_read(const uint8_t *p, size_t n, struct loss_options *out)
{
	*out = (struct loss_options){ 0 };
	while (n) {
		size_t len;

		if (p[0] == END)
			return true;
		if (p[0] == NO_OPERATION) {
			p++;
			n--;
			continue;
		}
		if (n < 2 || p[1] < 2 || p[1] > n)
			return false;
		len = p[1];
		read_one(p, len, out);
		p += len;
		n -= len;
	}
	return true;
}
