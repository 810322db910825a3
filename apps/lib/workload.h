/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which key comes next, and what is done with it: the generators of YCSB (Cooper et al., SoCC
 * 2010). A generator is read only once it is made, and may be shared; the random state belongs to a
 * thread.
 */
#ifndef APPS_WORKLOAD_H
#define APPS_WORKLOAD_H

#include <stdbool.h>
#include <stdint.h>

enum dist { DIST_UNIFORM, DIST_ZIPF, DIST_LATEST };

struct keys {
	enum dist dist;
	uint64_t n;		      /* keys 0 .. n - 1 */
	double theta;		      /* of the zipfian distribution, 0 < theta < 1 */
	double zeta, alpha, eta, two; /* what it needs again and again */
};

/* Per cent of each operation. */
struct mix {
	char letter;
	unsigned read, update, insert, modify; /* modify: read, then write what was read */
	enum dist dist;
};

enum op { OP_READ, OP_UPDATE, OP_INSERT, OP_MODIFY, OP_DELETE };

/* "uniform", "zipf" (theta 0.99), "zipf:T" or "latest"; 0 or -EINVAL. */
int keys_parse(struct keys *k, const char *text);
/* Takes O(n) for the zipfian ones. */
void keys_open(struct keys *k, uint64_t n);
/* A key; the popular ones are spread over all, but with `latest` the popular ones are the highest
 * below `top`, the number of keys that there are now. */
uint64_t keys_next(const struct keys *k, uint64_t top, uint64_t *random);

/* YCSB's mix A, B, C, D or F; NULL if there is no such one. */
const struct mix *mix_find(char letter);
enum op mix_next(const struct mix *m, uint64_t *random);

#endif
