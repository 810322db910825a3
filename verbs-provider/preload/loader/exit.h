/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a process that calls _exit(). */
#ifndef UWARP_LOADER_EXIT_H
#define UWARP_LOADER_EXIT_H

/* Start the thread (one per process) that closes the engine when loader_exiting() is called. */
void exit_watch(void);

/* library.c: close the engine, if this process has one running. */
void loader_end(void);

#endif
