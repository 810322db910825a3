/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Included in front of the shim's sources when they are built for fuzzing: what they would ask the
 * kernel and the C library for, shim_double.c answers. So nothing leaves the process, no thread
 * runs, and a run depends on its input alone.
 */
#ifndef UWARP_FUZZ_SHIM_CALLS_H
#define UWARP_FUZZ_SHIM_CALLS_H

#define syscall		       fuzz_syscall
#define poll		       fuzz_poll
#define pthread_cond_wait      fuzz_cond_wait
#define pthread_cond_timedwait fuzz_cond_timedwait

#endif
