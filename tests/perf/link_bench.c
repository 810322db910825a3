/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a link carries between two processes with nothing above it: the "wire" that everything
 * else is compared with. Each process is one thread that polls, and yields when it finds nothing.
 *
 *   link_bench [-l LINK [-r LINK]] [-m MTU] [-t SECONDS] [-n RUNS] [-w WINDOW] [-b BPS] [-j]
 *              [MODE:OCTETS | FRAME_OCTETS]...
 *
 * rtt     one frame to and fro, half of nothing: the full round trip, p50 and p99
 * raw     frames as fast as the other side takes them
 * copied  the same with one copy into and out of other memory at each end and a window of
 *         WINDOW octets (512 KiB), which is what a transport does
 * echo    a message of OCTETS in frames as large as the link takes; its echo begins when all of
 *         it has arrived: the full round trip
 * moved   echo, with one copy into and out of other memory at each end
 * OCTETS are a frame's (header included) for the first three, which a bare number means, and a
 * message's for the others. -b 10G: no end sends faster. With -j: one JSON object for each run, on
 * a line of its own.
 */
#include <errno.h>
#include <getopt.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "io/dpdk/dpdk.h"
#include "io/rate.h"
#include "perf.h"

enum {
	ETHER = 14,
	BURST = 32,
	WINDOW = 512 << 10,
	WINDOW_FRAMES = 256, /* at most */
	AT_ONCE = 64 << 10,  /* octets copied before they are sent */
	MEMORY = 64 << 20,   /* copied from and to, more than a cache holds */
	JOBS_MAX = 32,
	RUNS_MAX = 31,
	YIELD_AFTER = 20, /* empty polls */
	OPEN_MS = 5000,
	LOST_MS = 100, /* an echo that is not there by then never comes */
};

/* Of a frame first, of a message then. */
enum mode { MODE_RTT, MODE_RAW, MODE_COPIED, MODE_ECHO, MODE_MOVED, MODE_COUNT };

static const char *const mode_name[] = { "rtt", "raw", "copied", "echo", "moved" };

struct job {
	enum mode mode;
	unsigned octets;
};

/* What both processes see. */
struct shared {
	_Atomic int up;	    /* ends that are open */
	_Atomic int go;	    /* number of the run under way, -1: over */
	_Atomic int stop;   /* the client has ended run n */
	_Atomic int served; /* the server has ended run n */
	enum mode mode;
	unsigned size;	 /* of a frame */
	unsigned burst;	 /* frames that make a message */
	unsigned window; /* frames */
	uint8_t mac[2][6];
	uint64_t frames, first, last; /* what the server took, and when */
};

struct options {
	const char *link[2];
	const char *dir;
	unsigned mtu;
	unsigned window; /* octets */
	uint64_t bps;
	double seconds;
	unsigned runs;
	bool json;
	struct job job[JOBS_MAX];
	unsigned jobs;
};

struct end {
	struct io_link *l;
	struct shared *sh;
	int me;
	uint8_t *memory;
	size_t at;
	unsigned empty;
};

/* What is in a frame behind the Ethernet header. */
struct mark {
	uint32_t run;
	uint32_t credit; /* frames acknowledged; 0 in data */
	uint32_t message;
};

static pthread_mutex_t stack_lock = PTHREAD_MUTEX_INITIALIZER;

static void lock(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&stack_lock);
}

static void unlock(void *arg)
{
	(void)arg;
	pthread_mutex_unlock(&stack_lock);
}

static bool copies(const struct end *e)
{
	return e->sh->mode == MODE_COPIED || e->sh->mode == MODE_MOVED;
}

static void idle(struct end *e)
{
	if (++e->empty >= YIELD_AFTER) {
		e->empty = 0;
		sched_yield();
	}
}

