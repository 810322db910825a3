/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uwarp: a software RNIC (RDMAP/DDP/MPA over TCP) as a library.
 *
 * This is the whole interface of libuwarp.so. Its two users are the libibverbs provider and the
 * preloaded library (rdma_cm, /sys, and the waits in libc's calls).
 *
 * Conventions
 *  - Every function that can fail returns 0 or a negative errno value.
 *  - Objects are created by uw_*_create/alloc/reg and stay valid until the matching destroy call,
 *    which fails with -EBUSY while something else still refers to the object.
 *  - Addresses of the program's memory are plain virtual addresses; lengths are octets.
 *  - Constants that verbs also has carry the verbs values (ibv_wc_status, ibv_wr_opcode, ...), so
 *    the provider passes them through; the provider asserts the equality at compile time.
 *  - Functions may be called from any thread, unless a comment says otherwise. So may callbacks:
 *    they run in whatever thread runs the stack, under the stack lock. They must not block and must
 *    not call this interface, but for uw_later().
 */
#ifndef UWARP_UWARP_H
#define UWARP_UWARP_H

#include "uwarp/api.h"
#include "uwarp/config.h"
#include "uwarp/cq.h"
#include "uwarp/device.h"
#include "uwarp/endpoint.h"
#include "uwarp/memory.h"
#include "uwarp/qp.h"

#endif
