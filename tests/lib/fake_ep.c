/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints. */
#include "fake_ep.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PROBE_EVENT 99 /* no event of uwarp.h */
#define PATIENCE_MS 5000

struct fake_note {
	TAILQ_ENTRY(fake_note) link;
	struct uw_cm_event ev;
	uint8_t data[UW_PRIVATE_DATA_MAX];
	struct fake_note **done; /* a probe: set to NULL when it was delivered */
};

__attribute__((visibility("default"))) _Atomic uint8_t fake_tos;

static pthread_mutex_t stack = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t work = PTHREAD_COND_INITIALIZER, idle = PTHREAD_COND_INITIALIZER;
static _Thread_local bool in_callback;

static void broken(const char *what)
{
	fprintf(stderr, "fake engine: %s\n", what);
	abort();
}

static uint32_t own_addr(void)
{
	uint32_t a;

	memcpy(&a, &fake.attr.gid[0][12], sizeof(a));
	return a;
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

bool fake_later(struct uw_stack *of, void (*fn)(void *arg), void *arg)
{
	struct uw_engine *e = (struct uw_engine *)of;

	if (e->decide && e->decide(NULL, FAKE_LATER))
		return false;
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

static void part(struct uw_ep *ep)
{
	if (ep->peer)
		ep->peer->peer = NULL;
	ep->peer = NULL;
	ep->state = EP_END;
}

static struct fake_note *note_for(struct uw_ep *ep, int type, int error)
{
	struct fake_note *n = calloc(1, sizeof(*n));

	n->ev.type = (enum uw_cm_event_type)type;
	n->ev.error = error;
	TAILQ_INSERT_TAIL(&ep->notes, n, link);
	pthread_cond_signal(&work);
	return n;
}

static void not_taken(struct uw_ep *ep)
{
	if (ep->peer) {
		note_for(ep->peer, UW_CM_REJECTED, 0);
		ep->peer->state = EP_END;
	}
	part(ep);
	LIST_REMOVE(ep, link);
	free(ep);
}

static void *deliver(void *arg)
{
	struct uw_engine *e = arg;
	struct uw_ep *ep;
	struct fake_note *n;

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
		if (!ep->fn(ep->ctx, &n->ev) && n->ev.type == UW_CM_CONNECT_REQUEST)
			not_taken(n->ev.ep);
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

static void note_param(struct fake_note *n, const struct uw_cm_param *p)
{
	n->ev.param = *p;
	if (p->private_data_len)
		memcpy(n->data, p->private_data, p->private_data_len);
}

/* For a millisecond, and longer where others have the CPU: it is the callback's time, too. */
static void wait_a_moment(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 1000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_cond_timedwait(&idle, &stack, &until);
}

/* Every call: not from a callback, and not with a lock held that a callback of this very endpoint
 * needs. The latter is tried out: a callback must get through while the call has not returned. */
static void enter(struct uw_ep *ep)
{
	struct fake_note *probe;
	bool stuck;

	if (in_callback)
		broken("a function of the stack was called from a callback");
	if (!ep->ctx || ep->engine->decide || ep->engine->pid != getpid())
		return;
	pthread_mutex_lock(&stack);
	probe = note_for(ep, PROBE_EVENT, 0);
	probe->done = &probe;
	for (unsigned ms = 0; probe && ms < PATIENCE_MS; ms++)
		wait_a_moment();
	stuck = probe;
	pthread_mutex_unlock(&stack);
	if (stuck)
		broken("a function of the stack was called with a lock held that callbacks take");
}

/* ---- engine ----------------------------------------------------------------------------- */

void fake_engine_init(struct uw_engine *e)
{
	*e = (struct uw_engine){ .next_port = 40000, .pid = getpid() };
	LIST_INIT(&e->eps);
}

int fake_engine_start(struct uw_engine *e)
{
	sigset_t all, old;

	if (e->decide)
		return 0;
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

void fake_engine_stop(struct uw_engine *e)
{
	if (!e->started || e->pid != getpid())
		return;
	pthread_mutex_lock(&stack);
	e->stop = true;
	pthread_cond_broadcast(&work);
	pthread_mutex_unlock(&stack);
	pthread_join(e->thread, NULL);
	e->started = false;
}

void fake_engine_end(struct uw_engine *e)
{
	fake_engine_stop(e);
}

/* ---- endpoints -------------------------------------------------------------------------- */

int fake_ep_create(struct uw_engine *e, uw_cm_event_fn *fn, void *ctx, struct uw_ep **out)
{
	struct uw_ep *ep;
	int err = e->decide ? e->decide(NULL, FAKE_CREATE) : fake_engine_start(e);

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

/* Nothing can go wrong with this call unless the test says so. */
static int decided(struct uw_ep *ep, enum fake_call call)
{
	return ep->engine->decide ? ep->engine->decide(ep, call) : 0;
}

void fake_ep_set_ctx(struct uw_ep *ep, void *ctx)
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

int fake_ep_share_port(struct uw_ep *ep, bool on)
{
	enter(ep);
	ep->shares = on;
	return decided(ep, FAKE_SHARE_PORT);
}

void fake_ep_set_tos(struct uw_ep *ep, uint8_t tos)
{
	enter(ep);
	ep->tos = tos;
	fake_tos = tos;
}

int fake_ep_set_datagrams(struct uw_ep *ep)
{
	enter(ep);
	ep->datagrams = true;
	return 0;
}

int fake_ep_only6(struct uw_ep *ep, bool on)
{
	(void)on;
	enter(ep);
	return decided(ep, FAKE_ONLY6);
}

int fake_ep_bind(struct uw_ep *ep, const struct sockaddr *addr)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)addr;
	uint32_t a = ntohl(in->sin_addr.s_addr);
	int err = 0;

	enter(ep);
	if (ep->engine->decide)
		return ep->engine->decide(ep, FAKE_BIND);
	if (in->sin_family != AF_INET)
		return -EAFNOSUPPORT;
	if (a && a != INADDR_LOOPBACK && in->sin_addr.s_addr != own_addr())
		return -EADDRNOTAVAIL;
	pthread_mutex_lock(&stack);
	if (ep->state != EP_NEW)
		err = -EINVAL;
	else if (in->sin_port && !ep->shares && on_port(ep->engine, in->sin_port))
		err = -EADDRINUSE;
	if (!err) {
		ep->local = *in;
		ep->local.sin_addr.s_addr = own_addr();
		if (!in->sin_port)
			ep->local.sin_port = htons(ep->engine->next_port++);
		ep->state = EP_BOUND;
	}
	pthread_mutex_unlock(&stack);
	return err;
}

static void pause_ms(unsigned ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (ms % 1000) * 1000000L };

	nanosleep(&t, NULL);
}

int fake_ep_resolve(struct uw_ep *ep, const struct sockaddr *src, const struct sockaddr *dst,
		    unsigned timeout_ms)
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)dst;
	const struct sockaddr_in6 *in6 = (const struct sockaddr_in6 *)dst;
	struct sockaddr_in self = { .sin_family = AF_INET };
	uint32_t a;

	enter(ep);
	if (ep->engine->decide)
		return ep->engine->decide(ep, FAKE_RESOLVE);
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
		pause_ms(timeout_ms);
	if (a == 0xc0000201)
		return -ETIMEDOUT;
	if (a >> 24 != 127 && a != 0xc0000203)
		return -EHOSTUNREACH;
	pthread_mutex_lock(&stack);
	if (ep->state == EP_NEW) {
		ep->local.sin_family = AF_INET;
		ep->local.sin_addr.s_addr = own_addr();
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

int fake_ep_listen(struct uw_ep *ep, int backlog)
{
	int err = 0;

	enter(ep);
	if (ep->engine->decide)
		return ep->engine->decide(ep, FAKE_LISTEN);
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
	struct fake_note *n;

	child->engine = ep->engine;
	child->fn = listener->fn;
	child->state = EP_REQUEST;
	child->datagrams = listener->datagrams;
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

int fake_ep_connect(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p)
{
	struct uw_ep *listener;

	enter(ep);
	if (ep->engine->decide)
		return ep->engine->decide(ep, FAKE_CONNECT);
	if (!qpn && !ep->datagrams)
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

static void gid_of(const struct sockaddr_in *a, uint8_t gid[16])
{
	memset(gid, 0, 16);
	gid[10] = gid[11] = 0xff;
	memcpy(gid + 12, &a->sin_addr, 4);
}

static void name_qp(struct uw_cm_param *to, const struct uw_ep *ep, uint32_t qpn)
{
	to->qpn = qpn;
	to->qkey = UW_UD_QKEY;
	gid_of(&ep->peer->local, to->own_gid);
	gid_of(&ep->peer->remote, to->peer_gid);
}

int fake_ep_accept(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p)
{
	struct fake_note *n;
	int err = 0;

	enter(ep);
	if (ep->engine->decide)
		return ep->engine->decide(ep, FAKE_ACCEPT);
	if (!qpn)
		return -ENOENT;
	pthread_mutex_lock(&stack);
	if (ep->state != EP_REQUEST) {
		err = -ECONNRESET;
	} else {
		ep->state = EP_UP;
		ep->peer->state = EP_UP;
		if (!ep->datagrams)
			note_param(note_for(ep, UW_CM_ESTABLISHED, 0), p);
		n = note_for(ep->peer, UW_CM_ESTABLISHED, 0);
		note_param(n, p);
		if (ep->datagrams)
			name_qp(&n->ev.param, ep, qpn);
	}
	pthread_mutex_unlock(&stack);
	return err;
}

int fake_ep_reject(struct uw_ep *ep, const struct uw_cm_param *p)
{
	struct fake_note *n;
	int err = 0;

	enter(ep);
	if (ep->engine->decide)
		return ep->engine->decide(ep, FAKE_REJECT);
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

int fake_ep_disconnect(struct uw_ep *ep)
{
	int err = 0;

	enter(ep);
	if (ep->engine->decide)
		return ep->engine->decide(ep, FAKE_DISCONNECT);
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
	struct fake_note *n;

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

void fake_ep_destroy(struct uw_ep *ep)
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

void fake_ep_local_addr(const struct uw_ep *ep, struct sockaddr_storage *a)
{
	enter((struct uw_ep *)ep);
	give_addr(&ep->local, a);
}

void fake_ep_peer_addr(const struct uw_ep *ep, struct sockaddr_storage *a)
{
	enter((struct uw_ep *)ep);
	give_addr(&ep->remote, a);
}

void fake_ep_peer_gid(const struct uw_ep *ep, uint8_t gid[16])
{
	const struct sockaddr_in *in = (const struct sockaddr_in *)&ep->remote;

	enter((struct uw_ep *)ep);
	memset(gid, 0, 16);
	gid[10] = gid[11] = 0xff;
	memcpy(gid + 12, &in->sin_addr, 4);
}

/* ---- by hand ---------------------------------------------------------------------------- */

void fake_deliver(struct uw_ep *ep, const struct uw_cm_event *ev)
{
	struct uw_cm_event own = *ev;
	struct uw_ep *child;

	if (ev->type == UW_CM_CONNECT_REQUEST) {
		child = calloc(1, sizeof(*child));
		child->engine = ep->engine;
		child->fn = ep->fn;
		child->state = EP_REQUEST;
		child->local.sin_family = child->remote.sin_family = AF_INET;
		TAILQ_INIT(&child->notes);
		LIST_INSERT_HEAD(&ep->engine->eps, child, link);
		own.ep = child;
	}
	own.stack = (struct uw_stack *)ep->engine;
	in_callback = true;
	if (!ep->fn(ep->ctx, &own) && own.type == UW_CM_CONNECT_REQUEST)
		not_taken(own.ep);
	in_callback = false;
	if (!later.fn)
		return;
	pthread_mutex_lock(&stack);
	run_later();
	pthread_mutex_unlock(&stack);
}
