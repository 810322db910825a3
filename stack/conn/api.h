/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the public functions of this room: the locks, and errno values. */
#ifndef UWARP_CONN_API_H
#define UWARP_CONN_API_H

#include "conn/endpoint.h"

/* Takes the locks of all stacks; returns one of them for conn_api_unlock. */
static inline struct stack *conn_api_lock(const struct uw_ep *ep)
{
	struct stack *s = ep->stack;

	sched_lock_all(&s->sched);
	return s;
}
static inline void conn_api_unlock(struct stack *s)
{
	sched_unlock_all(&s->sched);
}

/* 0 or a negative errno. */
static inline int conn_errno(uw_status st)
{
	return st ? -uw_status_errno(st) : 0;
}

extern const struct conn_user ep_conn_user;

#endif
