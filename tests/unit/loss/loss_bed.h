/* SPDX-License-Identifier: BSD-3-Clause */
/* One connection's loss recovery and a clock, for tests of it as a whole. */
#ifndef TEST_LOSS_BED_H
#define TEST_LOSS_BED_H

#include "loss/loss.h"
#include "record_sound.h"
#include "uwtest.h"

#define MSS 1000u

static struct loss_config cfg;
static struct sent slot[1024];
static struct loss l;
static uint64_t now;

static int setup(void **state)
{
	(void)state;
	loss_config_default(&cfg);
	loss_init(&l, &cfg, slot, COUNT(slot), 0, MSS);
	now = 1000000;
	return 0;
}

static void send_new(unsigned n)
{
	while (n--)
		assert_non_null(loss_sent(&l, MSS, NULL, now));
}

static void ack_with(uint32_t ack, const struct loss_block *b, unsigned n)
{
	struct loss_ack a = { .ack = ack, .block = b, .n_blocks = n, .plain = ack == l.una };

	loss_acked(&l, &a, now);
	assert_true(record_sound(&l.rec));
}

#endif
