/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"

#include "fabric.h"
#include "io/fds.h"
#include "io/log.h"

/* Bounds, in ms: for a caller to say HELLO; for our stacks to receive what is still in the rings of
 * a peer that said BYE, and of one that did not; for peers to hang up when we leave; until a killed
 * process's locks are gone. */
#define HELLO_MS 2000
#define DRAIN_MS 5000
#define MOURN_MS 1000
#define LEAVE_MS 500
#define SWEEP_MS 200

/* How long nobody is accepted after there was no descriptor left for it, or the program has closed
 * the one that listens. */
#define ACCEPT_AGAIN_MS 100

/* How often to look whether those words were taken. */
#define LOOK_MS 1

void control_wake(struct fabric *f)
{
	if (!f->deaf)
		fds_ring(f->wake_fd);
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
	watch_fd(w, f->deaf ? -1 : f->wake_fd);
	watch_fd(w, -1); /* poll skips it: there is no descriptor for a visitor now */
	if (f->accept_again_ms)
		earlier(&w->next_ms, f->accept_again_ms);
	else
		w->fd[1].fd = f->registry.listen_fd;
	for (unsigned i = 0; i < VISITOR_MAX; i++) {
		struct visitor *v = &f->visitor[i];

		if (v->fd < 0)
			continue;
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
			earlier(&w->next_ms, uw_clock_ms() + LOOK_MS);
	}
	pthread_mutex_unlock(&f->lock);
}

static int timeout(uint64_t next_ms)
{
	uint64_t now = uw_clock_ms();

	if (!next_ms)
		return -1;
	return next_ms <= now ? 0 : (int)(next_ms - now);
}

/* --- visitors --- */

/* A free place, or that of the visitor that has said nothing for the longest time. */
static struct visitor *visitor_place(struct fabric *f)
{
	struct visitor *oldest = &f->visitor[0];

	for (unsigned i = 0; i < VISITOR_MAX; i++) {
		if (f->visitor[i].fd < 0)
			return &f->visitor[i];
		if (f->visitor[i].deadline_ms < oldest->deadline_ms)
			oldest = &f->visitor[i];
	}
	fds_close(oldest->fd);
	oldest->fd = -1;
	return oldest;
}

