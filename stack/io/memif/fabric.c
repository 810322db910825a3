/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#include "io/addr.h"

#include "io/dpdk/eal.h"
#include "fabric.h"
#include "io/fds.h"
#include "io/log.h"

/* A frame of MTU_MAX with its headroom fits an mbuf, whose size is 16 bit. */
_Static_assert(MTU_MAX + FRAME_ETHER <= FRAME_ROOM_MAX, "see above");

/* What is in flight, not how much memory: frames of 9000 take half as many octets. */
enum { RX_FRAMES = 1024, TX_FRAMES = 4096, TX_OCTETS = 64 << 20 };

/* The process that has a fabric open, 0: none. There is one for each process, as it has one
 * address. */
static _Atomic pid_t opener;

static struct fabric_link *member_of(struct io_link *l)
{
	return (struct fabric_link *)l;
}

static struct fabric *fabric_of(struct io_link *l)
{
	return member_of(l)->f;
}

/* --- the ops under the stack lock --- */

static unsigned fabric_rx(struct io_link *l, struct io_frame **v, unsigned n)
{
	return lane_rx(&member_of(l)->lanes, v, n);
}

static unsigned fabric_tx(struct io_link *l, struct io_frame **v, unsigned n)
{
	return lane_tx(&member_of(l)->lanes, v, n);
}

static bool fabric_has_room(struct io_link *l, const struct uw_ip *to, unsigned n)
{
	return lane_has_room(&member_of(l)->lanes, to, n);
}

static struct io_frame *fabric_alloc(struct io_link *l)
{
	struct io_frame *f = frame_alloc(member_of(l)->pools.tx);

	l->stats.no_frame += !f;
	return f;
}

/* A process with one stack uses all of its frames under that stack's lock. */
static struct io_frame *alone_alloc(struct io_link *l)
{
	const struct frame_pools *p = &member_of(l)->pools;
	struct io_frame *f = frame_take(p->tx, p->tx_cache);

	l->stats.no_frame += !f;
	return f;
}

static void alone_free(struct io_frame *f)
{
	frame_drop(&member_of(f->link)->pools, f);
}

static bool fabric_pending(struct io_link *l)
{
	return lane_pending(&member_of(l)->lanes);
}

/* --- finding peers --- */

/* Names for this machine rather than for a process: 0.0.0.0, ::, localhost, and the one that Debian
 * gives the host's own name. */
static bool means_anybody(const struct fabric *f, const struct uw_ip *to)
{
	if (io_has(&f->link[0].io, to))
		return false;
	return uw_ip_is_any(to) || uw_ip_is_loopback(to) ||
	       (uw_ip_is_v4(to) && uw_ip_v4_be(to) == htonl(0x7f000101));
}

/* Is it an address that a process on this link can have? */
static bool on_link(const struct fabric *f, const struct uw_ip *to)
{
	bool near = ((uw_ip_v4_be(to) ^ f->link[0].io.addr) & f->link[0].io.mask) == 0;

	if (uw_ip_is_v4(to))
		return near;
	for (unsigned i = 0; i < f->link[0].io.n_ip6; i++) {
		if (uw_net_has(&f->link[0].io.ip6[i], to))
			return near;
	}
	return false;
}

/* With f->lock held. */
static void wait_change(struct fabric *f, uint64_t until_ms)
{
	struct timespec t = { .tv_sec = (time_t)(until_ms / 1000),
			      .tv_nsec = (long)(until_ms % 1000) * 1000000 };

	pthread_cond_timedwait(&f->changed, &f->lock, &t);
}

/* With f->lock held: is addr up, must we wait, or is it ours to call (*call set)? */
static uw_status peer_or_call(struct fabric *f, uint32_t addr, struct peer **call)
{
	struct peer *p = peer_find(f, addr);

	*call = NULL;
	if (f->closing)
		return UW_E_STATE;
	if (p)
		return p->state == PEER_UP ? UW_OK : UW_MORE;
	p = peer_new(f, addr);
	if (!p)
		return fabric_say(f, addr, UW_E_NOMEM,
				  "%s cannot join %s: a process has at most %d memif peers",
				  log_addr(f->link[0].io.addr), log_addr(addr), PEER_MAX);
	p->state = PEER_CALLING;
	p->call = ++f->calls;
	*call = p;
	return UW_MORE;
}