static unsigned receive(struct end *e, struct io_frame **v)
{
	lock(NULL);
	unsigned n = e->l->ops->rx(e->l, v, BURST);
	unlock(NULL);
	if (n == 0)
		idle(e);
	else
		e->empty = 0;
	return n;
}

static void release(struct end *e, struct io_frame **v, unsigned n)
{
	lock(NULL);
	for (unsigned i = 0; i < n; i++)
		while (v[i]) {
			struct io_frame *next = v[i]->next;

			e->l->ops->free(v[i]);
			v[i] = next;
		}
	unlock(NULL);
}

static void copy_in(struct end *e, uint8_t *to, unsigned len)
{
	if (e->at + len > MEMORY)
		e->at = 0;
	memcpy(to, e->memory + e->at, len);
	e->at += len;
}

static void copy_out(struct end *e, const struct io_frame *f)
{
	for (; f; f = f->next) {
		if (e->at + f->len > MEMORY)
			e->at = 0;
		memcpy(e->memory + e->at, f->data, f->len);
		e->at += f->len;
	}
}

static struct io_frame *make(struct end *e, unsigned size, const struct mark *mark)
{
	struct io_frame *f = e->l->ops->alloc(e->l);

	if (!f)
		return NULL;
	memcpy(f->data, e->sh->mac[!e->me], 6);
	memcpy(f->data + 6, e->l->mac, 6);
	f->data[12] = 0x88; /* an EtherType for experiments */
	f->data[13] = 0xb5;
	memcpy(f->data + ETHER, mark, sizeof(*mark));
	f->len = size;
	return f;
}

/* Up to n frames on their way; returns how many went. */
static unsigned transmit(struct end *e, unsigned n, unsigned size, const struct mark *mark)
{
	struct io_frame *v[BURST];
	unsigned made = 0, most = copies(e) ? AT_ONCE / size : BURST;

	most = most < 1 ? 1 : most > BURST ? BURST : most;
	lock(NULL);
	while (made < n && made < most && (v[made] = make(e, size, mark)))
		made++;
	if (copies(e) && !mark->credit)
		for (unsigned i = 0; i < made; i++)
			copy_in(e, v[i]->data + ETHER + sizeof(*mark),
				size - ETHER - (unsigned)sizeof(*mark));
	unsigned sent = made ? e->l->ops->tx(e->l, v, made) : 0;
	for (unsigned i = sent; i < made; i++)
		e->l->ops->free(v[i]);
	unlock(NULL);
	if (sent == 0)
		idle(e);
	return sent;
}

static struct mark mark_of(const struct io_frame *f)
{
	struct mark m;

	memcpy(&m, f->data + ETHER, sizeof(m));
	return m;
}

static void transmit_all(struct end *e, unsigned n, const struct mark *m)
{
	while (n)
		n -= transmit(e, n, e->sh->size, m);
}

/* --- the server's side of a run --- */

/* A burst of a message; all of it there: send it back. */
static void serve_echo(struct end *e, struct io_frame **v, unsigned n, struct mark *at)
{
	for (unsigned i = 0; i < n; i++) {
		struct mark m = mark_of(v[i]);

		if (m.run != at->run)
			continue;
		if (m.message != at->message)
			at->credit = 0; /* the rest of the last one was lost */
		at->message = m.message;
		at->credit++;
	}
	release(e, v, n);
	if (at->credit < e->sh->burst)
		return;
	at->credit = 0;
	transmit_all(e, e->sh->burst, at);
}

static void serve_stream(struct end *e, struct mark *m, unsigned data)
{
	uint64_t t = now_ns();

	if (data == 0)
		return;
	e->sh->first = e->sh->first ? e->sh->first : t;
	e->sh->last = t;
	e->sh->frames += data;
	m->credit += data;
	if (e->sh->mode == MODE_COPIED && m->credit * 8 >= e->sh->window && transmit(e, 1, 64, m))
		m->credit = 0;
}

