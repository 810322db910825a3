/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * usage: uwarp-forward OPTIONS INTERFACE INTERFACE
 *
 * Hands the Ethernet frames of each of two interfaces on to the other, impaired as OPTIONS say
 * (stack/io/impair/options.h), until SIGINT or SIGTERM; then says what was counted. uwarp-impair
 * starts it. Needs CAP_NET_RAW.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "io/impair/line.h"
#include "io/impair/options.h"
#include "packet.h"

#define HELD  16384u
#define BURST 64u
/* How long a full interface is left alone. */
#define FULL_NS 50000ull
#define NS	1000000000ull
#define TEXT	400u

/* From one interface to the other. */
struct way {
	struct packet *from, *to;
	struct impair model;
	bool impaired;
	bool full; /* `to` took nothing more the last time */
	struct impair_line *late;
	uint64_t lost_here; /* the interface refused them */
};

static volatile sig_atomic_t ended;

static void on_end(int sig)
{
	(void)sig;
	ended = 1;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS + (uint64_t)t.tv_nsec;
}

static void hold(struct way *w, const uint8_t *frame, const struct impair_copy *c)
{
	uint8_t *to = impair_line_add(w->late, c->due_ns, c->len);

	if (!to) {
		w->model.count[IMPAIR_DROPPED_ROOM]++;
		return;
	}
	memcpy(to, frame, c->len);
	impair_change(&w->model, c, to);
}

static void release(struct way *w, uint64_t now)
{
	const struct impair_held *h;

	w->full = false;
	while ((h = impair_line_first(w->late)) && h->due_ns <= now) {
		enum packet_sent sent = packet_send(w->to, h->octets, h->len);

		if (sent == PACKET_FULL) {
			w->full = true;
			return;
		}
		w->lost_here += sent == PACKET_REFUSED;
		impair_line_remove_first(w->late);
	}
}

static void forward(struct way *w, const uint8_t *frame, uint32_t len, uint64_t now)
{
	struct impair_verdict v = { .copies = 1, .copy = { { .due_ns = now, .len = len } } };
	const struct impair_held *first;

	if (w->impaired)
		impair_decide(&w->model, len, now, &v);
	for (unsigned i = 0; i < v.copies; i++)
		hold(w, frame, &v.copy[i]);
	first = impair_line_first(w->late);
	if (first && first->due_ns <= now && !w->full)
		release(w, now);
}

static void receive(struct way *w)
{
	const uint8_t *frame;
	uint32_t len;

	for (unsigned i = 0; i < BURST && (frame = packet_receive(w->from, &len)); i++)
		forward(w, frame, len, now_ns());
}

/* How long nothing is to be done, as far as one knows. */
static uint64_t idle_ns(const struct way *ways, uint64_t now)
{
	uint64_t idle = NS;

	for (unsigned i = 0; i < 2; i++) {
		const struct impair_held *h = impair_line_first(ways[i].late);
		uint64_t until = !h		    ? NS
				 : ways[i].full	    ? FULL_NS
				 : h->due_ns <= now ? 0
						    : h->due_ns - now;

		if (until < idle)
			idle = until;
	}
	return idle;
}

static void run(struct way *ways, const sigset_t *while_waiting)
{
	struct pollfd fds[2] = { { packet_fd(ways[0].from), POLLIN, 0 },
				 { packet_fd(ways[1].from), POLLIN, 0 } };

	while (!ended) {
		uint64_t idle = idle_ns(ways, now_ns());
		struct timespec t = { (time_t)(idle / NS), (long)(idle % NS) };

		if (ppoll(fds, 2, &t, while_waiting) < 0 && errno != EINTR) {
			perror("uwarp-impair: ppoll");
			return;
		}
		for (unsigned i = 0; i < 2; i++) {
			if (fds[i].revents)
				receive(&ways[i]);
			release(&ways[i], now_ns());
		}
	}
}

static void report(const struct way *w)
{
	char counters[TEXT];

	impair_describe(&w->model, counters, sizeof(counters));
	printf("uwarp-impair: %s to %s (seed %llu):%s", packet_name(w->from), packet_name(w->to),
	       (unsigned long long)w->model.cfg.seed / 2, counters);
	if (w->lost_here)
		printf(" refused %llu", (unsigned long long)w->lost_here);
	printf("\n");
}

/* As with a link: the two directions differ, and the first is like what a link sends. */
static bool set_up(struct way *w, const struct impair_options *o, unsigned i, struct packet **ifs)
{
	struct impair_config m = o->model;

	m.seed = m.seed * 2 + i;
	impair_init(&w->model, &m);
	w->from = ifs[i];
	w->to = ifs[!i];
	w->impaired = !o->dir || o->dir & (i ? IMPAIR_IN : IMPAIR_OUT);
	return !impair_line_open(HELD, PACKET_MAX, &w->late);
}

static void catch_signals(sigset_t *old)
{
	struct sigaction sa = { .sa_handler = on_end };
	sigset_t both;

	sigemptyset(&both);
	sigaddset(&both, SIGINT);
	sigaddset(&both, SIGTERM);
	sigprocmask(SIG_BLOCK, &both, old); /* they come while it waits only */
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	prctl(PR_SET_TIMERSLACK, 1);
}

int main(int argc, char **argv)
{
	struct impair_options options;
	struct packet *ifs[2] = { NULL };
	struct way ways[2] = { 0 };
	char why[256];
	sigset_t old;

	if (argc != 4) {
		fprintf(stderr, "usage: uwarp-forward OPTIONS INTERFACE INTERFACE\n");
		return 2;
	}
	if (impair_parse(argv[1], &options, why, sizeof(why))) {
		fprintf(stderr, "uwarp-impair: %s\n", why);
		return 2;
	}
	for (unsigned i = 0; i < 2; i++) {
		ifs[i] = packet_open(argv[2 + i]);
		if (!ifs[i])
			return 1;
	}
	if (!set_up(&ways[0], &options, 0, ifs) || !set_up(&ways[1], &options, 1, ifs)) {
		fprintf(stderr, "uwarp-impair: no memory\n");
		return 1;
	}
	catch_signals(&old);
	printf("uwarp-impair: between %s and %s\n", argv[2], argv[3]);
	fflush(stdout);
	run(ways, &old);
	report(&ways[0]);
	report(&ways[1]);
	for (unsigned i = 0; i < 2; i++) {
		impair_line_close(ways[i].late);
		packet_close(ifs[i]);
	}
	return 0;
}
