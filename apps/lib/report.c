/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "report.h"
#include "log.h"

static const double percents[] = { 0,  1,  5,  10, 20, 30, 40,	 50,   60,    70, 80,
				   85, 90, 95, 97, 98, 99, 99.5, 99.9, 99.99, 100 };

void report_open(struct report *r, const char *program)
{
	r->figures = json_object();
	r->unsaid = 0;
	report_text(r, "program", program);
}

void report_text(struct report *r, const char *name, const char *value)
{
	json_object_set_new(r->figures, name, json_string(value));
}

void report_count(struct report *r, const char *name, uint64_t value)
{
	json_object_set_new(r->figures, name, json_integer((json_int_t)value));
}

void report_number(struct report *r, const char *name, double value)
{
	/* JSON has no such number; a figure that is left out would move those behind it */
	json_object_set_new(r->figures, name, isfinite(value) ? json_real(value) : json_null());
}

void report_team(struct report *r, const struct team *t, const char *what)
{
	double seconds = team_seconds(t);

	report_count(r, "threads", t->options->threads);
	report_count(r, "window", t->options->window);
	report_count(r, what, t->done);
	report_number(r, "seconds", seconds);
	report_number(r, "mops", (double)t->done / seconds / 1e6);
	r->unsaid = t->unsaid;
}

void report_cpu(struct report *r, const struct team *t, uint64_t cpu_ns)
{
	report_number(r, "client_cpu_us", t->done ? (double)cpu_ns / 1e3 / (double)t->done : 0);
}

static void percentile(struct report *r, const char *name, const char *which, double us)
{
	char key[64];

	snprintf(key, sizeof(key), "%s%s%s_us", name, *name ? "_" : "", which);
	report_number(r, key, us);
}

void report_hist(struct report *r, const char *name, const struct hist *h)
{
	percentile(r, name, "mean", hist_mean(h) / 1e3);
	percentile(r, name, "p50", (double)hist_at(h, 50) / 1e3);
	percentile(r, name, "p99", (double)hist_at(h, 99) / 1e3);
	percentile(r, name, "p999", (double)hist_at(h, 99.9) / 1e3);
	percentile(r, name, "max", (double)h->max / 1e3);
}

static void print_value(FILE *f, const json_t *v)
{
	if (json_is_string(v))
		fputs(json_string_value(v), f);
	else if (json_is_integer(v))
		fprintf(f, "%" JSON_INTEGER_FORMAT, json_integer_value(v));
	else
		fprintf(f, "%.6g", json_is_null(v) ? (double)NAN : json_real_value(v));
}

static void print_head(FILE *f, const json_t *figures)
{
	const char *key, *between = "";
	json_t *v;

	json_object_foreach((json_t *)figures, key, v)
	{
		fprintf(f, "%s%s", between, key);
		between = ",";
	}
	fputc('\n', f);
}

static void print_row(FILE *f, const json_t *figures)
{
	const char *key, *between = "";
	json_t *v;

	json_object_foreach((json_t *)figures, key, v)
	{
		fputs(between, f);
		print_value(f, v);
		between = ",";
	}
	fputc('\n', f);
}

/* Is the file's head the one that these figures would have? 0, -EINVAL after a line, or another
 * error. */
static int check_head(const json_t *figures, const char *path)
{
	FILE *f = fopen(path, "r"), *own;
	char *there = NULL, *wanted = NULL;
	size_t size = 0;
	bool same;

	if (!f)
		return log_errno("%s", path);
	own = open_memstream(&wanted, &size);
	if (own) {
		print_head(own, figures);
		fclose(own);
	}
	size = 0;
	same = wanted && getline(&there, &size, f) > 0 && !strcmp(there, wanted);
	fclose(f);
	free(there);
	free(wanted);
	if (same)
		return 0;
	log_line("%s has other columns: give another file", path);
	return -EINVAL;
}

static int add_csv(const json_t *figures, const char *path)
{
	FILE *f = fopen(path, "a");
	struct stat st;
	int err = 0;

	if (!f || fstat(fileno(f), &st))
		return log_errno("%s", path);
	if (st.st_size)
		err = check_head(figures, path);
	else
		print_head(f, figures);
	if (!err)
		print_row(f, figures);
	return fclose(f) && !err ? log_errno("%s", path) : err;
}

static int write_cdf(const struct hist *h, const char *path)
{
	FILE *f = fopen(path, "w");

	if (!f)
		return log_errno("%s", path);
	fputs("percent,us\n", f);
	for (unsigned i = 0; i < sizeof(percents) / sizeof(percents[0]); i++)
		fprintf(f, "%g,%.3f\n", percents[i], (double)hist_at(h, percents[i]) / 1e3);
	return fclose(f) ? log_errno("%s", path) : 0;
}

static int print_all(const json_t *figures, bool as_json)
{
	const char *key;
	json_t *v;

	errno = 0;
	if (as_json) {
		json_dumpf(figures, stdout, JSON_COMPACT | JSON_REAL_PRECISION(6));
		putchar('\n');
	} else {
		json_object_foreach((json_t *)figures, key, v)
		{
			printf("%-20s ", key);
			print_value(stdout, v);
			putchar('\n');
		}
	}
	return fflush(stdout) || ferror(stdout) ? log_errno("standard output") : 0;
}

int report_close(struct report *r, const struct options *o, const struct hist *h)
{
	int err = print_all(r->figures, o->json), unsaid = 0;

	if (o->csv)
		unsaid = add_csv(r->figures, o->csv);
	err = err ? err : unsaid;
	if (h && o->cdf)
		unsaid = write_cdf(h, o->cdf);
	err = err ? err : unsaid;
	json_decref(r->figures);
	return err ? err : r->unsaid;
}
