/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the rooms of the preloaded library stand on, for fuzzing: a table of descriptors that are
 * none, a kernel whose answers the input decides, and helper threads that run when they are told
 * to. The stack is in engine_fake.h.
 */
#ifndef UWARP_FUZZ_SHIM_DOUBLE_H
#define UWARP_FUZZ_SHIM_DOUBLE_H

#include "libc/fdtab.h"
#include "fuzz.h"

/* Begin and end of a run; `f` decides what calls of the shim come back with. The end finds out
 * whether anything was left: descriptors, endpoints, helpers. */
void double_begin(struct feed *f);
void double_end(void);

/* ---- descriptors ---- */

#define DOUBLE_FD   100
#define DOUBLE_FDS  12
#define DOUBLE_FULL 4u /* records that fit into a loop socket */

/* An open descriptor of ours, -1: none. */
int double_some_fd(struct feed *f);
struct fd_obj *double_obj(int fd);
/* As close() does. */
void double_close(int fd);
/* Take one record out of fd's socket. */
void double_read(int fd);

/* ---- helpers ---- */

void double_run_helpers(void);

#endif
