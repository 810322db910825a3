/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections that a peer has opened and on which it has said nothing: their number is limited for
 * each host (RFC 5042 §6.4.1, doc/adr/0026). Hosts are told apart by a hash with a key of the
 * stack, so two may share a limit. Under the lock of the stack.
 */
#ifndef UWARP_CONN_SILENT_H
#define UWARP_CONN_SILENT_H

#include <stdbool.h>
#include <stdint.h>

#include "io/addr.h"

#define SILENT_GROUPS 64u

struct conn;
struct stack;

/* All zero at first. */
struct silent {
	struct {
		struct conn *first, *last; /* the oldest first */
		unsigned n;
		unsigned all; /* connections that its hosts have begun, silent or not */
	} group[SILENT_GROUPS];
	uint64_t key[2]; /* key[1] 0: not drawn yet */
};

/* May one more connection of this host begin? *gives_way: the one that ends for it, or NULL. */
bool silent_has_room(struct stack *s, const struct uw_ip *host, struct conn **gives_way);
/* c counts from now on; it has its remote address. */
void silent_add(struct conn *c);
/* c has received its first octets, or ends: it is not silent any more. */
void silent_remove(struct conn *c);
/* c ends, after silent_add(): its host has one connection less. */
void silent_leave(struct conn *c);

#endif
