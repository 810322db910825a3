/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory for what a message of a connection touches: close together and, from some connections on,
 * on huge pages if the system has them to give (transparent_hugepage: madvise or always). With
 * thousands of connections each page more is one more address to look up. What was given back is
 * used again for the same size; the system does not get it back, as a process that had so many
 * connections will have them again. Any thread.
 */
#ifndef UWARP_BASE_SLAB_H
#define UWARP_BASE_SLAB_H

#include <stddef.h>

/* n octets in cache lines of their own, not cleared; NULL. */
void *slab_alloc(size_t n);
/* n as it was; p may be NULL. */
void slab_free(void *p, size_t n);

/* Around a fork: nothing here is half done in the copy; in both processes let go afterwards. */
void slab_before_fork(void);
void slab_after_fork(void);

/* Memory that was not touched yet: on huge pages, as far as it covers them. */
void slab_use_huge_pages(void *p, size_t n);

#endif
