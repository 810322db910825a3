/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The kernel's TCP with the shapes of the verbs programs: what a user would run without us.
 *
 *   tcp_bench -S [-a ADDR] [-p PORT] [-C CONTROL]    serve until killed
 *   tcp_bench -a ADDR [-p PORT] [-t SECONDS] [-c CONNECTIONS] [-n BUFFERS] [-k] [-v] [-C CONTROL]
 *             MODE:OCTETS...
 *
 * echo     a message to and fro, blocking in recv(): the full round trip
 * spin     the same, spinning on recv() at both ends
 * stream   messages of OCTETS one way, one send() each
 * flow     the same, and the receiver says after SECONDS what it got: nothing that waits at the
 *          sender is counted, so it is for networks that lose
 * connect  connect, a message to and fro, close; -c as many at a time
 * -n: messages of stream and flow leave from BUFFERS buffers in turn, and arrive in as many; 1 if
 * it is not given, as in iperf3 and in verbs_bench, which has the same option. -C names the
 * congestion control (tcp(7)); the kernel's default if it is not given. -k leaves Nagle's algorithm
 * on for stream, -v has every octet of a stream checked by the receiver. One JSON object for each
 * mode, on a line of its own.
 */
#include <errno.h>
#include <getopt.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "perf.h"

enum { PORT = 18600, OCTETS_MAX = 16 << 20, TAKE_MIN = 64 << 10, CONNECTIONS_MAX = 64 };
enum { FLOW_PATIENCE_MS = 60000 };

enum mode { MODE_ECHO, MODE_SPIN, MODE_STREAM, MODE_CONNECT, MODE_FLOW, MODE_COUNT };

static const char *const mode_name[] = { "echo", "spin", "stream", "connect", "flow" };

/* What a connection begins with. */
struct hello {
	uint32_t mode;
	uint32_t octets;
	uint32_t verify;
	uint32_t ms; /* flow: how long to count */
	uint32_t buffers;
};

/* What a stream's receiver says at the end. */
struct verdict {
	uint64_t octets, ns, bad;
};

struct options {
	struct sockaddr_in peer;
	const char *control;
	bool serve, nagle, verify;
	double seconds;
	unsigned connections, buffers;
};

static uint8_t pattern_at(uint64_t at)
{
	return (uint8_t)(at * 31 + (at >> 8) * 7 + (at >> 16));
}

static bool spins(enum mode m)
{
	return m == MODE_SPIN;
}

/* All n octets in, false at the end of the connection. */
static bool take(int fd, void *to, size_t n, bool spin)
{
	uint8_t *p = to;

	while (n) {
		ssize_t got = recv(fd, p, n, spin ? MSG_DONTWAIT : 0);

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (got <= 0)
			return false;
		p += got;
		n -= (size_t)got;
	}
	return true;
}

static bool give(int fd, const void *from, size_t n, bool spin)
{
	const uint8_t *p = from;

	while (n) {
		ssize_t sent = send(fd, p, n, MSG_NOSIGNAL | (spin ? MSG_DONTWAIT : 0));

		if (sent < 0 && (errno == EAGAIN || errno == EINTR))
			continue;
		if (sent <= 0)
			return false;
		p += sent;
		n -= (size_t)sent;
	}
	return true;
}

static void no_delay(int fd)
{
	int one = 1;

	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
}

static void choose_control(const struct options *o, int fd)
{
	if (o->control && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, o->control,
				     (socklen_t)strlen(o->control))) {
		perror("tcp_bench: congestion control");
		exit(1);
	}
}

/* --- the server --- */

/* What a stream arrives in: its buffers in turn. */
struct place {
	uint8_t *buf;
	size_t each;
	uint32_t buffers, next;
};

static ssize_t take_some(int fd, struct place *p, uint8_t **to)
{
	*to = p->buf + p->next++ % p->buffers * p->each;
	return recv(fd, *to, p->each, 0);
}

static void serve_stream(int fd, const struct hello *h, struct place *place)
{
	struct verdict v = { 0 };
	uint64_t first = 0;
	uint8_t *buf;

	for (;;) {
		ssize_t got = take_some(fd, place, &buf);

		if (got <= 0)
			break;
		v.ns = now_ns();
		first = first ? first : v.ns;
		for (ssize_t i = 0; h->verify && i < got; i++)
			v.bad += buf[i] != pattern_at((v.octets + (uint64_t)i) % h->octets);
		v.octets += (uint64_t)got;
	}
	v.ns -= first;
	give(fd, &v, sizeof(v), false);
}

/* What comes between the first arrival and the first one after the time. */
static void serve_flow(int fd, const struct hello *h, struct place *place)
{
	struct verdict v = { 0 };
	uint64_t first = 0, now = 0;
	ssize_t got;
	uint8_t *buf;

	while ((got = take_some(fd, place, &buf)) > 0) {
		now = now_ns();
		if (first)
			v.octets += (uint64_t)got;
		else
			first = now;
		if (v.ns || now - first < h->ms * 1000000ull)
			continue;
		v.ns = now - first;
		give(fd, &v, sizeof(v), false);
	}
}

