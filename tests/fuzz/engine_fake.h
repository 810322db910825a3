/* SPDX-License-Identifier: BSD-3-Clause */
/* The stack below the preloaded library, for fuzzing: the fake engine (tests/lib/fake_engine.h),
 * where the input decides what calls return and which events come. */
#ifndef UWARP_FUZZ_STACK_H
#define UWARP_FUZZ_STACK_H

#include "fuzz.h"

void fuzz_stack_begin(struct feed *f);
/* CHECKs that every endpoint was destroyed. */
void fuzz_stack_end(void);
/* One of the endpoints has an event that a real stack could have for it now. */
void fuzz_stack_event(struct feed *f);
/* Somebody waits for an outcome, and a real stack has one for each connect. False: none is due. */
bool fuzz_stack_settle(void);

#endif
