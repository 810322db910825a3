/* SPDX-License-Identifier: BSD-3-Clause */
/* Included by lwIP's sources: the places where it asks us. */
#ifndef UWARP_LWIP_HOOKS_H
#define UWARP_LWIP_HOOKS_H

#include "arch/cc.h"

/* RFC 6528 asks for sequence numbers that cannot be guessed. */
#define LWIP_HOOK_TCP_ISN(lip, lp, rip, rp) uw_lwip_random()

#endif
