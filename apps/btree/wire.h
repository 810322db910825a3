/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What clients and servers of uwarp-btree tell each other. A call and its reply are 64 octets. They
 * go by RDMA WRITE into a mailbox of the other side, which looks at its memory all the time, or by
 * SEND. The type is written last, as is usual; but since no standard promises that it is seen last,
 * a message is only taken when its check is right, too. The check covers the type: what lies there
 * may be that of the slot's last message.
 */
#ifndef BTREE_WIRE_H
#define BTREE_WIRE_H

#include "page.h"
#include "rpc.h"

#define BTREE_SERVICE  ((struct service){ "uwarp-btree", 0x6572b003u })
#define BTREE_MESSAGE  128u
#define BTREE_SCAN_MAX 128u /* items of one scan */

enum mail_type { MAIL_GET = 1, MAIL_PUT, MAIL_DELETE, MAIL_SCAN, MAIL_REPLY };

struct mail {
	uint64_t key, value;
	uint64_t until;	      /* SCAN: the last key */
	uint64_t items_check; /* SCAN's reply: XXH3 of the items, which were WRITTEN before */
	uint32_t number;      /* of the slot's call, from 1 */
	uint32_t slot;
	uint32_t count;	 /* SCAN: items wanted; items found */
	uint32_t status; /* reply: 0, ENOENT, ENOMEM, EINVAL */
	uint64_t check;	 /* XXH3 of what is before it, seeded with the type */
	uint64_t type;
};

_Static_assert(sizeof(struct mail) == 64, "a cache line");

static inline uint64_t mail_check(const struct mail *m, uint64_t type)
{
	return XXH3_64bits_withSeed(m, offsetof(struct mail, check), type);
}

static inline void mail_seal(struct mail *m, enum mail_type type)
{
	m->check = mail_check(m, type);
	m->type = type;
}

/* Has this slot's message with that number come, all of it? Copies it first: it may still be
 * coming. */
static inline bool mail_take(const struct mail *box, uint32_t number, struct mail *out)
{
	const volatile struct mail *v = box;

	if (!v->type || v->number != number)
		return false;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	*out = *box;
	return out->number == number && out->check == mail_check(out, out->type);
}

/* The client's: its replies and behind them rooms for scans, one of each for each slot. */
struct btree_wish {
	uint32_t magic, window;
	uint64_t base;
	uint32_t rkey, unused;
};

struct btree_offer {
	uint32_t magic, page; /* octets */
	uint64_t base;	      /* page 0, the root */
	uint32_t rkey, mail_rkey;
	uint64_t mail; /* the session's mailboxes, one for each slot; 0: nobody looks there */
};

static inline uint64_t btree_room(const struct btree_wish *w, uint32_t slot)
{
	return w->base + w->window * sizeof(struct mail) +
	       (uint64_t)slot * BTREE_SCAN_MAX * sizeof(struct page_item);
}

static inline size_t btree_replies_size(uint32_t window)
{
	return window * (sizeof(struct mail) + BTREE_SCAN_MAX * sizeof(struct page_item));
}

#endif
