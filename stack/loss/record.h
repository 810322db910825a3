/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The record of the segments that were sent and are not acknowledged by SEG.ACK: one entry for each
 * segment, in the order of sequence numbers (the scoreboard of RFC 6675 §3). A segment is never
 * split or joined, so FPDUs stay aligned with segments when they are sent again (RFC 5044 §5). A
 * long segment, which the link cuts, is one entry until something of it may be lost; then
 * record_cut makes the segments of the wire of it.
 *
 * An entry is in one of three states:
 *
 * - flying: sent and, as far as is known, in the network; in the list `flying`, oldest sending
 * first
 * - sacked: the peer has acknowledged it by SACK (RFC 2018)
 * - lost: marked lost and not sent again yet; in the list `lost`, first marked first
 *
 * octets[] has the sum of the octets in each state.
 *
 * The caller owns the storage. An entry's id is a number that counts up (modulo 2^31), and stays
 * the same when the storage grows.
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
	uint64_t sent_us;	/* time of the last sending */
	uint64_t delivered;	/* for rate samples: loss.delivered at the last sending, ... */
	uint64_t delivered_us;	/* ... the time of the last delivery before the last sending, ... */
	uint64_t first_sent_us; /* ... and loss.first_sent_us at the last sending */
	void *tag;		/* for the caller, as given to loss_sent */
	/* Neighbours in the list of its state; RECORD_NONE: none. SENT_SACKED has no list: all from
	 * it up to `after` have arrived, too. */
	uint32_t before, after;
	uint8_t state;	  /* enum sent_state */
	uint8_t times;	  /* number of sendings, at most 255 */
	bool app_limited; /* the program limited the rate at the last sending */
};

struct sent_list {
	uint32_t first, last; /* RECORD_NONE: empty */
};

struct record {
	struct sent *slot;
	uint32_t size;	     /* a power of two */
	uint32_t first, end; /* ids: of the oldest entry, and one past the newest */
	struct sent_list flying, lost;
	uint32_t octets[3]; /* indexed by enum sent_state */
	uint32_t sacked;    /* number of entries in state sacked */
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
/* Move to a larger array of n entries (a power of two). The old array is the caller's again. */
void record_grow(struct record *r, struct sent *slot, uint32_t n);
/* Append an entry in state flying, sent now; NULL: the record is full. */
struct sent *record_append(struct record *r, uint32_t seq, uint32_t len, uint64_t now_us);
/* Change the state of an entry. In the list `flying` it takes the place that sent_us gives it. */
void record_set(struct record *r, uint32_t id, enum sent_state state);
/* All entries in state lost are flying again, as by record_set. */
void record_unmark(struct record *r);
/* Sort the list `lost` by sequence number. */
void record_sort_lost(struct record *r);
/* Remove the entry with the lowest sequence number. */
void record_pop(struct record *r);
/* The first n octets of the first entry are acknowledged: they leave it. n < its len. */
void record_trim(struct record *r, uint32_t n);
/* Entries that the record would have if each were at most `len` octets long. */
uint32_t record_pieces(const struct record *r, uint32_t len);
/* Move to a larger array of n entries (a power of two, not below record_pieces), and cut every
 * entry into pieces of `len` octets, the last with the rest. They have the entry's times, state and
 * tag. The old array is the caller's again. */
void record_cut(struct record *r, struct sent *slot, uint32_t n, uint32_t len);
/* The id of the first entry whose seq is not before `seq`; r->end: none. */
uint32_t record_find(const struct record *r, uint32_t seq);
#endif