static void *serve_one(void *arg)
{
	int fd = (int)(intptr_t)arg;
	struct hello h;
	struct place place = { NULL };

	no_delay(fd);
	if (take(fd, &h, sizeof(h), false) && h.octets <= OCTETS_MAX && h.octets && h.buffers &&
	    h.buffers <= PERF_BUFFERS_MAX) {
		place.each = h.octets < TAKE_MIN ? TAKE_MIN : h.octets;
		place.buffers = h.buffers;
		place.buf = malloc(place.each * place.buffers);
	}
	if (place.buf && h.mode == MODE_STREAM)
		serve_stream(fd, &h, &place);
	else if (place.buf && h.mode == MODE_FLOW)
		serve_flow(fd, &h, &place);
	else if (place.buf)
		while (take(fd, place.buf, h.octets, spins((enum mode)h.mode)) &&
		       give(fd, place.buf, h.octets, spins((enum mode)h.mode)))
			;
	free(place.buf);
	close(fd);
	return NULL;
}

/* A connection of mode connect is served at once, so that no thread's start is counted. */
static void serve_short(int fd, const struct hello *h)
{
	uint8_t buf[TAKE_MIN];

	if (h->octets <= sizeof(buf) && take(fd, buf, sizeof(*h) + h->octets, false))
		give(fd, buf, h->octets, false);
	close(fd);
}

static int serve(const struct options *o)
{
	int one = 1, listener = socket(AF_INET, SOCK_STREAM, 0);

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	choose_control(o, listener);
	if (bind(listener, (const struct sockaddr *)&o->peer, sizeof(o->peer)) ||
	    listen(listener, 1024)) {
		perror("tcp_bench: cannot listen");
		return 1;
	}
	for (;;) {
		int fd = accept(listener, NULL, NULL);
		struct hello h = { 0 };
		pthread_t thread;

		if (fd < 0)
			continue;
		if (recv(fd, &h, sizeof(h), MSG_PEEK | MSG_WAITALL) != sizeof(h))
			close(fd);
		else if (h.mode == MODE_CONNECT)
			serve_short(fd, &h);
		else if (pthread_create(&thread, NULL, serve_one, (void *)(intptr_t)fd))
			close(fd);
		else
			pthread_detach(thread);
	}
}

/* --- the client --- */

static int open_to(const struct options *o)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	choose_control(o, fd);
	if (connect(fd, (const struct sockaddr *)&o->peer, sizeof(o->peer))) {
		close(fd);
		return -1;
	}
	return fd;
}

static int open_for(const struct options *o, enum mode mode, unsigned octets)
{
	struct hello h = { .mode = mode,
			   .octets = octets,
			   .verify = o->verify,
			   .ms = (uint32_t)(o->seconds * 1e3),
			   .buffers = o->buffers };
	int fd = open_to(o);

	if (fd < 0) {
		perror("tcp_bench: cannot connect");
		exit(1);
	}
	if (!o->nagle || mode != MODE_STREAM)
		no_delay(fd);
	if (!give(fd, &h, sizeof(h), false))
		exit(1);
	return fd;
}

static struct perf_times times;

static bool echo(const struct options *o, enum mode mode, unsigned octets, uint8_t *buf)
{
	int fd = open_for(o, mode, octets);
	uint64_t t = now_ns(), end = t + (uint64_t)(o->seconds * 1e9);
	bool ok = true;

	for (times.n = 0; ok && t < end && times.n < PERF_SAMPLES;) {
		uint64_t sent = t;

		ok = give(fd, buf, octets, spins(mode)) && take(fd, buf, octets, spins(mode));
		t = now_ns();
		times.v[times.n++] = (float)(t - sent) / 1000;
	}
	close(fd);
	perf_print_times(&times);
	return ok;
}

static bool stream(const struct options *o, unsigned octets, const uint8_t *buf)
{
	int fd = open_for(o, MODE_STREAM, octets);
	uint64_t end = now_ns() + (uint64_t)(o->seconds * 1e9), messages = 0;
	struct verdict v = { 0 };
	bool ok = true;

	for (; ok && now_ns() < end; messages++)
		ok = give(fd, buf + messages % o->buffers * octets, octets, false);
	shutdown(fd, SHUT_WR);
	ok &= take(fd, &v, sizeof(v), false) && v.octets == messages * octets;
	close(fd);
	printf("\"gbps\": %.4f, \"mps\": %.5f, \"messages\": %llu, \"bad\": %llu",
	       v.ns ? (double)v.octets * 8 / (double)v.ns : 0,
	       v.ns ? (double)v.octets / octets * 1000 / (double)v.ns : 0,
	       (unsigned long long)messages, (unsigned long long)v.bad);
	return ok && v.bad == 0;
}

