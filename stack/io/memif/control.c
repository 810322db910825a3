/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fabric.h"
#include "io/fds.h"
#include "io/log.h"

/* Bounds, in ms: for a caller to say HELLO; for our engine to take the last words of a peer that
 * said good-bye, and of one that did not; for peers to hang up when we leave; until a killed
 * process's locks are gone. */
#define HELLO_MS 2000
#define DRAIN_MS 1000
#define MOURN_MS 100
#define LEAVE_MS 500
#define SWEEP_MS 200

/* How often to look whether those words were taken. */
#define LOOK_MS 1

void control_wake(struct fabric *f)
{
	eventfd_write(f->wake_fd, 1);
}

static void earlier(uint64_t *next, uint64_t t)
{
	if (t && (!*next || t < *next))
		*next = t;
}

/* --- what is polled --- */

struct watch {
	struct pollfd fd[2 + VISITOR_MAX + PEER_MAX];
	unsigned count;
	struct visitor *visitor[VISITOR_MAX];
	struct peer *peer[PEER_MAX];
	unsigned visitors, peers;
	uint64_t next_ms;
};

static void watch_fd(struct watch *w, int fd)
{
	w->fd[w->count++] = (struct pollfd){ .fd = fd, .events = POLLIN };
}

static void watch_build(struct fabric *f, struct watch *w)
{
	memset(w, 0, sizeof(*w));
	watch_fd(w, f->wake_fd);
	watch_fd(w, -1); /* poll skips it: while there is no place for a visitor */
	for (unsigned i = 0; i < VISITOR_MAX; i++) {
		struct visitor *v = &f->visitor[i];

		if (v->fd < 0) {
			w->fd[1].fd = f->registry.listen_fd;
			continue;
		}
		w->visitor[w->visitors++] = v;
		watch_fd(w, v->fd);
		earlier(&w->next_ms, v->deadline_ms);
	}
	earlier(&w->next_ms, f->sweep_ms);
	pthread_mutex_lock(&f->lock);
	for (unsigned i = 0; i < PEER_MAX; i++) {
		struct peer *p = &f->peer[i];

		if (p->state <= PEER_CALLING)
			continue;
		w->peer[w->peers++] = p;
		watch_fd(w, p->fd); /* -1 when GONE: poll skips it */
		if (p->state != PEER_UP)
			earlier(&w->next_ms, p->deadline_ms);
		if (p->state == PEER_GONE)
			earlier(&w->next_ms, registry_now() + LOOK_MS);
	}
	pthread_mutex_unlock(&f->lock);
}

static int timeout(uint64_t next_ms)
{
	uint64_t now = registry_now();

	if (!next_ms)
		return -1;
	return next_ms <= now ? 0 : (int)(next_ms - now);
}

/* --- visitors --- */

