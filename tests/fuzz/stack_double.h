/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef UWARP_FUZZ_STACK_DOUBLE_H
#define UWARP_FUZZ_STACK_DOUBLE_H

#include "fuzz.h"
#include "rdma_cm/rdma_cm.h"

void stack_double_begin(struct feed *f);
/* Every endpoint has been destroyed. */
void stack_double_end(void);

#endif
