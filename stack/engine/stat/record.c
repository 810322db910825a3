/* SPDX-License-Identifier: BSD-3-Clause */
/* The flight recorder: when a QP fails, the history of its connection as text, which ends in one
 * sentence that says what happened. The text is made under the stack lock and written without. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "conn/verdict.h"
#include "engine/stat/stat.h"

bool stat_records(const struct uw_engine *e)
{
	return *e->cfg.record || e->cfg.verbose;
}

/* ---- the text ---------------------------------------------------------------------------- */

/* Those whose text ends with their arg. */
static bool has_number(unsigned kind)
{
	return kind == LLP_SENT_AGAIN || kind == LLP_RTO || kind == LLP_TIMEOUTS ||
	       kind == LLP_UNANSWERED || kind == LLP_SILENT;
}

static void add_event(struct text *t, const struct history_event *e, uint64_t now)
{
	text_add(t, "  %10.3f s  %s", -(double)(int64_t)(now - e->first_us) / 1e6,
		 history_text(e->kind));
	if (e->kind == HISTORY_STATE)
		text_add(t, " %s", conn_state_name(e->arg));
	else if (e->kind == HISTORY_FAILED)
		text_add(t, ": %s", uw_status_name((uw_status)e->arg));
	else if (has_number(e->kind))
		text_add(t, " %u", e->arg);
	if (e->count > 1)
		text_add(t, " (the last of %u within %.3f s)", e->count, e->for_ms / 1e3);
	text_add(t, "\n");
}

static void add_state(struct text *t, const struct conn_report *r)
{
	const struct llp_info *i = &r->llp;

	text_add(t, "  state %s, %u requests not done, %u receives posted", r->state, r->sends,
		 r->recvs);
	if (i->mss)
		text_add(t,
			 "; cwnd %u, in flight %u, unsent %u, peer's window %u, RTT %llu us, "
			 "sent again %llu, timeouts %llu",
			 i->cwnd, i->in_flight, i->unsent, i->peer_window,
			 (unsigned long long)i->srtt_us, (unsigned long long)i->sent_again,
			 (unsigned long long)i->timeouts);
	text_add(t, "\n");
}

static void add_head(struct text *t, const struct conn_report *r)
{
	char local[CONN_ADDR_TEXT], remote[CONN_ADDR_TEXT], when[32] = "?";
	time_t wall = time(NULL);
	struct tm tm;

	if (gmtime_r(&wall, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	conn_print_addr(&r->local, local);
	conn_print_addr(&r->remote, remote);
	text_add(t, "%s %s[%d] QP %u failed: %s:%u to %s:%u, %s\n", when,
		 program_invocation_short_name, (int)getpid(), r->qpn, local, ntohs(r->lport),
		 remote, ntohs(r->rport), r->initiator ? "initiator" : "responder");
}

static void add_record(struct text *t, const struct conn *c, uw_status why)
{
	uint64_t now = stack_now_us(c->stack);
	char verdict[CONN_VERDICT_TEXT];
	struct conn_report r;

	conn_report(c, &r);
	add_head(t, &r);
	for (uint32_t i = 0; i < history_count(&c->history); i++)
		add_event(t, history_at(&c->history, i), now);
	add_state(t, &r);
	conn_verdict(c, why, verdict);
	text_add(t, "  what happened: %s.\n", verdict);
}

/* ---- on its way to the file --------------------------------------------------------------- */

static bool has_place(struct stat_queue *q)
{
	bool has;

	pthread_mutex_lock(&q->lock);
	has = q->n < STAT_RECORDS;
	q->dropped += !has;
	pthread_mutex_unlock(&q->lock);
	return has;
}

static void put(struct stat_queue *q, struct stat_record *r)
{
	pthread_mutex_lock(&q->lock);
	*q->last = r;
	q->last = &r->next;
	q->n++;
	pthread_mutex_unlock(&q->lock);
}

void stat_failed(void *arg, const struct conn *c, uw_status why)
{
	struct uw_engine *e = arg;
	struct stat_queue *q = stat_queue(e);
	struct stat_record *r;

	if (!q || !has_place(q))
		return;
	r = calloc(1, sizeof(*r));
	if (!r)
		return;
	add_record(&r->text, c, why);
	put(q, r);
	stat_wake(e);
}

/* Once a process: there would be one for each QP. */
static void say_lost(const struct uw_engine *e)
{
	static bool said;

	if (!said)
		uw_log("UWARP_RECORD=%s: %s", e->cfg.record, strerror(errno));
	said = true;
}

static int open_target(const struct uw_engine *e)
{
	int fd;

	if (!*e->cfg.record)
		return dup(STDERR_FILENO);
	fd = open(e->cfg.record, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
		  0600);
	if (fd < 0)
		say_lost(e);
	return fd;
}

/* To stderr, if there is no file, nothing can be said of it. */
static void write_text(const struct uw_engine *e, int fd, const char *p, size_t n)
{
	ssize_t k = 0;

	for (; n && (k = write(fd, p, n)) > 0; p += k)
		n -= (size_t)k;
	if (k < 0 && *e->cfg.record)
		say_lost(e);
}

static struct stat_record *take_all(struct stat_queue *q, unsigned *dropped)
{
	struct stat_record *first;

	pthread_mutex_lock(&q->lock);
	first = q->first;
	*dropped = q->dropped;
	q->first = NULL;
	q->last = &q->first;
	q->n = q->dropped = 0;
	pthread_mutex_unlock(&q->lock);
	return first;
}

static void record_free(struct stat_record *r)
{
	text_free(&r->text);
	free(r);
}

void stat_drop_records(struct stat_queue *q)
{
	unsigned dropped;
	struct stat_record *r = take_all(q, &dropped), *next;

	for (; r; r = next) {
		next = r->next;
		record_free(r);
	}
}

void stat_write_records(const struct uw_engine *e, struct stat_queue *q)
{
	struct text more = { 0 };
	unsigned dropped;
	struct stat_record *r = take_all(q, &dropped), *next;
	int fd = r || dropped ? open_target(e) : -1;

	for (; r; r = next) {
		next = r->next;
		if (fd >= 0 && r->text.p)
			write_text(e, fd, r->text.p, r->text.n);
		record_free(r);
	}
	if (dropped && fd >= 0) {
		text_add(&more, "  and %u more QPs failed at the same time\n", dropped);
		write_text(e, fd, more.p, more.n);
		text_free(&more);
	}
	if (fd >= 0)
		close(fd);
}
