/* SPDX-License-Identifier: BSD-3-Clause */
/* The connection to the uwarpd: made, lost, and made again. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "io/fds.h"
#include "io/shm.h"
#include "io/uwarpd/link.h"

#define JOIN_MS	 2000
#define AGAIN_MS 50

/* ---- joining ------------------------------------------------------------------------------- */

/* All of a uwarpd that has ended, or of one that we did not get to join. */
static void leave(struct uwarpd_link *u)
{
	struct uwarpd_peer *p = &u->peer;

	conduit_free(&p->conduit);
	shm_unmap(p->bell, CONDUIT_PAGE);
	fds_close(p->fd);
	fds_close(p->ring_fd);
	*p = (struct uwarpd_peer){ .fd = -1, .ring_fd = -1 };
}

static const char *why_refused(enum switch_msg_why why)
{
	switch (why) {
	case SWITCH_NO_RIGHT:
		return "this user may not use it (uwarpd --allow)";
	case SWITCH_LIMIT:
		return "it has as many clients, or as many of this user, as it may "
		       "(--max-clients, --max-clients-per-user)";
	case SWITCH_NOT_YOURS:
		return "it is of another version of uwarp";
	default:
		return "it has no memory or descriptor left";
	}
}

static uw_status complain(const struct uwarpd_link *u, bool say, const char *what)
{
	if (say)
		uw_log("uwarpd at %s: %s", u->path, what);
	return UW_E_NO_LINK;
}

static uw_status say_no_connection(const struct uwarpd_link *u, bool say, int err)
{
	if (say)
		uw_log("no uwarpd at %s (%s): start it there, or name its socket "
		       "(--link uwarpd:PATH, UWARPD)",
		       u->path, strerror(err));
	return UW_E_NO_LINK;
}

/* Once for each reason: the next try comes soon. */
static uw_status refused(struct uwarpd_link *u, enum switch_msg_why why)
{
	const char *what = why_refused(why);
	bool said = what == u->refused;

	u->refused = what;
	return complain(u, !said, what);
}

static uw_status await(struct uwarpd_link *u, enum switch_msg_type type, bool say,
		       struct switch_fds *fds, struct switch_msg *m)
{
	int rc = switch_await(u->peer.fd, JOIN_MS, m, fds);

	if (rc == -ETIMEDOUT)
		return complain(u, say, "it does not answer");
	if (rc != 1)
		return complain(u, say, "it hung up");
	if (m->type == type && m->version == SWITCH_VERSION)
		return UW_OK;
	switch_fds_close(fds);
	return refused(u, m->type == SWITCH_REFUSE ? m->why : SWITCH_NOT_YOURS);
}

/* None comes from a uwarpd of before IPv6. */
static uw_status hear_ip6(struct uwarpd_link *u, bool say)
{
	struct uwarpd_peer *p = &u->peer;

	if (p->welcome.n_ip6 > IO_IP6_MAX)
		return complain(u, say, why_refused(SWITCH_NOT_YOURS));
	while (p->n_ip6 < p->welcome.n_ip6) {
		struct uw_net *to = &p->ip6[p->n_ip6];
		struct switch_msg m;
		struct switch_fds fds;
		uw_status st = await(u, SWITCH_ADDRESS, say, &fds, &m);

		if (st)
			return st;
		switch_fds_close(&fds);
		if (m.bits > 128)
			return complain(u, say, why_refused(SWITCH_NOT_YOURS));
		memcpy(to->ip.b, m.ip6, sizeof(to->ip.b));
		to->bits = (uint8_t)m.bits;
		p->n_ip6++;
	}
	return UW_OK;
}

