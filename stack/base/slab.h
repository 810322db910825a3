/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An allocator for the records of connections, for any thread. Records lie close together, and in
 * large numbers on huge pages (transparent_hugepage: madvise or always): with thousands of
 * connections, fewer pages mean fewer TLB misses. Freed memory is used again for records of the
 * same size and is never given back to the system.
 */
#ifndef UWARP_BASE_SLAB_H
#define UWARP_BASE_SLAB_H

#include <stdbool.h>
#include <stddef.h>

/* n octets that share no cache line with other records, not cleared. NULL: no memory. */
void *slab_alloc(size_t n);
/* Free p, which may be NULL. n: as given to slab_alloc. */
void slab_free(void *p, size_t n);

/* Call slab_before_fork before fork, and slab_after_fork afterwards in parent and child. In between
 * no other thread is inside the allocator, so the child can use the allocator. Nor does a fork wait
 * for its own thread: a signal handler may be on top of the allocator. */
void slab_before_fork(void);
void slab_after_fork(bool in_child);

/* Is this thread inside the allocator? Then a fork by a signal handler on top of it must wait for
 * no lock whose holder may want memory. */
bool slab_is_locked_here(void);

/* Ask the kernel for huge pages for the memory at p, which must not have been touched yet, as far
 * as the memory covers whole huge pages. */
void slab_use_huge_pages(void *p, size_t n);

#endif
