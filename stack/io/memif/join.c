/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "fabric.h"
#include "io/fds.h"
#include "io/log.h"

/* How long a caller may take from our WELCOME to its READY. */
#define ANSWER_MS 10000

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
		f->peer[i] = (struct peer){ .addr = addr, .fd = -1, .ring_fd = -1 };
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

/* The last message of a join: a descriptor, and what we lend. */
static int send_ready(const struct fabric *f, int fd, int first)
{
	const struct frame_arena *a = &f->link[0].pools.arena;
	struct msg m = join_msg(f, MSG_READY);

	m.lends = (uint32_t)a->size;
	return msg_send(fd, &m, first, a->fd);
}

/* The way from our link i to a peer. */
static struct lane lane_to(const struct peer *p, unsigned i)
{
	struct pair *pair = p->pair;
	unsigned queue = i % pair->shape.queues;
	_Atomic uint32_t *word = bell_word(p->bell, queue);
	struct lane_sender *sender = &pair->sender[queue];
	struct ring_reader reader = ring_reader_of(&pair->shape, &pair->ours, &pair->theirs, queue);

	reader.lent = pair->lent;
	return (struct lane){ .addr = p->addr,
			      .sender = sender,
			      .lends = sender->lent ? sender : NULL,
			      .receives = i == queue,
			      .reader = reader,
			      .frame_max = pair->shape.frame_max,
			      .ring = doorbell_ring_of(word, p->ring_fd) };
}

/* What they are about to send, or sent before we looked, must not wait for a ring that came too
 * early: so whoever sleeps looks once more. */
static void publish(struct fabric *f, const struct peer *p)
{
	for (unsigned i = 0; i < f->n; i++) {
		struct lane l = lane_to(p, i);

		if (!fabric_enter(f, i))
			continue;
		lane_add(&f->link[i].lanes, &l);
		fabric_leave(f, i);
	}
	atomic_thread_fence(memory_order_seq_cst); /* as in wake_touched */
	fabric_rouse(f);
}

/* --- calling --- */

uw_status fabric_say(struct fabric *f, uint32_t addr, uw_status st, const char *fmt, ...)
{
	va_list ap;

	if (!said_may(&f->said, addr, (uintptr_t)fmt, uw_clock_ms() * 1000))
		return st;
	va_start(ap, fmt);
	uw_vlog(fmt, ap);
	va_end(ap);
	return st;
}

/* What a call has in hand until the peer is up. */
struct call {
	struct fabric *f;
	uint32_t addr;
	uint64_t deadline_ms;
	int fd;
	struct pair *pair;
	_Atomic uint32_t *bell;
	int ring_fd;
	struct msg welcome;
};

static uw_status join_mismatch(const struct call *c)
{
	return fabric_say(c->f, c->addr, UW_E_NO_LINK,
			  "process %u at %s does not join us: is it another version of uwarp?",
			  c->welcome.pid, log_addr(c->addr));
}

static uw_status refused(const struct call *c, const struct msg *m)
{
	switch (m->why) {
	case MSG_CROSSED:
		return UW_E_BUSY;
	case MSG_FULL:
		return fabric_say(
			c->f, c->addr, UW_E_NOMEM,
			"process %u at %s has %d memif peers already, and can have no more", m->pid,
			log_addr(c->addr), PEER_MAX);
	case MSG_NO_FDS:
		return fabric_say(c->f, c->addr, UW_E_NOMEM,
				  "process %u at %s has no file descriptor left for us (ulimit -n)",
				  m->pid, log_addr(c->addr));
	case MSG_NO_MEMORY:
		return fabric_say(c->f, c->addr, UW_E_NOMEM,
				  "process %u at %s has no memory left for us", m->pid,
				  log_addr(c->addr));
	case MSG_NOT_ME:
		return fabric_say(
			c->f, c->addr, UW_E_NO_LINK,
			"process %u at %s does not join us: is it another version of uwarp?",
			m->pid, log_addr(c->addr));
	default:
		return UW_E_UNREACHABLE;
	}
}

