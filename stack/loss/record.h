/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The record of what was sent and is not acknowledged by SEG.ACK: one entry for each segment, in
 * the order of sequence numbers (the scoreboard of RFC 6675 §3). A segment is never cut or joined:
 * FPDUs stay aligned when they are sent again (RFC 5044 §5).
 *
 * An entry is in one of three states and its octets are in one of three sums:
 *   flying  sent and, as far as is known, on its way; in the list `flying`, oldest sending first
 *   sacked  the peer has it (RFC 2018)
 *   lost    taken for lost, not sent again yet; in the list `lost`, first marked first
 *
 * The caller owns the storage. Entries are named by a number that counts up (modulo 2^31); a number
 * stays the same when the storage grows.
 */
#ifndef UWARP_LOSS_RECORD_H
#define UWARP_LOSS_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#define RECORD_NONE UINT32_MAX
#define RECORD_IDS  0x7fffffffu

enum sent_state { SENT_FLYING, SENT_SACKED, SENT_LOST };

struct sent {
	uint32_t seq, len;	/* len counts a FIN as TCP does */
	uint64_t sent_us;	/* last time */
	uint64_t delivered;	/* rate sample: octets delivered when it was sent, ... */
	uint64_t delivered_us;	/* ... when the last of them was, ... */
	uint64_t first_sent_us; /* ... and when the first that was not had been sent */
	void *tag;		/* the caller's */
	uint32_t before, after; /* in its list */
	uint8_t state;		/* enum sent_state */
	uint8_t times;		/* how often it was sent, 255 and more: 255 */
	bool app_limited;	/* there was nothing more to send then */
};

struct sent_list {
	uint32_t first, last; /* RECORD_NONE: empty */
};

struct record {
	struct sent *slot;
	uint32_t size; /* a power of two */
	uint32_t first, end;
	struct sent_list flying, lost;
	uint32_t octets[3]; /* by state */
	uint32_t sacked;    /* entries in that state */
};

static inline uint32_t sent_end(const struct sent *s)
{
	return s->seq + s->len;
}
static inline uint32_t record_next(uint32_t id)
{
	return (id + 1) & RECORD_IDS;
}
static inline uint32_t record_count(const struct record *r)
{
	return (r->end - r->first) & RECORD_IDS;
}
static inline struct sent *record_at(const struct record *r, uint32_t id)
{
	return &r->slot[id & (r->size - 1)];
}
static inline bool record_full(const struct record *r)
{
	return record_count(r) == r->size;
}

/* slot: n entries, n a power of two. */
void record_init(struct record *r, struct sent *slot, uint32_t n);
/* To larger storage; what is in use is copied. The old one is the caller's again. */
void record_grow(struct record *r, struct sent *slot, uint32_t n);
/* A new last entry, flying, sent now; NULL when the record is full. */
struct sent *record_append(struct record *r, uint32_t seq, uint32_t len, uint64_t now_us);
/* To another state; to SENT_FLYING: to its place by sent_us. */
void record_set(struct record *r, uint32_t id, enum sent_state state);
/* The list of lost ones into the order of sequence numbers. */
void record_sort_lost(struct record *r);
/* Drop the first entry. */
void record_pop(struct record *r);
/* The number of the first entry that begins at seq or behind it, r->end if none does. */
uint32_t record_find(const struct record *r, uint32_t seq);
/* The lists and sums say what the entries say: for tests. */
bool record_sound(const struct record *r);

#endif
