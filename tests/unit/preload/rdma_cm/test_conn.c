/* SPDX-License-Identifier: BSD-3-Clause */
/* The rdma_cm node: connections, their events, the event queue. */
#include "rdma_cm/abi.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* A client and a server id, connected; both ESTABLISHED events are fetched. */
struct couple {
	uint32_t client, server;
};

#define SERVER_UID 77

static struct couple couple_up(int cfd, int sfd, uint16_t port)
{
	struct couple c = { .client = cm_routed(cfd, port) };

	assert_int_equal(cm_connect(cfd, c.client, 1, "", 1, 1), 0);
	c.server = cm_expect(sfd, EV_REQUEST, 0).id;
	assert_int_equal(cm_accept(sfd, c.server, SERVER_UID, 2, ""), 0);
	cm_expect(sfd, EV_ESTABLISHED, 0);
	cm_expect(cfd, EV_ESTABLISHED, 0);
	return c;
}

static void handshake(void **state)
{
	int cfd = cm_node(), sfd = cm_node();
	uint32_t listener = cm_listener(sfd, 8001, 8), client = cm_routed(cfd, 8001), server, n;
	struct rdma_ucm_query_route_resp q;
	struct rdma_ucm_event_resp e;

	(void)state;
	assert_int_equal(cm_connect(cfd, client, 1, "hello", 7, 9), 0);
	assert_int_equal(cm_connect(cfd, client, 1, "hello", 7, 9), -EINVAL);
	e = cm_expect(sfd, EV_REQUEST, 0);
	server = e.id;
	assert_int_not_equal(server, listener);
	assert_int_equal(e.param.conn.private_data_len, 5);
	assert_memory_equal(e.param.conn.private_data, "hello", 5);
	/* the peer's ORD is what this side must answer, the peer's IRD what it may ask */
	assert_int_equal(e.param.conn.responder_resources, 9);
	assert_int_equal(e.param.conn.initiator_depth, 7);
	assert_int_equal(cm_query(sfd, server, &q), 0);
	assert_int_equal(((struct sockaddr_in *)&q.src_addr)->sin_port, htons(8001));
	assert_int_equal(q.port_num, 1);
	cm_expect_none(cfd, 20);

	assert_int_equal(cm_accept(sfd, server, SERVER_UID, 2, "welcome"), 0);
	e = cm_expect(sfd, EV_ESTABLISHED, 0);
	assert_int_equal(e.uid, SERVER_UID);
	assert_int_equal(e.param.conn.private_data_len, 0); /* not the request's once more */
	e = cm_expect(cfd, EV_ESTABLISHED, 0);
	assert_int_equal(e.id, client);
	assert_memory_equal(e.param.conn.private_data, "welcome", 7);
	assert_int_equal(e.param.conn.responder_resources, 5);
	assert_int_equal(e.param.conn.initiator_depth, 3);
	assert_int_equal(cm_accept(sfd, server, SERVER_UID, 2, ""), -EINVAL);
	assert_int_equal(cm_reject(sfd, server, ""), -EINVAL);

	assert_int_equal(cm_disconnect(cfd, client), 0);
	assert_int_equal(cm_expect(cfd, EV_DISCONNECTED, 0).id, client);
	assert_int_equal(cm_expect(sfd, EV_DISCONNECTED, 0).uid, SERVER_UID);
	assert_int_equal(cm_disconnect(sfd, server), 0); /* the peer was first */
	assert_int_equal(cm_disconnect(cfd, client), 0);
	assert_int_equal(cm_disconnect(sfd, listener), -EINVAL);

	assert_int_equal(cm_destroy(sfd, listener, &n), 0);
	assert_int_equal(n, 1); /* the request */
	assert_int_equal(cm_destroy(sfd, server, &n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(cm_destroy(cfd, client, &n), 0);
	assert_int_equal(n, 4);
	close(cfd);
	close(sfd);
}

static void request_names_the_listener(void **state)
{
	int fd = cm_node();
	struct rdma_ucm_create_id_resp r;
	struct rdma_ucm_create_id c = { .uid = 5555, .response = (uintptr_t)&r, .ps = RDMA_PS_TCP };
	uint32_t client;

	(void)state;
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_CREATE_ID, &c, sizeof(c), sizeof(r)), 0);
	assert_int_equal(cm_bind(fd, r.id, INADDR_LOOPBACK, 8002), 0);
	assert_int_equal(cm_listen(fd, r.id, 0), 0); /* 0: the largest backlog */
	assert_int_equal(cm_listen(fd, r.id, 1), -EINVAL);
	client = cm_routed(fd, 8002);
	assert_int_equal(cm_connect(fd, client, 1, "", 0, 0), 0);
	assert_int_equal(cm_expect(fd, EV_REQUEST, 0).uid, 5555);
	close(fd);
}