/* Send as much as goes until the receiver has said what it got. */
static bool flow(const struct options *o, unsigned octets, const uint8_t *buf)
{
	const struct linger at_once = { 1, 0 };
	int fd = open_for(o, MODE_FLOW, octets);
	struct pollfd p = { fd, POLLIN | POLLOUT, 0 };
	struct verdict v = { 0 };
	size_t at = 0;
	bool ok = true;

	while (ok && poll(&p, 1, FLOW_PATIENCE_MS) > 0 && !(p.revents & POLLIN)) {
		ssize_t sent =
			send(fd, buf + at, octets - at % octets, MSG_NOSIGNAL | MSG_DONTWAIT);

		ok = sent > 0 || errno == EAGAIN;
		at = sent > 0 ? (at + (size_t)sent) % ((size_t)octets * o->buffers) : at;
	}
	ok &= take(fd, &v, sizeof(v), false) && v.ns;
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
	close(fd);
	printf("\"gbps\": %.5f", v.ns ? (double)v.octets * 8 / (double)v.ns : 0);
	return ok;
}

struct connector {
	const struct options *o;
	unsigned octets;
	uint64_t end, done;
	bool failed;
};

static void *keep_connecting(void *arg)
{
	struct connector *c = arg;
	uint8_t buf[sizeof(struct hello) + TAKE_MIN] = { 0 };
	struct hello h = { .mode = MODE_CONNECT, .octets = c->octets };

	memcpy(buf, &h, sizeof(h));
	while (!c->failed && now_ns() < c->end) {
		int fd = open_to(c->o);

		c->failed = fd < 0 || !give(fd, buf, sizeof(h) + c->octets, false) ||
			    !take(fd, buf + sizeof(h), c->octets, false);
		close(fd);
		c->done += !c->failed;
	}
	return NULL;
}

static bool connects(const struct options *o, unsigned octets)
{
	struct connector c[CONNECTIONS_MAX] = { 0 };
	pthread_t thread[CONNECTIONS_MAX];
	uint64_t start = now_ns(), done = 0;
	bool ok = octets <= TAKE_MIN;

	for (unsigned i = 0; i < o->connections; i++) {
		c[i] = (struct connector){ o, octets, start + (uint64_t)(o->seconds * 1e9), 0,
					   !ok };
		if (pthread_create(&thread[i], NULL, keep_connecting, &c[i]))
			exit(1);
	}
	for (unsigned i = 0; i < o->connections; i++) {
		pthread_join(thread[i], NULL);
		done += c[i].done;
		ok &= !c[i].failed;
	}
	printf("\"rate\": %.1f", (double)done * 1e9 / (double)(now_ns() - start));
	return ok;
}

static bool run(const struct options *o, const char *word)
{
	const char *colon = strchr(word, ':');
	unsigned octets = colon ? (unsigned)atoi(colon + 1) : 0;
	int mode = 0;
	bool ok;

	if (octets == 0 || octets > OCTETS_MAX)
		exit(2);
	while (mode < MODE_COUNT && strncmp(word, mode_name[mode], (size_t)(colon - word)))
		mode++;
	if (mode == MODE_COUNT)
		exit(2);
	size_t all = (size_t)octets * o->buffers;
	uint8_t *buf = malloc(all);
	if (!buf)
		exit(1);
	for (size_t i = 0; i < all; i++)
		buf[i] = pattern_at(i % octets);
	printf("{\"mode\": \"%s\", \"octets\": %u, ", mode_name[mode], octets);
	if (mode == MODE_STREAM)
		ok = stream(o, octets, buf);
	else if (mode == MODE_CONNECT)
		ok = connects(o, octets);
	else if (mode == MODE_FLOW)
		ok = flow(o, octets, buf);
	else
		ok = echo(o, (enum mode)mode, octets, buf);
	printf(", \"ok\": %s}\n", ok ? "true" : "false");
	fflush(stdout);
	free(buf);
	return ok;
}

int main(int argc, char **argv)
{
	struct options o = { .seconds = 1, .connections = 1, .buffers = 1 };
	bool ok = true;
	int c;

	o.peer.sin_family = AF_INET;
	o.peer.sin_port = htons(PORT);
	while ((c = getopt(argc, argv, "Sa:p:t:c:C:n:kv")) != -1) {
		if (c == 'S')
			o.serve = true;
		else if (c == 'a' && !inet_aton(optarg, &o.peer.sin_addr))
			return 2;
		else if (c == 'p')
			o.peer.sin_port = htons((uint16_t)atoi(optarg));
		else if (c == 't')
			o.seconds = atof(optarg);
		else if (c == 'c')
			o.connections = (unsigned)atoi(optarg);
		else if (c == 'C')
			o.control = optarg;
		else if (c == 'n')
			o.buffers = perf_buffers(optarg);
		else if (c == 'k')
			o.nagle = true;
		else if (c == 'v')
			o.verify = true;
		else if (c == '?')
			return 2;
	}
	if (o.connections < 1 || o.connections > CONNECTIONS_MAX)
		return 2;
	if (o.serve)
		return serve(&o);
	for (; ok && optind < argc; optind++)
		ok = run(&o, argv[optind]);
	return !ok;
}
