/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider's objects: each has libibverbs' struct in front and a pointer to the engine's
 * object. It also keeps the table of functions it was made with, because a forked child may load an
 * engine library of its own, while its inherited objects belong to the first one.
 */
#ifndef UWARP_PROVIDER_OBJECTS_H
#define UWARP_PROVIDER_OBJECTS_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host.h"
#include "pabi.h"

/* ---- the preloaded library (device.c) ---- */

struct uwarp_stack {
	const struct uw_api *api;
	struct uw_engine *engine;
};

extern const struct verbs_device_ops uwarp_device_ops;
struct pabi_ops;
extern const struct pabi_ops uwarp_ops; /* calls.c */
void uwarp_free_context(struct ibv_context *ibctx);

const struct uwarp_host *uwarp_provider_host(void);
/* This process's engine. -ENODEV: there is none, and a message has said why. */
int uwarp_stack_get(struct uwarp_stack *stack);

/* Write one line to stderr that names what to fix. */
void uwarp_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* ---- libibverbs' private ABI (abi.c) ---- */

struct uwarp_context;

/* Register with each libibverbs of this process that is not registered yet. What cannot be served
 * is named on stderr, once. */
void uwarp_abi_register(const struct verbs_device_ops *ops);
/* What the first of them was given; NULL: there is none. */
const struct verbs_device_ops *uwarp_abi_ops(void);
/* NULL: errno. */
struct uwarp_context *uwarp_abi_context_new(struct ibv_device *dev, int cmd_fd,
					    const struct pabi_ops *ops);
void uwarp_abi_context_free(struct uwarp_context *ctx);
/* What libibverbs' private interface calls a context. */
struct verbs_context *uwarp_abi_context(struct uwarp_context *ctx);

/* ---- events (events.c) ---- */

struct uwarp_sock {
	int fd;
	/* SO_COOKIE. The program may have closed the socket and opened something else since, under
	 * the same number, which has another cookie. */
	uint64_t cookie;
};

/* libibverbs' struct verbs_context lies in front of this, and its last member is our first. Its
 * size depends on the version of libibverbs, so it is not declared here. */
struct uwarp_context {
	struct ibv_context ibctx;
	const struct uwarp_ibverbs *lib; /* abi.c: the copy of libibverbs that made it */
	struct uwarp_sock async_wr, async_rd;
	pthread_mutex_t async_lock; /* one thread at a time looks through the unread events */
};

/* A QP, CQ or SRQ as a source of asynchronous events. */
struct uwarp_source {
	struct uwarp_context *ctx;
	uint64_t element; /* address of the ibv_qp, ibv_cq or ibv_srq */
	/* How many events it has raised. Callbacks write it under the stack's lock. The destroy
	 * call reads it when the engine's object is gone and no callback can come any more. */
	uint32_t reported;
};

int uwarp_async_open(struct uwarp_context *ctx);
void uwarp_async_close(struct uwarp_context *ctx);
void uwarp_async_post(struct uwarp_source *src, uint32_t event_type);
/* Remove the source's events that the program has not read. */
void uwarp_async_drop(struct uwarp_source *src);

/* Wait until the program has acknowledged `reported` events, at most UWARP_ACK_WAIT_MS. False: it
 * has not. More acknowledgements than events are accepted, because fio does that. */
#define UWARP_ACK_WAIT_MS 2000
bool uwarp_acked(pthread_mutex_t *lock, pthread_cond_t *cond, const uint32_t *completed,
		 uint32_t reported);

/* ---- objects ---- */

struct uwarp_pd {
	struct ibv_pd pd;
	const struct uw_api *api;
	struct uw_pd *uw;	/* a parent domain shares that of its domain */
	struct uwarp_pd *of;	/* a parent domain: of this one; else NULL */
	struct uwarp_td *td;	/* its thread domain, or NULL */
	_Atomic unsigned users; /* objects made with it, and parent domains of it */
};

/* A thread domain: the program promises that one thread at a time uses the objects in it. Nothing
 * here makes use of that. */
struct uwarp_td {
	struct ibv_td td;
	_Atomic unsigned users;
};

struct uwarp_mw {
	struct ibv_mw mw;
	const struct uw_api *api;
	struct uw_mw *uw;
};

struct uwarp_mr {
	struct verbs_mr vmr;
	const struct uw_api *api;
	struct uw_mr *uw;
};

struct uwarp_cq {
	struct verbs_cq vcq;
	const struct uw_api *api;
	struct uw_cq *uw;
	struct uwarp_source async;
	int channel_fd;		/* -1: no completion channel */
	uint32_t comp_reported; /* as uwarp_source.reported */
	/* extended polling: the current completion, held from start_poll to end_poll */
	struct uw_wc wc;
	uint64_t stamp; /* ns */
	bool stamps;
	pthread_mutex_t poll_lock;
	bool poll_unlocked; /* the program said that it polls from one thread */
};

struct uwarp_srq {
	struct ibv_srq srq;
	const struct uw_api *api;
	struct uw_srq *uw;
	struct uwarp_source async;
	uint32_t max_wr, max_sge;
};

struct uwarp_batch;

/* Posting reads only the first cache line, so vqp is not the first member. */
struct uwarp_qp {
	const struct uw_api *api;
	struct uw_qp *uw;
	bool is_reset; /* the state is RESET, where receives are refused */
	struct verbs_qp vqp;
	struct uwarp_source async;
	struct ibv_qp_cap cap;
	unsigned access;
	bool sq_sig_all;
	bool named;		   /* CM-less RC: ibv_modify_qp() named the peer */
	bool tell_drained;	   /* raise IBV_EVENT_SQ_DRAINED */
	struct ibv_qp_attr set;	   /* what ibv_modify_qp() set, for ibv_query_qp() */
	struct uw_path path;	   /* the part of `set` that the engine was told */
	struct uwarp_batch *batch; /* of the ibv_wr_* interface; NULL: not asked for */
};

#define uwarp_container(ptr, type, member) ((type *)((char *)(ptr)-offsetof(type, member)))

static inline struct uwarp_context *to_uwarp_context(struct ibv_context *c)
{
	return uwarp_container(c, struct uwarp_context, ibctx);
}

static inline struct uwarp_pd *to_uwarp_pd(struct ibv_pd *pd)
{
	return uwarp_container(pd, struct uwarp_pd, pd);
}

/* An object of this PD came to be, or is no more. */
static inline void uwarp_pd_hold(struct ibv_pd *pd)
{
	atomic_fetch_add(&to_uwarp_pd(pd)->users, 1);
}

static inline void uwarp_pd_put(struct ibv_pd *pd)
{
	atomic_fetch_sub(&to_uwarp_pd(pd)->users, 1);
}

static inline struct uwarp_cq *to_uwarp_cq(struct ibv_cq *cq)
{
	return uwarp_container(cq, struct uwarp_cq, vcq.cq);
}

static inline struct uwarp_srq *to_uwarp_srq(struct ibv_srq *srq)
{
	return uwarp_container(srq, struct uwarp_srq, srq);
}

static inline struct uwarp_qp *to_uwarp_qp(struct ibv_qp *qp)
{
	return uwarp_container(qp, struct uwarp_qp, vqp.qp);
}

/* The verbs way to fail to create: errno and NULL. `rc` is a negative errno. */
static inline void *uwarp_fail(int rc)
{
	errno = -rc;
	return NULL;
}

#endif
