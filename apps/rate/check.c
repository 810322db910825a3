/* SPDX-License-Identifier: BSD-3-Clause */
/* After a run: reads back what the server's memory holds, and compares. */
#include <errno.h>

#include "drive.h"
#include "log.h"

#define WAIT_MS	 5000
#define QUIET_NS 500000000u

/* The first octets of the connection's memory at the server. A signalled READ, behind everything:
 * what was posted unsignalled is done when it is. Writes are placed before it reads. */
static int read_back(struct driver *d, struct sender *l, struct region *r)
{
	struct ibv_sge sge = region_sge(r, 0, (uint32_t)r->size);
	struct ibv_send_wr wr = { .wr_id = UINT64_MAX,
				  .sg_list = &sge,
				  .num_sge = 1,
				  .opcode = IBV_WR_RDMA_READ,
				  .send_flags = IBV_SEND_SIGNALED,
				  .wr.rdma = { .remote_addr = l->offer.base,
					       .rkey = l->offer.rkey } },
			   *bad;
	struct ibv_wc wc;

	if (ibv_post_send(l->conn.qp, &wr, &bad))
		return -EIO;
	return comp_wait(&d->comp, &wc, 1, WAIT_MS) == 1 && !wc.status && wc.wr_id == UINT64_MAX
		       ? 0
		       : -EIO;
}

/* The last operation of a slot. */
static uint64_t number_of(const struct driver *d, const struct sender *l, uint32_t slot)
{
	uint64_t last = l->posted - 1, slots = drive_slots(d);

	return last - (last % slots + slots - slot) % slots;
}

static int data_right(const struct driver *d, const struct sender *l, const uint8_t *p,
		      bool written)
{
	uint64_t used = l->posted < drive_slots(d) ? l->posted : drive_slots(d);
	uint64_t seed = written ? l->wish.seed : ~l->wish.seed;

	for (uint32_t i = 0; i < used; i++)
		if (!rate_right(p + (size_t)i * d->point.size, d->point.size, seed, i,
				written ? number_of(d, l, i) : 0)) {
			log_line("slot %u holds something else", i);
			return -EBADMSG;
		}
	return 0;
}

/* Messages are counted when the server has looked at them: as long as the count goes up, it is at
 * it. */
static int count_right(struct driver *d, struct sender *l, struct region *r)
{
	volatile uint64_t *count = (volatile uint64_t *)r->base;
	uint64_t seen = *count, since = clock_ns();
	int err = 0;

	while (!err && seen != l->posted && clock_ns() - since < QUIET_NS) {
		err = read_back(d, l, r);
		if (*count != seen)
			since = clock_ns();
		seen = *count;
	}
	if (!err && seen != l->posted) {
		log_line("the server counts %lu of %lu", seen, l->posted);
		err = -EBADMSG;
	}
	return err;
}

static int check_sender(struct driver *d, struct sender *l)
{
	bool writes = d->options->op == RATE_WRITE;
	uint64_t data = writes ? (uint64_t)drive_slots(d) * d->point.size : 0;
	struct region r;
	int err = region_open(&r, &d->device, RATE_DATA + data, REGION_SINK);

	if (!err)
		err = read_back(d, l, &r);
	if (!err && writes)
		err = data_right(d, l, r.base + RATE_DATA, true);
	else if (!err && d->options->op == RATE_READ)
		err = data_right(d, l, l->local.base, false);
	else if (!err)
		err = count_right(d, l, &r);
	region_close(&r);
	return err;
}

int drive_check(struct driver *d)
{
	int err = 0;

	for (unsigned i = 0; !err && i < d->options->qps; i++)
		err = check_sender(d, &d->sender[i]);
	return err;
}
