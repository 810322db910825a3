/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The text that describes an impaired path: NAME=VALUE, separated by commas. UWARP_IMPAIR,
 * uwarp-run --impair and uwarp-impair all take it; uwarp-impair(1) describes it for users.
 *
 *   seed=N                 the same seed replays the same decisions
 *   drop=P                 a frame is lost
 *   nth=N                  every n-th frame is lost
 *   burst=P:LEN[:P]        Gilbert-Elliott: a burst begins; frames that it lasts on average; chance
 *                          of a frame in it to be lost (100%)
 *   reorder=P[:TIME]       a frame is late by TIME (1ms), others pass it
 *   duplicate=P            a frame comes twice
 *   corrupt=P              one octet of a frame is changed, headers included
 *   truncate=P             a frame is cut short
 *   delay=TIME jitter=TIME every frame is late; by up to so much more, in order
 *   rate=R                 bits per second
 *   queue=SIZE ecn=SIZE    with rate: octets that may wait (1M); CE is set above so many
 *   blackout=TIME+TIME[/TIME]  after so long, for so long, and again each so long
 *   mtu=N[@TIME]           larger packets are lost; after so long
 *   dir=out|in|both        which frames: a link impairs what it sends (out) unless told otherwise
 *
 * P is a percentage (0.1%) or a fraction (0.001); TIME is 100us, 2.5ms, 3s or 50ns; SIZE is octets,
 * 64K or 1M (of 1024); R is 10G, 2.5G, 100M.
 */
#ifndef UWARP_IO_IMPAIR_OPTIONS_H
#define UWARP_IO_IMPAIR_OPTIONS_H

#include "io/impair/model.h"

enum impair_dir { IMPAIR_OUT = 1, IMPAIR_IN = 2 };

struct impair_options {
	struct impair_config model;
	unsigned dir; /* enum impair_dir; 0: the text has no dir */
};

/* NULL: the text is valid. Else a message for the user that names the bad part; the message lies in
 * `why`. */
const char *impair_parse(const char *text, struct impair_options *out, char *why, unsigned size);

#endif
