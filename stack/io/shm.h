/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that two processes share and neither trusts: a sealed memfd. The maker writes; whoever
 * gets the descriptor maps the memory. No process can shorten the file, so no access to it ends in
 * SIGBUS.
 */
#ifndef UWARP_IO_SHM_H
#define UWARP_IO_SHM_H

#include <stdbool.h>
#include <stddef.h>

enum shm_access { SHM_READ_ONLY, SHM_WRITABLE };

/* Make and map `size` octets of zeros, for us to write. others: what a process that gets *fd may
 * do; with SHM_READ_ONLY it cannot map the memory for writing (F_SEAL_FUTURE_WRITE; kernels before
 * 5.1 do not enforce this). The caller closes *fd. NULL: see errno; *fd is -1. */
void *shm_make(const char *name, size_t size, enum shm_access others, int *fd);
/* Map a descriptor that another process sent, and close it; fd may be -1. NULL: fd is no sealed
 * memfd, is shorter than size, or lies on huge pages; or there is no memory, see errno. */
void *shm_map(int fd, size_t size, enum shm_access access);
/* Is fd as shm_map demands? Does not close fd. */
bool shm_fits(int fd, size_t size);
/* p may be NULL. */
void shm_unmap(const volatile void *p, size_t size);

#endif