/* HELLO, WELCOME: what the uwarpd shares with us. */
static uw_status greet(struct uwarpd_link *u, bool say)
{
	struct switch_msg hello = switch_msg_of(SWITCH_HELLO);
	struct uwarpd_peer *p = &u->peer;
	struct switch_fds fds;
	int region;
	uw_status st;

	hello.flags = SWITCH_FLAG_IP6;
	if (switch_send(p->fd, &hello, (int[]){ u->bell_fd, u->wake[1] }, 2))
		return complain(u, say, "it hung up");
	st = await(u, SWITCH_WELCOME, say, &fds, &p->welcome);
	if (st)
		return st;
	region = switch_fds_take(&fds, 0);
	p->ring_fd = fds_keep(switch_fds_take(&fds, 1));
	p->bell = shm_map(switch_fds_take(&fds, 2), CONDUIT_PAGE, SHM_READ_ONLY);
	st = conduit_attach(&p->conduit, region);
	if (!st && p->bell && p->ring_fd >= 0)
		return hear_ip6(u, say);
	return complain(u, say, "what it shares cannot be mapped (ulimit -n)");
}

/* The uwarpd may have many to accept: -EAGAIN. */
static int connect_to(const struct uwarpd_link *u)
{
	int fd = switch_connect(u->path);

	for (unsigned ms = 0; fd == -EAGAIN && ms < JOIN_MS && !u->closing; ms++) {
		poll(NULL, 0, 1);
		fd = switch_connect(u->path);
	}
	return fd;
}

static uw_status join(struct uwarpd_link *u, bool say)
{
	struct switch_msg m = switch_msg_of(SWITCH_READY);
	struct uwarpd_peer *p = &u->peer;
	struct switch_fds fds;
	uw_status st;
	int ours;

	p->fd = connect_to(u);
	if (p->fd < 0)
		return say_no_connection(u, say, -p->fd);
	p->fd = fds_keep(p->fd);
	st = conduit_make(&p->conduit, &ours);
	if (!st)
		st = greet(u, say);
	if (!st && switch_send(p->fd, &m, &ours, 1))
		st = complain(u, say, "it hung up");
	if (ours >= 0)
		close(ours);
	if (st)
		return st;
	st = await(u, SWITCH_READY, say, &fds, &m);
	if (!st)
		switch_fds_close(&fds);
	return st;
}

/* Why a uwarpd refuses us is said in any case. */
uw_status session_join(struct uwarpd_link *u, bool say)
{
	uw_status st = join(u, say);

	if (st)
		leave(u);
	else
		u->refused = NULL;
	return st;
}

/* ---- the thread ---------------------------------------------------------------------------- */

static void set_connected(struct uwarpd_link *u, bool connected)
{
	pthread_mutex_lock(&u->lock);
	u->connected = connected;
	u->refuse_until_ms = 0;
	pthread_cond_broadcast(&u->answered);
	pthread_mutex_unlock(&u->lock);
}

/* First those that wait for an answer, who hold the stack lock. */
static void go_down(struct uwarpd_link *u)
{
	const struct io_env *env = &u->l.env;

	set_connected(u, false);
	env->lock(env->arg);
	u->up = false;
	if (!u->closing && env->peer_down)
		env->peer_down(env->arg, 0);
	env->unlock(env->arg);
	leave(u);
}

static bool has_ip6(const struct uwarpd_peer *p, const struct uw_ip *ip)
{
	for (unsigned i = 0; i < p->n_ip6; i++)
		if (uw_ip_eq(&p->ip6[i].ip, ip))
			return true;
	return false;
}

/* All that this process has told others of? */
static bool same_ip6(const struct uwarpd_link *u)
{
	for (unsigned i = 0; i < u->l.n_ip6; i++)
		if (!has_ip6(&u->peer, &u->l.ip6[i].ip))
			return false;
	return true;
}

