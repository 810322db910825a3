/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "fabric.h"
#include "io/fds.h"
#include "io/log.h"

/* How long a caller may take from our WELCOME to its READY. */
#define ANSWER_MS 10000

/* How long memif may take to come up before it is tried anew: the port at the other end may have
 * been busy with the end of a caller that was there before us. */
#define REDIAL_MS 500

struct peer *peer_find(struct fabric *f, uint32_t addr)
{
	for (unsigned i = 0; i < PEER_MAX; i++)
		if (f->peer[i].state != PEER_NONE && f->peer[i].addr == addr)
			return &f->peer[i];
	return NULL;
}

struct peer *peer_new(struct fabric *f, uint32_t addr)
{
	for (unsigned i = 0; i < PEER_MAX; i++) {
		if (f->peer[i].state != PEER_NONE)
			continue;
		f->peer[i] = (struct peer){ .addr = addr, .fd = -1 };
		return &f->peer[i];
	}
	return NULL;
}

struct msg join_msg(const struct fabric *f, enum msg_type type)
{
	return (struct msg){ .magic = MSG_MAGIC,
			     .version = MSG_VERSION,
			     .type = (uint8_t)type,
			     .addr = f->link[0].io.addr,
			     .pid = (uint32_t)f->pid,
			     .instance = f->instance,
			     .mtu = f->link[0].io.mtu };
}

/* The way from our link i to a peer. */
static struct lane lane_to(const struct fabric *f, const struct peer *p, unsigned i)
{
	unsigned queue = i % p->slot->queues;

	return (struct lane){ .addr = p->addr,
			      .port = p->slot->port,
			      .queue = (uint16_t)queue,
			      .receives = i == queue,
			      .shared = p->slot->queues < f->n ? &p->slot->shared[queue] : NULL,
			      .frame_max = RTE_MIN(p->mtu, f->link[0].io.mtu) + FRAME_ETHER,
			      .bell = bell_word(p->bell, queue) };
}

/* What they are about to send, or sent before we looked, must not wait for a ring that came too
 * early: so whoever sleeps looks once more. */
static void publish(struct fabric *f, const struct peer *p)
{
	for (unsigned i = 0; i < f->n; i++) {
		struct lane l = lane_to(f, p, i);

		if (!fabric_enter(f, i))
			continue;
		lane_add(&f->link[i].lanes, &l);
		fabric_leave(f, i);
	}
	atomic_thread_fence(memory_order_seq_cst); /* as in lane_tx */
	fabric_rouse(f);
}

/* --- calling --- */

/* What a call has in hand until the peer is up. */
struct call {
	struct fabric *f;
	uint32_t addr;
	uint64_t deadline_ms;
	int fd;
	struct slot *slot;
	_Atomic uint32_t *bell;
	struct msg welcome;
};

static uw_status refused(const struct call *c, const struct msg *m)
{
	switch (m->why) {
	case MSG_CROSSED:
		return UW_E_BUSY;
	case MSG_NO_PORT:
		return log_error(UW_E_NOMEM, "process %u at %s has no memif port left for us", m->pid,
			   log_addr(c->addr));
	case MSG_NOT_ME:
		return log_error(UW_E_NO_LINK,
			   "process %u at %s does not join us: is it another version of uwarp?",
			   m->pid, log_addr(c->addr));
	default:
		return UW_E_UNREACHABLE;
	}
}

static uw_status call_await(struct call *c, enum msg_type type, struct msg *m, int *passed)
{
	int rc = msg_await(c->fd, c->deadline_ms, m, passed);

	if (rc == -ETIMEDOUT)
		return UW_E_TIMEOUT;
	if (rc != 1)
		return UW_E_UNREACHABLE; /* it hung up: it ends, or ended */
	if (m->version == MSG_VERSION && m->type == type)
		return UW_OK;
	if (*passed >= 0)
		close(*passed);
	return m->type == MSG_REFUSE ? refused(c, m) : UW_E_UNREACHABLE;
}

static uw_status call_hello(struct call *c)
{
	struct msg hello = join_msg(c->f, MSG_HELLO);
	int passed;

	hello.more = (uint8_t)(c->f->n - 1);
	uw_status st = registry_connect(&c->f->registry, c->addr, c->deadline_ms, &c->fd);
	if (st)
		return st;
	if (msg_send(c->fd, &hello, c->f->bell_fd))
		return UW_E_UNREACHABLE;
	st = call_await(c, MSG_WELCOME, &c->welcome, &passed);
	if (st)
		return st;
	c->bell = bell_map(passed);
	return c->bell ? UW_OK : UW_E_NO_LINK;
}

/* memif tells nobody when the link comes up, so look every millisecond. MORE: not within the time
 * that it should take. */