static uw_status no_fds_here(const struct call *c)
{
	return fabric_say(c->f, c->addr, UW_E_NO_FDS,
			  "%s cannot join %s: no file descriptor is left (ulimit -n)",
			  log_addr(c->f->link[0].io.addr), log_addr(c->addr));
}

static uw_status call_await(struct call *c, enum msg_type type, struct msg *m, struct msg_fds *fds)
{
	int rc = msg_await(c->fd, c->deadline_ms, m, fds);

	if (rc == -ETIMEDOUT)
		return UW_E_TIMEOUT;
	if (rc != 1)
		return UW_E_UNREACHABLE; /* it hung up: it ends, or ended */
	if (m->version == MSG_VERSION && m->type == type)
		return UW_OK;
	msg_fds_close(fds);
	return m->type == MSG_REFUSE ? refused(c, m) : UW_E_UNREACHABLE;
}

/* Both regions, ours and the peer's, and its doorbells. */
static uw_status call_share(struct call *c, struct msg_fds *fds)
{
	unsigned queues = RTE_MIN(c->welcome.more + 1U, c->f->n);
	unsigned mtu = RTE_MIN(c->welcome.mtu, c->f->link[0].io.mtu);
	int bell_fd = msg_fds_take(fds, 0), region_fd = msg_fds_take(fds, 1);

	c->bell = bell_map(bell_fd);
	c->pair = mtu >= MTU_MIN ? pair_new(mtu, queues, c->f->n) : NULL;
	if (c->pair && c->bell)
		return pair_attach(c->pair, region_fd) ? join_mismatch(c) : UW_OK;
	int err = errno;
	if (region_fd >= 0)
		close(region_fd);
	if (mtu < MTU_MIN || !c->bell)
		return join_mismatch(c);
	if (err == EMFILE || err == ENFILE)
		return no_fds_here(c);
	return fabric_say(c->f, c->addr, UW_E_NOMEM, "%s cannot join %s: %s",
			  log_addr(c->f->link[0].io.addr), log_addr(c->addr), strerror(err));
}

static uw_status call_hello(struct call *c)
{
	struct msg hello = join_msg(c->f, MSG_HELLO);
	struct msg_fds fds;

	hello.more = (uint8_t)(c->f->n - 1);
	uw_status st = registry_connect(&c->f->registry, c->addr, c->deadline_ms, &c->fd);
	if (st)
		return st == UW_E_NO_FDS ? no_fds_here(c) : st;
	/* If it hung up already it may have said why. */
	int rc = msg_send(c->fd, &hello, c->f->bell_fd, c->f->wait_fd);
	if (rc && rc != -EPIPE && rc != -ECONNRESET)
		return UW_E_UNREACHABLE;
	st = call_await(c, MSG_WELCOME, &c->welcome, &fds);
	if (st)
		return st;
	if (!fds.lost)
		return call_share(c, &fds);
	msg_fds_close(&fds);
	return no_fds_here(c);
}

static uw_status call_ready(struct call *c)
{
	struct msg m;
	struct msg_fds fds;

	if (send_ready(c->f, c->fd, c->pair->ours.fd))
		return UW_E_UNREACHABLE;
	pair_sent(c->pair);
	uw_status st = call_await(c, MSG_READY, &m, &fds);
	if (st)
		return st;
	c->ring_fd = fds_keep(msg_fds_take(&fds, 0));
	if (fds.lost) {
		msg_fds_close(&fds);
		return no_fds_here(c);
	}
	return pair_borrow(c->pair, m.lends, msg_fds_take(&fds, 1)) ? join_mismatch(c) : UW_OK;
}

static void call_undo(struct call *c)
{
	fds_close(c->fd);
	fds_close(c->ring_fd);
	pair_free(c->pair);
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
		p->pair = c->pair;
		p->bell = c->bell;
		p->ring_fd = c->ring_fd;
		p->instance = c->welcome.instance;
		publish(f, p);
		p->state = PEER_UP;
		said_forget(&f->said, c->addr);
		st = UW_OK;
	}
	pthread_mutex_unlock(&f->lock);
	return st;
}

