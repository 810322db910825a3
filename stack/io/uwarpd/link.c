/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/uwarpd/link.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "io/addr.h"
#include "io/fds.h"
#include "io/log.h"
#include "io/shm.h"
#include "io/uwarpd/uwarpd.h"

#define ETHER 14u

static struct io_frame *link_alloc(struct io_link *l)
{
	return frames_take(&uwarpd_link_of(l)->frames.small, l);
}

/* A uwarpd whose port takes no merged frames gets single segments. */
static struct io_frame *link_alloc_long(struct io_link *l)
{
	return l->flags & IO_TSO ? frames_take_long(&uwarpd_link_of(l)->frames, l) : NULL;
}

/* What is in the conduit goes out: the uwarpd reads it when the connection ends. */
static void end(struct uwarpd_link *u)
{
	session_stop(u);
	if (u->stop_fd >= 0 && !u->deaf)
		close(u->stop_fd);
	fds_close(u->wait_fd);
	fds_close(u->wake[0]);
	fds_close(u->wake[1]);
	fds_close(u->bell_fd);
	shm_unmap(u->bell, CONDUIT_PAGE);
	frames_close(&u->frames);
	pthread_cond_destroy(&u->answered);
	pthread_mutex_destroy(&u->lock);
	free(u->users);
	free(u->qps);
	free(u);
}

static void link_close(struct io_link *l)
{
	struct uwarpd_link *u = uwarpd_link_of(l);

	if (u->pid == getpid()) /* else it is the parent's */
		end(u);
}

/* Groups have no QP number by which the uwarpd could tell whose a packet is. */
static uw_status link_group(struct io_link *l, const struct uw_ip *group, bool in)
{
	(void)l;
	(void)group;
	if (!in)
		return UW_OK;
	uw_log("multicast groups do not go through a uwarpd; name the interface (--link)");
	return UW_E_UNSUPPORTED;
}

static const struct io_ops ops = {
	.name = "uwarpd",
	.rx = uwarpd_rx,
	.tx = uwarpd_tx,
	.alloc = link_alloc,
	.alloc_long = link_alloc_long,
	.free = frames_free,
	.ref = frames_ref,
	.refs = frames_refs,
	.pending = uwarpd_pending,
	.claim_port = uwarpd_claim,
	.release_port = uwarpd_release,
	.is_ours = uwarpd_is_ours,
	.claim_packets = uwarpd_claim_qp,
	.release_packets = uwarpd_release_qp,
	.group = link_group,
	.close = link_close,
};

/* ---- opening ------------------------------------------------------------------------------- */

static bool choose_path(struct uwarpd_link *u, const struct uwarpd_config *cfg)
{
	int n;

	if (cfg->path) {
		n = snprintf(u->path, sizeof(u->path), "%s", cfg->path);
	} else {
		n = cfg->run_dir
			    ? snprintf(u->path, sizeof(u->path), "%s/" UWARPD_NAME, cfg->run_dir)
			    : 0;
		if (n <= 0 || n >= (int)sizeof(u->path) || access(u->path, F_OK))
			n = snprintf(u->path, sizeof(u->path), UWARPD_SYSTEM_PATH);
	}
	return n < (int)sizeof(u->path);
}

static uw_status check(const struct uwarpd_link *u, const struct uwarpd_config *cfg)
{
	const struct switch_msg *w = &u->peer.welcome;

	if (cfg->addr && cfg->addr != w->addr)
		return log_error(UW_E_ADDR,
				 "the uwarpd at %s has the address %s, not %s: leave out --ip",
				 u->path, log_addr(w->addr), log_addr(cfg->addr));
	if (w->mtu < IO_MTU_LEAST || w->mtu > IO_MTU_MAX)
		return log_error(UW_E_INVAL,
				 "the uwarpd at %s has an MTU of %u; %u to %u can be used", u->path,
				 w->mtu, IO_MTU_LEAST, IO_MTU_MAX);
	if (cfg->mtu > w->mtu)
		return log_error(UW_E_INVAL, "an MTU of %u is more than the %u of the uwarpd",
				 cfg->mtu, w->mtu);
	return UW_OK;
}