static void serve(struct end *e, int run)
{
	struct io_frame *v[BURST];
	struct mark at = { .run = (uint32_t)run };

	e->sh->frames = e->sh->first = e->sh->last = 0;
	while (atomic_load(&e->sh->stop) < run) {
		unsigned n = receive(e, v), data = 0;

		for (unsigned i = 0; i < n && copies(e); i++)
			copy_out(e, v[i]);
		if (e->sh->mode != MODE_RAW && e->sh->mode != MODE_COPIED) {
			serve_echo(e, v, n, &at);
			continue;
		}
		for (unsigned i = 0; i < n; i++)
			data += mark_of(v[i]).run == (uint32_t)run;
		release(e, v, n);
		serve_stream(e, &at, data);
	}
	atomic_store(&e->sh->served, run);
}

/* --- the client's --- */

static struct perf_times times;

/* Until the whole echo is back; false if that takes too long. */
static bool echo_back(struct end *e, const struct mark *m, uint64_t sent)
{
	struct io_frame *v[BURST];
	unsigned back = 0;

	while (back < e->sh->burst) {
		unsigned n = receive(e, v);

		for (unsigned i = 0; i < n; i++) {
			struct mark got = mark_of(v[i]);

			back += got.run == m->run && got.message == m->message;
			if (copies(e))
				copy_out(e, v[i]);
		}
		release(e, v, n);
		if (n == 0 && now_ns() - sent > LOST_MS * 1000000ull)
			return false;
	}
	return true;
}

static void echo(struct end *e, int run, double seconds)
{
	struct mark m = { .run = (uint32_t)run };
	uint64_t sent = now_ns(), end = sent + (uint64_t)(seconds * 1e9);

	for (times.n = 0; sent < end && times.n < PERF_SAMPLES; m.message++) {
		sent = now_ns();
		transmit_all(e, e->sh->burst, &m);
		if (echo_back(e, &m, sent))
			times.v[times.n++] = (float)(now_ns() - sent) / 1000;
	}
}

static void stream(struct end *e, int run, double seconds)
{
	struct io_frame *v[BURST];
	struct mark m = { .run = (uint32_t)run };
	uint64_t end = now_ns() + (uint64_t)(seconds * 1e9);
	unsigned window = e->sh->window;

	while (now_ns() < end) {
		if (e->sh->mode == MODE_RAW) {
			transmit(e, BURST, e->sh->size, &m);
			continue;
		}
		if (window)
			window -= transmit(e, window, e->sh->size, &m);
		unsigned n = receive(e, v);
		for (unsigned i = 0; i < n; i++) {
			struct mark back = mark_of(v[i]);

			window += back.run == (uint32_t)run ? back.credit : 0;
		}
		release(e, v, n);
	}
}

static void set_up(struct end *e, const struct options *o, const struct job *j)
{
	struct shared *sh = e->sh;
	unsigned most = e->l->mtu + ETHER, head = ETHER + (unsigned)sizeof(struct mark);

	sh->mode = j->mode;
	sh->size = j->octets;
	sh->burst = 1;
	if (j->mode >= MODE_ECHO) {
		sh->burst = (j->octets + most - head - 1) / (most - head);
		sh->size = (j->octets + sh->burst - 1) / sh->burst + head;
	}
	sh->window = o->window / sh->size < WINDOW_FRAMES ? o->window / sh->size : WINDOW_FRAMES;
	sh->window += !sh->window;
}

static double median_of(double *r, unsigned n)
{
	for (unsigned i = 1; i < n; i++)
		for (unsigned k = i; k > 0 && r[k] < r[k - 1]; k--) {
			double x = r[k];

			r[k] = r[k - 1];
			r[k - 1] = x;
		}
	return r[n / 2];
}

