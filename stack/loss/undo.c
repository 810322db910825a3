/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/undo.h"

#include "loss/seq.h"

void undo_arm(struct undo *u, uint32_t una, uint32_t cwnd, uint32_t ssthresh)
{
	*u = (struct undo){ .armed = true, .marker = una, .cwnd = cwnd, .ssthresh = ssthresh };
}

void undo_sent_again(struct undo *u)
{
	u->again = true;
	u->expected++;
}

bool undo_duplicate(struct undo *u, const struct loss_block *b, uint32_t mss)
{
	uint32_t left, n;

	if (!u->armed || !u->again || seq_leq(b->right, u->marker))
		return false;
	left = seq_max(b->left, u->marker); /* what is older was not sent again in this recovery */
	n = (b->right - left + mss - 1) / mss;
	u->expected = u->expected > n ? u->expected - n : 0;
	return !u->expected;
}