static uw_status call_link_once(struct call *c)
{
	uint64_t again = registry_now() + REDIAL_MS;

	while (!slot_up(c->slot)) {
		struct pollfd hung_up = { .fd = c->fd, .events = POLLIN };

		if (poll(&hung_up, 1, 1) > 0)
			return UW_E_UNREACHABLE;
		if (registry_now() >= c->deadline_ms)
			return UW_E_TIMEOUT;
		if (registry_now() >= again)
			return UW_MORE;
	}
	return UW_OK;
}

static uw_status call_link(struct call *c)
{
	unsigned queues = RTE_MIN(c->welcome.more + 1U, c->f->n);
	uw_status st = UW_MORE;

	while (st == UW_MORE) {
		if (c->slot)
			slot_release(&c->f->slots, c->slot);
		c->slot = slot_dial(&c->f->slots, c->addr, c->welcome.slot, queues);
		if (!c->slot)
			return slot_complain(&c->f->slots, c->addr);
		st = call_link_once(c);
	}
	if (st)
		return st;
	for (unsigned i = 0; i < queues; i++) {
		if (!fabric_enter(c->f, i))
			continue;
		lane_prime(c->slot->port, (uint16_t)i);
		fabric_leave(c->f, i);
	}
	return UW_OK;
}

static uw_status call_ready(struct call *c)
{
	struct msg m = join_msg(c->f, MSG_READY);
	int passed;

	if (msg_send(c->fd, &m, -1))
		return UW_E_UNREACHABLE;
	return call_await(c, MSG_READY, &m, &passed);
}

static void call_undo(struct call *c)
{
	if (c->slot)
		slot_release(&c->f->slots, c->slot);
	fds_close(c->fd);
	bell_unmap(c->bell);
}

/* The peer is up and the control thread's from here on; not if the entry went to another call. */
static uw_status call_done(struct call *c, struct peer *p, unsigned serial)
{
	struct fabric *f = c->f;
	uw_status st = UW_E_BUSY;

	pthread_mutex_lock(&f->lock);
	if (p->state == PEER_CALLING && p->call == serial && !f->closing) {
		p->fd = c->fd;
		p->slot = c->slot;
		p->bell = c->bell;
		p->instance = c->welcome.instance;
		p->mtu = c->welcome.mtu;
		publish(f, p);
		p->state = PEER_UP;
		st = UW_OK;
	}
	pthread_mutex_unlock(&f->lock);
	return st;
}

uw_status join_call(struct fabric *f, struct peer *p, uint64_t deadline_ms)
{
	struct call c = { .f = f, .addr = p->addr, .deadline_ms = deadline_ms, .fd = -1 };
	unsigned serial = p->call;

	uw_status st = call_hello(&c);
	if (!st)
		st = call_link(&c);
	if (!st)
		st = call_ready(&c);
	if (!st)
		st = call_done(&c, p, serial);
	if (st)
		call_undo(&c);

	pthread_mutex_lock(&f->lock);
	if (st && p->state == PEER_CALLING && p->call == serial)
		p->state = PEER_NONE;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	control_wake(f);
	return st;
}

/* --- answering --- */

static void refuse(struct fabric *f, int fd, enum msg_why why)
{
	struct msg m = join_msg(f, MSG_REFUSE);

	m.why = (uint8_t)why;
	msg_send(fd, &m, -1); /* whether it hears us or not, we hang up */
	fds_close(fd);
}

static bool fits(const struct fabric *f, const struct msg *hello)
{
	return hello->version == MSG_VERSION && hello->addr != f->link[0].io.addr &&
	       ((hello->addr ^ f->link[0].io.addr) & f->link[0].io.mask) == 0;
}

/*
 * What to do with a caller that has an entry already. If both call at once, the call of the lower
 * address goes through: the other one may arrive before that (CALLING) or after (UP). Any other
 * join is over: whoever made it would not call again.
 */
static bool crossed(const struct fabric *f, const struct peer *p, const struct msg *hello)
{
	if (p->state == PEER_CALLING)
		return ntohl(f->link[0].io.addr) < ntohl(p->addr);
	return p->state == PEER_UP && p->instance == hello->instance;
}

/* An entry in ANSWERING for the caller, or NULL and *why. */
static struct peer *answer_entry(struct fabric *f, const struct msg *hello, enum msg_why *why)
{
	pthread_mutex_lock(&f->lock);
	struct peer *p = peer_find(f, hello->addr);
	if (p && p->state != PEER_CALLING && !crossed(f, p, hello)) {
		pthread_mutex_unlock(&f->lock);
		join_end(f, p);
		pthread_mutex_lock(&f->lock);
		p = peer_find(f, hello->addr);
	}
	if (f->closing) {
		*why = MSG_CLOSING;
		p = NULL;
	} else if (p && crossed(f, p, hello)) {
		*why = MSG_CROSSED;
		p = NULL;
	} else if (!p) {
		*why = MSG_NO_PORT;
		p = peer_new(f, hello->addr);
	}
	if (p) {
		p->state = PEER_ANSWERING;
		p->instance = hello->instance;
	}
	pthread_mutex_unlock(&f->lock);
	return p;
}

