/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors that must be closed in forked children: locks and connections whose end tells other
 * processes that this process has ended. A child that does not exec would keep the descriptors open
 * after its parent's death. A fork handler closes them in the child. Children made by vfork or
 * clone are expected to exec (the descriptors are close-on-exec).
 */
#ifndef UWARP_IO_FDS_H
#define UWARP_IO_FDS_H

#include <poll.h>
#include <stdbool.h>

/* Any thread may call these with any lock held; neither waits for a lock. */

/* Returns fd, or -1 after closing fd, if fd is 2^20 or above. */
int fds_keep(int fd);
/* Close fd, which may be -1 or not kept. While another thread forks, fd is closed after the fork.
 */
void fds_close(int fd);

/* As poll(2), in a thread of ours that has to go on although the program may have closed its
 * descriptors, or forbidden all (RLIMIT_NOFILE): it waits for 1 s at most, and after an error
 * briefly. False: after an error. `revents` has every event that was asked for then, so that all is
 * tried; none may block. */
bool fds_poll(struct pollfd *p, unsigned n, int ms);
/* Empty an eventfd of ours, which does not block, that poll found ready. False: it is not ours any
 * more. The program has closed it, and may have something else there by now: nobody is to write to
 * it, read it or close it. */
bool fds_rung(int fd);
/* Write to an eventfd of ours, after a look whether it still is one: the program may have closed it
 * and opened something else with its number, which must not get eight octets from us, nor the
 * program a SIGPIPE. The look is a system call, so this is not for the hot path. */
void fds_ring(int fd);

#endif
