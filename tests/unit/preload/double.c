/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A test double of libuwarp.so: endpoints that meet in memory, inside one process. It has no
 * protocol and moves no data; what it does keep are the promises of uwarp.h that the shim relies
 * on: callbacks under one lock, from another thread, in order, held back until an endpoint has a
 * context, none after uw_ep_destroy().
 *
 * It also watches the shim: a uw_ function called from inside a callback, or with a lock held
 * that a callback needs, ends the process.
 *
 * Addresses: the engine has 127.7.0.1. Destinations 127.x.x.x are itself; 192.0.2.1 does not
 * answer in time, 192.0.2.2 has no route, 192.0.2.3 is this engine found as late as allowed.
 * Ports: 9 is unreachable, 10 speaks no MPA, 11 resets.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>
#include <unistd.h>

#include "uwarp/uwarp.h"

#define PROBE_EVENT 99 /* no event of uwarp.h */
#define PATIENCE_MS 5000

struct note {
	TAILQ_ENTRY(note) link;
	struct uw_cm_event ev;
	uint8_t data[UW_PRIVATE_DATA_MAX];
	struct note **done; /* a probe: cleared when delivered */
};
TAILQ_HEAD(notes, note);

enum ep_state {
	EP_NEW,
	EP_BOUND,
	EP_RESOLVED,
	EP_LISTEN,
	EP_CONNECTING,
	EP_REQUEST,
	EP_UP,
	EP_END
};

struct uw_ep {
	LIST_ENTRY(uw_ep) link;
	struct uw_engine *engine;
	uw_cm_event_fn *fn;
	void *ctx;
	enum ep_state state;
	bool shares;
	struct uw_ep *peer;
	struct sockaddr_in local, remote;
	uint8_t data[UW_PRIVATE_DATA_MAX]; /* of a connect */
	struct notes notes;
};

struct uw_engine {
	LIST_HEAD(, uw_ep) eps;
	bool started, stop;
	pid_t pid;
	in_port_t next_port;
	pthread_t thread;
};

static pthread_mutex_t stack = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, idle = PTHREAD_COND_INITIALIZER;
static _Thread_local bool in_callback;

static void broken(const char *what)
{
	fprintf(stderr, "double: %s\n", what);
	abort();
}

/* ---- delivery --------------------------------------------------------------------------- */

static struct uw_ep *ready_ep(struct uw_engine *e)
{
	struct uw_ep *ep;

	LIST_FOREACH(ep, &e->eps, link)
	if (ep->ctx && !TAILQ_EMPTY(&ep->notes))
		return ep;
	return NULL;
}

/* What callbacks wanted done when the lock is let go, which it is here. */
static struct {
	void (*fn)(void *arg);
	void *arg;
} later;

static bool double_later(struct uw_stack *stack_of, void (*fn)(void *arg), void *arg)
{
	(void)stack_of;
	if (!in_callback)
		broken("uw_later() is for callbacks");
	if (later.fn)
		return false;
	later.fn = fn;
	later.arg = arg;
	return true;
}

static void run_later(void)
{
	void (*fn)(void *arg) = later.fn;

	if (!fn)
		return;
	later.fn = NULL;
	pthread_mutex_unlock(&stack);
	fn(later.arg);
	pthread_mutex_lock(&stack);
}

static void *deliver(void *arg)
{
	struct uw_engine *e = arg;
	struct uw_ep *ep;
	struct note *n;

	pthread_mutex_lock(&stack);
	while (!e->stop) {
		ep = ready_ep(e);
		if (!ep) {
			pthread_cond_wait(&work, &stack);
			continue;
		}
		n = TAILQ_FIRST(&ep->notes);
		TAILQ_REMOVE(&ep->notes, n, link);
		n->ev.param.private_data = n->data;
		in_callback = true;
		n->ev.stack = (struct uw_stack *)e;
		ep->fn(ep->ctx, &n->ev);
		in_callback = false;
		run_later();
		if (n->done)
			*n->done = NULL;
		pthread_cond_broadcast(&idle);
		free(n);
	}
	pthread_mutex_unlock(&stack);
	return NULL;
}

static struct note *note_for(struct uw_ep *ep, int type, int error)
{
	struct note *n = calloc(1, sizeof(*n));

	n->ev.type = (enum uw_cm_event_type)type;
	n->ev.error = error;
	TAILQ_INSERT_TAIL(&ep->notes, n, link);
	pthread_cond_signal(&work);
	return n;
}

static void note_param(struct note *n, const struct uw_cm_param *p)
{
	n->ev.param = *p;
	if (p->private_data_len)
		memcpy(n->data, p->private_data, p->private_data_len);
}

