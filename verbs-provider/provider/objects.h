/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider's objects. Each begins with the struct of libibverbs and points to the engine's
 * object. Each also keeps the table of functions of the library that made the object: a forked
 * child may load an engine library of its own, while its inherited objects belong to the first
 * library.
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
/* Get the engine of this process. -ENODEV: there is none; one line on stderr said why. */
int uwarp_stack_get(struct uwarp_stack *stack);
/* What there is to know of the device before a LID is told or read, which stands for an address.
 * Starts the link if nobody knows that otherwise. */
void uwarp_query_for_lids(const struct uwarp_stack *stack, struct uw_device_attr *dev);

/* ---- libibverbs' private ABI (abi.c) ---- */

struct uwarp_context;

/* Register with each copy of libibverbs in this process that is not registered yet. A copy that is
 * not supported is named on stderr, once. */
void uwarp_abi_register(const struct verbs_device_ops *ops);
/* The ops registered by the first call; NULL: no call yet. */
const struct verbs_device_ops *uwarp_abi_ops(void);
/* A new context. NULL: see errno. */
struct uwarp_context *uwarp_abi_context_new(struct ibv_device *dev, int cmd_fd,
					    const struct pabi_ops *ops);
void uwarp_abi_context_free(struct uwarp_context *ctx);
/* The release of rdma-core whose libibverbs made the context; 0: not known. */
unsigned uwarp_abi_release(const struct uwarp_context *ctx);
/* The struct verbs_context that contains ctx. */
struct verbs_context *uwarp_abi_context(struct uwarp_context *ctx);

/* ---- events (events.c) ---- */

struct uwarp_pipe {
	int fd;
	/* Of the pipe. If the program closed it and opened another file with the same number, these
	 * differ. */
	dev_t dev;
	ino_t ino;
};

/* A struct verbs_context of libibverbs contains this struct's first member as its own last member.
 * The size of struct verbs_context depends on the version of libibverbs, so it is not a member
 * here. */
struct uwarp_context {
	struct ibv_context ibctx;
	const struct uwarp_ibverbs *lib; /* abi.c: the copy of libibverbs that made the context */
	struct uwarp_pipe async;	 /* the provider's own end of the pipe behind async_fd */
	pthread_mutex_t async_lock;	 /* held while a thread searches the unread events */
};

/* A QP, CQ or SRQ as a source of asynchronous events. */
struct uwarp_source {
	struct uwarp_context *ctx;
	uint64_t element; /* address of the ibv_qp, ibv_cq or ibv_srq */
	/* Number of events raised. Callbacks write this under the stack lock. The destroy call
	 * reads the number after the engine's object is gone, when no callback can come. */
	uint32_t reported;
	pid_t raised_in; /* with `reported`: the process in which the last one was */
};

int uwarp_async_open(struct uwarp_context *ctx);
void uwarp_async_close(struct uwarp_context *ctx);
void uwarp_async_post(struct uwarp_source *src, uint32_t event_type);
/* Remove the source's events that the program has not read. */
void uwarp_async_drop(struct uwarp_source *src);

/* Wait until the program has acknowledged `reported` events, for at most UWARP_ACK_WAIT_MS. False:
 * the time is over. More acknowledgements than events are accepted, since fio does that. */
#define UWARP_ACK_WAIT_MS 2000
bool uwarp_acked(pthread_mutex_t *lock, pthread_cond_t *cond, const uint32_t *completed,
		 uint32_t reported);

/* ---- objects ---- */

struct uwarp_pd {
	struct ibv_pd pd;
	const struct uw_api *api;
	struct uw_pd *uw;	/* the PD of the engine; a parent domain has that of its PD */
	struct uwarp_pd *of;	/* the PD of a parent domain; NULL: this is a plain PD */
	struct uwarp_td *td;	/* thread domain of a parent domain, or NULL */
	_Atomic unsigned users; /* objects that use this PD, and parent domains of this PD */
};

/* A thread domain: the program promises that only one thread at a time uses its objects. The
 * provider makes no use of that promise. */
struct uwarp_td {
	struct ibv_td td;
	_Atomic unsigned users;
};

struct uwarp_ah {
	struct ibv_ah ah;
	struct uw_ah uw;
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
	_Atomic unsigned *of_users; /* counter of its device memory or DMA handle; NULL: none */
};

struct uwarp_cq {
	struct verbs_cq vcq;
	const struct uw_api *api;
	struct uw_cq *uw;
	struct uwarp_source async;
	struct channel *channel;	/* held; NULL: no completion channel */
	_Atomic uint32_t comp_reported; /* completion events raised, by any thread */
	/* extended polling: the current completion, held from start_poll to end_poll */
	struct uw_wc wc;
	uint64_t stamp; /* time of the completion, ns */
	bool stamps;
	pthread_mutex_t poll_lock;
	bool poll_unlocked; /* the program asked for IBV_CREATE_CQ_ATTR_SINGLE_THREADED */
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
	bool is_ud;
	struct verbs_qp vqp;
	struct uwarp_source async;
	struct ibv_qp_cap cap;
	unsigned access;
	bool sq_sig_all;
	bool named;		/* CM-less RC: ibv_modify_qp() named the peer */
	bool tell_drained;	/* the program wants IBV_EVENT_SQ_DRAINED */
	struct ibv_qp_attr set; /* the values given to ibv_modify_qp(), for ibv_query_qp() */
	struct uw_path path;	/* the timer values given to the engine */
	/* state of the ibv_wr_* interface; NULL: the program did not ask for that interface */
	struct uwarp_batch *batch;
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

/* Count a new object of this PD; uwarp_pd_put: an object is gone. */
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

/* How verbs functions report a failed creation: set errno and return NULL. `rc` is a negative
 * errno. */
static inline void *uwarp_fail(int rc)
{
	errno = -rc;
	return NULL;
}

#endif
