/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of a TCP segment that loss recovery reads. RFC 9293 §3.1, RFC 2018 §3, RFC 7323 §3.
 */
#ifndef UWARP_LOSS_OPTION_H
#define UWARP_LOSS_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOSS_BLOCKS 4u /* RFC 2018 §3: 40 octets have room for no more */

/* The peer has the octets from `left` to `right`, the latter excluded. */
struct loss_block {
	uint32_t left, right;
};

struct loss_options {
	bool sack_permitted;
	unsigned n_blocks;
	struct loss_block block[LOSS_BLOCKS];
};

/* p: the n octets behind the fixed TCP header. What is malformed ends the reading (RFC 9293
 * §3.1, MUST-7): false, with what came before it. */
bool loss_options_read(const uint8_t *p, size_t n, struct loss_options *out);

#endif
