/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a counter and its ledger from the server, and tells whether the tickets are all there. */
#include <errno.h>
#include <string.h>

#include "report.h"
#include "log.h"
#include "seq.h"

#define CHUNK	(1u << 16) /* octets read at once */
#define WORDS	(CHUNK / sizeof(uint64_t))
#define WAIT_MS 5000

struct audit {
	const struct seq_options *options;
	struct device device;
	struct comp comp;
	struct conn conn;
	struct region buffer;
	struct seq_hello hello;
	uint64_t given, orphans, adopted, beyond;
};

/* One request at a time: this is no benchmark. */
static int request(struct audit *a, struct ibv_send_wr *wr, uint32_t octets)
{
	struct ibv_sge sge = region_sge(&a->buffer, 0, octets);
	struct ibv_send_wr *bad;
	struct ibv_wc wc;
	int n;

	wr->sg_list = &sge;
	wr->num_sge = 1;
	wr->send_flags = IBV_SEND_SIGNALED;
	if (ibv_post_send(a->conn.qp, wr, &bad))
		return log_errno("cannot post a request");
	n = comp_wait(&a->comp, &wc, 1, WAIT_MS);
	if (!n)
		log_line("the server has not answered for %d s", WAIT_MS / 1000);
	else if (n > 0 && wc.status != IBV_WC_SUCCESS)
		log_line("the connection failed: %s", ibv_wc_status_str(wc.status));
	return n == 1 && wc.status == IBV_WC_SUCCESS ? 0 : -EIO;
}

static int read_words(struct audit *a, uint64_t at, uint64_t words)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_RDMA_READ,
				  .wr.rdma = { .remote_addr = at, .rkey = a->hello.rkey } };

	return request(a, &wr, (uint32_t)(words * sizeof(uint64_t)));
}

static int adopt(struct audit *a, uint64_t ticket)
{
	struct ibv_send_wr wr = { .opcode = IBV_WR_ATOMIC_CMP_AND_SWP,
				  .wr.atomic = { .remote_addr = seq_entry(&a->hello,
									  a->options->way, ticket),
						 .rkey = a->hello.rkey,
						 .swap = a->options->id } };
	int err = request(a, &wr, sizeof(uint64_t));

	if (!err && !*(uint64_t *)a->buffer.base)
		a->adopted++;
	return err;
}

/* Is there an owner for each ticket below the counter, and for none above? */
static int walk(struct audit *a)
{
	static uint64_t word[WORDS];
	int err = read_words(a, seq_counter(&a->hello, a->options->way), 1);

	a->given = *(uint64_t *)a->buffer.base;
	for (uint64_t at = 0; !err && at < a->hello.entries; at += WORDS) {
		uint64_t n = a->hello.entries - at < WORDS ? a->hello.entries - at : WORDS;

		err = read_words(a, seq_entry(&a->hello, a->options->way, at), n);
		memcpy(word, a->buffer.base, n * sizeof(*word)); /* adopting uses the buffer */
		for (uint64_t i = 0; !err && i < n; i++) {
			bool orphan = at + i < a->given && !word[i];

			a->orphans += orphan;
			a->beyond += at + i >= a->given && word[i];
			if (orphan && a->options->adopt)
				err = adopt(a, at + i);
		}
	}
	return err;
}

static int open_audit(struct audit *a)
{
	const struct options *o = &a->options->common;
	struct hello hello = { { 0 } };
	int err = device_open_to(&a->device, o->server.host, o->server.port);

	if (!err)
		err = comp_open(&a->comp, &a->device, 4, o->events);
	if (!err)
		err = region_open(&a->buffer, &a->device, CHUNK, REGION_SINK);
	if (!err)
		err = conn_open(&a->conn, &a->device, &o->server,
				&(struct conn_wish){ .service = SEQ_SERVICE,
						     .cq = a->comp.cq,
						     .sends = 2,
						     .receives = 1 },
				&hello);
	memcpy(&a->hello, hello.octets, sizeof(a->hello));
	return err;
}

static int report(const struct audit *a)
{
	struct report r;

	report_open(&r, "uwarp-seq audit");
	report_count(&r, "given", a->given);
	report_count(&r, "orphans", a->orphans);
	report_count(&r, "adopted", a->adopted);
	report_count(&r, "beyond", a->beyond);
	return report_close(&r, &a->options->common, NULL);
}

int seq_audit(const struct seq_options *o)
{
	struct audit a = { .options = o };
	int err = open_audit(&a);

	if (!err)
		err = walk(&a);
	if (!err)
		err = report(&a);
	if (!err && (a.beyond || a.orphans > a.adopted))
		err = -EBADMSG;
	conn_close(&a.conn);
	region_close(&a.buffer);
	comp_close(&a.comp);
	device_close(&a.device);
	return err;
}