static void print_json(const struct end *e, const struct job *j, double gbps)
{
	const struct shared *sh = e->sh;

	printf("{\"mode\": \"%s\", \"octets\": %u, \"mtu\": %u, \"frame\": %u, \"burst\": %u, ",
	       mode_name[j->mode], j->octets, e->l->mtu, sh->size, sh->burst);
	if (j->mode == MODE_RAW || j->mode == MODE_COPIED)
		printf("\"gbps\": %.4f, \"mpps\": %.4f", gbps, gbps * 1000 / 8 / sh->size);
	else
		perf_print_times(&times);
	printf("}\n");
}

/* Gb/s, or a round trip's p50 in us. */
static double run_once(struct end *e, const struct options *o, const struct job *j)
{
	static int run;
	bool streams = j->mode == MODE_RAW || j->mode == MODE_COPIED;
	double gbps = 0;

	run++;
	set_up(e, o, j);
	atomic_store(&e->sh->go, run);
	if (streams)
		stream(e, run, o->seconds);
	else
		echo(e, run, o->seconds);
	usleep(20000); /* what is on the way arrives */
	atomic_store(&e->sh->stop, run);
	while (atomic_load(&e->sh->served) < run)
		usleep(100);
	if (streams && e->sh->last > e->sh->first)
		gbps = (double)e->sh->frames * e->sh->size * 8 /
		       (double)(e->sh->last - e->sh->first);
	if (o->json)
		print_json(e, j, gbps);
	else if (!streams)
		qsort(times.v, times.n, sizeof(times.v[0]), perf_compare);
	return streams ? gbps : perf_at(&times, 50);
}

static void print_text(const struct job *j, unsigned frame, double middle, double p99)
{
	if (j->mode == MODE_RAW || j->mode == MODE_COPIED)
		printf("%6u %-7s     %8.2f Gb/s %8.2f Mframes/s\n", j->octets, mode_name[j->mode],
		       middle, middle * 1000 / 8 / frame);
	else
		printf("%6u %-7s p50 %8.2f us  p99 %8.2f us\n", j->octets, mode_name[j->mode],
		       middle, p99);
}

static void measure(struct end *e, const struct options *o)
{
	double r[RUNS_MAX], p99[RUNS_MAX];

	if (!o->json)
		printf("link %s, mtu %u, medians of %u runs of %.1f s\n", o->link[0], e->l->mtu,
		       o->runs, o->seconds);
	for (const struct job *j = o->job; j < o->job + o->jobs; j++) {
		for (unsigned i = 0; i < o->runs; i++) {
			r[i] = run_once(e, o, j);
			p99[i] = perf_at(&times, 99);
		}
		if (!o->json)
			print_text(j, e->sh->size, median_of(r, o->runs), median_of(p99, o->runs));
		fflush(stdout);
	}
}

/* --- both --- */

static uint64_t clock_ns(void *arg)
{
	(void)arg;
	return now_ns();
}

static bool open_end(struct end *e, const struct options *o)
{
	struct dpdk_config cfg = { .link = o->link[e->me],
				   .addr = htonl(0x7f000002u + (unsigned)e->me),
				   .mask = htonl(0xff000000u),
				   .mtu = o->mtu,
				   .run_dir = o->dir,
				   .addr_fd = -1 };
	struct io_env env = { .lock = lock, .unlock = unlock };
	struct uw_ip to = uw_ip_v4(htonl(0x7f000002u + (unsigned)!e->me));

	e->memory = calloc(1, MEMORY);
	if (!e->memory || dpdk_link_open(&cfg, &env, &e->l))
		return false;
	if (o->bps && rate_open(e->l, o->bps, clock_ns, NULL, &e->l))
		return false;
	memset(e->memory, e->me, MEMORY);
	memcpy(e->sh->mac[e->me], e->l->mac, 6);
	atomic_fetch_add(&e->sh->up, 1);
	for (int ms = 0; atomic_load(&e->sh->up) < 2 && ms < OPEN_MS; ms++)
		usleep(1000);
	if (e->me == 0 && e->l->ops->resolve && e->l->ops->resolve(e->l, &to, 0, OPEN_MS))
		return false;
	return atomic_load(&e->sh->up) == 2;
}