static void rejection(void **state)
{
	int fd = cm_node();
	struct rdma_ucm_event_resp e;
	uint32_t client, server;

	(void)state;
	cm_listener(fd, 8003, 8);
	client = cm_routed(fd, 8003);
	assert_int_equal(cm_reject(fd, client, "x"), -EINVAL); /* nothing to reject */
	assert_int_equal(cm_connect(fd, client, 1, "", 0, 0), 0);
	server = cm_expect(fd, EV_REQUEST, 0).id;
	assert_int_equal(cm_reject(fd, server, "go away"), 0);
	e = cm_expect(fd, EV_REJECTED, -ECONNREFUSED);
	assert_int_equal(e.id, client);
	assert_int_equal(e.param.conn.private_data_len, 7);
	assert_memory_equal(e.param.conn.private_data, "go away", 7);
	assert_int_equal(e.param.conn.responder_resources, 0);
	assert_int_equal(e.param.conn.initiator_depth, 0);
	assert_int_equal(cm_accept(fd, server, 1, 2, ""), -EINVAL);
	assert_int_equal(cm_connect(fd, client, 1, "", 0, 0), -EINVAL); /* not twice */
	close(fd);
}

static void failed_connects(void **state)
{
	static const struct {
		uint16_t port;
		unsigned event;
		int status;
	} cases[] = {
		{ 8999, EV_REJECTED, -ECONNREFUSED }, /* nobody listens */
		{ 9, EV_UNREACHABLE, -ETIMEDOUT },
		{ 10, EV_CONNECT_ERROR, -EPROTO },
		{ 11, EV_REJECTED, -ECONNRESET },
	};
	int fd = cm_node();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint32_t id = cm_routed(fd, cases[i].port);

		assert_int_equal(cm_connect(fd, id, 1, "", 0, 0), 0);
		assert_int_equal(cm_expect(fd, cases[i].event, cases[i].status).id, id);
		assert_int_equal(cm_establish(fd, id), -EINVAL);
		assert_int_equal(cm_destroy(fd, id, NULL), 0);
	}
	close(fd);
}

/* As programs do that bring their QP up themselves. */
static void establish_confirms_what_stands(void **state)
{
	int cfd = cm_node(), sfd = cm_node();
	uint32_t listener = cm_listener(sfd, 8019, 4), idle = cm_routed(cfd, 8019);
	struct couple c = couple_up(cfd, sfd, 8019);

	(void)state;
	assert_int_equal(cm_establish(cfd, idle), -EINVAL);
	assert_int_equal(cm_establish(sfd, listener), -EINVAL);
	assert_int_equal(cm_establish(sfd, c.server), -EINVAL);
	assert_int_equal(cm_establish(cfd, c.client), 0);
	assert_int_equal(cm_disconnect(sfd, c.server), 0);
	cm_expect(cfd, EV_DISCONNECTED, 0);
	assert_int_equal(cm_establish(cfd, c.client), -EINVAL);
	close(cfd);
	close(sfd);
}

static void connect_without_qp(void **state)
{
	struct rdma_ucm_connect c = { 0 };
	int fd = cm_node();
	uint32_t id = cm_routed(fd, 8999);

	(void)state;
	c.id = id;
	assert_int_equal(CM_CMD(fd, CONNECT, c), -EINVAL);	    /* not marked valid */
	assert_int_equal(cm_connect(fd, id, 0, "", 0, 0), -EINVAL); /* no such QP */
	assert_int_equal(cm_connect(fd, id, 1, "", 0, 0), 0);	    /* may be tried again */
	cm_expect(fd, EV_REJECTED, -ECONNREFUSED);
	close(fd);
}