static uw_status reach(struct fabric *f, uint32_t addr, uint64_t deadline_ms)
{
	uw_status st;

	pthread_mutex_lock(&f->lock);
	for (;;) {
		struct peer *call;

		st = peer_or_call(f, addr, &call);
		if (st != UW_MORE)
			break;
		st = UW_E_TIMEOUT;
		if (call) {
			pthread_mutex_unlock(&f->lock);
			st = join_call(f, call, deadline_ms);
			pthread_mutex_lock(&f->lock);
			if (st != UW_E_BUSY)
				break;
			/* Its call is on the way; should it not come, ours is due again. */
			if (!peer_find(f, addr))
				wait_change(f, RTE_MIN(uw_clock_ms() + 50, deadline_ms));
		} else {
			wait_change(f, deadline_ms);
		}
		if (uw_clock_ms() >= deadline_ms)
			break;
	}
	pthread_mutex_unlock(&f->lock);
	return st == UW_E_BUSY ? UW_E_TIMEOUT : st;
}

/* Is addr up already? Asked without waiting. */
static uw_status reached(struct fabric *f, uint32_t addr)
{
	const struct peer *p;
	bool up;

	pthread_mutex_lock(&f->lock);
	p = peer_find(f, addr);
	up = !f->closing && p && p->state == PEER_UP;
	pthread_mutex_unlock(&f->lock);
	return up ? UW_OK : UW_MORE;
}

/* The process that listens on the port, by an address of the same version. */
static uw_status find_listener(struct fabric *f, struct uw_ip *to, uint16_t port)
{
	uint32_t addr;
	uw_status st = registry_owner(&f->registry, port, &addr);

	if (!st)
		*to = uw_ip_is_v4(to) || !f->link[0].io.n_ip6 ? uw_ip_v4(addr)
							      : io_local_of(addr).ip;
	return st;
}

/* How long a process that does not answer may hold up the others. */
enum { GROUP_MS = 200 };

/* A group's packets go to all that are there. Who comes later joins us when it joins the group. */
static uw_status reach_all(struct fabric *f)
{
	uint32_t addr[PEER_MAX];
	unsigned n = registry_list(&f->registry, addr, PEER_MAX);

	for (unsigned i = 0; i < n; i++) {
		uw_status st = addr[i] == f->link[0].io.addr
				       ? UW_OK
				       : reach(f, addr[i], uw_clock_ms() + GROUP_MS);

		if (st == UW_E_NOMEM || st == UW_E_NO_FDS || st == UW_E_STATE)
			return st;
	}
	return UW_OK;
}

static uw_status fabric_group(struct io_link *l, const struct uw_ip *group, bool in)
{
	struct fabric *f = fabric_of(l);

	(void)group;
	if (f->pid != getpid())
		return UW_E_STATE;
	return in ? reach_all(f) : UW_OK;
}

static uw_status fabric_resolve(struct io_link *l, struct uw_ip *to, uint16_t port,
				unsigned timeout_ms)
{
	struct fabric *f = fabric_of(l);

	if (f->pid != getpid())
		return UW_E_STATE;
	if (uw_ip_is_multicast(to))
		return timeout_ms ? reach_all(f) : UW_OK;
	bool by_port = means_anybody(f, to);
	uw_status st = by_port ? find_listener(f, to, port) : UW_OK;
	if (st || io_has(l, to))
		return st;
	/* Nobody else's address ends as ours do. */
	if (!on_link(f, to) || uw_ip_v4_be(to) == l->addr)
		return UW_E_UNREACHABLE;
	st = timeout_ms ? reach(f, uw_ip_v4_be(to), uw_clock_ms() + timeout_ms)
			: reached(f, uw_ip_v4_be(to));
	/* The machine is there; it is the listener that has just gone. */
	return by_port && st == UW_E_UNREACHABLE ? UW_E_REFUSED : st;
}

static uw_status fabric_claim(struct io_link *l, uint16_t port, unsigned versions)
{
	(void)versions;
	return registry_claim(&fabric_of(l)->registry, port);
}

static void fabric_release(struct io_link *l, uint16_t port, unsigned versions)
{
	(void)versions;
	registry_release(&fabric_of(l)->registry, port);
}

/* --- open and close --- */

static void fabric_free(struct fabric *f)
{
	bell_unmap(f->bell);
	fds_close(f->bell_fd);
	fds_close(f->wait_fd);
	pthread_cond_destroy(&f->changed);
	pthread_mutex_destroy(&f->open_lock);
	pthread_mutex_destroy(&f->lock);
	free(f);
	opener = 0;
}

bool fabric_enter(struct fabric *f, unsigned i)
{
	const struct io_env *env = &f->link[i].io.env;

	pthread_mutex_lock(&f->open_lock);
	if (f->link[i].closed) {
		pthread_mutex_unlock(&f->open_lock);
		return false;
	}
	env->lock(env->arg);
	return true;
}

