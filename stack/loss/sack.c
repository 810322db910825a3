/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/sack.h"

#include "loss/seq.h"

static bool is_within(const struct loss_block *in, const struct loss_block *b)
{
	return seq_leq(in->left, b->left) && seq_leq(b->right, in->right);
}

bool sack_is_duplicate(uint32_t ack, const struct loss_block *b, unsigned n)
{
	if (!n || !seq_lt(b[0].left, b[0].right))
		return false;
	return seq_leq(b[0].right, ack) || (n > 1 && is_within(&b[1], &b[0]));
}

/* A peer may say the same of thousands of segments again and again: from one that has arrived
 * `after` leads past others that have, and is made to lead past all that are walked here. */
static void mark(struct record *r, uint32_t left, uint32_t right, struct delivery *d)
{
	uint32_t first = record_find(r, left), id = first, next;

	while (id != r->end && seq_leq(sent_end(record_at(r, id)), right)) {
		const struct sent *s = record_at(r, id);

		if (s->state != SENT_SACKED) {
			delivery_take(d, s);
			record_set(r, id, SENT_SACKED);
		}
		id = s->after;
	}
	for (; first != id; first = next) {
		next = record_at(r, first)->after;
		record_at(r, first)->after = id;
	}
}

/* What of it is not in the blocks seen from i on. */
static void mark_new(const struct sack *k, unsigned i, struct record *r, struct loss_block b,
		     struct delivery *d)
{
	for (; i < k->n; i++) {
		struct loss_block s = k->seen[i];

		if (!seq_lt(b.left, s.right) || !seq_lt(s.left, b.right))
			continue;
		if (seq_lt(b.left, s.left))
			mark_new(k, i + 1, r, (struct loss_block){ b.left, s.left }, d);
		if (seq_lt(s.right, b.right))
			mark_new(k, i + 1, r, (struct loss_block){ s.right, b.right }, d);
		return;
	}
	mark(r, b.left, b.right, d);
}

/* To whole segments of the record; false: none is within. */
static bool align(const struct record *r, struct loss_block *b)
{
	uint32_t from = record_find(r, b->left), to = record_find(r, b->right);
	const struct sent *last;

	if (from == to)
		return false;
	last = record_at(r, (to - 1) & RECORD_IDS);
	b->left = record_at(r, from)->seq;
	b->right = seq_leq(sent_end(last), b->right) ? sent_end(last) : last->seq;
	return seq_lt(b->left, b->right);
}

/* RFC 2018 §4: within what is outstanding, whose first octet the peer does not have. */
static bool is_valid(const struct record *r, const struct loss_block *b)
{
	uint32_t una = record_at(r, r->first)->seq;
	uint32_t nxt = sent_end(record_at(r, (r->end - 1) & RECORD_IDS));

	return seq_lt(b->left, b->right) && seq_lt(una, b->right) && seq_leq(b->right, nxt) &&
	       b->right - b->left <= nxt - una;
}

void sack_take(struct sack *k, struct record *r, const struct loss_block *b, unsigned n,
	       struct delivery *d)
{
	struct sack now = { .n = 0 };

	for (unsigned i = 0; i < n && i < LOSS_BLOCKS && record_count(r); i++) {
		struct loss_block v = b[i];

		if (!is_valid(r, &v) || !align(r, &v))
			continue;
		mark_new(k, 0, r, v, d);
		now.seen[now.n++] = v;
	}
	/* Segments of octets have no blocks. Once nothing is out of order, what was seen must go:
	 * in the next lap of the sequence numbers it would stand for other segments. */
	if (n || !r->sacked)
		*k = now;
}

void sack_forget(struct sack *k, struct record *r)
{
	k->n = 0;
	for (uint32_t id = r->first; id != r->end && r->sacked; id = record_next(id)) {
		if (record_at(r, id)->state == SENT_SACKED)
			record_set(r, id, SENT_LOST);
	}
}
