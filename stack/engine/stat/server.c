/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread uwarp-stat. A client says "stat" and a newline, is sent one snapshot and is hung up
 * on. Who says anything else, or nothing for a while, is hung up on; who reads slowly makes nobody
 * wait, neither the stack nor other clients.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "engine/stat/stat.h"
#include "io/fds.h"

#define CLIENTS	   8u
#define ASK_MS	   1000u /* to say what it wants */
#define READ_MS	   5000u /* to read the answer */
#define NO_FDS_MS  100u	 /* nobody is accepted after there was no descriptor left */
#define QUESTION   "stat\n"
#define N_QUESTION (sizeof(QUESTION) - 1)

struct client {
	int fd; /* -1: this place is free */
	uint64_t until_ms;
	char asked[N_QUESTION];
	size_t n_asked;
	struct text answer;
	size_t sent;
};

struct stat_server {
	struct uw_engine *e;
	pthread_t thread;
	int listen_fd, wake_fd;
	_Atomic bool deaf;  /* wake_fd is not ours any more: the program has closed it */
	uint64_t accept_ms; /* when somebody may be accepted again; 0: now */
	char path[STAT_PATH];
	_Atomic bool closing;
	struct client client[CLIENTS];
	struct stat_queue queue;
};

struct stat_queue *stat_queue(struct uw_engine *e)
{
	return e->stat ? &e->stat->queue : NULL;
}

void stat_wake(struct uw_engine *e)
{
	if (!e->stat->deaf)
		fds_ring(e->stat->wake_fd);
}

/* ---- clients ----------------------------------------------------------------------------- */

static void hang_up(struct client *k)
{
	fds_close(k->fd);
	text_free(&k->answer);
	*k = (struct client){ .fd = -1 };
}

static bool would_block(void)
{
	return errno == EAGAIN || errno == EINTR;
}

static void answer(struct client *k)
{
	size_t left = k->answer.n - k->sent;
	ssize_t n = send(k->fd, k->answer.p + k->sent, left, MSG_NOSIGNAL | MSG_DONTWAIT);

	if (n > 0)
		k->sent += (size_t)n;
	if (k->sent == k->answer.n || (n < 0 && !would_block()))
		hang_up(k);
}

static void hear(struct stat_server *v, struct client *k)
{
	ssize_t n = recv(k->fd, k->asked + k->n_asked, N_QUESTION - k->n_asked, MSG_DONTWAIT);

	if (n < 0 && would_block())
		return;
	if (n > 0)
		k->n_asked += (size_t)n;
	if (n <= 0 || memcmp(k->asked, QUESTION, k->n_asked)) {
		hang_up(k);
		return;
	}
	if (k->n_asked < N_QUESTION)
		return;
	stat_snapshot(v->e, &k->answer);
	if (k->answer.failed) {
		hang_up(k);
		return;
	}
	k->until_ms = uw_clock_ms() + READ_MS;
	answer(k);
}

static struct client *free_place(struct stat_server *v)
{
	for (unsigned i = 0; i < CLIENTS; i++) {
		if (v->client[i].fd < 0)
			return &v->client[i];
	}
	return NULL;
}

