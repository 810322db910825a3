/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A fake of libuwarp.so's table (uwarp/uwarp.h), for tests of what stands on it: the provider, the
 * preloaded library, and the fuzz targets of the latter. It has no protocol and moves no data.
 *
 *   fake_engine.c   engine, PDs, MRs, MWs, CQs, SRQs, QPs: they keep what they are given, and a
 * test says what a call returns and completes what it likes fake_ep.c       endpoints, which meet
 * in memory inside one process
 *
 * A call that the caller must not make (from within a callback, with a lock held that a callback
 * needs, on a parent's endpoint in a forked child) ends the process.
 */
#ifndef UWARP_TEST_FAKE_ENGINE_H
#define UWARP_TEST_FAKE_ENGINE_H

#include <netinet/in.h>
#include <pthread.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "uwarp/uwarp.h"

#define FAKE_MAX	512u
#define FAKE_MAX_SGE	4u
#define FAKE_MAX_INLINE 64u

/* ---- objects ----------------------------------------------------------------------------- */

struct uw_pd {
	bool used;
};

struct uw_mr {
	struct uw_pd *pd;
	void *addr;
	size_t len;
	uint64_t iova;
	unsigned access;
};

struct uw_mw {
	struct uw_pd *pd;
	unsigned type;
};

struct uw_cq {
	uint16_t mod_count, mod_us;
	struct uw_cq_attr attr;
	struct uw_wc ring[FAKE_MAX];
	unsigned head, tail;
	bool armed, solicited_only;
};

struct uw_srq {
	struct uw_srq_attr attr;
	uint32_t limit;
};

struct uw_qp {
	struct uw_qp_attr attr;
	enum uw_qp_state state;
	uint32_t num;
	unsigned access;
	struct sockaddr_in6 peer;
	uint32_t peer_qpn;
	struct sockaddr_in6 from; /* zeros: any */
	unsigned peer_ird, peer_tos;
	uint32_t peer_mtu, peer_psn;
	struct uw_datagrams datagrams;
	struct sockaddr_in6 group; /* that it joined last; zeros: none */
	struct uw_path path;
	struct uw_depths depths;
};

struct fake_send {
	struct uw_send_wr wr;
	struct uw_sge sge[FAKE_MAX_SGE];
	uint8_t octets[FAKE_MAX_INLINE]; /* of an inline request, as they were when it was posted */
};

#define FAKE_COUNTERS 2

struct fake_counter {
	const char *name;
	uint64_t value;
};

struct fake {
	struct fake_counter counters[FAKE_COUNTERS]; /* what engine_counters() says */
	struct uw_device_attr attr;		     /* what engine_query() says */
	int fail;	    /* what the next call that can fail returns, once */
	bool cancel_points; /* every call is a cancellation point of the calling thread */

	struct uw_mr *mr; /* the newest of each */
	struct uw_mw *mw;
	struct uw_cq *cq;
	struct uw_srq *srq;
	struct uw_qp *qp;

	unsigned room;	    /* requests taken before `full` is returned */
	int full;	    /* negative errno */
	unsigned doorbells; /* post calls */
	unsigned call_n[FAKE_MAX];
	struct fake_send sent[FAKE_MAX];
	unsigned nsent;
	struct uw_recv_wr recvd[FAKE_MAX];
	unsigned nrecvd;
	struct sockaddr_in6 ah_to, ah_from; /* of the last address; from zeros: any */
	unsigned ah_tos, ah_hops;
	unsigned live; /* objects created and not destroyed */
};

extern struct fake fake;

/* Back to the start: the address 127.9.8.7, room for FAKE_MAX requests. */
void fake_reset(void);
/* A completion arrives. It is queued, and the notify callback is called if the CQ is armed. */
void fake_complete(struct uw_cq *cq, const struct uw_wc *wc);
/* The whole table. */
const struct uw_api *fake_api(void);

/* ---- endpoints --------------------------------------------------------------------------- */

/*
 * Callbacks come under one lock, in order, from a thread that engine_start() starts; never before
 * an endpoint has a context, never after it was destroyed. An engine with `decide` has no thread: a
 * test delivers the events itself.
 *
 * The address is fake.attr's. Destinations in 127.0.0.0/8 are the engine itself. 192.0.2.1 does not
 * answer in time, 192.0.2.2 has no route, 192.0.2.3 is this engine, found only when the time is up.
 * Nothing listens on these ports: 9 is unreachable, 10 does not speak MPA, 11 resets.
 */
enum fake_ep_state {
	EP_NEW,
	EP_BOUND,
	EP_RESOLVED,
	EP_LISTEN,
	EP_CONNECTING,
	EP_REQUEST,
	EP_UP,
	EP_END
};

struct fake_note; /* an event that is still to be delivered */
TAILQ_HEAD(fake_notes, fake_note);

struct uw_ep {
	LIST_ENTRY(uw_ep) link;
	struct uw_engine *engine;
	uw_cm_event_fn *fn;
	void *ctx;
	enum fake_ep_state state;
	bool shares, datagrams;
	uint8_t tos;
	struct uw_ep *peer;
	struct sockaddr_in local, remote;
	struct fake_notes notes;
};

enum fake_call {
	FAKE_CREATE,
	FAKE_SHARE_PORT,
	FAKE_ONLY6,
	FAKE_BIND,
	FAKE_RESOLVE,
	FAKE_LISTEN,
	FAKE_CONNECT,
	FAKE_ACCEPT,
	FAKE_REJECT,
	FAKE_DISCONNECT,
	FAKE_LATER,
};

struct uw_engine {
	LIST_HEAD(, uw_ep) eps;
	bool started, stop;
	pid_t pid;
	in_port_t next_port;
	pthread_t thread;
	/* Not NULL: what such a call on ep returns, instead of what it would do. */
	int (*decide)(struct uw_ep *ep, enum fake_call call);
};

void fake_engine_init(struct uw_engine *e);
/* End its thread, if it has one in this process. */
void fake_engine_stop(struct uw_engine *e);
/* Tell an endpoint that has a context of an event. Only with `decide`. CONNECT_REQUEST makes a new
 * endpoint. */
void fake_deliver(struct uw_ep *ep, const struct uw_cm_event *ev);

/* What an endpoint was told last. */
extern _Atomic uint8_t fake_tos;

#endif
