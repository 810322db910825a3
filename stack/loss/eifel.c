/* SPDX-License-Identifier: BSD-3-Clause */
#include "loss/eifel.h"

#include "loss/seq.h"

void eifel_sent_again(struct eifel *e, uint32_t end, uint32_t value)
{
	*e = (struct eifel){ .waits = true, .end = end, .value = value };
}

bool eifel_acked(struct eifel *e, uint32_t ack, uint32_t echo)
{
	if (!e->waits || seq_lt(ack, e->end))
		return false;
	e->waits = false;
	return seq_lt(echo, e->value);
}
