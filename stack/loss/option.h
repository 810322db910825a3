/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of a TCP segment that loss recovery reads. RFC 9293 §3.1, RFC 2018 §3,
 * RFC 7323 §3. */
#ifndef UWARP_LOSS_OPTION_H
#define UWARP_LOSS_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LOSS_BLOCKS 4u /* RFC 2018 §3: 40 octets of options hold no more blocks */

/* The peer has the octets from `left` up to, but not including, `right`. */
struct loss_block {
	uint32_t left, right;
};

struct loss_options {
	unsigned n_blocks;
	struct loss_block block[LOSS_BLOCKS];
	bool stamped;	      /* RFC 7323 §3 */
	uint32_t value, echo; /* TSval, TSecr */
};

/* p: the n octets of options. False: an option is malformed (RFC 9293 §3.1, MUST-7); *out then has
 * the options before that one. */
bool loss_options_read(const uint8_t *p, size_t n, struct loss_options *out);

#endif
