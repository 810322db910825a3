/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine as a device: open, start, query, fork, close; conventions are in uwarp.h. */
#ifndef UWARP_DEVICE_H
#define UWARP_DEVICE_H

#include <stdatomic.h>

#include "uwarp/config.h"

/* Make an engine. This creates no thread, descriptor or link (those come with the first bind,
 * resolve, listen or connect, or with uw_engine_start), so the program may fork afterwards. cfg is
 * copied; NULL = uw_config_from_env. -EINVAL: no such transport, or a bad variable; -ENOMEM;
 * -EPERM: the kernel refuses random numbers; all but -ENOMEM with a line on stderr. */
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
 * threads still running at process exit do no harm. So does everything where a FLUSH waits for its
 * disk for longer than 2 s. */
void uw_engine_close(struct uw_engine *e);

/* As uw_engine_close, when the process ends: e itself stays, and so does every object. Other
 * threads may go on, and destructors that come later may still use the device, in vain. */
void uw_engine_end(struct uw_engine *e);

/*
 * A thread that is about to wait in poll() or the like for completion events runs the stack itself
 * meanwhile (doc/adr/0030):
 *
 *   1. uw_wait_look, then a look at its own descriptors;
 *   2. if they have nothing, uw_wait_begin, and poll() with the descriptors that it returns added;
 *   3. after that uw_wait_end, and from the start again, until the thread has what it waits for;
 *   4. uw_wait_done.
 *
 * Any thread without a lock of the engine. A forked child of the process that started the engine
 * must not call these.
 */
#define UW_WAIT_FDS 3

struct uw_wait {
	/* counts what the engine told the program of; any thread writes (release) */
	const _Atomic uint32_t *events;
	uint32_t seen;	   /* the value when the program last looked at its descriptors */
	uint64_t began_us; /* private; 0 at first */
	bool slept;	   /* did uw_wait_begin return UW_WAIT_SLEEP in this wait? */
	/* Out of uw_wait_begin: wait for POLLIN on these, too; -1: none. The first is an eventfd
	 * to read out, the others are sockets, to be left alone but for an error of theirs, which
	 * ends each wait until SO_ERROR was asked for. */
	int fd[UW_WAIT_FDS];
};

enum uw_wait_how {
	UW_WAIT_PLAINLY, /* wait without the engine; it tells you of events */
	UW_WAIT_AGAIN,	 /* something came: go to step 1 */
	UW_WAIT_SLEEP,
};

/* Does another thread of the program take in frames now, one that polls or waits? Then a wait that
 * begins had better be plain from its start (doc/adr/0074). */
bool uw_wait_elsewhere(struct uw_engine *e);
/* Run the stack until an event comes, as long as that is worth while, at most limit_us. False: the
 * engine is not started, or its link or thread model cannot do that: wait plainly. */
bool uw_wait_look(struct uw_engine *e, struct uw_wait *w, uint64_t limit_us);
enum uw_wait_how uw_wait_begin(struct uw_engine *e, struct uw_wait *w);
void uw_wait_end(struct uw_engine *e);
void uw_wait_done(struct uw_engine *e, const struct uw_wait *w);
/* The thread begins (on) or ends a wait without the engine. */
void uw_wait_plainly(struct uw_engine *e, bool on);
/* For a thread that waits for a connection by yielding again and again: run the stack once, as a
 * poll of an empty CQ does. With several stacks: nothing. No lock held. */
void uw_wait_yield(struct uw_engine *e);

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
	bool addr_is_final;   /* the address will not change: see uw_config.ip_auto */
	bool addr_is_unknown; /* not even foreseen: a uwarpd has it, which is joined at the start */
	bool roce;	      /* uw_config.roce */
	bool infiniband;      /* uw_config.infiniband */
	bool datagram_ids;    /* an endpoint of datagrams was made (uw_ep_set_datagrams) */
	char fw_ver[32];
};
/* Never fails; works before start. */
void uw_engine_query(struct uw_engine *e, struct uw_device_attr *attr);

/* Call fn(arg, name, value) for every counter (base/stats.h); value is the sum over all stacks.
 * Before the start all are 0. */
typedef void uw_counter_fn(void *arg, const char *name, uint64_t value);
void uw_engine_counters(struct uw_engine *e, uw_counter_fn *fn, void *arg);

#endif
