/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The loader finds libuwarp.so, loads it and opens this process's one engine. The other rooms of
 * the preloaded library use it through this header; the provider sees ../../host.h.
 *
 * Nothing is loaded before a program asks for the device. A forked child of a process whose engine
 * had started loads a copy of the library of its own, because the threads of the first one stayed
 * with the parent.
 */
#ifndef UWARP_LOADER_H
#define UWARP_LOADER_H

#include <limits.h>
#include <stdbool.h>

#include "facts.h"
#include "host.h"

/* loader_api: the function table of the library; loader_engine: the engine. The first call makes
 * both. NULL: that failed, and one line on stderr said why. Both functions take the loader's lock,
 * which is the first in the lock order: do not call them with a lock of another room held. */
const struct uw_api *loader_api(void);
struct uw_engine *loader_engine(void);

/* The node GUID in host order, the same for the life of the process. 0: no library. */
uint64_t loader_guid(void);
/* The properties of the device as the engine knows them now. False: no library. */
bool loader_device(struct uw_device_attr *attr);
/* As loader_device, with the final address; starts the link if the address is not final yet. */
bool loader_device_settled(struct uw_device_attr *attr);
/* As the two above, converted to the struct of facts.h, with the node GUID above. */
bool loader_facts(struct uwarp_facts *f);
bool loader_facts_settled(struct uwarp_facts *f);
/* Is an engine open, so that the program has asked for the device? */
bool loader_is_open(void);

/* Call this before the engine starts its link: a child forked later needs an engine of its own. */
void loader_starting(void);

/* The process calls _exit(): end the connections, within 3 s. Safe in signal handlers. */
void loader_exiting(void);
/* Is the process ending and the engine closed? */
bool loader_ended(void);

/* A helper thread of ours calls the stack between these two, so that the end of the process does
 * not free what the thread uses. False: the process is ending, the thread must not call. */
bool loader_helper_begin(void);
void loader_helper_end(void);

/* Register the at-fork handlers (fork.c), once. */
void loader_watch_forks(void);
void loader_fork_prepare(void);
void loader_fork_parent(void);
/* True: the engine had started, so the engine stays with the parent, and the next loader_engine()
 * opens a new one. */
bool loader_fork_child(void);

/* The absolute path of the directory of this library. False: unknown. */
bool loader_own_dir(char dir[PATH_MAX]);

#endif
