/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Many connections: one after the other (many cycles N) or all at once (many open N). Memory and
 * descriptors must stay where they are, or grow by what a connection costs.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "ends.h"

/* Free lists and tables grow at first. */
#define WARM_UP 500u
/* Connections in TIME_WAIT, more of them than after the warm-up, and pieces of 2 MiB (base/slab.c).
 */
#define SLACK	(8u << 20)
#define OBJECTS (1u << 21)

static unsigned count;

static void transfer(struct end *a, struct end *b)
{
	struct ibv_sge v = sge_at(a, 0, 4096), r = sge_at(b, 4096, 4096);

	assert_int_equal(post_recv(b, &r, 1), 0);
	assert_int_equal(post_send(a, IBV_WR_RDMA_WRITE, &v, 1, b, 8192), 0);
	assert_int_equal(post_send(a, IBV_WR_SEND, &v, 1, NULL, 0), 0);
	expect_wc(a->cq, IBV_WC_SUCCESS);
	expect_wc(a->cq, IBV_WC_SUCCESS);
	expect_wc(b->cq, IBV_WC_SUCCESS);
}

static void progress(unsigned n, const char *what, size_t before)
{
	if (!isatty(2))
		return;
	fprintf(stderr, "\r%u of %u %s, %.1f MiB more than at first ", n, count, what,
		((double)resident() - (double)before) / 1048576);
}

static void cycles(void **state)
{
	const struct qp_wish plain = { 0 };
	size_t memory = resident();
	unsigned fds = 0;
	double from = seconds();
	struct end a, b;

	(void)state;
	for (unsigned i = 0; i < count; i++) {
		ends_connect(&here, &plain, true, &a, &b);
		transfer(&a, &b);
		ends_close(&here, &a, &b);
		if (i == WARM_UP) {
			memory = resident();
			fds = descriptors();
		}
		if (i % 100 == 0)
			progress(i, "cycles", memory);
	}
	printf("%u cycles in %.1f s, %.0f a second; memory %+.1f MiB since cycle %u, %u "
	       "descriptors\n",
	       count, seconds() - from, count / (seconds() - from),
	       ((double)resident() - (double)memory) / 1048576, WARM_UP, descriptors());
	assert_true(resident() < memory + SLACK);
	assert_int_equal(descriptors(), fds);
}

static void raise_limit(void)
{
	struct rlimit l;

	getrlimit(RLIMIT_NOFILE, &l);
	l.rlim_cur = l.rlim_max;
	setrlimit(RLIMIT_NOFILE, &l);
}

/* Two QPs for each connection, on one CQ; every 16th carries something in the end. */
static void all_at_once(void **state)
{
	struct end *e = calloc(2 * (size_t)count, sizeof(*e));
	struct ibv_cq *cq = ibv_create_cq(here.ctx, 4096, NULL, NULL, 0);
	const struct qp_wish w = { .cq = cq, .send_wr = 16, .recv_wr = 16, .sge = 1 };
	size_t memory = resident();
	unsigned fds = descriptors();
	double from = seconds(), took;

	(void)state;
	for (unsigned i = 0; i < count; i++) {
		ends_connect(&here, &w, false, &e[2 * i], &e[2 * i + 1]);
		if (i % 100 == 0)
			progress(i, "connections", memory);
	}
	took = seconds() - from;
	printf("%u QPs connected in %.1f s; %.0f octets and %.2f descriptors for each QP\n",
	       2 * count, took, ((double)resident() - (double)memory) / (2.0 * count),
	       (descriptors() - fds) / (2.0 * count));
	for (unsigned i = 0; i < count; i += 16) {
		assert_int_equal(post_recv(&e[2 * i + 1], NULL, 0), 0);
		assert_int_equal(post_send(&e[2 * i], IBV_WR_SEND, NULL, 0, NULL, 0), 0);
		expect_wc(cq, IBV_WC_SUCCESS);
		expect_wc(cq, IBV_WC_SUCCESS);
	}
	for (unsigned i = 0; i < count; i++) {
		ends_close(&here, &e[2 * i], &e[2 * i + 1]);
		if (i % 100 == 0)
			progress(i, "closed", memory);
	}
	assert_int_equal(descriptors(), fds);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	free(e);
}