void fabric_leave(struct fabric *f, unsigned i)
{
	const struct io_env *env = &f->link[i].io.env;

	env->unlock(env->arg);
	pthread_mutex_unlock(&f->open_lock);
}

void fabric_rouse(struct fabric *f)
{
	for (unsigned i = 0; i < f->n; i++)
		lane_ring(&f->link[i].io.wait);
}

/* What it was given to send goes out as far as there is room. */
static void drop_lanes(struct fabric *f, unsigned i)
{
	if (!fabric_enter(f, i))
		return;
	lane_flush_all(&f->link[i].lanes);
	lane_set_close(&f->link[i].lanes);
	f->link[i].closed = true;
	fabric_leave(f, i);
}

/* Nobody polls us any more: the peers first, then the memory. */
static void fabric_end(struct fabric *f)
{
	control_stop(f);
	for (unsigned i = 0; i < f->n; i++)
		drop_lanes(f, i);
	registry_close(&f->registry);
	for (unsigned i = 0; i < f->n; i++) {
		struct fabric_link *m = &f->link[i];

		m->pools.arena.unread = m->lanes.unread;
		frame_pools_close(&m->pools);
	}
	fabric_free(f);
}

static void fabric_close(struct io_link *l)
{
	struct fabric *f = fabric_of(l);

	if (f->pid != getpid())
		return; /* a forked child has nothing of it: everything is its parent's */
	pthread_mutex_lock(&f->open_lock);
	bool last = --f->open == 0;
	pthread_mutex_unlock(&f->open_lock);
	if (last)
		fabric_end(f);
	else
		drop_lanes(f, (unsigned)(member_of(l) - f->link));
}

#define FABRIC_OPS                                                                                 \
	.name = "memif", .rx = fabric_rx, .tx = fabric_tx, .refs = frame_refs,                     \
	.has_room = fabric_has_room, .pending = fabric_pending, .resolve = fabric_resolve,         \
	.claim_port = fabric_claim, .release_port = fabric_release, .group = fabric_group,         \
	.close = fabric_close

static const struct io_ops fabric_ops = { FABRIC_OPS, .alloc = fabric_alloc, .free = frame_free,
					  .ref = frame_ref };
static const struct io_ops alone_ops = { FABRIC_OPS, .alloc = alone_alloc, .free = alone_free,
					 .ref = frame_keep };

/* Octets behind the headroom. */
static unsigned frame_room(unsigned mtu)
{
	return RTE_ALIGN_CEIL(mtu + FRAME_ETHER, RTE_CACHE_LINE_SIZE);
}

/* Under a stack's lock. */
static void on_fault(void *arg)
{
	control_wake(arg);
}

static void fill_link(struct fabric *f, unsigned i, const struct dpdk_config *cfg,
		      const struct io_env *env)
{
	struct fabric_link *m = &f->link[i];

	m->f = f;
	m->lanes = (struct lane_set){ .link = &m->io,
				      .pools = &m->pools,
				      .faulty = &f->faulty,
				      .on_fault = on_fault,
				      .arg = f };
	m->pools.arena.fd = -1;
	m->pools.alone = f->n == 1;
	m->io = (struct io_link){ .ops = m->pools.alone ? &alone_ops : &fabric_ops,
				  .env = *env,
				  .mask = cfg->mask ? cfg->mask : htonl(0xff000000),
				  .mtu = cfg->mtu ? cfg->mtu : IO_MTU_PROCESSES,
				  .headroom = FRAME_HEADROOM,
				  .flags = IO_P2P | IO_RINGS | IO_INTACT,
				  .bps = IO_BPS_UNKNOWN };
}

static struct fabric *fabric_new(const struct dpdk_config *cfg, const struct io_env *envs)
{
	unsigned n = RTE_MAX(cfg->queues, 1U);
	struct fabric *f = calloc(1, sizeof(*f) + n * sizeof(f->link[0]));
	pthread_condattr_t attr;

	if (!f)
		return NULL;
	f->pid = getpid();
	f->n = f->open = n;
	if (getrandom(&f->instance, sizeof(f->instance), 0) != sizeof(f->instance))
		f->instance = (uint32_t)uw_clock_ms();
	f->wake_fd = f->bell_fd = f->spare_fd = f->wait_fd = -1;
	f->registry.lock_fd = f->registry.listen_fd = -1;
	for (unsigned i = 0; i < n; i++)
		fill_link(f, i, cfg, &envs[i]);
	for (unsigned i = 0; i < PEER_MAX; i++)
		f->peer[i].fd = f->peer[i].ring_fd = -1;
	pthread_mutex_init(&f->lock, NULL);
	pthread_mutex_init(&f->open_lock, NULL);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&f->changed, &attr);
	pthread_condattr_destroy(&attr);
	return f;
}

