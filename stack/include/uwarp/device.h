/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine as a device: open, start, query, fork, close; conventions are in uwarp.h. */
#ifndef UWARP_DEVICE_H
#define UWARP_DEVICE_H

#include "uwarp/config.h"

/* Make an engine. This creates no thread, descriptor or link (those come with the first bind,
 * resolve, listen or connect, or with uw_engine_start), so the program may fork afterwards. cfg is
 * copied; NULL = uw_config_from_env. */
int uw_engine_open(const struct uw_config *cfg, struct uw_engine **out);

/* Bring the link up and start the RX thread; 0 if already up. May take 0.3 s. On failure one line
 * on stderr names what to fix. Errors: -ENODEV unknown link, -EADDRINUSE the address belongs to
 * another process, -EPERM/-EACCES missing rights, -EINVAL bad address, -EIO. */
int uw_engine_start(struct uw_engine *e);

/* Is the link up in this process? A forked child of a process that has started its engine must open
 * an engine from its own copy of the library. */
bool uw_engine_started(const struct uw_engine *e);

/* Send what is posted (for at most 2 s), close every connection, stop the thread, free everything.
 * Objects that the program still holds (PDs, CQs, endpoints) stay allocated but unusable, so that
 * threads still running at process exit do no harm. */
void uw_engine_close(struct uw_engine *e);

#define UW_GIDS_MAX 8

/* Call these around fork() if the engine has started. The child's copies of the objects are
 * unusable: requests posted on its QPs are flushed without an event, and the objects can be
 * destroyed. The parent's objects are not affected. */
enum uw_fork { UW_FORK_PREPARE, UW_FORK_PARENT, UW_FORK_CHILD };
void uw_engine_fork(struct uw_engine *e, enum uw_fork when);

struct uw_device_attr {
	uint64_t guid; /* EUI-64 made from the address, in host order; never 0 */
	uint32_t max_qp, max_qp_wr, max_sge, max_cq, max_cqe, max_mr, max_mw, max_pd, max_srq,
		max_srq_wr;
	uint32_t max_inline;  /* octets */
	uint32_t max_rd_atom; /* limit of IRD and of ORD per QP */
	uint32_t mtu;	      /* IP MTU of the link */
	uint32_t mulpdu;      /* MULPDU at that MTU, RFC 5044 §4.5 */
	uint64_t link_bps;    /* nominal speed, bits per second */
	bool link_up;
	/* the address of the engine; before the start, the expected one */
	struct sockaddr_storage addr;
	/* All addresses of the engine as RoCEv2 GIDs: IPv4 as ::ffff:a.b.c.d and first, IPv6
	 * unchanged, the link-local one last. */
	uint8_t gid[UW_GIDS_MAX][16];
	unsigned n_gids;
	bool addr_is_final; /* the address will not change: see uw_config.ip_auto */
	bool roce;	    /* uw_config.roce */
	char fw_ver[32];
};
/* Never fails; works before start. */
void uw_engine_query(struct uw_engine *e, struct uw_device_attr *attr);

/* Call fn(arg, name, value) for every counter (base/stats.h); value is the sum over all stacks.
 * Before the start all are 0. */
typedef void uw_counter_fn(void *arg, const char *name, uint64_t value);
void uw_engine_counters(struct uw_engine *e, uw_counter_fn *fn, void *arg);

#endif
