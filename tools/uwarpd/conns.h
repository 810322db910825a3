/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The control connections of a uwarpd. One thread accepts them, and each has a thread of its own
 * that reads and closes it (mail.h says why): one that blocks stops neither the frames nor the
 * other connections. The thread that forwards takes the messages, sends the answers, and lets the
 * connections go. It never waits for these threads, and shares no lock with them.
 *
 * A connection whose client says nothing does not get as far as the thread that forwards.
 */
#ifndef UWARPD_CONNS_H
#define UWARPD_CONNS_H

#include "mail.h"

enum {
	/* Connections of a user that have said nothing; more have less time to speak. */
	CONNS_SILENT_MAX = 32,
	/* Threads, those that are about to close included: then nobody connects for a while. */
	CONNS_THREADS_MAX = 2048,
};

struct conns;
struct conn;

/* Start to accept at listen_fd. stir_fd, an eventfd, is written to when there is something for the
 * thread that forwards. NULL: see errno. */
struct conns *conns_start(int listen_fd, int stir_fd);
/* End all threads; every connection that conns_next returned has been let go. c may be NULL.
 * False: one still closes something, and uses all that it did until the process ends. */
bool conns_stop(struct conns *c);

/* All that follows is for the thread that forwards. */

/* Did anything come since the last call? */
bool conns_stirs(struct conns *c);
/* A connection that came and has said something; NULL: no other one. */
struct conn *conns_next(struct conns *c);
/* Connections that were refused here, since the last call. */
unsigned conns_refused(struct conns *c);
/* Forget those that were let go and are closed by now. */
void conns_reap(struct conns *c);

const struct mail_box *conn_box(const struct conn *n);
/* What it said last; NULL: nothing new. Its memory is the caller's. */
const struct mail *conn_mail(const struct conn *n);
/* ... the caller is done with it: the next message may be read. */
void conn_go_on(struct conn *n);
/* Close it. The caller does not use it any more. A mail that was not taken goes with it. */
void conn_let_go(struct conns *c, struct conn *n);

#endif
