/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Client threads that begin together, count what they do and end together: after so many
 * operations, after so many seconds, or at the first that fails.
 */
#ifndef APPS_TEAM_H
#define APPS_TEAM_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "hist.h"
#include "options.h"

struct team;

struct member {
	struct team *team;
	unsigned index;
	pthread_t thread;
	uint64_t random; /* state of random64() */
	uint64_t done; /* operations; written by the member, relaxed: who shows progress reads it */
	uint64_t share; /* how many to do; UINT64_MAX: until the time is over */
	int err;
	struct hist *hist; /* of latencies; a member may have more than one */
	void *user;
};

struct team_ops {
	int (*open)(struct member *m); /* sets user and connects; one after the other */
	int (*run)(struct member *m);  /* all at once, until member_goes_on() says no */
	void (*close)(
		struct member *m); /* of all whose open has set user, after one that failed, too */
};

struct team {
	const struct options *options;
	const struct team_ops *ops;
	void *user;
	struct member *member;
	_Atomic bool over;
	_Atomic unsigned running;
	pthread_barrier_t start;
	uint64_t begun, ended; /* clock_ns() */
	uint64_t done;	       /* in all */
	struct hist *hist;     /* all members' */
	FILE *series;	       /* of options->series, or NULL */
	int unsaid;	       /* 0, or why what was measured is not in there; a line has said so */
};

/* Runs the whole team; 0, or the first member's error. team_close() frees what it counted. */
int team_run(struct team *t, const struct options *o, const struct team_ops *ops, void *user);
void team_close(struct team *t);
double team_seconds(const struct team *t);

/* Keep m->team->options->window operations under way. */
struct window {
	/* Begin one in this slot, if member_goes_on(); 0 or a negative errno. */
	int (*begin)(void *user, unsigned slot);
	/* Take what has completed, which begins more; -ETIMEDOUT: nothing came for so long. */
	int (*poll)(void *user, int milliseconds);
};
/* Until none is under way, or the first error, which is returned. */
int member_fill_window(struct member *m, const struct window *w, const unsigned *under_way);

/* May it begin another operation, having begun so many? */
static inline bool member_goes_on(const struct member *m, uint64_t begun)
{
	return begun < m->share && !m->team->over;
}

/* n operations more are done, which took so long together. */
static inline void member_done(struct member *m, uint64_t n, uint64_t ns)
{
	hist_add(m->hist, ns);
	__atomic_store_n(&m->done, m->done + n, __ATOMIC_RELAXED);
}

#endif