uw_status join_call(struct fabric *f, struct peer *p, uint64_t deadline_ms)
{
	struct call c = {
		.f = f, .addr = p->addr, .deadline_ms = deadline_ms, .fd = -1, .ring_fd = -1
	};
	unsigned serial = p->call;

	uw_status st = call_hello(&c);
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

void join_refuse(struct fabric *f, int fd, enum msg_why why)
{
	struct msg m = join_msg(f, MSG_REFUSE);

	m.why = (uint8_t)why;
	msg_send(fd, &m, -1, -1); /* whether it hears us or not, we hang up */
	fds_close(fd);
}

static bool fits(const struct fabric *f, const struct msg *hello)
{
	return hello->version == MSG_VERSION && hello->mtu >= MTU_MIN &&
	       hello->addr != f->link[0].io.addr &&
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

/* The one that called us longest ago and has not said READY yet, NULL: none. */
static struct peer *oldest_answering(struct fabric *f)
{
	struct peer *oldest = NULL;

	for (unsigned i = 0; i < PEER_MAX; i++) {
		struct peer *p = &f->peer[i];

		if (p->state == PEER_ANSWERING && (!oldest || p->deadline_ms < oldest->deadline_ms))
			oldest = p;
	}
	return oldest;
}

/* End a join that stands in the way of this one: of a process that had the address before, or, if
 * there is no entry left, of a caller that does not go on. */
static void make_room(struct fabric *f, const struct msg *hello)
{
	pthread_mutex_lock(&f->lock);
	struct peer *p = peer_find(f, hello->addr), *end = NULL;
	bool full = true;
	for (unsigned i = 0; i < PEER_MAX && full; i++)
		full = f->peer[i].state != PEER_NONE;
	if (p && p->state != PEER_CALLING && !crossed(f, p, hello))
		end = p;
	else if (!p && full)
		end = oldest_answering(f);
	pthread_mutex_unlock(&f->lock);
	if (end)
		join_end(f, end);
}

/* An entry in ANSWERING for the caller, or NULL and *why. */
static struct peer *answer_entry(struct fabric *f, const struct msg *hello, enum msg_why *why)
{
	make_room(f, hello);
	pthread_mutex_lock(&f->lock);
	struct peer *p = peer_find(f, hello->addr);
	if (f->closing) {
		*why = MSG_CLOSING;
		p = NULL;
	} else if (p && crossed(f, p, hello)) {
		*why = MSG_CROSSED;
		p = NULL;
	} else if (!p) {
		*why = MSG_FULL;
		p = peer_new(f, hello->addr);
	}
	if (p) {
		p->state = PEER_ANSWERING;
		p->instance = hello->instance;
		p->deadline_ms = uw_clock_ms() + ANSWER_MS;
	}
	pthread_mutex_unlock(&f->lock);
	return p;
}

static void complain_full(struct fabric *f, const struct msg *hello)
{
	uint64_t now = uw_clock_ms();

	if (now < f->said_ms)
		return;
	f->said_ms = now + SAY_MS;
	log_error(UW_E_NOMEM, "%s refuses process %u at %s: a process has at most %d memif peers",
		  log_addr(f->link[0].io.addr), hello->pid, log_addr(hello->addr), PEER_MAX);
}

/* The descriptors of HELLO are the doorbells, and the eventfd that rings. */
static struct peer *answer_hello(struct fabric *f, const struct msg *hello, struct msg_fds *fds,
				 enum msg_why *why)
{
	_Atomic uint32_t *bell = bell_map(msg_fds_take(fds, 0));
	int ring_fd = fds_keep(msg_fds_take(fds, 1));
	struct peer *p = NULL;

	*why = fds->lost ? MSG_NO_FDS : MSG_NOT_ME;
	msg_fds_close(fds);
	if (bell && fits(f, hello))
		p = answer_entry(f, hello, why);
	if (p) {
		p->bell = bell;
		p->ring_fd = ring_fd;
	} else {
		bell_unmap(bell);
		fds_close(ring_fd);
	}
	if (!p && *why == MSG_FULL)
		complain_full(f, hello);
	return p;
}

void join_answer(struct fabric *f, int fd, const struct msg *hello, struct msg_fds *fds)
{
	enum msg_why why;
	struct peer *p = answer_hello(f, hello, fds, &why);

	if (!p) {
		join_refuse(f, fd, why);
		return;
	}
	unsigned queues = RTE_MIN(hello->more + 1U, f->n);
	p->pair = pair_new(RTE_MIN(hello->mtu, f->link[0].io.mtu), queues, f->n);
	if (!p->pair) {
		why = errno == EMFILE || errno == ENFILE ? MSG_NO_FDS : MSG_NO_MEMORY;
		join_refuse(f, fd, why);
		join_end(f, p);
		return;
	}
	p->fd = fd;
	struct msg welcome = join_msg(f, MSG_WELCOME);
	welcome.more = (uint8_t)(queues - 1);
	if (msg_send(fd, &welcome, f->bell_fd, p->pair->ours.fd))
		join_end(f, p);
	else
		pair_sent(p->pair);
}

void join_ready(struct fabric *f, struct peer *p, const struct msg *m, struct msg_fds *fds)
{
	uw_status st = pair_attach(p->pair, msg_fds_take(fds, 0));

	if (!st)
		st = pair_borrow(p->pair, m->lends, msg_fds_take(fds, 1));
	msg_fds_close(fds);
	if (st) {
		if (fds->lost) {
			join_refuse(f, p->fd, MSG_NO_FDS);
			p->fd = -1;
		}
		join_end(f, p);
		return;
	}
	publish(f, p);
	pthread_mutex_lock(&f->lock);
	p->state = PEER_UP;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
	if (send_ready(f, p->fd, f->wait_fd))
		join_end(f, p);
}

/* --- the end --- */

static void set_state(struct fabric *f, struct peer *p, enum peer_state state)
{
	pthread_mutex_lock(&f->lock);
	p->state = state;
	if (state == PEER_NONE)
		*p = (struct peer){ .fd = -1, .ring_fd = -1 };
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

/* Send nothing more to it. Was it up? */
static bool close_senders(struct fabric *f, const struct peer *p)
{
	bool was_up = false;

	for (unsigned i = 0; i < f->n; i++) {
		if (!fabric_enter(f, i))
			continue;
		was_up |= lane_close_sender(&f->link[i].lanes, p->addr);
		fabric_leave(f, i);
	}
	atomic_thread_fence(memory_order_seq_cst); /* as in wake_touched */
	fabric_rouse(f);			   /* somebody should look at what is left */
	return was_up;
}

static void remove_lanes(struct fabric *f, const struct peer *p)
{
	for (unsigned i = 0; i < f->n; i++) {
		if (!fabric_enter(f, i))
			continue;
		lane_remove(&f->link[i].lanes, p->addr);
		fabric_leave(f, i);
	}
}

/* No lane leads to it any more. */
static void peer_free(struct fabric *f, struct peer *p)
{
	pair_free(p->pair);
	bell_unmap(p->bell);
	fds_close(p->ring_fd);
	set_state(f, p, PEER_NONE);
}

void join_hang_up(struct fabric *f, struct peer *p, unsigned drain_ms)
{
	set_state(f, p, PEER_GONE); /* first, so that nobody finds it up */
	bool was_up = close_senders(f, p);

	fds_close(p->fd);
	p->fd = -1;
	p->deadline_ms = uw_clock_ms() + drain_ms;
	if (was_up && !f->closing) {
		join_settle(f, p);
		return;
	}
	remove_lanes(f, p);
	peer_free(f, p);
}

static bool all_received(struct fabric *f, const struct peer *p)
{
	bool all = true;

	for (unsigned i = 0; i < f->n && all; i++) {
		if (!fabric_enter(f, i))
			continue;
		all = lane_drained(&f->link[i].lanes, p->addr);
		fabric_leave(f, i);
	}
	return all;
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
	if (!f->closing && uw_clock_ms() < p->deadline_ms && !all_received(f, p))
		return;
	remove_lanes(f, p);
	if (!f->closing)
		tell_down(f, p);
	peer_free(f, p);
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