/* As the kernel does: an accept that fails turns the peer away. */
static void accept_without_qp(void **state)
{
	int fd = cm_node();
	uint32_t client, server;

	(void)state;
	cm_listener(fd, 8004, 8);
	client = cm_routed(fd, 8004);
	assert_int_equal(cm_connect(fd, client, 1, "", 0, 0), 0);
	server = cm_expect(fd, EV_REQUEST, 0).id;
	assert_int_equal(cm_accept(fd, server, 1, 0, ""), -EINVAL);
	assert_int_equal(cm_expect(fd, EV_REJECTED, -ECONNREFUSED).id, client);
	close(fd);
}

static void peer_gone_before_accept(void **state)
{
	int fd = cm_node();
	uint32_t client, server;

	(void)state;
	cm_listener(fd, 8005, 8);
	client = cm_routed(fd, 8005);
	assert_int_equal(cm_connect(fd, client, 1, "", 0, 0), 0);
	server = cm_expect(fd, EV_REQUEST, 0).id;
	assert_int_equal(cm_destroy(fd, client, NULL), 0);
	cm_expect_none(fd, 50); /* the kernel keeps it to itself as well */
	assert_int_equal(cm_accept(fd, server, 1, 2, ""), -ECONNRESET);
	assert_int_equal(cm_destroy(fd, server, NULL), 0);
	close(fd);
}

static void unanswered_request_destroyed(void **state)
{
	int fd = cm_node();
	uint32_t client, server;

	(void)state;
	cm_listener(fd, 8006, 8);
	client = cm_routed(fd, 8006);
	assert_int_equal(cm_connect(fd, client, 1, "", 0, 0), 0);
	server = cm_expect(fd, EV_REQUEST, 0).id;
	assert_int_equal(cm_disconnect(fd, server), 0); /* no effect before accept */
	assert_int_equal(cm_destroy(fd, server, NULL), 0);
	assert_int_equal(cm_expect(fd, EV_REJECTED, -ECONNREFUSED).id, client);
	close(fd);
}

static void backlog(void **state)
{
	int cfd = cm_node(), sfd = cm_node();
	uint32_t ids[5];

	(void)state;
	cm_listener(sfd, 8007, 2);
	for (int i = 0; i < 5; i++)
		ids[i] = cm_routed(cfd, 8007);
	for (int i = 0; i < 4; i++)
		assert_int_equal(cm_connect(cfd, ids[i], 1, "", 0, 0), 0);
	/* two fill the backlog, the others are turned away at once */
	cm_expect(cfd, EV_REJECTED, -ECONNREFUSED);
	cm_expect(cfd, EV_REJECTED, -ECONNREFUSED);
	cm_expect(sfd, EV_REQUEST, 0);
	/* fetching one made room for one */
	assert_int_equal(cm_connect(cfd, ids[4], 1, "", 0, 0), 0);
	cm_expect(sfd, EV_REQUEST, 0);
	cm_expect(sfd, EV_REQUEST, 0);
	cm_expect_none(sfd, 20);
	cm_expect_none(cfd, 20);
	close(cfd);
	close(sfd);
}

/* What is queued for an id goes with it, and is not counted. */
static void destroy_with_pending_events(void **state)
{
	int cfd = cm_node(), sfd = cm_node();
	uint32_t listener = cm_listener(sfd, 8008, 8), client = cm_routed(cfd, 8008), n;

	(void)state;
	assert_int_equal(cm_connect(cfd, client, 1, "", 0, 0), 0);
	assert_true(cm_readable(sfd, 5000));
	assert_int_equal(cm_destroy(sfd, listener, &n), 0);
	assert_int_equal(n, 0);
	cm_expect_none(sfd, 0);
	assert_int_equal(cm_expect(cfd, EV_REJECTED, -ECONNREFUSED).id, client);
	close(cfd);
	close(sfd);
}

static void closing_the_channel(void **state)
{
	int cfd = cm_node(), sfd = cm_node();
	struct couple c;
	uint32_t waiting;

	(void)state;
	cm_listener(sfd, 8009, 8);
	c = couple_up(cfd, sfd, 8009);
	waiting = cm_routed(cfd, 8009);
	assert_int_equal(cm_connect(cfd, waiting, 1, "", 0, 0), 0);
	assert_true(cm_readable(sfd, 5000));
	close(sfd); /* with a live connection, a listener and an unfetched request */
	for (int i = 0; i < 2; i++) {
		struct rdma_ucm_event_resp e;

		assert_true(cm_readable(cfd, 5000));
		assert_int_equal(cm_event(cfd, &e), 0);
		assert_int_equal(e.event, e.id == c.client ? EV_DISCONNECTED : EV_REJECTED);
	}
	close(cfd);
}

