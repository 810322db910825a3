/* SPDX-License-Identifier: BSD-3-Clause */
#include "conns.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"

#define STACK	 (128u << 10)
#define HELLO_MS 2000 /* to say the first word */
#define SHORT_MS 50   /* ... where too many of the user say nothing */
#define NAP_MS	 10   /* no descriptor, memory or thread is left */
#define END_MS	 1000 /* for all threads to end, when the uwarpd does */

struct conn {
	struct conns *conns;
	struct conn *next; /* in conns->come, then in conns->leaving */
	bool silent;	   /* its thread: it is in conns->silent */
	bool late;	   /* it has little time to speak */
	bool no_room;	   /* there was no descriptor or thread for it: it is told so */
	/* The thread writes the mail while `full` is false, the thread that forwards reads it while
	 * `full` is true: each store (release) pairs with the other's load (acquire). */
	struct mail_box box;
	_Atomic bool full;
	/* Set (release) by the thread that forwards, which does not use box.fd any more; read
	 * (acquire) by the thread. */
	_Atomic bool let_go;
	/* Set (release) by the thread, which does not use *this any more; read (acquire) by the
	 * thread that forwards, which frees it. */
	_Atomic bool done;
	sem_t goes; /* posted when full has become false, or let_go true */
};

struct conns {
	int listen_fd, stir_fd;
	int stop_fd; /* an eventfd that ends all waiting */
	int spare;   /* the door's: a descriptor to be given up for a refusal; -1: none */
	bool said;   /* the door's: that there is no thread */
	pthread_t door;
	_Atomic bool stirred;
	_Atomic unsigned threads; /* of connections */
	_Atomic unsigned refused;
	/* Newest first. A push (release) pairs with the exchange (acquire) that takes all. */
	_Atomic(struct conn *) come;
	struct conn *here, *leaving; /* the thread that forwards: taken out of come, let go */
	pthread_mutex_t lock;	     /* of both below; the thread that forwards never takes it */
	uid_t silent[CONNS_THREADS_MAX];
	unsigned n_silent;
};

/* ---- what the threads share ---------------------------------------------------------------- */

static void stir(struct conns *c)
{
	atomic_store_explicit(&c->stirred, true, memory_order_release);
	eventfd_write(c->stir_fd, 1);
}

/* Until fd, which may be -1, is readable. False: not within ms, or the uwarpd ends. */
static bool wait_for(const struct conns *c, int fd, int ms)
{
	struct pollfd p[] = { { .fd = c->stop_fd, .events = POLLIN },
			      { .fd = fd, .events = POLLIN } };

	return poll(p, 2, ms) > 0 && !p[0].revents;
}