/* May connections of before and of after have the same addresses? */
static bool same_link(const struct uwarpd_link *u)
{
	const struct switch_msg *w = &u->peer.welcome;
	unsigned flags = (w->flags & SWITCH_FLAG_SUMS ? IO_RX_CSUM | IO_TX_CSUM : 0) |
			 (w->flags & SWITCH_FLAG_MERGES ? IO_TSO : 0) |
			 (w->flags & SWITCH_FLAG_WAKES ? IO_WAITS : 0);

	return w->addr == u->l.addr && w->mtu >= u->l.mtu && !memcmp(w->mac, u->l.mac, 6) &&
	       same_ip6(u) &&
	       !(u->l.flags & (IO_RX_CSUM | IO_TX_CSUM | IO_TSO | IO_WAITS) & ~flags);
}

/* Of a uwarpd that ended while it rang, one is counted that never came. */
static void forget_rings(struct uwarpd_link *u)
{
	uint8_t octets[64];

	while (recv(u->wake[0], octets, sizeof(octets), MSG_DONTWAIT) > 0)
		;
	u->rings = atomic_load_explicit(u->bell + SWITCH_BELL_RINGS, memory_order_relaxed);
}

static bool come_up(struct uwarpd_link *u)
{
	const struct io_env *env = &u->l.env;

	if (!claims_renew(u) || !qps_renew(u))
		return false;
	env->lock(env->arg);
	forget_rings(u);
	u->up = true;
	env->unlock(env->arg);
	set_connected(u, true);
	return true;
}

/* One try. */
static void join_again(struct uwarpd_link *u, bool *said)
{
	if (session_join(u, false))
		return;
	if (same_link(u) && come_up(u)) {
		uw_log("a new uwarpd is there");
		*said = false;
		return;
	}
	if (!*said)
		uw_log("the new uwarpd at %s has another address, MTU or port: this process has "
		       "to be started again",
		       u->path);
	*said = true;
	leave(u);
}

static void hear(struct uwarpd_link *u)
{
	struct switch_msg m;
	struct switch_fds fds;
	int rc = switch_receive(u->peer.fd, &m, &fds);

	if (rc == 1) {
		switch_fds_close(&fds);
		if (m.type == SWITCH_ANSWER_TO)
			claims_answered(u, &m);
	} else if (rc == 0) {
		go_down(u);
		if (!u->closing)
			uw_log("the uwarpd at %s has ended, and all connections with it", u->path);
	}
}

/* Until something comes, there is room for what we owe, or we close. Returns what poll says of the
 * connection. */
static short wait_for(struct uwarpd_link *u)
{
	struct pollfd fds[] = { { .fd = u->peer.fd, .events = POLLIN },
				{ .fd = u->deaf ? -1 : u->stop_fd, .events = POLLIN } };

	if (claims_owes(u))
		fds[0].events |= POLLOUT;
	fds_poll(fds, 2, u->peer.fd < 0 ? AGAIN_MS : -1);
	if (fds[1].revents && !fds_rung(u->stop_fd))
		u->deaf = true;
	return fds[0].revents;
}

static void *session_main(void *arg)
{
	struct uwarpd_link *u = arg;
	bool said = false;

	while (!u->closing) {
		short is = wait_for(u);

		if (u->closing)
			break;
		if (u->peer.fd < 0)
			join_again(u, &said);
		else if (is & ~POLLOUT)
			hear(u);
		else if (is)
			claims_pay(u);
	}
	return NULL;
}

uw_status session_start(struct uwarpd_link *u)
{
	sigset_t all, old;
	int rc;

	u->up = u->connected = true;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&u->thread, NULL, session_main, u);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc) {
		uw_log("no thread for the uwarpd's answers: %s", strerror(rc));
		return UW_E_NOMEM;
	}
	u->runs = true;
	pthread_setname_np(u->thread, "uwarp-control");
	return UW_OK;
}

void session_stop(struct uwarpd_link *u)
{
	u->closing = true;
	if (u->runs) {
		if (!u->deaf)
			fds_ring(u->stop_fd);
		pthread_join(u->thread, NULL);
	}
	leave(u);
}

void session_fault(struct uwarpd_link *u)
{
	u->l.stats.peer_faults++;
	u->up = false;
	shutdown(u->peer.fd, SHUT_RDWR);
}