static void visitors_accept(struct fabric *f)
{
	for (unsigned i = 0; i < VISITOR_MAX; i++) {
		struct visitor *v = &f->visitor[i];

		if (v->fd >= 0)
			continue;
		int fd = accept4(f->registry.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			return;
		v->fd = fds_keep(fd);
		v->deadline_ms = registry_now() + HELLO_MS;
	}
}

static void visitor_read(struct fabric *f, struct visitor *v)
{
	struct msg m;
	int passed, fd = v->fd;
	int rc = msg_receive(fd, &m, &passed);

	if (rc == -EAGAIN && registry_now() < v->deadline_ms)
		return;
	v->fd = -1;
	if (rc == 1 && m.type == MSG_HELLO) {
		join_answer(f, fd, &m, passed);
		return;
	}
	if (rc == 1 && passed >= 0)
		close(passed);
	fds_close(fd);
}

/* --- peers --- */

static void peer_died(struct fabric *f, struct peer *p)
{
	f->sweep_ms = registry_now() + SWEEP_MS;
	join_hang_up(f, p, MOURN_MS);
}

static void peer_read(struct fabric *f, struct peer *p)
{
	struct msg m;
	int passed;
	int rc = msg_receive(p->fd, &m, &passed);

	if (rc == -EAGAIN)
		return;
	if (rc == 1 && passed >= 0)
		close(passed);
	if (rc == 1 && m.type == MSG_READY && p->state == PEER_ANSWERING)
		join_ready(f, p);
	else if (rc == 1 && m.type == MSG_BYE)
		join_hang_up(f, p, DRAIN_MS);
	else
		peer_died(f, p);
}

/* PEER_NONE for what is not the control thread's: such an entry may change hands at any time. */
static enum peer_state our_state(struct fabric *f, const struct peer *p)
{
	pthread_mutex_lock(&f->lock);
	enum peer_state s = p->state >= PEER_ANSWERING ? p->state : PEER_NONE;
	pthread_mutex_unlock(&f->lock);
	return s;
}

static void peer_check(struct fabric *f, struct peer *p)
{
	enum peer_state s = our_state(f, p);

	if (s == PEER_GONE)
		join_settle(f, p);
	else if ((s == PEER_ANSWERING || s == PEER_BYE) && registry_now() >= p->deadline_ms)
		join_end(f, p);
}

/* --- the thread --- */

static void serve_once(struct fabric *f)
{
	struct watch w;
	unsigned at = 2;

	watch_build(f, &w);
	if (poll(w.fd, w.count, timeout(w.next_ms)) < 0)
		return;
	if (w.fd[0].revents) {
		eventfd_t n;

		eventfd_read(f->wake_fd, &n);
	}
	if (w.fd[1].revents)
		visitors_accept(f);
	/* Peers first: a peer's end should be known before its successor's call. */
	for (unsigned i = 0; i < w.peers; i++)
		if (w.fd[at + w.visitors + i].revents)
			peer_read(f, w.peer[i]);
	for (unsigned i = 0; i < w.visitors; i++)
		visitor_read(f, w.visitor[i]);
	for (unsigned i = 0; i < w.peers; i++)
		peer_check(f, w.peer[i]);
	if (f->sweep_ms && registry_now() >= f->sweep_ms) {
		f->sweep_ms = 0;
		registry_sweep(&f->registry);
	}
}

/* What was taken from the stack goes out, and then our last word. */
static void say_bye(struct fabric *f)
{
	struct msg bye = join_msg(f, MSG_BYE);

	for (unsigned i = 0; i < f->n; i++) {
		if (!fabric_enter(f, i))
			continue;
		lane_pending(&f->link[i].lanes);
		fabric_leave(f, i);
	}
	for (unsigned i = 0; i < PEER_MAX; i++) {
		struct peer *p = &f->peer[i];
		enum peer_state s = our_state(f, p);

		if (s == PEER_UP && msg_send(p->fd, &bye, -1) == 0) {
			pthread_mutex_lock(&f->lock);
			p->state = PEER_BYE;
			pthread_mutex_unlock(&f->lock);
			p->deadline_ms = registry_now() + LEAVE_MS;
		} else if (s != PEER_NONE) {
			join_end(f, p);
		}
	}
}

static bool peers_left(struct fabric *f)
{
	for (unsigned i = 0; i < PEER_MAX; i++)
		if (our_state(f, &f->peer[i]) != PEER_NONE)
			return true;
	return false;
}

static void *control_main(void *arg)
{
	struct fabric *f = arg;

	while (!f->closing)
		serve_once(f);
	say_bye(f);
	while (peers_left(f))
		serve_once(f);
	for (unsigned i = 0; i < VISITOR_MAX; i++)
		fds_close(f->visitor[i].fd);
	return NULL;
}

uw_status control_start(struct fabric *f)
{
	sigset_t all, old;

	for (unsigned i = 0; i < VISITOR_MAX; i++)
		f->visitor[i].fd = -1;
	f->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	if (f->wake_fd < 0)
		return log_error(UW_E_NO_LINK, "no eventfd: %s", strerror(errno));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(&f->control, NULL, control_main, f);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc)
		return log_error(UW_E_NO_LINK, "no thread for the control socket: %s", strerror(rc));
	f->control_runs = true;
	pthread_setname_np(f->control, "uwarp-control");
	return UW_OK;
}

void control_stop(struct fabric *f)
{
	if (f->control_runs) {
		f->closing = true;
		control_wake(f);
		pthread_join(f->control, NULL);
		f->control_runs = false;
	}
	if (f->wake_fd >= 0)
		close(f->wake_fd);
	f->wake_fd = -1;
}
