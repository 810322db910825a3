/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client of one or two servers, each with a part of the keys. Up to `window` operations are
 * under way, each in a slot; done() is called at the end of each, and may begin another in it.
 */
#ifndef BTREE_CLIENT_H
#define BTREE_CLIENT_H

#include "btree.h"
#include "cache.h"
#include "leaf_map.h"
#include "wire.h"

#define LINKS	2u
#define NO_PAGE UINT64_MAX

struct btree_slot {
	enum { STEP_IDLE, STEP_PAGE, STEP_MAIL, STEP_SEND } step;
	enum mail_type type;
	uint64_t key;
	uint8_t link;
	uint64_t page;	 /* that is being read */
	uint32_t piece;	 /* of it; WHOLE_PAGE: all */
	uint64_t above;	 /* the kept page that led there; NO_PAGE: none */
	uint32_t number; /* of the mail that is waited for */
	struct mail call;
};

/* A connection. */
struct link {
	struct conn conn;
	struct rpc rpc;
	struct region pages;	/* a page for each slot */
	struct page_cache kept; /* inner pages (--cache) */
	struct leaf_map leaves; /* and what of leaves is worth to be known */
	struct region calls;	/* a mail for each slot */
	struct region replies;	/* what the server writes: see struct btree_wish */
	struct btree_wish wish;
	struct btree_offer offer;
	uint32_t *number;  /* of each slot's last mail */
	uint64_t written;  /* mails */
	uint64_t complete; /* and so many are known to have left the send queue */
};

struct btree_client {
	const struct btree_options *options;
	struct device device;
	struct comp comp;
	struct link link[LINKS];
	unsigned links, mails; /* mails that replies are awaited for */
	struct btree_slot *slot;
	uint64_t torn, restarts, reads, pieces;
	/* status: 0, -ENOENT, -ENOMEM. items: those of a scan; a GET's value is in item->value. Not
	 * 0: the client ends with it. */
	int (*done)(void *arg, unsigned slot, int status, const struct page_item *items,
		    unsigned n);
	void *arg;
};

int btree_client_open(struct btree_client *c, const struct btree_options *o);
void btree_client_close(struct btree_client *c);

int btree_get(struct btree_client *c, unsigned slot, unsigned link, uint64_t key);
int btree_put(struct btree_client *c, unsigned slot, unsigned link, uint64_t key, uint64_t value);
int btree_delete(struct btree_client *c, unsigned slot, unsigned link, uint64_t key);
/* Up to n items from `key` on, up to `until`. */
int btree_scan(struct btree_client *c, unsigned slot, unsigned link,
	       const struct page_item *from_until, unsigned n);

/* Takes what has come; -ETIMEDOUT: nothing for so many ms. */
int btree_poll(struct btree_client *c, int milliseconds);

#endif
