/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <rdma/rdma_cma.h>

#include "clock.h"
#include "device.h"
#include "log.h"

#define ACK_AT	64u   /* events acknowledged at once */
#define LOOK_AT 1024u /* empty polls until the clock is read */

static int take(struct device *d, struct ibv_context *verbs)
{
	d->verbs = verbs;
	d->pd = ibv_alloc_pd(verbs);
	if (!d->pd || ibv_query_device(verbs, &d->attr))
		return log_errno("cannot use %s", ibv_get_device_name(verbs->device));
	return 0;
}

static int lookup(const char *host, const char *port, int flags, struct rdma_addrinfo **found)
{
	struct rdma_addrinfo hints = { .ai_flags = flags, .ai_port_space = RDMA_PS_TCP };

	if (rdma_getaddrinfo(host, port, &hints, found))
		return log_errno("no RDMA device reaches %s", host);
	return 0;
}

int device_open_to(struct device *d, const char *host, const char *port)
{
	struct rdma_addrinfo *to;
	struct rdma_cm_id *id;
	int err = lookup(host, port, 0, &to);

	if (err)
		return err;
	err = rdma_create_ep(&id, to, NULL, NULL);
	rdma_freeaddrinfo(to);
	if (err)
		return log_errno("no RDMA device reaches %s", host);
	err = take(d, id->verbs);
	rdma_destroy_ep(id);
	return err;
}

int device_open_at(struct device *d, const char *host)
{
	struct rdma_addrinfo *at = NULL;
	struct ibv_context **list, *first;
	struct rdma_cm_id *id = NULL;
	int err;

	if (host) {
		err = lookup(host, NULL, RAI_PASSIVE, &at);
		if (err)
			return err;
		err = rdma_create_id(NULL, &id, NULL, RDMA_PS_TCP) ||
				      rdma_bind_addr(id, at->ai_src_addr)
			      ? log_errno("no RDMA device has the address %s", host)
			      : take(d, id->verbs);
		rdma_freeaddrinfo(at);
		if (id)
			rdma_destroy_id(id);
		return err;
	}
	list = rdma_get_devices(NULL);
	first = list ? list[0] : NULL;
	rdma_free_devices(list);
	errno = ENODEV;
	return first ? take(d, first) : log_errno("there is no RDMA device");
}

void device_close(struct device *d)
{
	if (d->pd)
		ibv_dealloc_pd(d->pd);
	d->pd = NULL;
}

int device_need_atomics(const struct device *d)
{
	if (d->attr.atomic_cap != IBV_ATOMIC_NONE)
		return 0;
	log_line("%s has no atomics", ibv_get_device_name(d->verbs->device));
	return -EOPNOTSUPP;
}

/* ---- memory ------------------------------------------------------------------------------ */

int region_open(struct region *r, const struct device *d, size_t size, int access)
{
	r->size = size;
	r->base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (r->base == MAP_FAILED) {
		r->base = NULL;
		return log_errno("no %zu octets of memory", size);
	}
	r->mr = ibv_reg_mr(d->pd, r->base, size, access);
	return r->mr ? 0 : log_errno("cannot register %zu octets", size);
}

void region_close(struct region *r)
{
	if (r->mr)
		ibv_dereg_mr(r->mr);
	if (r->base)
		munmap(r->base, r->size);
	memset(r, 0, sizeof(*r));
}

struct ibv_sge region_sge(const struct region *r, size_t at, uint32_t n)
{
	return (struct ibv_sge){ .addr = (uintptr_t)r->base + at,
				 .length = n,
				 .lkey = r->mr->lkey };
}

/* ---- completions ------------------------------------------------------------------------- */

int comp_open(struct comp *c, const struct device *d, unsigned entries, bool events)
{
	memset(c, 0, sizeof(*c));
	if (events) {
		c->channel = ibv_create_comp_channel(d->verbs);
		if (!c->channel)
			return log_errno("cannot make a completion channel");
	}
	c->cq = ibv_create_cq(d->verbs, (int)entries, NULL, c->channel, 0);
	return c->cq ? 0 : log_errno("cannot make a CQ of %u entries", entries);
}

void comp_close(struct comp *c)
{
	if (c->unacked)
		ibv_ack_cq_events(c->cq, c->unacked);
	if (c->cq)
		ibv_destroy_cq(c->cq);
	if (c->channel)
		ibv_destroy_comp_channel(c->channel);
	memset(c, 0, sizeof(*c));
}

static int look(struct comp *c, struct ibv_wc *wc, int n)
{
	int got = ibv_poll_cq(c->cq, n, wc);

	return got < 0 ? -EIO : got;
}

static int wait_polling(struct comp *c, struct ibv_wc *wc, int n, int milliseconds)
{
	uint64_t end = 0;

	for (unsigned empty = 1;; empty++) {
		int got = look(c, wc, n);

		if (got || !milliseconds)
			return got;
		if (empty % LOOK_AT || milliseconds < 0)
			continue;
		if (!end)
			end = clock_ns() + (uint64_t)milliseconds * 1000000u;
		else if (clock_ns() > end)
			return 0;
	}
}

static int sleep_on(struct comp *c, int milliseconds)
{
	struct pollfd p = { .fd = c->channel->fd, .events = POLLIN };
	struct ibv_cq *cq;
	void *context;
	int ready = poll(&p, 1, milliseconds);

	if (ready <= 0)
		return ready && errno != EINTR ? -errno : 0;
	if (ibv_get_cq_event(c->channel, &cq, &context))
		return -errno;
	if (++c->unacked == ACK_AT) {
		ibv_ack_cq_events(c->cq, c->unacked);
		c->unacked = 0;
	}
	return 1;
}

static int wait_sleeping(struct comp *c, struct ibv_wc *wc, int n, int milliseconds)
{
	int got;

	for (;;) {
		got = look(c, wc, n);
		if (got)
			return got;
		/* what came between the look and the arming is found by the second look */
		if (ibv_req_notify_cq(c->cq, 0))
			return -EIO;
		got = look(c, wc, n);
		if (got)
			return got;
		got = sleep_on(c, milliseconds);
		if (got <= 0)
			return got;
	}
}

void comp_mark(struct comp *c)
{
	c->at = clock_ns();
}

int comp_wait(struct comp *c, struct ibv_wc *wc, int n, int milliseconds)
{
	int got = c->channel && milliseconds ? wait_sleeping(c, wc, n, milliseconds)
					     : wait_polling(c, wc, n, milliseconds);

	if (got > 0)
		comp_mark(c);
	return got;
}
