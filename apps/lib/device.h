/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The RDMA device that is used, memory registered with it, and its completions. Functions return 0
 * or a negative errno; what fails says so on stderr, in one line.
 */
#ifndef APPS_DEVICE_H
#define APPS_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <infiniband/verbs.h>

struct device {
	struct ibv_context *verbs; /* belongs to librdmacm */
	struct ibv_pd *pd;
	struct ibv_device_attr attr;
};

/* The device that leads to the server. */
int device_open_to(struct device *d, const char *host, const char *port);
/* The device with this local address; NULL: the first one. */
int device_open_at(struct device *d, const char *host);
void device_close(struct device *d);
/* 0; -EOPNOTSUPP after a line that says that it has none. */
int device_need_atomics(const struct device *d);

/* Zeroed memory that the device may reach: for local use, and as `access` says by the peer. */
struct region {
	uint8_t *base;
	size_t size;
	struct ibv_mr *mr;
};

int region_open(struct region *r, const struct device *d, size_t size, int access);
void region_close(struct region *r);
struct ibv_sge region_sge(const struct region *r, size_t at, uint32_t n);

#define REGION_LOCAL IBV_ACCESS_LOCAL_WRITE
#define REGION_READ  (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ)
#define REGION_WRITE (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE)
/* Where READs and atomics put what they bring: with iWARP a Read Response is a tagged message,
 * which is placed as a peer's WRITE is. */
#define REGION_SINK   REGION_WRITE
#define REGION_ATOMIC (IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC)

/* A completion queue that is polled all the time, or slept on. One thread uses it. */
struct comp {
	struct ibv_comp_channel *channel; /* NULL: polled */
	struct ibv_cq *cq;
	unsigned unacked; /* events taken; acknowledging takes a lock, so it is done for many at
			     once */
	/* clock_ns() when comp_wait() last brought something: the time of all that it brought, and
	 * of what begins thereupon. A clock that is read for each operation costs more than many
	 * an operation does. */
	uint64_t at;
};

int comp_open(struct comp *c, const struct device *d, unsigned entries, bool events);
void comp_close(struct comp *c);
/* Up to n completions, or 0 after about so many milliseconds without any (-1: no limit; 0: looks
 * once and never sleeps); a negative errno. */
int comp_wait(struct comp *c, struct ibv_wc *wc, int n, int milliseconds);
/* How many completions to take at once, at most `most`: half of what is under way. What they lead
 * to is posted, and the peer works on it, while the other half is looked at. */
static inline int comp_half(unsigned window, int most)
{
	unsigned half = window / 2 ? window / 2 : 1;

	return half < (unsigned)most ? (int)half : most;
}

/* c->at is now: before the first operations begin. */
void comp_mark(struct comp *c);

#endif
