/* SPDX-License-Identifier: BSD-3-Clause */
/* The host's connection to the SoC: one call at a time, waited for. One thread uses it. */
#ifndef KV_PEER_H
#define KV_PEER_H

#include "client.h"
#include "store.h"

struct peer {
	struct options common;
	struct device device;
	struct comp comp;
	struct kv_client client;
	bool done;
	int status;
	struct span *value; /* where a value that comes belongs */
	const _Atomic bool *stop;
};

/* stop: who waits looks at it all the time, and then waits no longer. */
int peer_open(struct peer *p, const struct kv_options *o, const _Atomic bool *stop);
void peer_close(struct peer *p);
/* 0 or what the SoC says; -ECONNRESET: it is gone. A SoC that says nothing is waited for: it may be
 * stopped, and still owns what it owns. -ECANCELED: told to stop, and what the SoC has done is not
 * known. */
int peer_call(struct peer *p, enum kv_op op, const struct kv_key *key, struct span value);
/* KV_RELEASE: copies the value to where value->p says; NULL comes back if there is none. */
int peer_take(struct peer *p, const struct kv_key *key, struct span *value);
/* Looks without waiting. */
bool peer_is_gone(struct peer *p);
/* Ends the connection; then peer_close() alone. */
void peer_hang_up(struct peer *p);

#endif