/* Every call: not from a callback, and not with a lock held that a callback of this very endpoint
 * needs. The latter is tried out: a callback must get through while the call has not returned. */
static void enter(struct uw_ep *ep)
{
	struct timespec until;
	struct note *probe;
	int err = 0;

	if (in_callback)
		broken("a function of the stack was called from a callback");
	if (!ep->ctx || ep->engine->pid != getpid())
		return;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += PATIENCE_MS / 1000;
	pthread_mutex_lock(&stack);
	probe = note_for(ep, PROBE_EVENT, 0);
	probe->done = &probe;
	while (probe && !err)
		err = pthread_cond_timedwait(&idle, &stack, &until);
	pthread_mutex_unlock(&stack);
	if (err)
		broken("a function of the stack was called with a lock held that callbacks take");
}

/* ---- engine ----------------------------------------------------------------------------- */

static int double_config_from_env(struct uw_config *cfg)
{
	memset(cfg, 0, sizeof(*cfg));
	return 0;
}

static int double_engine_open(const struct uw_config *cfg, struct uw_engine **out)
{
	struct uw_engine *e = calloc(1, sizeof(*e));

	(void)cfg;
	LIST_INIT(&e->eps);
	e->next_port = 40000;
	e->pid = getpid();
	*out = e;
	return 0;
}

static int double_engine_start(struct uw_engine *e)
{
	const char *fail = getenv("DOUBLE_START_ERRNO");
	sigset_t all, old;

	if (fail)
		return -atoi(fail);
	pthread_mutex_lock(&stack);
	if (!e->started) {
		e->started = true;
		e->pid = getpid();
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		pthread_create(&e->thread, NULL, deliver, e);
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	pthread_mutex_unlock(&stack);
	return 0;
}

static bool double_engine_started(const struct uw_engine *e)
{
	return e->started;
}

static void double_engine_fork(struct uw_engine *e, enum uw_fork when)
{
	(void)e;
	(void)when;
}

static void double_engine_close(struct uw_engine *e)
{
	const char *told = getenv("DOUBLE_CLOSE_FD"); /* gets an octet for every end */

	if (told && write(atoi(told), "", 1) != 1)
		abort();
	if (e->started) {
		pthread_mutex_lock(&stack);
		e->stop = true;
		pthread_cond_broadcast(&work);
		pthread_mutex_unlock(&stack);
		pthread_join(e->thread, NULL);
	}
	free(e);
}

static void double_engine_query(struct uw_engine *e, struct uw_device_attr *attr)
{
	(void)e;
	memset(attr, 0, sizeof(*attr));
	attr->guid = 0x0275fffe7f070001;
	attr->max_qp = attr->max_cq = attr->max_mr = attr->max_pd = 16;
	attr->max_qp_wr = attr->max_cqe = 64;
	attr->max_sge = 4;
	attr->max_rd_atom = 16;
	attr->mtu = 1500;
	attr->link_up = true;
	attr->addr_is_final = e->started || !getenv("UWARP_IP_AUTO");
	attr->roce = getenv("UWARP_IDENTITY") && !strcmp(getenv("UWARP_IDENTITY"), "roce");
	*(struct sockaddr_in *)&attr->addr =
		(struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f070001) };
	attr->n_gids = 2;
	memcpy(attr->gid[0], "\0\0\0\0\0\0\0\0\0\0\xff\xff\x7f\x07\0\1", 16);
	memcpy(attr->gid[1], "\xfd\0\0\0\0\0\0\0\0\0\0\0\x7f\x07\0\1", 16);
}

/* ---- endpoints -------------------------------------------------------------------------- */

static int double_ep_create(struct uw_engine *e, uw_cm_event_fn *fn, void *ctx, struct uw_ep **out)
{
	struct uw_ep *ep;
	int err = double_engine_start(e);

	if (in_callback)
		broken("uw_ep_create was called from a callback");
	if (err)
		return err;
	if (e->pid != getpid())
		broken("a forked child used its parent's engine");
	ep = calloc(1, sizeof(*ep));
	ep->engine = e;
	ep->fn = fn;
	ep->ctx = ctx;
	TAILQ_INIT(&ep->notes);
	pthread_mutex_lock(&stack);
	LIST_INSERT_HEAD(&e->eps, ep, link);
	pthread_mutex_unlock(&stack);
	*out = ep;
	return 0;
}

