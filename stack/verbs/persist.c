/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory that survives a loss of power: mapped files (doc/adr/0033). msync() writes back the pages
 * of an ordinary file, and the cache lines of one that is persistent memory itself (DAX).
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "verbs/verbs.h"

bool verbs_persist(void *va, uint64_t len)
{
	const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE), from = (uintptr_t)va & ~(page - 1);
	int rc;

	do
		rc = msync((void *)from, (uintptr_t)va + len - from, MS_SYNC);
	while (rc && errno == EINTR);
	return !rc;
}

struct mapping {
	uintptr_t from, to;
	char rights[5]; /* "rw-s": shared, so what is written reaches the file */
	uint64_t inode; /* 0: no file */
};

static bool parse(const char *line, struct mapping *m)
{
	return sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %*s %" SCNu64, &m->from, &m->to,
		      m->rights, &m->inode) == 4;
}

bool verbs_is_file(const void *addr, uint64_t len)
{
	uintptr_t at = (uintptr_t)addr, end = at + len;
	FILE *f = fopen("/proc/self/maps", "re");
	char line[4352]; /* a path and what stands in front of it */
	struct mapping m;

	/* The kernel lists them by address; a hole or a mapping of another kind ends the search. */
	while (f && at < end && fgets(line, sizeof(line), f)) {
		if (!parse(line, &m) || m.to <= at)
			continue;
		if (m.from > at || !strchr(m.rights, 's') || !m.inode)
			break;
		at = m.to;
	}
	if (f)
		fclose(f);
	return at >= end;
}