static int accept_one(const struct fabric *f)
{
	return accept4(f->registry.listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

/* There is no descriptor left: give up the spare one to tell a caller so. Then wait, since the
 * listening socket stays readable and poll would return at once for ever. */
static void refuse_one(struct fabric *f)
{
	if (f->spare_fd >= 0) {
		fds_close(f->spare_fd);
		int fd = accept_one(f);
		if (fd >= 0)
			join_refuse(f, fds_keep(fd), MSG_NO_FDS);
		f->spare_fd = fds_keep(eventfd(0, EFD_CLOEXEC));
	}
	f->accept_again_ms = uw_clock_ms() + ACCEPT_AGAIN_MS;
}

static void visitor_read(struct fabric *f, struct visitor *v)
{
	struct msg m;
	struct msg_fds fds;
	int fd = v->fd;
	int rc = msg_receive(fd, &m, &fds);

	if (rc == -EAGAIN && uw_clock_ms() < v->deadline_ms)
		return;
	v->fd = -1;
	if (rc == 1 && m.type == MSG_HELLO) {
		join_answer(f, fd, &m, &fds);
		return;
	}
	msg_fds_close(&fds);
	fds_close(fd);
}

/* Who says HELLO at once is heard at once, however many others say nothing. */
static void visitors_accept(struct fabric *f)
{
	for (unsigned i = 0; i < VISITOR_MAX; i++) {
		int fd = accept_one(f);

		if (fd < 0 &&
		    (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS))
			refuse_one(f);
		else if (fd < 0 && errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
			f->accept_again_ms = uw_clock_ms() + ACCEPT_AGAIN_MS;
		if (fd < 0)
			return;
		struct visitor *v = visitor_place(f);
		v->fd = fds_keep(fd);
		v->deadline_ms = uw_clock_ms() + HELLO_MS;
		if (v->fd >= 0)
			visitor_read(f, v);
	}
}

/* --- peers --- */

static void peer_died(struct fabric *f, struct peer *p)
{
	f->sweep_ms = uw_clock_ms() + SWEEP_MS;
	join_hang_up(f, p, MOURN_MS);
}

static void peer_read(struct fabric *f, struct peer *p)
{
	struct msg m;
	struct msg_fds fds;
	int rc = msg_receive(p->fd, &m, &fds);

	if (rc == -EAGAIN)
		return;
	if (rc == 1 && m.type == MSG_READY && p->state == PEER_ANSWERING) {
		join_ready(f, p, &m, &fds);
		return;
	}
	msg_fds_close(&fds);
	if (rc != 1 || m.type != MSG_BYE)
		peer_died(f, p);
	else
		join_hang_up(f, p, DRAIN_MS);
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
	else if ((s == PEER_ANSWERING || s == PEER_BYE) && uw_clock_ms() >= p->deadline_ms)
		join_end(f, p);
}

/* --- faults --- */

/* A lane with a fault: its peer's address and what it did. False: there is none. */
static bool find_fault(struct fabric *f, uint32_t *addr, const char **what)
{
	bool found = false;

	for (unsigned i = 0; i < f->n && !found; i++) {
		if (!fabric_enter(f, i))
			continue;
		const struct lane *l = lane_faulty(&f->link[i].lanes);
		found = l;
		if (l) {
			*addr = l->addr;
			*what = l->fault;
		}
		fabric_leave(f, i);
	}
	return found;
}

static pid_t pid_of(int fd)
{
	struct ucred who = { 0 };
	socklen_t len = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 ? who.pid : 0;
}

/* A peer that wrote nonsense is treated like one that died. */
static void end_faulty(struct fabric *f)
{
	const char *what;
	uint32_t addr;

	/* Pairs with lane_fail's release. */
	if (!atomic_exchange_explicit(&f->faulty, false, memory_order_acquire))
		return;
	while (find_fault(f, &addr, &what)) {
		pthread_mutex_lock(&f->lock);
		struct peer *p = peer_find(f, addr);
		pthread_mutex_unlock(&f->lock);
		if (!p)
			return;
		uint64_t now = uw_clock_ms();
		if (p->fd >= 0 && now >= f->said_ms) {
			f->said_ms = now + SAY_MS;
			log_error(UW_E_NO_LINK,
				  "process %d at %s wrote nonsense into shared memory (%s): "
				  "we are not joined any more",
				  (int)pid_of(p->fd), log_addr(addr), what);
		}
		join_end(f, p);
	}
}

/* --- the thread --- */

static void serve_once(struct fabric *f)
{
	struct watch w;
	unsigned at = 2;

	watch_build(f, &w);
	fds_poll(w.fd, w.count, timeout(w.next_ms));
	if (w.fd[0].revents && !fds_rung(f->wake_fd))
		f->deaf = true;
	if (w.fd[1].revents)
		visitors_accept(f);
	if (f->accept_again_ms && uw_clock_ms() >= f->accept_again_ms)
		f->accept_again_ms = 0;
	/* Peers first: a peer's end should be known before its successor's call. */
	for (unsigned i = 0; i < w.peers; i++)
		if (w.fd[at + w.visitors + i].revents)
			peer_read(f, w.peer[i]);
	for (unsigned i = 0; i < w.visitors; i++)
		if (w.visitor[i]->fd == w.fd[at + i].fd)
			visitor_read(f, w.visitor[i]);
	end_faulty(f);
	for (unsigned i = 0; i < w.peers; i++)
		peer_check(f, w.peer[i]);
	if (f->sweep_ms && uw_clock_ms() >= f->sweep_ms) {
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
		lane_flush_all(&f->link[i].lanes);
		fabric_leave(f, i);
	}
	for (unsigned i = 0; i < PEER_MAX; i++) {
		struct peer *p = &f->peer[i];
		enum peer_state s = our_state(f, p);

		if (s == PEER_UP && msg_send(p->fd, &bye, -1, -1) == 0) {
			pthread_mutex_lock(&f->lock);
			p->state = PEER_BYE;
			pthread_mutex_unlock(&f->lock);
			p->deadline_ms = uw_clock_ms() + LEAVE_MS;
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
	fds_close(f->spare_fd);
	return NULL;
}

uw_status control_start(struct fabric *f)
{
	sigset_t all, old;

	for (unsigned i = 0; i < VISITOR_MAX; i++)
		f->visitor[i].fd = -1;
	f->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	f->spare_fd = fds_keep(eventfd(0, EFD_CLOEXEC));
	if (f->wake_fd < 0)
		return log_error(UW_E_NO_FDS, "no eventfd: %s (ulimit -n)", strerror(errno));
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int rc = pthread_create(&f->control, NULL, control_main, f);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc)
		return log_error(UW_E_NO_LINK, "no thread for the control socket: %s",
				 strerror(rc));
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
	if (f->wake_fd >= 0 && !f->deaf)
		close(f->wake_fd);
	f->wake_fd = -1;
}