static void double_ep_set_ctx(struct uw_ep *ep, void *ctx)
{
	pthread_mutex_lock(&stack);
	ep->ctx = ctx;
	pthread_cond_signal(&work);
	pthread_mutex_unlock(&stack);
	enter(ep);
}

static struct uw_ep *on_port(struct uw_engine *e, in_port_t port)
{
	struct uw_ep *ep;

	LIST_FOREACH(ep, &e->eps, link)
	if (ep->local.sin_port == port && (ep->state == EP_BOUND || ep->state == EP_LISTEN))
		return ep;
	return NULL;
}

static int double_ep_share_port(struct uw_ep *ep, bool on)
{
	enter(ep);
	ep->shares = on;
	return 0;
}

/* What an endpoint was told last. */
__attribute__((visibility("default"))) _Atomic uint8_t double_tos;

static void double_ep_set_tos(struct uw_ep *ep, uint8_t tos)
{
	enter(ep);
	double_tos = tos;
}

static int double_ep_only6(struct uw_ep *ep, bool on)
{
	(void)on;
	enter(ep);
	return 0;
}

static int double_ep_bind(struct uw_ep *ep, const struct sockaddr *addr)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	uint32_t a = ntohl(in->sin_addr.s_addr);
	int err = 0;

	enter(ep);
	if (in->sin_family != AF_INET)
		return -EAFNOSUPPORT;
	if (a && a != INADDR_LOOPBACK && a != 0x7f070001)
		return -EADDRNOTAVAIL;
	pthread_mutex_lock(&stack);
	if (ep->state != EP_NEW)
		err = -EINVAL;
	else if (in->sin_port && !ep->shares && on_port(ep->engine, in->sin_port))
		err = -EADDRINUSE;
	if (!err) {
		ep->local = *in;
		ep->local.sin_addr.s_addr = htonl(0x7f070001);
		if (!in->sin_port)
			ep->local.sin_port = htons(ep->engine->next_port++);
		ep->state = EP_BOUND;
	}
	pthread_mutex_unlock(&stack);
	return err;
}

static void doze(unsigned ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000L };

	nanosleep(&t, NULL);
}

static int double_ep_resolve(struct uw_ep *ep, const struct sockaddr *src,
			     const struct sockaddr *dst, unsigned timeout_ms)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)dst;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)dst;
	struct sockaddr_in self = { .sin_family = AF_INET };
	uint32_t a;

	enter(ep);
	if (in6->sin6_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr)) {
		self.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
		self.sin_port = in6->sin6_port;
		in = &self;
	}
	if (in->sin_family != AF_INET)
		return -EAFNOSUPPORT;
	a = ntohl(in->sin_addr.s_addr);
	if (!timeout_ms && (a == 0xc0000201 || a == 0xc0000203))
		return -EAGAIN;
	if (a == 0xc0000201 || a == 0xc0000203)
		doze(timeout_ms);
	if (a == 0xc0000201)
		return -ETIMEDOUT;
	if (a >> 24 != 127 && a != 0xc0000203)
		return -EHOSTUNREACH;
	pthread_mutex_lock(&stack);
	if (ep->state == EP_NEW) {
		ep->local.sin_family = AF_INET;
		ep->local.sin_addr.s_addr = htonl(0x7f070001);
		if (src)
			ep->local.sin_port = ((const struct sockaddr_in *)src)->sin_port;
		if (!ep->local.sin_port)
			ep->local.sin_port = htons(ep->engine->next_port++);
	}
	ep->remote = *in;
	ep->state = EP_RESOLVED;
	pthread_mutex_unlock(&stack);
	return 0;
}

static int double_ep_listen(struct uw_ep *ep, int backlog)
{
	int err = 0;

	enter(ep);
	pthread_mutex_lock(&stack);
	if (ep->state != EP_BOUND || backlog < 1)
		err = -EINVAL;
	else
		ep->state = EP_LISTEN;
	pthread_mutex_unlock(&stack);
	return err;
}

static const struct {
	uint16_t port;
	int type, error;
} odd_ports[] = {
	{ 9, UW_CM_UNREACHABLE, -ETIMEDOUT },
	{ 10, UW_CM_CONNECT_ERROR, -EPROTO },
	{ 11, UW_CM_CONNECT_ERROR, -ECONNRESET },
};

static bool odd(struct uw_ep *ep)
{
	for (size_t i = 0; i < sizeof(odd_ports) / sizeof(odd_ports[0]); i++)
		if (ep->remote.sin_port == htons(odd_ports[i].port)) {
			note_for(ep, odd_ports[i].type, odd_ports[i].error);
			return true;
		}
	return false;
}

