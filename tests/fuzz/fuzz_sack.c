/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a peer can tell the loss recovery: options of any octets (RFC 9293 §3.1, RFC 2018), and ACKs
 * with any blocks at any time while segments are sent, lost and sent again. The record stays sound,
 * what is outstanding is always waited for, and nothing is sent that was acknowledged.
 */
#include "fuzz.h"
#include "loss/loss.h"
#include "../lib/record_sound.h"

#define MSS   1000u
#define SLOTS 128u
#define STEPS 400u

static const struct cc_ops *const controls[] = { &cc_cubic, &cc_dctcp, &cc_delay };

static void options(struct feed *f)
{
	struct uw_span s = feed_span(f, 40);
	uint8_t *copy = fuzz_copy(s.p, s.n);
	struct loss_options o;

	loss_options_read(copy, s.n, &o);
	CHECK(o.n_blocks <= LOSS_BLOCKS);
	free(copy);
}

static void send_what_may_go(struct loss *l, struct feed *f, uint64_t now)
{
	unsigned most = feed_below(f, 16);
	struct sent *s;

	while ((s = loss_next(l, now))) {
		CHECK(s->state == SENT_LOST && (int32_t)(sent_end(s) - l->una) > 0);
		loss_resent(l, s, now);
	}
	while (most-- && loss_may_send(l, MSS, now))
		CHECK(loss_sent(l, feed_below(f, MSS) + 1, NULL, now));
	if (feed_bool(f))
		frto_nothing_new(&l->frto);
}

static void hear(struct loss *l, struct feed *f, uint64_t now)
{
	/* in a block of its own, so that reading beyond it is seen */
	unsigned n = feed_below(f, LOSS_BLOCKS + 1);
	struct loss_block *b = fuzz_alloc(n * sizeof(*b));
	uint8_t bits = feed_u8(f);
	struct loss_ack a = { .n_blocks = n, .block = b, .plain = bits & 1, .ece = bits & 2 };
	uint32_t una = l->una;

	for (unsigned i = 0; i < n; i++) {
		b[i].left = bits & 4 ? feed_u32(f) : l->una - 2000 + feed_u16(f);
		b[i].right = bits & 8 ? feed_u32(f) : b[i].left + feed_u16(f);
	}
	a.ack = bits & 16 ? feed_u32(f) : bits & 32 ? l->una : l->una + feed_u16(f) % 8000;
	loss_acked(l, &a, now);
	CHECK((int32_t)(l->una - una) >= 0 && (int32_t)(l->nxt - l->una) >= 0);
	free(b);
}

static void pass_time(struct loss *l, struct feed *f, uint64_t *now)
{
	*now += feed_u16(f);
	if (feed_rarely(f, 8) && l->deadline_us != UINT64_MAX && l->deadline_us > *now)
		*now = l->deadline_us;
	if (loss_timer(l, *now) != LOSS_DUE_PROBE)
		return;
	CHECK(loss_last(l));
	loss_resent(l, loss_last(l), *now);
	loss_probed(l, true, *now);
}

static void check(const struct loss *l)
{
	CHECK(record_sound(&l->rec));
	CHECK((l->deadline_us == UINT64_MAX) == !record_count(&l->rec));
	CHECK(l->cc.cwnd && l->cc.cwnd <= 2 * l->cfg->max_window);
	if (!record_count(&l->rec))
		return;
	/* the first may be acknowledged in part */
	CHECK(loss_pipe(l) <= l->nxt - record_at(&l->rec, l->rec.first)->seq);
	CHECK(sent_end(loss_last(l)) == l->nxt);
}

static void connection(struct feed *f)
{
	struct sent *slot = fuzz_alloc(SLOTS * sizeof(*slot));
	struct loss_config cfg;
	uint64_t now = 1000;
	struct loss l;

	loss_config_default(&cfg);
	cfg.cc = controls[feed_below(f, COUNT(controls))];
	cfg.sack = !feed_rarely(f, 4);
	loss_init(&l, &cfg, slot, SLOTS, feed_u32(f), MSS);
	for (unsigned i = 0; i < STEPS && f->n; i++) {
		send_what_may_go(&l, f, now);
		pass_time(&l, f, &now);
		hear(&l, f, now);
		check(&l);
	}
	free(slot);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };

	if (feed_rarely(&f, 8))
		options(&f);
	else
		connection(&f);
	return 0;
}