/* ---- the queue -------------------------------------------------------------------------- */

static void nonblocking(void **state)
{
	struct rdma_ucm_event_resp e;
	int fd = cm_node();
	uint32_t id;

	(void)state;
	assert_int_equal(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK), 0);
	assert_int_equal(cm_event(fd, &e), -EAGAIN);
	id = cm_create(fd, RDMA_PS_IPOIB);
	assert_int_equal(cm_resolve(fd, id, INADDR_LOOPBACK, 1, 10), 0);
	cm_expect(fd, EV_ADDR_ERROR, -EINVAL);
	assert_int_equal(cm_event(fd, &e), -EAGAIN);
	cm_expect_none(fd, 0);
	close(fd);
}

static void event_room(void **state)
{
	const size_t old = offsetof(struct rdma_ucm_event_resp, reserved);
	struct rdma_ucm_event_resp e;
	struct rdma_ucm_get_event c = { .response = (uintptr_t)&e };
	int fd = cm_node();
	uint32_t id = cm_create(fd, RDMA_PS_IPOIB);

	(void)state;
	assert_int_equal(cm_resolve(fd, id, INADDR_LOOPBACK, 1, 10), 0);
	assert_true(cm_readable(fd, 5000));
	memset(&e, 0xa5, sizeof(e));
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_GET_EVENT, &c, sizeof(c), old - 1), -ENOSPC);
	assert_int_equal(cm_cmd(fd, RDMA_USER_CM_CMD_GET_EVENT, &c, sizeof(c), old), 0);
	assert_int_equal(e.event, EV_ADDR_ERROR);
	assert_int_equal(e.reserved, 0xa5a5a5a5); /* older programs have no such field */
	close(fd);
}

static _Atomic int fetcher;

static void *fetch(void *arg)
{
	static struct rdma_ucm_event_resp e;
	int fd = *(int *)arg;

	fetcher = gettid();
	return cm_event(fd, &e) ? NULL : &e;
}

static void nap(long ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000 };

	nanosleep(&t, NULL);
}

/* It waits for an event when this returns. */
static void start_fetch(pthread_t *t, int *fd)
{
	fetcher = 0;
	assert_int_equal(pthread_create(t, NULL, fetch, fd), 0);
	cm_until_asleep(&fetcher);
}

static void blocking_fetch_wakes(void **state)
{
	struct rdma_ucm_event_resp *e;
	int fd = cm_node();
	uint32_t id = cm_create(fd, RDMA_PS_TCP);
	pthread_t t;
	void *got;

	(void)state;
	start_fetch(&t, &fd);
	assert_int_equal(cm_resolve(fd, id, INADDR_LOOPBACK, 1, 100), 0);
	assert_int_equal(pthread_join(t, &got), 0);
	e = got;
	assert_non_null(e);
	assert_int_equal(e->event, EV_ADDR_RESOLVED);
	close(fd);
}

/* The program takes away the end that the events come from: closefrom(200), or dup2() over it. */
static void blocking_fetch_survives_dup2(void **state)
{
	int fd = cm_node();
	uint32_t id = cm_create(fd, RDMA_PS_TCP);
	struct pollfd p = { .fd = fd, .events = POLLIN | POLLOUT };
	pthread_t t;
	void *got;

	(void)state;
	assert_int_equal(poll(&p, 1, 0), 0); /* never writable */
	start_fetch(&t, &fd);
	for (int i = 200; i < 220; i++)
		assert_int_equal(syscall(SYS_dup3, fd, i, O_CLOEXEC), i);
	nap(50);
	assert_int_equal(cm_resolve(fd, id, INADDR_LOOPBACK, 1, 100), 0);
	assert_int_equal(pthread_join(t, &got), 0);
	assert_non_null(got);
	for (int i = 200; i < 220; i++)
		syscall(SYS_close, i);
	close(fd);
}

