/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What can be seen of a running process (doc/adr/0029): a socket in the run directory that answers
 * uwarp-stat, and records of QPs that failed. A thread of its own (uwarp-stat) serves both. It
 * takes a stack lock for a few connections at a time and for nothing else; it reads, writes and
 * waits without any lock.
 */
#ifndef UWARP_STAT_STAT_H
#define UWARP_STAT_STAT_H

#include "engine/engine.h"
#include "engine/stat/text.h"

struct stat_server;

/* ---- server.c ---------------------------------------------------------------------------- */

/* The links are up. Whatever fails here is said with `verbose` and changes nothing else. */
void stat_start(struct uw_engine *e);
/* The last records are written, then the thread ends. No lock held. */
void stat_stop(struct uw_engine *e);
/* In a forked child: the thread and the socket are the parent's. */
void stat_forget(struct uw_engine *e);
/* The process ends with a lock taken: remove the socket's name, wait for nothing. */
void stat_abandon(struct uw_engine *e);

/* ---- place.c: the socket ------------------------------------------------------------------- */

#define STAT_PATH 108u /* sockaddr_un */

/* A listening socket DIR/stat/PID.RANDOM with mode 0600, whose name is written to path. -errno.
 * Names of dead processes are removed. */
int stat_listen(const struct uw_config *cfg, uint32_t random, char path[STAT_PATH]);
/* May the process at the other end ask? Only this user and root may. */
bool stat_may_ask(int fd);

/* ---- snapshot.c --------------------------------------------------------------------------- */

/* All that is known, as one JSON object and a newline. Takes and releases stack locks. */
void stat_snapshot(struct uw_engine *e, struct text *out);

/* ---- record.c ----------------------------------------------------------------------------- */

#define STAT_RECORDS 64u /* that wait to be written */

/* conn_hooks.failed; arg is the engine. */
void stat_failed(void *arg, const struct conn *c, uw_status why);
/* Any thread: is anything to be recorded? */
bool stat_records(const struct uw_engine *e);
struct stat_record {
	struct stat_record *next;
	struct text text;
};

struct stat_queue {
	pthread_mutex_t lock;
	struct stat_record *first, **last;
	unsigned n, dropped; /* waiting; not written because too many waited */
};

/* Write those that wait to the file of the configuration, or to standard error. */
void stat_write_records(const struct uw_engine *e, struct stat_queue *q);
/* Free those that were never written. */
void stat_drop_records(struct stat_queue *q);

/* NULL: nothing is recorded. */
struct stat_queue *stat_queue(struct uw_engine *e);
/* Any thread: there is a record to write. */
void stat_wake(struct uw_engine *e);

#endif