static bool ends(const struct conns *c)
{
	struct pollfd p = { .fd = c->stop_fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

static void count_silent(struct conn *n)
{
	struct conns *c = n->conns;
	unsigned of_user = 0;

	pthread_mutex_lock(&c->lock);
	for (unsigned i = 0; i < c->n_silent; i++)
		of_user += c->silent[i] == n->box.uid;
	n->late = of_user >= CONNS_SILENT_MAX;
	c->silent[c->n_silent++] = n->box.uid;
	pthread_mutex_unlock(&c->lock);
	n->silent = true;
}

static void count_no_more(struct conn *n)
{
	struct conns *c = n->conns;
	unsigned i = 0;

	if (!n->silent)
		return;
	pthread_mutex_lock(&c->lock);
	while (c->silent[i] != n->box.uid)
		i++;
	c->silent[i] = c->silent[--c->n_silent];
	pthread_mutex_unlock(&c->lock);
	n->silent = false;
}

/* ---- a connection -------------------------------------------------------------------------- */

static bool hear(struct conn *n, int ms)
{
	do {
		if (!wait_for(n->conns, n->box.fd, ms))
			return false;
	} while (!mail_receive(&n->box));
	return true;
}

static void hand_over(struct conn *n)
{
	atomic_store_explicit(&n->full, true, memory_order_release);
	stir(n->conns);
}

static void come(struct conn *n)
{
	struct conns *c = n->conns;

	n->next = atomic_load_explicit(&c->come, memory_order_relaxed);
	while (!atomic_compare_exchange_weak_explicit(&c->come, &n->next, n, memory_order_release,
						      memory_order_relaxed))
		;
}

/* Until the thread that forwards lets it go. */
static void talk(struct conn *n)
{
	bool more = true;

	for (;;) {
		while (sem_wait(&n->goes))
			;
		if (atomic_load_explicit(&n->let_go, memory_order_acquire))
			return;
		if (atomic_load_explicit(&n->full, memory_order_acquire))
			continue;
		more = more && hear(n, -1) && !n->box.mail.ended;
		n->box.mail.ended = !more;
		hand_over(n);
	}
}

/* False: it said nothing that the thread that forwards would care for. */
static bool greet(struct conn *n)
{
	bool heard = hear(n, n->late ? SHORT_MS : HELLO_MS) && !n->box.mail.ended;
	struct switch_msg m = switch_msg_of(SWITCH_REFUSE);

	count_no_more(n);
	if (heard && !n->no_room)
		return true;
	if (n->late || n->no_room)
		atomic_fetch_add_explicit(&n->conns->refused, 1, memory_order_relaxed);
	m.why = SWITCH_NO_MEMORY;
	if (heard)
		switch_send(n->box.fd, &m, NULL, 0);
	return false;
}

static void *conn_main(void *arg)
{
	struct conn *n = arg;
	struct conns *c = n->conns;
	bool known;

	pthread_setname_np(pthread_self(), "uwarpd-conn");
	known = greet(n);
	if (known) {
		atomic_store_explicit(&n->full, true, memory_order_release);
		come(n);
		stir(c);
		talk(n);
	}
	mail_close(&n->box); /* this may take hours */
	if (known) {
		atomic_store_explicit(&n->done, true, memory_order_release);
		stir(c);
	} else {
		sem_destroy(&n->goes);
		free(n);
	}
	atomic_fetch_sub_explicit(&c->threads, 1, memory_order_release);
	return NULL;
}

/* ---- the door ------------------------------------------------------------------------------ */

/* Signals are for the thread that forwards. */
static int start_thread(pthread_t *t, bool detached, void *(*fn)(void *), void *arg)
{
	pthread_attr_t attr;
	sigset_t all, old;
	int rc;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	if (detached)
		pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(t, &attr, fn, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	pthread_attr_destroy(&attr);
	return rc;
}

/* True: the uwarpd ends. */
static bool nap(const struct conns *c)
{
	struct pollfd p = { .fd = c->stop_fd, .events = POLLIN };

	return poll(&p, 1, NAP_MS) > 0;
}

static void find_spare(struct conns *c)
{
	if (c->spare < 0)
		c->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* Without a descriptor left the spare one is given up, for one that is refused. */
static int let_in(struct conns *c, bool *no_room)
{
	int fd = accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	*no_room = fd < 0 && (errno == EMFILE || errno == ENFILE) && c->spare >= 0;
	if (!*no_room)
		return fd;
	close(c->spare);
	c->spare = -1;
	return accept4(c->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
}

/* Who has said something already is not silent. */
static void fill_in(struct conn *n, struct conns *c, int fd, bool no_room)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	struct ucred who = { .uid = (uid_t)-1 };
	socklen_t len = sizeof(who);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len))
		shutdown(fd, SHUT_RDWR); /* a stranger */
	n->conns = c;
	n->no_room = no_room;
	n->box = (struct mail_box){ .fd = fd, .uid = who.uid, .pid = who.pid, .wake_fd = -1 };
	n->box.mail.memory = -1;
	sem_init(&n->goes, 0, 0);
	if (poll(&p, 1, 0) == 0)
		count_silent(n);
}

static void say_no_thread(struct conns *c, struct conn *n)
{
	struct switch_msg m = switch_msg_of(SWITCH_REFUSE);

	if (n->no_room)
		return;
	n->no_room = true; /* greet() counts it, once there is one */
	m.why = SWITCH_NO_MEMORY;
	switch_send(n->box.fd, &m, NULL, 0);
	if (!c->said)
		uw_log("uwarpd: no thread for a connection (TasksMax, ulimit -u)");
	c->said = true;
}

/* Closing it here may block, too: so it waits until there is a thread for it. The end of the uwarpd
 * closes it else. */
static bool give_a_thread(struct conns *c, struct conn *n)
{
	pthread_t t;

	atomic_fetch_add_explicit(&c->threads, 1, memory_order_relaxed);
	while (start_thread(&t, true, conn_main, n)) {
		say_no_thread(c, n);
		if (!nap(c))
			continue;
		atomic_fetch_sub_explicit(&c->threads, 1, memory_order_relaxed);
		return false;
	}
	return true;
}

static void admit(struct conns *c)
{
	struct conn *n = calloc(1, sizeof(*n));
	bool no_room;
	int fd = n ? let_in(c, &no_room) : -1;

	if (fd < 0) {
		free(n);
		nap(c);
		return;
	}
	fill_in(n, c, fd, no_room);
	if (!give_a_thread(c, n))
		free(n);
}

static void *door_main(void *arg)
{
	struct conns *c = arg;

	pthread_setname_np(pthread_self(), "uwarpd-door");
	while (!ends(c)) {
		find_spare(c);
		if (atomic_load_explicit(&c->threads, memory_order_relaxed) >= CONNS_THREADS_MAX)
			nap(c);
		else if (wait_for(c, c->listen_fd, -1))
			admit(c);
	}
	return NULL;
}

/* ---- the thread that forwards -------------------------------------------------------------- */

bool conns_stirs(struct conns *c)
{
	return atomic_load_explicit(&c->stirred, memory_order_relaxed) &&
	       atomic_exchange_explicit(&c->stirred, false, memory_order_acquire);
}

struct conn *conns_next(struct conns *c)
{
	struct conn *n;

	if (!c->here)
		c->here = atomic_exchange_explicit(&c->come, NULL, memory_order_acquire);
	n = c->here;
	if (n)
		c->here = n->next;
	return n;
}

unsigned conns_refused(struct conns *c)
{
	return atomic_exchange_explicit(&c->refused, 0, memory_order_relaxed);
}

void conns_reap(struct conns *c)
{
	for (struct conn **at = &c->leaving; *at;) {
		struct conn *n = *at;

		if (!atomic_load_explicit(&n->done, memory_order_acquire)) {
			at = &n->next;
			continue;
		}
		*at = n->next;
		sem_destroy(&n->goes);
		free(n);
	}
}

const struct mail_box *conn_box(const struct conn *n)
{
	return &n->box;
}

const struct mail *conn_mail(const struct conn *n)
{
	return atomic_load_explicit(&n->full, memory_order_acquire) ? &n->box.mail : NULL;
}

void conn_go_on(struct conn *n)
{
	n->box.mail.memory = -1;
	atomic_store_explicit(&n->full, false, memory_order_release);
	sem_post(&n->goes);
}

/* Its end makes the thread that waits for a message look. */
void conn_let_go(struct conns *c, struct conn *n)
{
	shutdown(n->box.fd, SHUT_RDWR);
	atomic_store_explicit(&n->let_go, true, memory_order_release);
	sem_post(&n->goes);
	n->next = c->leaving;
	c->leaving = n;
}

/* ---- life ---------------------------------------------------------------------------------- */

struct conns *conns_start(int listen_fd, int stir_fd)
{
	struct conns *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->listen_fd = listen_fd;
	c->stir_fd = stir_fd;
	c->spare = -1;
	c->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	pthread_mutex_init(&c->lock, NULL);
	if (c->stop_fd >= 0) {
		errno = start_thread(&c->door, false, door_main, c);
		if (!errno)
			return c;
		close(c->stop_fd);
	}
	pthread_mutex_destroy(&c->lock);
	free(c);
	return NULL;
}

static void let_all_go(struct conns *c)
{
	for (struct conn *n = conns_next(c); n; n = conns_next(c))
		conn_let_go(c, n);
	conns_reap(c);
}

bool conns_stop(struct conns *c)
{
	const struct timespec a_while = { .tv_nsec = 1000000 };

	if (!c)
		return true;
	eventfd_write(c->stop_fd, 1);
	pthread_join(c->door, NULL);
	let_all_go(c);
	for (unsigned ms = 0; ms < END_MS; ms++) {
		if (!atomic_load_explicit(&c->threads, memory_order_acquire))
			break;
		nanosleep(&a_while, NULL);
		let_all_go(c);
	}
	if (atomic_load_explicit(&c->threads, memory_order_acquire))
		return false;
	let_all_go(c);
	if (c->spare >= 0)
		close(c->spare);
	close(c->stop_fd);
	pthread_mutex_destroy(&c->lock);
	free(c);
	return true;
}
