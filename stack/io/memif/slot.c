/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_ethdev.h>

#include "io/dpdk/eal.h"
#include "io/port/ethdev.h"
#include "io/log.h"
#include "slot.h"

/* A frame takes one memif buffer, never two: over several, memif's descriptors keep flags of
 * frames long gone (DPDK 22.11 and 24.11). */
unsigned slot_buffer(unsigned mtu)
{
	return RTE_ALIGN_CEIL(mtu + FRAME_ETHER, RTE_CACHE_LINE_SIZE);
}

/* Short rings stay in cache: about 2 MB each way at the most. */
unsigned slot_ring(unsigned mtu)
{
	return mtu <= 9216 ? 8 : mtu <= 18432 ? 7 : 6;
}

void slot_init(struct slot *s)
{
	for (unsigned i = 0; i < DPDK_QUEUES_MAX; i++)
		pthread_mutex_init(&s->shared[i].lock, NULL);
}

static void socket_path(const struct slot_set *set, uint32_t addr, unsigned index, char *out)
{
	snprintf(out, SLOT_PATH, "%s/memif/%s-%u.sock", set->run_dir, log_addr(addr), index);
}

/* One call into the interrupt thread. */
struct slot_job {
	struct slot_set *set;
	struct slot *slot;
	bool server;
	unsigned queues;
	char target[SLOT_PATH];
};

static void slot_unmake(struct slot *s)
{
	wrap_close_listener(&s->listener);
	ethdev_unplug(s->port);
	unlink(s->path);
	s->made = false;
}

static int slot_make(struct slot_set *set, struct slot *s, bool server, unsigned queues)
{
	char name[RTE_ETH_NAME_MAX_LEN], args[SLOT_PATH + 96];
	struct ethdev_plug plug = { .bus = "vdev", .name = name, .args = args };
	const struct ethdev_setup setup = { .rx = set->rx, .queues = queues };

	s->server = server;
	s->queues = queues;
	socket_path(set, set->addr, s->index, s->path);
	if (!server)
		strcpy(strrchr(s->path, '.'), ".to");
	unlink(s->path);
	snprintf(name, sizeof(name), "net_memif%u", s->index);
	snprintf(args, sizeof(args), "role=%s,id=0,bsize=%u,rsize=%u,socket-abstract=no,socket=%s",
		 server ? "server" : "client", slot_buffer(set->mtu), slot_ring(set->mtu), s->path);

	wrap_take_listener();
	int rc = ethdev_plug(&plug);
	s->listener = wrap_take_listener();
	if (rc < 0)
		return rc;
	s->port = plug.port;
	s->made = true;
	rc = ethdev_configure(s->port, &setup);
	if (rc < 0)
		slot_unmake(s);
	return rc;
}

/* A stopped port of the right kind, else a new one, else one of the other kind is given up. */
static struct slot *slot_find(struct slot_set *set, bool server, unsigned queues)
{
	struct slot *empty = NULL, *other = NULL;

	for (unsigned i = 0; i < SLOT_MAX; i++) {
		struct slot *s = &set->slot[i];

		s->index = i;
		if (s->made && !s->busy && s->server == server && s->queues == queues)
			return s;
		if (!s->made && !empty)
			empty = s;
		if (s->made && !s->busy)
			other = s;
	}
	if (empty && slot_make(set, empty, server, queues) == 0)
		return empty;
	if (!other)
		return NULL;
	slot_unmake(other);
	return slot_make(set, other, server, queues) == 0 ? other : NULL;
}

static int job_start(void *arg)
{
	struct slot_job *j = arg;
	struct slot *s = slot_find(j->set, j->server, j->queues);

	if (!s)
		return -ENOSPC;
	if (!j->server) {
		unlink(s->path);
		if (symlink(j->target, s->path))
			return -errno;
	}
	int rc = rte_eth_dev_start(s->port);
	if (!j->server)
		unlink(s->path);
	if (rc < 0)
		return rc;
	s->busy = true;
	j->slot = s;
	return 0;
}

struct slot *slot_serve(struct slot_set *set, unsigned queues)
{
	struct slot_job j = { .set = set, .server = true, .queues = queues };

	eal_forget();
	return eal_run(job_start, &j) == 0 ? j.slot : NULL;
}

struct slot *slot_dial(struct slot_set *set, uint32_t addr, unsigned index, unsigned queues)
{
	struct slot_job j = { .set = set, .queues = queues };

	socket_path(set, addr, index, j.target);
	eal_forget();
	return eal_run(job_start, &j) == 0 ? j.slot : NULL;
}

uw_status slot_complain(const struct slot_set *set, uint32_t addr)
{
	char why[256];
	unsigned busy = 0;

	for (unsigned i = 0; i < SLOT_MAX; i++)
		busy += set->slot[i].busy;
	if (busy == SLOT_MAX)
		return log_error(UW_E_NOMEM, "%s cannot join %s: a process has at most %u memif peers",
			   log_addr(set->addr), log_addr(addr), SLOT_MAX);
	eal_said(why, sizeof(why));
	return log_error(UW_E_NO_LINK, "%s cannot join %s over memif: %s", log_addr(set->addr),
		   log_addr(addr), why[0] ? why : "the port does not start");
}

bool slot_up(const struct slot *s)
{
	struct rte_eth_link link;

	return rte_eth_link_get_nowait(s->port, &link) == 0 && link.link_status;
}

static int job_release(void *arg)
{
	struct slot_job *j = arg;

	rte_eth_dev_stop(j->slot->port);
	j->slot->busy = false;
	return 0;
}

void slot_release(struct slot_set *set, struct slot *s)
{
	struct slot_job j = { .set = set, .slot = s };

	eal_run(job_release, &j);
}

static int job_close_all(void *arg)
{
	struct slot_set *set = arg;

	for (unsigned i = 0; i < SLOT_MAX; i++) {
		struct slot *s = &set->slot[i];

		s->busy = false;
		if (s->made)
			slot_unmake(s);
	}
	return 0;
}

void slot_close_all(struct slot_set *set)
{
	eal_run(job_close_all, set);
}
