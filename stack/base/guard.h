/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies from and to memory that the program has registered, and may have unmapped since: a card
 * keeps such pages pinned, a library cannot. Such a copy fails instead of killing the process
 * (doc/adr/0029); so does an atomic change.
 *
 * If a page is not there, or may not be written, the kernel sends SIGSEGV or SIGBUS, and the
 * handler of uw_guard_install() lets uw_guarded_copy() or uw_guarded_cas() return false. Signals of
 * any other cause go where they went before. Without the handler, or on another architecture, a
 * copy is a memcpy().
 */
#ifndef UWARP_BASE_GUARD_H
#define UWARP_BASE_GUARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/span.h"

/* A sanitizer has a memcpy() of its own, and its own idea of a fault. */
#if (defined(__x86_64__) || defined(__aarch64__)) && !defined(__SANITIZE_ADDRESS__) &&             \
	!defined(__SANITIZE_THREAD__)
#define UW_GUARDED 1
/* False: some octets could not be read or written; others may have been copied. */
bool uw_guarded_copy(void *dst, const void *src, size_t n) __attribute__((visibility("hidden")));
/* Atomically: *word becomes next if it is *old; in any case *old becomes what it was. False: *word
 * is not there, or may not be written. It is aligned. */
bool uw_guarded_cas(uint64_t *word, uint64_t *old, uint64_t next)
	__attribute__((visibility("hidden")));
#else
#define UW_GUARDED 0
static inline bool uw_guarded_copy(void *dst, const void *src, size_t n)
{
	memcpy(dst, src, n);
	return true;
}
static inline bool uw_guarded_cas(uint64_t *word, uint64_t *old, uint64_t next)
{
	__atomic_compare_exchange_n(word, old, next, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
	return true;
}
#endif

/* Install our handler of SIGSEGV and SIGBUS, unless it is installed. Any thread. If the program
 * installs one of its own later that does not call ours, copies are not guarded until the next call
 * of this function. */
void uw_guard_install(void);

/* The slow path of uw_rope_place, for ropes of several pieces. */
bool uw_rope_place_pieces(struct uw_rope r, void *dst, size_t n);

/* As uw_rope_copy. False: dst is not there, or may not be written. */
static inline bool uw_rope_place(struct uw_rope r, void *dst, size_t n)
{
	if (n && n <= r.v->n - r.skip)
		return uw_guarded_copy(dst, r.v->p + r.skip, n);
	return uw_rope_place_pieces(r, dst, n);
}

#endif
