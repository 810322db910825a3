/* SPDX-License-Identifier: BSD-3-Clause */
/* The server of calls: each thread waits for its connections with epoll, as memcached does. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "calls.h"
#include "peer.h"
#include "log.h"
#include "tree.h"

#define EVENTS 64
#define ROOM   4096u
#define STRIDE 7919u

struct line {
	int fd;
	size_t filled;
	uint8_t in[ROOM];
};

struct calls {
	struct tree tree;
	uint64_t counter;
	bool spin;
};

struct thread {
	struct calls *calls;
	int epoll;
	pthread_t thread;
};

static void answer(struct calls *s, struct call *c)
{
	int err = 0;

	if (c->type == CALL_NEXT)
		c->value = __atomic_fetch_add(&s->counter, 1, __ATOMIC_RELAXED);
	else if (c->type == CALL_GET)
		err = tree_get(&s->tree, c->key, &c->value);
	else if (c->type == CALL_PUT)
		err = tree_put(&s->tree, c->key, c->value);
	else
		err = -EINVAL;
	c->status = (uint32_t)-err;
}

/* All whole calls that are there are answered in one go. */
static bool serve_line(struct calls *s, struct line *l)
{
	ssize_t n = recv(l->fd, l->in + l->filled, ROOM - l->filled, MSG_DONTWAIT);
	size_t whole;

	if (n < 0)
		return errno == EAGAIN;
	if (!n)
		return false;
	l->filled += (size_t)n;
	whole = l->filled / sizeof(struct call) * sizeof(struct call);
	for (size_t i = 0; i < whole; i += sizeof(struct call)) {
		struct call c;

		memcpy(&c, l->in + i, sizeof(c));
		answer(s, &c);
		memcpy(l->in + i, &c, sizeof(c));
	}
	/* what is sent is never more than what came, so a client that reads takes it */
	if (whole && send(l->fd, l->in, whole, MSG_NOSIGNAL) != (ssize_t)whole)
		return false;
	memmove(l->in, l->in + whole, l->filled - whole);
	l->filled -= whole;
	return true;
}

static void *work(void *arg)
{
	struct thread *t = arg;
	struct epoll_event ev[EVENTS];

	for (;;) {
		int n = epoll_wait(t->epoll, ev, EVENTS, t->calls->spin ? 0 : -1);

		for (int i = 0; i < n; i++) {
			struct line *l = ev[i].data.ptr;

			if (serve_line(t->calls, l))
				continue;
			close(l->fd);
			free(l);
		}
	}
	return NULL;
}

static int accept_all(struct thread *t, unsigned threads, int listener)
{
	for (unsigned next = 0;; next++) {
		struct line *l = calloc(1, sizeof(*l));
		struct epoll_event ev = { .events = EPOLLIN, .data.ptr = l };

		if (!l)
			return -ENOMEM;
		l->fd = accept(listener, NULL, NULL);
		if (l->fd < 0 || epoll_ctl(t[next % threads].epoll, EPOLL_CTL_ADD, l->fd, &ev))
			return log_errno("accept");
	}
}

static int load(struct tree *t, uint64_t keys)
{
	uint64_t pages = 2 * (keys / 100) + 1024, step = keys % STRIDE ? STRIDE : 1;
	void *memory = calloc(pages, 4096);
	int err = 0;

	if (!memory)
		return log_errno("no memory");
	tree_open(t, memory, pages, 4096);
	for (uint64_t i = 0; !err && i < keys; i++)
		err = tree_put(t, call_key(i * step % keys), i);
	return err;
}

int peer_serve(const struct peer_options *o)
{
	struct thread *t = calloc(o->common.threads, sizeof(*t));
	struct calls *s = calloc(1, sizeof(*s));
	int listener, err;

	if (!t || !s)
		return -ENOMEM;
	s->spin = !o->common.events;
	err = load(&s->tree, o->keys);
	listener = err ? err : peer_listen(&o->common);
	if (listener < 0)
		return listener;
	for (unsigned i = 0; i < o->common.threads; i++) {
		t[i].calls = s;
		t[i].epoll = epoll_create1(0);
		if (t[i].epoll < 0 || pthread_create(&t[i].thread, NULL, work, &t[i]))
			return log_errno("no thread");
	}
	printf("uwarp-tcp-peer: ready on port %s\n", o->common.server.port);
	fflush(stdout);
	return accept_all(t, o->common.threads, listener);
}