/* rdma_get_cm_event() is where programs cancel their event threads. */
static void fetch_is_cancellable(void **state)
{
	int fd = cm_node();
	pthread_t t;
	void *got;

	(void)state;
#ifdef __SANITIZE_ADDRESS__
	skip(); /* it takes the frames that cancellation unwinds for live ones */
#endif
	start_fetch(&t, &fd);
	assert_int_equal(pthread_cancel(t), 0);
	assert_int_equal(pthread_join(t, &got), 0);
	assert_ptr_equal(got, PTHREAD_CANCELED);
	cm_routed(fd, 1); /* and nothing is left locked */
	close(fd);
}

/* The octet that says that there is an event, where there is none. */
static void wake(int fd)
{
	char path[32];
	int end;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	end = open(path, O_WRONLY | O_CLOEXEC);
	assert_int_equal(write(end, "", 1), 1);
	close(end);
}

/* What rping does at its end: an error here would be its exit code. */
static void close_under_a_waiting_thread(void **state)
{
	int fd = cm_node();
	uint32_t id = cm_create(fd, RDMA_PS_UDP);
	struct timespec until;
	pthread_t t;

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* as above; and a close() that races with a use is what the test is about */
#endif
	start_fetch(&t, &fd);
	/* it is awake at the moment of the close, as after an event that went with its id */
	wake(fd);
	assert_int_equal(cm_destroy(fd, id, NULL), 0);
	close(fd);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 100000000;
	if (until.tv_nsec >= 1000000000) {
		until.tv_nsec -= 1000000000;
		until.tv_sec++;
	}
	assert_int_equal(pthread_timedjoin_np(t, NULL, &until), ETIMEDOUT);
	pthread_cancel(t);
	pthread_join(t, NULL);
}

struct fetcher {
	int fd;
	unsigned fetched;
	long pause_ms; /* after the first event */
	bool again;
	sem_t told;
};

static void *fetch_the_end(void *arg)
{
	struct fetcher *f = arg;
	struct rdma_ucm_event_resp e;

	if (cm_event(f->fd, &e) || e.event != EV_DISCONNECTED)
		return NULL;
	f->fetched++;
	sem_post(&f->told);
	nap(f->pause_ms);
	if (f->again)
		f->fetched += !cm_event(f->fd, &e);
	return f;
}

static long ms_since(const struct timespec *t)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (now.tv_sec - t->tv_sec) * 1000 + (now.tv_nsec - t->tv_nsec) / 1000000;
}

/* Close the channel as soon as the thread has been told of a connection's end; how long it took. */
static long close_at_the_end(struct fetcher *f, uint16_t port, pthread_t *t)
{
	struct timespec start;
	struct couple c;
	int sfd = cm_node();

	f->fd = cm_node();
	sem_init(&f->told, 0, 0);
	cm_listener(sfd, port, 8);
	c = couple_up(f->fd, sfd, port);
	pthread_create(t, NULL, fetch_the_end, f);
	assert_int_equal(cm_disconnect(sfd, c.server), 0);
	sem_wait(&f->told);
	assert_int_equal(cm_destroy(f->fd, c.client, NULL), 0);
	clock_gettime(CLOCK_MONOTONIC, &start);
	close(f->fd);
	close(sfd);
	return ms_since(&start);
}

/* rping again: its event thread is on its way back when the main thread closes the channel. */
static void close_before_a_thread_waits_again(void **state)
{
	struct fetcher f = { .pause_ms = 10, .again = true };
	struct timespec until;
	pthread_t t;

	(void)state;
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	skip(); /* as above */
#endif
	close_at_the_end(&f, 8020, &t);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec++;
	assert_int_equal(pthread_timedjoin_np(t, NULL, &until), ETIMEDOUT);
	assert_int_equal(f.fetched, 1);
	pthread_cancel(t);
	pthread_join(t, NULL);
}

/* A thread that ended, or that does something else, holds up the close only briefly. */
static void close_does_not_wait_for_nobody(void **state)
{
	struct fetcher gone = { .pause_ms = 0 }, away = { .pause_ms = 2000 };
	void *got;
	pthread_t t;

	(void)state;
	assert_true(close_at_the_end(&gone, 8021, &t) < 1500);
	pthread_join(t, &got);
	assert_ptr_equal(got, &gone);
	assert_true(close_at_the_end(&away, 8022, &t) < 1500);
	pthread_join(t, &got);
	assert_ptr_equal(got, &away);
}

static void on_signal(int sig)
{
	(void)sig;
}