void join_answer(struct fabric *f, int fd, const struct msg *hello, int bell_fd)
{
	_Atomic uint32_t *bell = bell_map(bell_fd);
	enum msg_why why = MSG_NOT_ME;
	struct peer *p = NULL;

	if (bell && fits(f, hello))
		p = answer_entry(f, hello, &why);
	if (!p) {
		bell_unmap(bell);
		refuse(f, fd, why);
		return;
	}
	p->fd = fd;
	p->bell = bell;
	p->mtu = hello->mtu;
	p->deadline_ms = registry_now() + ANSWER_MS;
	unsigned queues = RTE_MIN(hello->more + 1U, f->n);
	p->slot = slot_serve(&f->slots, queues);
	if (!p->slot) {
		slot_complain(&f->slots, p->addr);
		p->fd = -1;
		refuse(f, fd, MSG_NO_PORT);
		join_end(f, p);
		return;
	}
	struct msg welcome = join_msg(f, MSG_WELCOME);
	welcome.slot = p->slot->index;
	welcome.more = (uint8_t)(queues - 1);
	if (msg_send(fd, &welcome, f->bell_fd))
		join_end(f, p);
}

void join_ready(struct fabric *f, struct peer *p)
{
	struct msg ready = join_msg(f, MSG_READY);

	if (!slot_up(p->slot)) {
		join_end(f, p);
		return;
	}
	publish(f, p);
	pthread_mutex_lock(&f->lock);
	p->state = PEER_UP;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	if (msg_send(p->fd, &ready, -1))
		join_end(f, p);
}

/* --- the end --- */

static void set_state(struct fabric *f, struct peer *p, enum peer_state state)
{
	pthread_mutex_lock(&f->lock);
	p->state = state;
	if (state == PEER_NONE)
		*p = (struct peer){ .fd = -1 };
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

/* Was there any? */
static bool unpublish(struct fabric *f, struct peer *p)
{
	bool was_up = false;

	for (unsigned i = 0; i < f->n; i++) {
		p->mark[i] = 0;
		if (!fabric_enter(f, i))
			continue;
		was_up |= lane_remove(&f->link[i].lanes, p->addr, &p->mark[i]);
		fabric_leave(f, i);
	}
	atomic_thread_fence(memory_order_seq_cst); /* as in lane_tx */
	fabric_rouse(f);			   /* somebody should look at what is left */
	return was_up;
}

void join_hang_up(struct fabric *f, struct peer *p, unsigned drain_ms)
{
	set_state(f, p, PEER_GONE); /* first, so that nobody finds it up */
	bool was_up = unpublish(f, p);

	if (p->slot)
		slot_release(&f->slots, p->slot);
	p->slot = NULL;
	fds_close(p->fd);
	p->fd = -1;
	bell_unmap(p->bell);
	p->bell = NULL;
	p->deadline_ms = registry_now() + drain_ms;
	if (was_up && !f->closing)
		join_settle(f, p);
	else
		set_state(f, p, PEER_NONE);
}

static bool all_passed(struct fabric *f, const struct peer *p)
{
	bool passed = true;

	for (unsigned i = 0; i < f->n && passed; i++) {
		if (!fabric_enter(f, i))
			continue;
		passed = lane_passed(&f->link[i].lanes, p->mark[i]);
		fabric_leave(f, i);
	}
	return passed;
}

/* What one stack took may have gone on to another: so none hears of it before all have taken it. */
static void tell_down(struct fabric *f, const struct peer *p)
{
	for (unsigned i = 0; i < f->n; i++) {
		const struct io_env *env = &f->link[i].io.env;

		if (!fabric_enter(f, i))
			continue;
		if (env->peer_down)
			env->peer_down(env->arg, p->addr);
		fabric_leave(f, i);
	}
}

void join_settle(struct fabric *f, struct peer *p)
{
	bool done = f->closing || registry_now() >= p->deadline_ms || all_passed(f, p);

	if (done && !f->closing)
		tell_down(f, p);
	if (done)
		set_state(f, p, PEER_NONE);
}

void join_end(struct fabric *f, struct peer *p)
{
	if (p->state == PEER_GONE) {
		p->deadline_ms = 0;
		join_settle(f, p);
	} else {
		join_hang_up(f, p, 0);
	}
}
