/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the uwarpd itself says for addresses that nobody else has: ARP replies, neighbor
 * advertisements, and RST for a TCP port that no client holds. Its own clients get that RST at any
 * address.
 */
#ifndef UWARP_IO_SWITCH_ANSWER_H
#define UWARP_IO_SWITCH_ANSWER_H

#include "io/switch/classify.h"

enum { SWITCH_ANSWER_MAX = 14 + 40 + 32 };

/* The answer to a frame for which switch_in or switch_out said SWITCH_ANSWER. Writes it to `out`,
 * SWITCH_ANSWER_MAX octets, with all checksums. Returns its length; 0: the frame gets none. */
uint32_t switch_answer(const struct switch_table *t, const struct switch_frame *f, uint8_t *out);

#endif