static void request(struct uw_ep *ep, struct uw_ep *listener, const struct uw_cm_param *p)
{
	struct uw_ep *child = calloc(1, sizeof(*child));
	struct note *n;

	child->engine = ep->engine;
	child->fn = listener->fn;
	child->state = EP_REQUEST;
	child->local = ep->remote;
	child->remote = ep->local;
	child->peer = ep;
	ep->peer = child;
	TAILQ_INIT(&child->notes);
	LIST_INSERT_HEAD(&ep->engine->eps, child, link);
	n = note_for(listener, UW_CM_CONNECT_REQUEST, 0);
	note_param(n, p);
	n->ev.ep = child;
}

static int double_ep_connect(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p)
{
	struct uw_ep *listener;

	enter(ep);
	if (!qpn)
		return -ENOENT;
	pthread_mutex_lock(&stack);
	if (ep->state != EP_RESOLVED) {
		pthread_mutex_unlock(&stack);
		return -EINVAL;
	}
	ep->state = EP_CONNECTING;
	listener = on_port(ep->engine, ep->remote.sin_port);
	if (listener && listener->state == EP_LISTEN)
		request(ep, listener, p);
	else if (!odd(ep))
		note_for(ep, UW_CM_REFUSED, -ECONNREFUSED);
	pthread_mutex_unlock(&stack);
	return 0;
}

static int double_ep_accept(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p)
{
	int err = 0;

	enter(ep);
	if (!qpn)
		return -ENOENT;
	pthread_mutex_lock(&stack);
	if (ep->state != EP_REQUEST) {
		err = -ECONNRESET;
	} else {
		ep->state = EP_UP;
		ep->peer->state = EP_UP;
		note_param(note_for(ep, UW_CM_ESTABLISHED, 0), p);
		note_param(note_for(ep->peer, UW_CM_ESTABLISHED, 0), p);
	}
	pthread_mutex_unlock(&stack);
	return err;
}

static void part(struct uw_ep *ep)
{
	if (ep->peer)
		ep->peer->peer = NULL;
	ep->peer = NULL;
	ep->state = EP_END;
}

static int double_ep_reject(struct uw_ep *ep, const struct uw_cm_param *p)
{
	struct note *n;
	int err = 0;

	enter(ep);
	pthread_mutex_lock(&stack);
	if (ep->state != EP_REQUEST) {
		err = -ENOTCONN;
	} else {
		n = note_for(ep->peer, UW_CM_REJECTED, 0);
		note_param(n, p);
		n->ev.param.ird = n->ev.param.ord = 6; /* means nothing here */
		ep->peer->state = EP_END;
		part(ep);
	}
	pthread_mutex_unlock(&stack);
	return err;
}

static int double_ep_disconnect(struct uw_ep *ep)
{
	int err = 0;

	enter(ep);
	pthread_mutex_lock(&stack);
	if (ep->state != EP_UP) {
		err = -ENOTCONN;
	} else {
		note_for(ep, UW_CM_DISCONNECTED, 0);
		note_for(ep->peer, UW_CM_DISCONNECTED, 0);
		ep->peer->state = EP_END;
		part(ep);
	}
	pthread_mutex_unlock(&stack);
	return err;
}

/* Requests that a listener was never told of go with it. */
static void forget_notes(struct uw_ep *ep)
{
	struct note *n;

	while ((n = TAILQ_FIRST(&ep->notes))) {
		TAILQ_REMOVE(&ep->notes, n, link);
		if (n->ev.ep) {
			note_for(n->ev.ep->peer, UW_CM_CONNECT_ERROR, -ECONNRESET);
			part(n->ev.ep);
			LIST_REMOVE(n->ev.ep, link);
			free(n->ev.ep);
		}
		free(n);
	}
}

static void double_ep_destroy(struct uw_ep *ep)
{
	enter(ep);
	pthread_mutex_lock(&stack);
	if (ep->engine->pid != getpid())
		broken("a forked child destroyed an endpoint of its parent");
	if (ep->peer && (ep->state == EP_UP || ep->state == EP_REQUEST)) {
		note_for(ep->peer, ep->state == EP_UP ? UW_CM_DISCONNECTED : UW_CM_CONNECT_ERROR,
			 ep->state == EP_UP ? 0 : -ECONNRESET);
		ep->peer->state = EP_END;
	} else if (ep->peer && ep->state == EP_CONNECTING) {
		note_for(ep->peer, UW_CM_DISCONNECTED, -ECONNRESET);
		ep->peer->state = EP_END;
	}
	part(ep);
	forget_notes(ep);
	LIST_REMOVE(ep, link);
	memset(ep, 0xdb, sizeof(*ep)); /* a late use shows */
	free(ep);
	pthread_mutex_unlock(&stack);
}

