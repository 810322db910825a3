/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A result: named figures in the order in which they were added, printed as text or as a line of
 * JSON, and added to a CSV file if that has the same columns. Percentiles are in microseconds.
 */
#ifndef APPS_REPORT_H
#define APPS_REPORT_H

#include <stdint.h>

#include <jansson.h>

#include "hist.h"
#include "options.h"
#include "team.h"

struct report {
	json_t *figures;
	int unsaid; /* 0, or why something that the team wrote is not to be read */
};

void report_open(struct report *r, const char *program);
void report_text(struct report *r, const char *name, const char *value);
void report_count(struct report *r, const char *name, uint64_t value);
void report_number(struct report *r, const char *name, double value);
/* NAME_p50_us and so on, and with o->cdf the whole distribution. */
void report_hist(struct report *r, const char *name, const struct hist *h);
/* What a team did: threads, window, how many (by this name), seconds, mops. */
void report_team(struct report *r, const struct team *t, const char *what);
/* client_cpu_us: of so many nanoseconds of CPU, each operation's. */
void report_cpu(struct report *r, const struct team *t, uint64_t cpu_ns);
/* Prints and frees it; h (or NULL) is what o->cdf gets. 0 or a negative errno, after a line, if
 * something could not be written, or the team's series. */
int report_close(struct report *r, const struct options *o, const struct hist *h);

#endif
