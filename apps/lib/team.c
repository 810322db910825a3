/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "clock.h"
#include "log.h"
#include "team.h"

#define LOOK_US	   1000u
#define SHOW_NS	   1000000000u
#define NOTE_NS	   100000000u
#define ANSWER_MS  10000 /* for any answer at all */
#define RANDOM_GAP 0x9e3779b97f4a7c15u

static void *work(void *arg)
{
	struct member *m = arg;

	pthread_barrier_wait(&m->team->start);
	m->err = m->team->ops->run(m);
	if (m->err)
		m->team->over = true;
	m->team->running--;
	return NULL;
}

static uint64_t done_by_all(const struct team *t)
{
	uint64_t sum = 0;

	for (unsigned i = 0; i < t->options->threads; i++)
		sum += __atomic_load_n(&t->member[i].done, __ATOMIC_RELAXED);
	return sum;
}

/* A line that changes, on a terminal alone. */
static void show(const struct team *t, uint64_t now)
{
	fprintf(stderr, "\r%.0f s, %lu operations, %.3f M/s ", (double)(now - t->begun) / 1e9,
		done_by_all(t), (double)done_by_all(t) * 1e3 / (double)(now - t->begun));
}

/* What has to be done now and then while the members run. */
struct pace {
	bool showing;
	uint64_t shown, noted,
		done; /* clock_ns() of the last time; operations at that of `noted` */
};

static void note(const struct team *t, struct pace *p, uint64_t now)
{
	uint64_t done = done_by_all(t);

	if (now - p->noted < NOTE_NS)
		return;
	fprintf(t->series, "%.3f,%.6f\n", (double)(now - t->begun) / 1e9,
		(double)(done - p->done) * 1e3 / (double)(now - p->noted));
	p->noted = now;
	p->done = done;
}

static void keep_pace(const struct team *t, struct pace *p, uint64_t now)
{
	if (p->showing && now - p->shown > SHOW_NS) {
		show(t, now);
		p->shown = now;
	}
	if (t->series)
		note(t, p, now);
}

static int open_series(struct team *t)
{
	const char *path = t->options->series;

	if (!path)
		return 0;
	t->series = fopen(path, "w");
	if (!t->series)
		return log_errno("%s", path);
	fputs("seconds,mops\n", t->series);
	return 0;
}

/* What did not get to the disk while the members ran counts, too. */
static void close_series(struct team *t)
{
	bool lost;

	if (!t->series)
		return;
	errno = 0;
	lost = ferror(t->series);
	if (fclose(t->series) || lost)
		t->unsaid = log_errno("%s", t->options->series);
	t->series = NULL;
}

static void watch(struct team *t)
{
	const struct options *o = t->options;
	uint64_t limit = (uint64_t)(o->seconds * 1e9);
	struct pace p = { .showing = !o->quiet && isatty(STDERR_FILENO),
			  .shown = t->begun,
			  .noted = t->begun };

	while (t->running) {
		uint64_t now = clock_ns();

		if (!o->ops && now - t->begun > limit)
			t->over = true;
		keep_pace(t, &p, now);
		usleep(LOOK_US);
	}
	if (p.shown != t->begun)
		fputc('\n', stderr);
}

static int prepare(struct team *t)
{
	const struct options *o = t->options;

	t->member = calloc(o->threads, sizeof(*t->member));
	t->hist = calloc(1, sizeof(*t->hist));
	if (!t->member || !t->hist)
		return -ENOMEM;
	for (unsigned i = 0; i < o->threads; i++) {
		struct member *m = &t->member[i];

		m->team = t;
		m->index = i;
		m->random = o->seed + i * RANDOM_GAP;
		m->share = o->ops ? o->ops / o->threads + (i < o->ops % o->threads) : UINT64_MAX;
		m->hist = calloc(1, sizeof(*m->hist));
		if (!m->hist)
			return -ENOMEM;
	}
	return 0;
}

static void start(struct team *t)
{
	unsigned n = t->options->threads;

	pthread_barrier_init(&t->start, NULL, n + 1);
	t->running = n;
	for (unsigned i = 0; i < n; i++)
		if (pthread_create(&t->member[i].thread, NULL, work, &t->member[i]))
			exit(-log_errno("no thread")); /* those that run wait for ever */
	t->begun = clock_ns();
	pthread_barrier_wait(&t->start);
}

int team_run(struct team *t, const struct options *o, const struct team_ops *ops, void *user)
{
	unsigned opened = 0;
	int err;

	memset(t, 0, sizeof(*t));
	t->options = o;
	t->ops = ops;
	t->user = user;
	err = prepare(t);
	for (; !err && opened < o->threads; opened += !err)
		err = ops->open(&t->member[opened]);
	if (err == -ENOMEM) /* whatever it was for */
		log_line("no memory for client %u of %u", opened + 1, o->threads);
	if (!err)
		err = open_series(t);
	if (!err) {
		start(t);
		watch(t);
		for (unsigned i = 0; i < o->threads; i++) {
			pthread_join(t->member[i].thread, NULL);
			err = err ? err : t->member[i].err;
			hist_merge(t->hist, t->member[i].hist);
		}
		t->ended = clock_ns();
		t->done = done_by_all(t);
		pthread_barrier_destroy(&t->start);
		close_series(t);
	}
	for (unsigned i = 0; t->member && i < o->threads; i++)
		if (t->member[i].user)
			ops->close(&t->member[i]);
	return err;
}

void team_close(struct team *t)
{
	for (unsigned i = 0; t->member && i < t->options->threads; i++)
		free(t->member[i].hist);
	free(t->member);
	free(t->hist);
}

double team_seconds(const struct team *t)
{
	return (double)(t->ended - t->begun) / 1e9;
}

int member_fill_window(struct member *m, const struct window *w, const unsigned *under_way)
{
	int err = 0;

	for (unsigned i = 0; !err && i < m->team->options->window; i++)
		err = w->begin(m->user, i);
	while (!err && *under_way)
		err = w->poll(m->user, ANSWER_MS);
	if (err == -ETIMEDOUT)
		log_line("the server has not answered for %d s", ANSWER_MS / 1000);
	return err;
}