static void let_in(struct stat_server *v, struct client *k)
{
	int fd = accept4(v->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	/* Without a descriptor the socket stays readable, and poll() would return at once. */
	if (fd < 0 && errno != EAGAIN)
		v->accept_ms = uw_clock_ms() + NO_FDS_MS;
	if (fd < 0)
		return;
	if (!stat_may_ask(fd)) {
		close(fd);
		return;
	}
	*k = (struct client){ .fd = fds_keep(fd), .until_ms = uw_clock_ms() + ASK_MS };
}

static void serve_client(struct stat_server *v, struct client *k, short events)
{
	if (k->fd < 0)
		return;
	if (events && k->answer.n)
		answer(k);
	else if (events)
		hear(v, k);
	if (k->fd >= 0 && uw_clock_ms() >= k->until_ms)
		hang_up(k);
}

/* ---- the thread -------------------------------------------------------------------------- */

static void earlier(uint64_t *at, uint64_t t)
{
	if (t && t < *at)
		*at = t;
}

static int wait_ms(const struct stat_server *v)
{
	uint64_t at = UINT64_MAX, now = uw_clock_ms();

	earlier(&at, v->accept_ms);
	for (unsigned i = 0; i < CLIENTS; i++) {
		if (v->client[i].fd >= 0)
			earlier(&at, v->client[i].until_ms);
	}
	if (at == UINT64_MAX)
		return -1;
	return at > now ? (int)(at - now) : 0;
}

static void serve_once(struct stat_server *v)
{
	struct client *place = free_place(v);
	struct pollfd p[2 + CLIENTS];

	if (v->accept_ms && uw_clock_ms() >= v->accept_ms)
		v->accept_ms = 0;
	p[0] = (struct pollfd){ .fd = v->deaf ? -1 : v->wake_fd, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = place && !v->accept_ms ? v->listen_fd : -1,
				.events = POLLIN };
	for (unsigned i = 0; i < CLIENTS; i++) {
		const struct client *k = &v->client[i];

		p[2 + i] = (struct pollfd){ .fd = k->fd, .events = k->answer.n ? POLLOUT : POLLIN };
	}
	fds_poll(p, 2 + CLIENTS, wait_ms(v));
	if (p[0].revents && !fds_rung(v->wake_fd))
		v->deaf = true;
	stat_write_records(v->e, &v->queue);
	if (p[1].revents & POLLIN)
		let_in(v, place);
	else if (p[1].revents) /* somebody has closed our descriptor */
		v->listen_fd = -1;
	for (unsigned i = 0; i < CLIENTS; i++)
		serve_client(v, &v->client[i], p[2 + i].revents);
}

static void *serve(void *arg)
{
	struct stat_server *v = arg;

	while (!v->closing)
		serve_once(v);
	stat_write_records(v->e, &v->queue);
	for (unsigned i = 0; i < CLIENTS; i++)
		hang_up(&v->client[i]);
	return NULL;
}

/* ---- its life ---------------------------------------------------------------------------- */

static struct stat_server *server_new(struct uw_engine *e)
{
	struct stat_server *v = calloc(1, sizeof(*v));

	if (!v)
		return NULL;
	v->e = e;
	v->listen_fd = -1;
	v->wake_fd = fds_keep(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
	v->queue.last = &v->queue.first;
	pthread_mutex_init(&v->queue.lock, NULL);
	for (unsigned i = 0; i < CLIENTS; i++)
		v->client[i].fd = -1;
	return v;
}

static void server_free(struct stat_server *v)
{
	if (*v->path)
		unlink(v->path);
	fds_close(v->listen_fd);
	if (!v->deaf)
		fds_close(v->wake_fd);
	stat_drop_records(&v->queue);
	pthread_mutex_destroy(&v->queue.lock);
	free(v);
}

static void open_socket(struct uw_engine *e, struct stat_server *v)
{
	uint32_t random;

	sched_lock(&e->stack[0]->sched);
	random = stack_random(e->stack[0]);
	sched_unlock(&e->stack[0]->sched);
	v->listen_fd = stat_listen(&e->cfg, random, v->path);
	if (v->listen_fd >= 0)
		return;
	if (e->cfg.verbose)
		uw_log("uwarp-stat cannot see this process: no socket in the run directory: %s",
		       strerror(-v->listen_fd));
	v->listen_fd = -1;
	*v->path = '\0';
}

void stat_start(struct uw_engine *e)
{
	struct stat_server *v;

	if (!e->cfg.stat && !stat_records(e))
		return;
	v = server_new(e);
	if (!v)
		return;
	if (e->cfg.stat)
		open_socket(e, v);
	if (v->wake_fd < 0 || sched_spawn(&v->thread, serve, v)) {
		server_free(v);
		return;
	}
	pthread_setname_np(v->thread, "uwarp-stat");
	sched_lock_all(&e->stack[0]->sched);
	e->stat = v;
	sched_unlock_all(&e->stack[0]->sched);
}

void stat_stop(struct uw_engine *e)
{
	struct stat_server *v = e->stat;

	if (!v)
		return;
	v->closing = true;
	stat_wake(e);
	pthread_join(v->thread, NULL);
	sched_lock_all(&e->stack[0]->sched);
	e->stat = NULL;
	sched_unlock_all(&e->stack[0]->sched);
	server_free(v);
}

void stat_forget(struct uw_engine *e)
{
	e->stat = NULL;
}

void stat_abandon(struct uw_engine *e)
{
	if (e->stat && *e->stat->path)
		unlink(e->stat->path);
}