static void fetch_is_interruptible(void **state)
{
	struct sigaction act = { .sa_handler = on_signal };
	struct rdma_ucm_event_resp e;
	/* again, where it does not wait yet at the first */
	struct itimerspec in = { { .tv_nsec = 50000000 }, { .tv_nsec = 50000000 } };
	struct sigevent how = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1 };
	int fd = cm_node();
	timer_t timer;

	(void)state;
	sigaction(SIGUSR1, &act, NULL);
	timer_create(CLOCK_MONOTONIC, &how, &timer);
	timer_settime(timer, 0, &in, NULL);
	assert_int_equal(cm_event(fd, &e), -EINTR);
	timer_delete(timer);
	close(fd);
}

#define FAR_SEC 8 /* more than what the fake engine waits for */

/* A time that is so far away has come: the library's calls come here, too. */
__attribute__((visibility("default"))) int pthread_cond_timedwait(pthread_cond_t *cond,
								  pthread_mutex_t *lock,
								  const struct timespec *until)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	if (until->tv_sec - now.tv_sec > FAR_SEC)
		return ETIMEDOUT;
	return pthread_cond_clockwait(cond, lock, CLOCK_REALTIME, until);
}

static void *disconnect_soon(void *arg)
{
	struct {
		int fd;
		uint32_t id;
	} *a = arg;

	return (void *)(intptr_t)cm_disconnect(a->fd, a->id);
}

/* The kernel holds a disconnect back until the connection exists, however long that takes. */
static void disconnect_while_connecting(void **state)
{
	struct {
		int fd;
		uint32_t id;
	} a;
	int sfd = cm_node();
	uint32_t server;
	pthread_t t;
	void *err;

	(void)state;
	cm_listener(sfd, 8010, 8);
	a.fd = cm_node();
	a.id = cm_routed(a.fd, 8010);
	assert_int_equal(cm_connect(a.fd, a.id, 1, "", 0, 0), 0);
	server = cm_expect(sfd, EV_REQUEST, 0).id;
	pthread_create(&t, NULL, disconnect_soon, &a);
	nap(50);
	assert_int_equal(cm_accept(sfd, server, SERVER_UID, 2, ""), 0);
	pthread_join(t, &err);
	assert_null(err);
	cm_expect(a.fd, EV_ESTABLISHED, 0);
	cm_expect(a.fd, EV_DISCONNECTED, 0);
	cm_expect(sfd, EV_ESTABLISHED, 0);
	cm_expect(sfd, EV_DISCONNECTED, 0);
	close(a.fd);
	close(sfd);
}

/* ---- migration -------------------------------------------------------------------------- */

static int migrate(int to, int from, uint32_t id, uint32_t *reported)
{
	struct rdma_ucm_migrate_resp r = { 0 };
	struct rdma_ucm_migrate_id c = { .response = (uintptr_t)&r,
					 .id = id,
					 .fd = (uint32_t)from };
	int err = cm_cmd(to, RDMA_USER_CM_CMD_MIGRATE_ID, &c, sizeof(c), sizeof(r));

	*reported = r.events_reported;
	return err;
}

static void migration(void **state)
{
	int a = cm_node(), b = cm_node(), null = open("/dev/null", O_RDWR);
	uint32_t id = cm_routed(a, 8999), other = cm_create(a, RDMA_PS_UDP), n;

	(void)state;
	assert_int_equal(migrate(b, null, id, &n), -ENOENT);
	assert_int_equal(migrate(b, -1, id, &n), -ENOENT);
	assert_int_equal(migrate(b, b, id, &n), -EINVAL); /* lives elsewhere */
	assert_int_equal(migrate(b, a, 999999, &n), -ENOENT);
	assert_int_equal(migrate(a, a, id, &n), 0);
	assert_int_equal(n, 2);

	assert_int_equal(cm_connect(a, id, 1, "", 0, 0), 0);
	assert_true(cm_readable(a, 5000));
	assert_int_equal(migrate(b, a, id, &n), 0);
	assert_int_equal(n, 2);
	cm_expect_none(a, 0);
	assert_int_equal(cm_expect(b, EV_REJECTED, -ECONNREFUSED).id, id);
	assert_int_equal(cm_disconnect(a, id), -EINVAL);
	close(a); /* takes along what is still on it, not what has moved */
	assert_int_equal(cm_destroy(b, other, NULL), -ENOENT);
	assert_int_equal(cm_destroy(b, id, &n), 0);
	assert_int_equal(n, 3);
	close(b);
	close(null);
}