static void *new_srq(void)
{
	struct ibv_srq_init_attr attr = { .attr = { .max_wr = 4096, .max_sge = 16 } };

	return ibv_create_srq(here.pd, &attr);
}

static void *new_cq(void)
{
	return ibv_create_cq(here.ctx, 4096, NULL, NULL, 0);
}

static void *new_mr(void)
{
	static uint8_t m[64];

	return ibv_reg_mr(here.pd, m, sizeof(m), IBV_ACCESS_LOCAL_WRITE);
}

static void *new_mw(void)
{
	return ibv_alloc_mw(here.pd, IBV_MW_TYPE_2);
}

static void *new_pd(void)
{
	return ibv_alloc_pd(here.ctx);
}

static const struct kind {
	const char *name;
	void *(*make)(void);
	int (*destroy)(void *);
} kinds[] = {
	{ "SRQs", new_srq, (int (*)(void *))ibv_destroy_srq },
	{ "CQs", new_cq, (int (*)(void *))ibv_destroy_cq },
	{ "MRs", new_mr, (int (*)(void *))ibv_dereg_mr },
	{ "MWs", new_mw, (int (*)(void *))ibv_dealloc_mw },
	{ "PDs", new_pd, (int (*)(void *))ibv_dealloc_pd },
};

/* As many as there is memory for, then ENOMEM; one more once one has gone. */
static void make_all(const struct kind *k, void **made, unsigned room)
{
	unsigned n = 0;

	errno = 0;
	while (n < room && (made[n] = k->make()))
		n++;
	printf("%u %s\n", n, k->name);
	assert_in_range(n, 1, room - 1);
	assert_int_equal(errno, ENOMEM);
	while (n)
		assert_int_equal(k->destroy(made[--n]), 0);
	made[0] = k->make();
	assert_non_null(made[0]);
	assert_int_equal(k->destroy(made[0]), 0);
}

/* No memory left: ENOMEM, and everything works again once some is there. */
static void memory_runs_out(void **state)
{
	struct ibv_qp **qp = calloc(count, sizeof(struct ibv_qp *));
	void **made = calloc(OBJECTS, sizeof(void *));
	struct ibv_cq *cq = ibv_create_cq(here.ctx, 64, NULL, NULL, 0);
	struct ibv_qp_init_attr attr = { .send_cq = cq,
					 .recv_cq = cq,
					 .cap = { 4096, 4096, 16, 16, 256 },
					 .qp_type = IBV_QPT_RC };
	unsigned long pages;
	struct rlimit was, l;
	unsigned n = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	(void)state;
	assert_int_equal(fscanf(f, "%lu", &pages), 1);
	fclose(f);
	getrlimit(RLIMIT_AS, &was);
	l = was;
	l.rlim_cur = pages * 4096 + (64u << 20);
	assert_int_equal(setrlimit(RLIMIT_AS, &l), 0);
	errno = 0;
	while (n < count && (qp[n] = ibv_create_qp(here.pd, &attr)))
		n++;
	assert_true(n > 0 && n < count);
	assert_int_equal(errno, ENOMEM);
	errno = 0;
	assert_null(ibv_create_cq(here.ctx, 1 << 22, NULL, NULL, 0));
	assert_int_equal(errno, ENOMEM);
	while (n)
		assert_int_equal(ibv_destroy_qp(qp[--n]), 0);
	qp[0] = ibv_create_qp(here.pd, &attr);
	assert_non_null(qp[0]);
	assert_int_equal(ibv_destroy_qp(qp[0]), 0);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		make_all(&kinds[i], made, OBJECTS);
	setrlimit(RLIMIT_AS, &was);
	free(made);
	assert_int_equal(ibv_destroy_cq(cq), 0);
	free(qp);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(cycles), cmocka_unit_test(all_at_once),
					    cmocka_unit_test(memory_runs_out) };

	if (argc != 3) {
		fprintf(stderr, "usage: many cycles|all_at_once|memory_runs_out N\n");
		return 2;
	}
	count = (unsigned)strtoul(argv[2], NULL, 10);
	setvbuf(stdout, NULL, _IOLBF, 0);
	raise_limit();
	cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, open_here, close_here);
}
