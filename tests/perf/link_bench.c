/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a link carries between two processes with nothing above it: the "wire" that everything
 * else is compared with. Each process is one thread that polls, and yields when it finds nothing.
 *
 *   link_bench [-l LINK [-r LINK]] [-m MTU] [-t SECONDS] [-n RUNS] [-w WINDOW] [FRAME_OCTETS...]
 *
 * rtt     one frame to and fro, half of nothing: the full round trip, p50 and p99
 * raw     frames as fast as the other side takes them
 * copied  the same with one copy into and out of other memory at each end and a window of
 *         WINDOW octets (512 KiB), which is what a transport does
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
#include <time.h>
#include <unistd.h>

#include <arpa/inet.h>

#include "io/dpdk/dpdk.h"

enum {
	ETHER = 14,
	BURST = 32,
	WINDOW = 512 << 10,
	WINDOW_FRAMES = 256, /* at most */
	AT_ONCE = 64 << 10,  /* octets copied before they are sent */
	MEMORY = 64 << 20,   /* copied from and to, more than a cache holds */
	SAMPLES = 1 << 20,
	SIZES_MAX = 8,
	RUNS_MAX = 31,
	YIELD_AFTER = 20, /* empty polls */
	OPEN_MS = 5000,
};

enum mode { MODE_RTT, MODE_RAW, MODE_COPIED, MODE_COUNT };

static const char *const mode_name[] = { "rtt", "raw", "copied" };

/* What both processes see. */
struct shared {
	_Atomic int up;	    /* ends that are open */
	_Atomic int go;	    /* number of the run under way, -1: over */
	_Atomic int stop;   /* the client has ended run n */
	_Atomic int served; /* the server has ended run n */
	enum mode mode;
	unsigned size;
	unsigned window; /* frames */
	uint8_t mac[2][6];
	uint64_t frames, ns; /* what the server took, and how long */
};

struct options {
	const char *link[2];
	const char *dir;
	unsigned mtu;
	unsigned window; /* octets */
	double seconds;
	unsigned runs;
	unsigned size[SIZES_MAX], sizes;
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

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
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
	unsigned made = 0, most = e->sh->mode == MODE_COPIED ? AT_ONCE / size : BURST;