/* rdma_migrate_id() of a new connection, as librdmacm does for synchronous ids. */
static void migrated_connection(void **state)
{
	int sfd = cm_node(), cfd = cm_node(), own = cm_node();
	uint32_t client, server, n;

	(void)state;
	cm_listener(sfd, 8011, 8);
	client = cm_routed(cfd, 8011);
	assert_int_equal(cm_connect(cfd, client, 1, "", 0, 0), 0);
	server = cm_expect(sfd, EV_REQUEST, 0).id;
	assert_int_equal(migrate(own, sfd, server, &n), 0);
	assert_int_equal(cm_accept(own, server, SERVER_UID, 2, ""), 0);
	assert_int_equal(cm_expect(own, EV_ESTABLISHED, 0).uid, SERVER_UID);
	cm_expect_none(sfd, 0);
	close(own);
	cm_expect(cfd, EV_ESTABLISHED, 0);
	assert_int_equal(cm_expect(cfd, EV_DISCONNECTED, 0).id, client);
	close(sfd);
	close(cfd);
}

/* ---- threads ---------------------------------------------------------------------------- */

static void *client_loop(void *arg)
{
	for (int i = 0; i < 100; i++) {
		int fd = cm_node();
		uint32_t id = cm_routed(fd, 8012);

		assert_int_equal(cm_connect(fd, id, 1, "", 0, 0), 0);
		if (i % 3) /* some do not wait for an answer */
			cm_expect(fd, EV_ESTABLISHED, 0);
		if (i % 2)
			assert_int_equal(cm_destroy(fd, id, NULL), 0);
		close(fd);
	}
	return arg;
}

static bool serve_one(int fd)
{
	struct rdma_ucm_event_resp e;

	if (cm_event(fd, &e))
		return false;
	if (e.event == EV_REQUEST)
		cm_accept(fd, e.id, 1000 + e.id, 2, ""); /* the client may have left */
	else if (e.event == EV_DISCONNECTED)
		assert_int_equal(cm_destroy(fd, e.id, NULL), 0);
	return e.event != EV_ADDR_ERROR; /* that one ends the test */
}

static void *serve(void *arg)
{
	int fd = *(int *)arg;

	while (serve_one(fd))
		;
	return NULL;
}

static void many_at_once(void **state)
{
	int sfd = cm_node();
	pthread_t clients[3], server;

	(void)state;
	cm_listener(sfd, 8012, 1024);
	pthread_create(&server, NULL, serve, &sfd);
	for (int i = 0; i < 3; i++)
		pthread_create(&clients[i], NULL, client_loop, NULL);
	for (int i = 0; i < 3; i++)
		pthread_join(clients[i], NULL);
	assert_int_equal(cm_resolve(sfd, cm_create(sfd, RDMA_PS_IPOIB), INADDR_LOOPBACK, 1, 1), 0);
	pthread_join(server, NULL);
	close(sfd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(handshake),
		cmocka_unit_test(request_names_the_listener),
		cmocka_unit_test(rejection),
		cmocka_unit_test(failed_connects),
		cmocka_unit_test(establish_confirms_what_stands),
		cmocka_unit_test(connect_without_qp),
		cmocka_unit_test(accept_without_qp),
		cmocka_unit_test(peer_gone_before_accept),
		cmocka_unit_test(unanswered_request_destroyed),
		cmocka_unit_test(backlog),
		cmocka_unit_test(destroy_with_pending_events),
		cmocka_unit_test(closing_the_channel),
		cmocka_unit_test(nonblocking),
		cmocka_unit_test(event_room),
		cmocka_unit_test(blocking_fetch_wakes),
		cmocka_unit_test(blocking_fetch_survives_dup2),
		cmocka_unit_test(fetch_is_cancellable),
		cmocka_unit_test(close_under_a_waiting_thread),
		cmocka_unit_test(close_before_a_thread_waits_again),
		cmocka_unit_test(close_does_not_wait_for_nobody),
		cmocka_unit_test(fetch_is_interruptible),
		cmocka_unit_test(disconnect_while_connecting),
		cmocka_unit_test(migration),
		cmocka_unit_test(migrated_connection),
		cmocka_unit_test(many_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