static int server(struct shared *sh, const struct options *o)
{
	struct end e = { .sh = sh, .me = 1 };
	int done = 0, go;

	if (!open_end(&e, o))
		return 1;
	while ((go = atomic_load(&sh->go)) >= 0) {
		if (go > done)
			serve(&e, go);
		done = go;
		usleep(100);
	}
	e.l->ops->close(e.l);
	return 0;
}

static int client(struct shared *sh, const struct options *o)
{
	struct end e = { .sh = sh };
	bool ok = open_end(&e, o);

	if (ok)
		measure(&e, o);
	atomic_store(&sh->go, -1);
	if (e.l)
		e.l->ops->close(e.l);
	return !ok;
}

static void add(struct options *o, enum mode mode, unsigned octets)
{
	if (octets < 60 || o->jobs == JOBS_MAX)
		exit(2);
	o->job[o->jobs++] = (struct job){ mode, octets };
}

static void add_frame(struct options *o, unsigned octets)
{
	for (int mode = MODE_RTT; mode <= MODE_COPIED; mode++)
		add(o, (enum mode)mode, octets);
}

static void add_argument(struct options *o, const char *word)
{
	const char *colon = strchr(word, ':');

	if (!colon)
		add_frame(o, (unsigned)atoi(word));
	for (int mode = 0; colon && mode <= MODE_COUNT; mode++) {
		if (mode == MODE_COUNT)
			exit(2);
		if (strlen(mode_name[mode]) == (size_t)(colon - word) &&
		    !strncmp(word, mode_name[mode], (size_t)(colon - word))) {
			add(o, (enum mode)mode, (unsigned)atoi(colon + 1));
			break;
		}
	}
}

static void parse(int argc, char **argv, struct options *o)
{
	int c;

	while ((c = getopt(argc, argv, "l:r:m:t:n:w:b:j")) != -1) {
		switch (c) {
		case 'l':
			o->link[0] = o->link[1] = optarg;
			break;
		case 'r':
			o->link[1] = optarg;
			break;
		case 'm':
			o->mtu = (unsigned)atoi(optarg);
			break;
		case 'w':
			o->window = (unsigned)atoi(optarg);
			break;
		case 't':
			o->seconds = atof(optarg);
			break;
		case 'n':
			o->runs = (unsigned)atoi(optarg);
			break;
		case 'b':
			if (!rate_parse(optarg, &o->bps))
				exit(2);
			break;
		case 'j':
			o->json = true;
			break;
		default:
			exit(2);
		}
	}
	for (; optind < argc; optind++)
		add_argument(o, argv[optind]);
	if (o->runs < 1 || o->runs > RUNS_MAX)
		o->runs = 3;
}

static void usual_sizes(struct options *o)
{
	static const unsigned usual[] = { 64, 1514, 9014, 65294 };
	unsigned most = (o->mtu ? o->mtu : 9000) + ETHER;

	for (unsigned i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (usual[i] <= most)
			add_frame(o, usual[i]);
}

int main(int argc, char **argv)
{
	char dir[] = "/tmp/link_bench.XXXXXX", remove[64];
	struct options o = {
		.link = { "memif", "memif" }, .window = WINDOW, .seconds = 1, .runs = 3
	};
	struct shared *sh =
		mmap(NULL, sizeof(*sh), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status = 1, rc;

	parse(argc, argv, &o);
	if (o.jobs == 0)
		usual_sizes(&o);
	if (sh == MAP_FAILED || !mkdtemp(dir))
		return 1;
	o.dir = dir;
	pid_t child = fork();
	if (child == 0)
		_exit(server(sh, &o));
	rc = client(sh, &o);
	waitpid(child, &status, 0);
	snprintf(remove, sizeof(remove), "rm -rf %s", dir);
	return rc || status || system(remove);
}
