/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of a process that calls _exit(). */
#ifndef UWARP_LOADER_EXIT_H
#define UWARP_LOADER_EXIT_H

/* From now on loader_exiting() closes the engine. Starts one thread per process. */
void exit_watch(void);

/* library.c: close the engine if it runs in this process. */
void loader_end(void);

#endif
