/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors that must be closed in forked children: locks and connections by which others see
 * that this process has ended. A child that does not exec would keep them open after its parent's
 * death. A fork handler closes them in the child. Children made by vfork or clone are expected to
 * exec (the descriptors are close-on-exec).
 */
#ifndef UWARP_IO_FDS_H
#define UWARP_IO_FDS_H

/* Any thread, with any lock held: neither of these waits for a lock. */

/* Returns fd, or -1 with fd closed if its number is too high to remember (2^20 and above). */
int fds_keep(int fd);
/* Closes fd if it is kept; -1 is fine. While another thread forks, it is closed after that. */
void fds_close(int fd);

#endif