static void fill_link(struct uwarpd_link *u, const struct uwarpd_config *cfg)
{
	const struct switch_msg *w = &u->peer.welcome;

	u->l.addr = w->addr;
	u->l.mask = w->mask;
	memcpy(u->l.mac, w->mac, 6);
	u->l.mtu = cfg->mtu ? cfg->mtu : w->mtu;
	u->l.bps = w->bps;
	u->l.headroom = FRAMES_HEADROOM;
	u->l.doorbell = u->bell;
	u->l.mover_cpu = &u->mover_cpu;
	u->l.flags = IO_RINGS | IO_YIELD | IO_QUEUE;
	if (w->addr)
		u->l.flags |= IO_SHARED;
	if (u->peer.n_ip6)
		io_share_ip6(&u->l, u->peer.ip6, u->peer.n_ip6);
	u->l.scope = w->scope;
	if (w->flags & SWITCH_FLAG_SUMS)
		u->l.flags |= IO_RX_CSUM | IO_TX_CSUM;
	if (w->flags & SWITCH_FLAG_MERGES && !cfg->no_tso)
		u->l.flags |= IO_TSO;
	if (w->flags & SWITCH_FLAG_WAKES) {
		u->l.flags |= IO_WAITS;
		u->l.wait = doorbell_ring_of(u->bell, u->wait_fd);
		u->l.frames_fd[0] = u->wake[0];
		u->l.frames_fd[1] = -1;
	}
}

/* A socket and no eventfd: whoever else has an eventfd can make it block its writer, and no flag of
 * a call prevents that. */
static bool make_wakes(struct uwarpd_link *u)
{
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, u->wake)) {
		u->wake[0] = u->wake[1] = -1;
		return false;
	}
	for (unsigned i = 0; i < 2; i++)
		u->wake[i] = fds_keep(u->wake[i]);
	u->wait_fd = fds_keep(doorbell_eventfd());
	return u->wake[0] >= 0 && u->wake[1] >= 0 && u->wait_fd >= 0;
}

static uw_status bring_up(struct uwarpd_link *u, const struct uwarpd_config *cfg)
{
	uw_status st;

	if (!choose_path(u, cfg))
		return log_error(UW_E_INVAL, "the path of the uwarpd's socket is too long: %s",
				 cfg->path);
	u->bell = shm_make("uwarp-doorbell", CONDUIT_PAGE, SHM_WRITABLE, &u->bell_fd);
	u->bell_fd = fds_keep(u->bell_fd);
	u->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	u->users = calloc(UWARPD_PORTS, sizeof(*u->users));
	if (!u->bell || u->bell_fd < 0 || u->stop_fd < 0 || !make_wakes(u) || !u->users)
		return log_error(UW_E_NOMEM, "no memory or descriptor for the link uwarpd");
	st = session_join(u, true);
	if (!st)
		st = check(u, cfg);
	if (st)
		return st;
	fill_link(u, cfg);
	if (!frames_open(&u->frames, u->l.mtu + ETHER))
		return UW_E_NOMEM;
	return session_start(u);
}

static struct uwarpd_link *make(const struct io_env *env)
{
	struct uwarpd_link *u = calloc(1, sizeof(*u));
	pthread_condattr_t attr;

	if (!u)
		return NULL;
	u->l.ops = &ops;
	u->l.env = *env;
	u->pid = getpid();
	u->bell_fd = u->stop_fd = u->peer.fd = u->peer.ring_fd = -1;
	u->wake[0] = u->wake[1] = u->wait_fd = -1;
	pthread_mutex_init(&u->lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&u->answered, &attr);
	pthread_condattr_destroy(&attr);
	return u;
}

uw_status uwarpd_link_open(const struct uwarpd_config *cfg, const struct io_env *env,
			   struct io_link **out)
{
	struct uwarpd_link *u = make(env);
	uw_status st;

	if (!u)
		return UW_E_NOMEM;
	st = bring_up(u, cfg);
	if (st) {
		end(u);
		return st;
	}
	if (cfg->verbose)
		uw_log("link uwarpd at %s: address %s, MTU %u, %s", u->path, log_addr(u->l.addr),
		       u->l.mtu, u->l.flags & IO_TSO ? "merged segments (TSO)" : "single segments");
	*out = &u->l;
	return UW_OK;
}

const char *uwarpd_link_path(const char *link)
{
	static const char name[] = "uwarpd";

	if (strncmp(link, name, sizeof(name) - 1))
		return NULL;
	link += sizeof(name) - 1;
	return *link == ':' ? link + 1 : *link ? NULL : link;
}