static void give_addr(const struct sockaddr_in *from, struct sockaddr_storage *to)
{
	memset(to, 0, sizeof(*to));
	pthread_mutex_lock(&stack);
	memcpy(to, from, sizeof(*from));
	pthread_mutex_unlock(&stack);
}

static void double_ep_local_addr(const struct uw_ep *ep, struct sockaddr_storage *a)
{
	enter((struct uw_ep *)ep);
	give_addr(&ep->local, a);
}

static void double_ep_peer_addr(const struct uw_ep *ep, struct sockaddr_storage *a)
{
	enter((struct uw_ep *)ep);
	give_addr(&ep->remote, a);
}

/* ---- objects: they exist, and nothing moves --------------------------------------------- */

struct uw_pd {
	int unused;
};

struct uw_cq {
	int unused;
};

struct uw_qp {
	uint32_t num;
	enum uw_qp_state state;
};

static int double_pd_alloc(struct uw_engine *e, struct uw_pd **out)
{
	(void)e;
	*out = calloc(1, sizeof(**out));
	return 0;
}

static int double_pd_dealloc(struct uw_pd *pd)
{
	free(pd);
	return 0;
}

static int double_cq_create(struct uw_engine *e, const struct uw_cq_attr *attr, struct uw_cq **out)
{
	(void)e;
	(void)attr;
	*out = calloc(1, sizeof(**out));
	return 0;
}

static int double_cq_destroy(struct uw_cq *cq)
{
	free(cq);
	return 0;
}

static int double_cq_poll(struct uw_cq *cq, int n, struct uw_wc *wc)
{
	(void)cq;
	(void)n;
	(void)wc;
	return 0;
}

static int double_qp_create(struct uw_pd *pd, struct uw_qp_attr *attr, struct uw_qp **out)
{
	static uint32_t num = 100;
	struct uw_qp *qp = calloc(1, sizeof(*qp));

	(void)pd;
	(void)attr;
	qp->num = __atomic_add_fetch(&num, 1, __ATOMIC_RELAXED);
	*out = qp;
	return 0;
}

static int double_qp_destroy(struct uw_qp *qp)
{
	free(qp);
	return 0;
}

static uint32_t double_qp_num(const struct uw_qp *qp)
{
	return qp->num;
}

static enum uw_qp_state double_qp_state(const struct uw_qp *qp)
{
	return qp->state;
}

static int double_qp_modify(struct uw_qp *qp, enum uw_qp_state to)
{
	qp->state = to;
	return 0;
}

static int double_qp_set_access(struct uw_qp *qp, unsigned access)
{
	(void)qp;
	(void)access;
	return 0;
}

/* ---- the table -------------------------------------------------------------------------- */

__attribute__((visibility("default"))) const struct uw_api *uw_api_get(uint32_t version)
{
	static const struct uw_api api = {
		.version = UW_API_VERSION,
		.config_from_env = double_config_from_env,
		.engine_open = double_engine_open,
		.engine_start = double_engine_start,
		.engine_started = double_engine_started,
		.engine_close = double_engine_close,
		.engine_fork = double_engine_fork,
		.engine_query = double_engine_query,
		.pd_alloc = double_pd_alloc,
		.pd_dealloc = double_pd_dealloc,
		.cq_create = double_cq_create,
		.cq_destroy = double_cq_destroy,
		.cq_poll = double_cq_poll,
		.qp_create = double_qp_create,
		.qp_destroy = double_qp_destroy,
		.qp_num = double_qp_num,
		.qp_state = double_qp_state,
		.qp_modify = double_qp_modify,
		.qp_set_access = double_qp_set_access,
		.ep_create = double_ep_create,
		.ep_set_ctx = double_ep_set_ctx,
		.ep_share_port = double_ep_share_port,
		.ep_only6 = double_ep_only6,
		.ep_set_tos = double_ep_set_tos,
		.ep_bind = double_ep_bind,
		.ep_resolve = double_ep_resolve,
		.ep_listen = double_ep_listen,
		.ep_connect = double_ep_connect,
		.ep_accept = double_ep_accept,
		.ep_reject = double_ep_reject,
		.ep_disconnect = double_ep_disconnect,
		.ep_destroy = double_ep_destroy,
		.ep_local_addr = double_ep_local_addr,
		.ep_peer_addr = double_ep_peer_addr,
		.later = double_later,
	};

	return version == UW_API_VERSION ? &api : NULL;
}
