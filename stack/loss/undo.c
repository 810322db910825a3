/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/undo.h"

#include "loss/seq.h"

void undo_arm(struct undo *u, uint32_t una, uint32_t cwnd, uint32_t ssthresh)
{
	*u = (struct undo){ .armed = true, .marker = una, .cwnd = cwnd, .ssthresh = ssthresh };
}

void undo_sent_again(struct undo *u, uint32_t end)
{
	u->end = u->again ? seq_max(u->end, end) : end;
	u->again = true;
	u->expected++;
}

bool undo_duplicate(struct undo *u, const struct loss_block *b, uint32_t mss)
{
	uint32_t left, n;

	/* What is beyond was sent once: the network has repeated it. */
	if (!u->armed || !u->again || seq_leq(b->right, u->marker) || seq_lt(u->end, b->right))
		return false;
	left = seq_max(b->left, u->marker); /* what is older was not sent again in this recovery */
	n = (b->right - left + mss - 1) / mss;
	u->expected = u->expected > n ? u->expected - n : 0;
	return !u->expected;
}
