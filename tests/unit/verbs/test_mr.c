/* SPDX-License-Identifier: BSD-3-Clause */
/* A memory region that is changed, while the stack invalidates it and windows come and go. */
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include "verbs/verbs.h"
#include "world.h"

#define LOCAL  ((unsigned)UW_ACCESS_LOCAL_WRITE)
#define REMOTE (LOCAL | UW_ACCESS_REMOTE_WRITE | UW_ACCESS_REMOTE_READ)
#define OCTETS 4096u
#define ROUNDS 20000u

struct bench {
	struct world *w;
	struct verbs v;
	struct uw_pd *pd, *other;
	struct uw_mr *mr;
	uint8_t *m;
	_Atomic bool stop;
};

static struct bench *open_bench(void)
{
	struct bench *b = calloc(1, sizeof(*b));

	assert_non_null(b);
	b->w = world_open(1);
	b->m = calloc(2, OCTETS);
	assert_non_null(b->m);
	assert_status(verbs_init(&b->v, &b->w->d), UW_OK);
	assert_int_equal(verbs_make_pd(&b->v, &b->pd), 0);
	assert_int_equal(verbs_make_pd(&b->v, &b->other), 0);
	assert_int_equal(uw_mr_reg(b->pd, b->m, OCTETS, (uintptr_t)b->m, REMOTE, &b->mr), 0);
	return b;
}

static void close_bench(struct bench *b)
{
	assert_int_equal(uw_mr_dereg(b->mr), 0);
	assert_int_equal(uw_pd_dealloc(b->pd), 0);
	assert_int_equal(uw_pd_dealloc(b->other), 0);
	verbs_free(&b->v);
	world_close(b->w);
	free(b->m);
	free(b);
}

static void what_is_asked_for_changes(void **state)
{
	struct bench *b = open_bench();
	struct mem_region *r = &b->mr->r;
	uint32_t stag = uw_mr_stag(b->mr);

	(void)state;
	assert_int_equal(
		uw_mr_change(b->mr, &(struct uw_mr_change){ .set_access = true, .access = LOCAL }),
		0);
	assert_int_equal(r->rights, LOCAL);
	assert_ptr_equal(r->base, b->m);
	assert_int_equal(uw_mr_change(b->mr, &(struct uw_mr_change){ .move = true,
								     .addr = b->m + OCTETS,
								     .len = 100,
								     .iova = 7 }),
			 0);
	assert_ptr_equal(r->base, b->m + OCTETS);
	assert_int_equal(r->len, 100);
	assert_int_equal(r->to, 7);
	assert_int_equal(r->rights, LOCAL);
	assert_int_equal(uw_mr_stag(b->mr), stag);
	close_bench(b);
}

static void the_domains_count_their_regions(void **state)
{
	struct bench *b = open_bench();

	(void)state;
	assert_int_equal(uw_mr_change(b->mr, &(struct uw_mr_change){ .pd = b->other }), 0);
	assert_int_equal(b->mr->r.pd, b->other->id);
	assert_int_equal(uw_pd_dealloc(b->other), -EBUSY);
	assert_int_equal(atomic_load(&b->pd->users), 0);
	close_bench(b);
}

static void what_cannot_be_changes_nothing(void **state)
{
	struct bench *b = open_bench();
	const struct mem_region before = b->mr->r;

	(void)state;
	/* RFC 5040 §5.1 and the verbs: to write remotely needs to write locally */
	assert_int_equal(
		uw_mr_change(b->mr, &(struct uw_mr_change){ .set_access = true,
							    .access = UW_ACCESS_REMOTE_WRITE }),
		-EINVAL);
	assert_int_equal(uw_mr_change(b->mr, &(struct uw_mr_change){ .move = true,
								     .addr = (void *)4096,
								     .len = 4096 }),
			 -EFAULT);
	assert_int_equal(
		uw_mr_change(b->mr,
			     &(struct uw_mr_change){ .move = true, .addr = b->m, .len = SIZE_MAX }),
		-EINVAL);
	assert_memory_equal(&b->mr->r, &before, sizeof(before));
	close_bench(b);
}

static void not_while_windows_are_bound_to_it(void **state)
{
	struct bench *b = open_bench();

	(void)state;
	b->mr->r.windows = 1;
	assert_int_equal(
		uw_mr_change(b->mr, &(struct uw_mr_change){ .set_access = true, .access = LOCAL }),
		-EBUSY);
	assert_int_equal(uw_mr_dereg(b->mr), -EBUSY);
	assert_int_equal(b->mr->r.rights, REMOTE);
	b->mr->r.windows = 0;
	close_bench(b);
}

/* What a peer's invalidate and a window's bind do to the region, as the stack does it. */
static void *disturb(void *arg)
{
	struct bench *b = arg;

	while (!atomic_load(&b->stop)) {
		verbs_lock(&b->v);
		b->mr->r.windows++;
		b->mr->r.off = !b->mr->r.off;
		verbs_unlock(&b->v);
		sched_yield();
		verbs_lock(&b->v);
		b->mr->r.windows--;
		verbs_unlock(&b->v);
	}
	return NULL;
}

/* The stack's part of a region is not put back to what it was: a window that was unbound in between
 * would be counted for ever, and the region could never be deregistered. */
static void what_the_stack_does_meanwhile_stays(void **state)
{
	struct bench *b = open_bench();
	unsigned done = 0;
	bool off;
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, disturb, b), 0);
	/* some succeed, however busy the machine is */
	for (unsigned i = 0; i < ROUNDS || (!done && i < 1000 * ROUNDS); i++) {
		int err = uw_mr_change(b->mr,
				       &(struct uw_mr_change){ .set_access = true,
							       .access = i % 2 ? LOCAL : REMOTE });

		assert_true(!err || err == -EBUSY);
		done += !err;
	}
	atomic_store(&b->stop, true);
	pthread_join(t, NULL);
	assert_true(done > 0);
	assert_int_equal(b->mr->r.windows, 0);
	/* and what is invalidated stays so */
	b->mr->r.off = off = true;
	assert_int_equal(
		uw_mr_change(b->mr, &(struct uw_mr_change){ .set_access = true, .access = REMOTE }),
		0);
	assert_int_equal(b->mr->r.off, off);
	close_bench(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_asked_for_changes),
		cmocka_unit_test(the_domains_count_their_regions),
		cmocka_unit_test(what_cannot_be_changes_nothing),
		cmocka_unit_test(not_while_windows_are_bound_to_it),
		cmocka_unit_test(what_the_stack_does_meanwhile_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