static uw_status open_doorbells(struct fabric *f)
{
	f->bell = bell_make(&f->bell_fd);
	f->bell_fd = fds_keep(f->bell_fd);
	if (!f->bell || f->bell_fd < 0)
		return log_error(UW_E_NO_LINK,
				 "no shared memory for the doorbells (memfd_create): %s",
				 strerror(errno));
	f->wait_fd = fds_keep(doorbell_eventfd());
	if (f->wait_fd < 0)
		return log_error(errno == EMFILE || errno == ENFILE ? UW_E_NO_FDS : UW_E_NO_LINK,
				 "no eventfd for the doorbells: %s (ulimit -n, seccomp)",
				 strerror(errno));
	for (unsigned i = 0; i < f->n; i++) {
		struct io_link *l = &f->link[i].io;

		l->doorbell = bell_word(f->bell, i);
		l->wait = doorbell_ring_of(l->doorbell, f->wait_fd);
		l->frames_fd[0] = l->frames_fd[1] = -1;
		if (f->n == 1) /* a program waits for one stack alone */
			l->flags |= IO_WAITS;
	}
	return UW_OK;
}

static uw_status open_memory(struct fabric *f, const struct dpdk_config *cfg)
{
	unsigned room = frame_room(f->link[0].io.mtu);
	unsigned ntx = RTE_MIN((unsigned)TX_FRAMES, (unsigned)TX_OCTETS / room);

	/* Several stacks share what is under way. */
	ntx = f->n > 1 ? ntx / 2 : ntx;
	struct eal_need need = { .bytes = f->n * frame_pools_bytes(RX_FRAMES, ntx, room),
				 .verbose = cfg->verbose };
	uw_status st = eal_start(&need);
	for (unsigned i = 0; !st && i < f->n; i++) {
		struct fabric_link *m = &f->link[i];

		m->pools.nrx = RX_FRAMES;
		m->pools.ntx = ntx;
		m->pools.shared = f->n == 1;
		st = frame_pools_open(&m->pools, &m->io, room);
		if (!st && !lane_set_open(&m->lanes))
			st = UW_E_NOMEM;
	}
	return st;
}

static void name_links(struct fabric *f, const struct dpdk_config *cfg)
{
	for (unsigned i = 0; i < f->n; i++) {
		struct io_link *l = &f->link[i].io;

		l->addr = f->registry.addr;
		io_mac_of(l->addr, l->mac);
		io_set_ip6(l, cfg->ip6, cfg->n_ip6);
	}
}

static uw_status open_parts(struct fabric *f, const struct dpdk_config *cfg)
{
	const struct registry_config where = { .dir = cfg->run_dir,
					       .addr = cfg->addr,
					       .addr_fd = cfg->addr_fd,
					       .addr_auto = cfg->addr_auto };
	uw_status st = registry_open(&f->registry, &where);
	if (st)
		return st;
	name_links(f, cfg);
	st = open_doorbells(f);
	if (st)
		return st;
	st = open_memory(f, cfg);
	if (st)
		return st;
	return control_start(f);
}

uw_status fabric_open(const struct dpdk_config *cfg, const struct io_env *envs,
		      struct io_link **out)
{
	if (cfg->mtu && (cfg->mtu < MTU_MIN || cfg->mtu > MTU_MAX))
		return log_error(UW_E_INVAL, "an MTU of %u does not fit memif: choose %d to %d",
				 cfg->mtu, MTU_MIN, MTU_MAX);
	pid_t nobody = 0;
	if (!atomic_compare_exchange_strong(&opener, &nobody, getpid()))
		return log_error(UW_E_BUSY,
				 nobody == getpid()
					 ? "this process has a memif link already"
					 : "this process was forked with a memif link open, "
					   "which is its parent's");
	struct fabric *f = fabric_new(cfg, envs);
	if (!f) {
		opener = 0;
		return UW_E_NOMEM;
	}
	uw_status st = open_parts(f, cfg);
	if (st) {
		fabric_end(f);
		return st;
	}
	for (unsigned i = 0; i < f->n; i++)
		out[i] = &f->link[i].io;
	return UW_OK;
}