	most = most < 1 ? 1 : most > BURST ? BURST : most;
	lock(NULL);
	while (made < n && made < most && (v[made] = make(e, size, mark)))
		made++;
	if (e->sh->mode == MODE_COPIED && !mark->credit)
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

/* --- the server's side of a run --- */

static void serve(struct end *e, int run)
{
	struct io_frame *v[BURST];
	uint64_t frames = 0, first = 0, last = 0;
	unsigned owed = 0;

	while (atomic_load(&e->sh->stop) < run) {
		unsigned n = receive(e, v), data = 0;

		for (unsigned i = 0; i < n; i++) {
			data += mark_of(v[i]).run == (uint32_t)run;
			if (e->sh->mode == MODE_COPIED)
				copy_out(e, v[i]);
		}
		release(e, v, n);
		if (data == 0)
			continue;
		last = now_ns();
		first = first ? first : last;
		frames += data;
		owed += data;
		struct mark m = { .run = (uint32_t)run };
		if (e->sh->mode == MODE_RTT) {
			while (owed)
				owed -= transmit(e, owed, e->sh->size, &m);
		} else if (e->sh->mode == MODE_COPIED && owed * 8 >= e->sh->window) {
			m.credit = owed;
			owed -= transmit(e, 1, 64, &m) ? owed : 0;
		}
	}
	e->sh->frames = frames;
	e->sh->ns = last - first;
	atomic_store(&e->sh->served, run);
}

/* --- the client's --- */

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static double rtt(struct end *e, int run, double seconds, double *p99)
{
	static double sample[SAMPLES];
	struct io_frame *v[BURST];
	struct mark m = { .run = (uint32_t)run };
	uint64_t end = now_ns() + (uint64_t)(seconds * 1e9), t = 0;
	unsigned n = 0;

	while (t < end && n < SAMPLES) {
		uint64_t sent = now_ns();

		while (!transmit(e, 1, e->sh->size, &m))
			;
		for (bool back = false; !back && t < end;) {
			unsigned got = receive(e, v);

			for (unsigned i = 0; i < got; i++)
				back |= mark_of(v[i]).run == (uint32_t)run;
			release(e, v, got);
			t = now_ns();
		}
		sample[n++] = (double)(t - sent) / 1000;
	}
	qsort(sample, n, sizeof(sample[0]), compare);
	*p99 = n ? sample[n * 99ull / 100] : 0;
	return n ? sample[n / 2] : 0;
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

static double run_once(struct end *e, const struct options *o, enum mode mode, unsigned size,
		       double *p99)
{
	static int run;
	double result = 0;

	run++;
	e->sh->mode = mode;
	e->sh->size = size;
	e->sh->window = o->window / size < WINDOW_FRAMES ? o->window / size : WINDOW_FRAMES;
	e->sh->window += !e->sh->window;
	atomic_store(&e->sh->go, run);
	if (mode == MODE_RTT)
		result = rtt(e, run, o->seconds, p99);
	else
		stream(e, run, o->seconds);
	usleep(20000); /* what is on the way arrives */
	atomic_store(&e->sh->stop, run);
	while (atomic_load(&e->sh->served) < run)
		usleep(100);
	if (mode != MODE_RTT && e->sh->ns)
		result = (double)e->sh->frames * size * 8 / (double)e->sh->ns;
	return result;
}

static void measure(struct end *e, const struct options *o)
{
	double r[RUNS_MAX], p99[RUNS_MAX];

	printf("link %s, mtu %u, medians of %u runs of %.1f s\n", o->link[0], e->l->mtu, o->runs,
	       o->seconds);
	for (unsigned s = 0; s < o->sizes; s++)
		for (int mode = 0; mode < MODE_COUNT; mode++) {
			for (unsigned i = 0; i < o->runs; i++)
				r[i] = run_once(e, o, (enum mode)mode, o->size[s], &p99[i]);
			qsort(r, o->runs, sizeof(r[0]), compare);
			qsort(p99, o->runs, sizeof(p99[0]), compare);
			if (mode == MODE_RTT)
				printf("%6u %-7s p50 %8.2f us  p99 %8.2f us\n", o->size[s],
				       mode_name[mode], r[o->runs / 2], p99[o->runs / 2]);
			else
				printf("%6u %-7s     %8.2f Gb/s %8.2f Mframes/s\n", o->size[s],
				       mode_name[mode], r[o->runs / 2],
				       r[o->runs / 2] * 1000 / 8 / o->size[s]);
			fflush(stdout);
		}
}

/* --- both --- */

static bool open_end(struct end *e, const struct options *o)
{
	struct dpdk_config cfg = { .link = o->link[e->me],
				   .addr = htonl(0x7f000002u + (unsigned)e->me),
				   .mask = htonl(0xff000000u),
				   .mtu = o->mtu,
				   .run_dir = o->dir,
				   .addr_fd = -1 };
	struct io_env env = { .lock = lock, .unlock = unlock };
	uint32_t peer = htonl(0x7f000002u + (unsigned)!e->me);

	e->memory = calloc(1, MEMORY);
	if (!e->memory || dpdk_link_open(&cfg, &env, &e->l))
		return false;
	memset(e->memory, e->me, MEMORY);
	memcpy(e->sh->mac[e->me], e->l->mac, 6);
	atomic_fetch_add(&e->sh->up, 1);
	for (int ms = 0; atomic_load(&e->sh->up) < 2 && ms < OPEN_MS; ms++)
		usleep(1000);
	if (e->me == 0 && e->l->ops->resolve && e->l->ops->resolve(e->l, &peer, 0, OPEN_MS))
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

static void parse(int argc, char **argv, struct options *o)
{
	int c;

	while ((c = getopt(argc, argv, "l:r:m:t:n:w:")) != -1) {
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
		default:
			exit(2);
		}
	}
	for (; optind < argc && o->sizes < SIZES_MAX; optind++)
		o->size[o->sizes++] = (unsigned)atoi(argv[optind]);
	if (o->runs < 1 || o->runs > RUNS_MAX)
		o->runs = 3;
}

static void usual_sizes(struct options *o)
{
	static const unsigned usual[] = { 64, 1514, 9014, 65294 };
	unsigned most = (o->mtu ? o->mtu : 9000) + ETHER;

	for (unsigned i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		if (usual[i] <= most)
			o->size[o->sizes++] = usual[i];
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
	if (o.sizes == 0)
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
