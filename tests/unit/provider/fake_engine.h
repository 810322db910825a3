/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TEST DOUBLE of the host (the preloaded shim) and of the engine's table, for tests of the
 * provider alone: it keeps what the provider hands it and answers what the test has set.
 */
#ifndef UWARP_TEST_FAKE_ENGINE_H
#define UWARP_TEST_FAKE_ENGINE_H

#include <netinet/in.h>

#include "host.h"

#define FAKE_MAX	512u
#define FAKE_MAX_SGE	4u
#define FAKE_MAX_INLINE 64u

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
	unsigned access;
	struct sockaddr_in6 peer;
	uint32_t peer_qpn;
	struct sockaddr_in6 from; /* zeros: any */
	unsigned peer_ird, peer_tos;
	struct uw_path path;
};

struct fake_send {
	struct uw_send_wr wr;
	struct uw_sge sge[FAKE_MAX_SGE];
	uint8_t octets[FAKE_MAX_INLINE]; /* of an inline request: what was there at the time */
};

struct fake {
	struct uw_device_attr attr;
	bool no_engine;
	int fail; /* what the next call that can fail returns */
	unsigned engine_asked;

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
	int channel_wr; /* our end of the one completion channel */
	int channel_rd;
	unsigned live; /* objects created and not destroyed */
};

extern struct fake fake;

void fake_reset(void);
/* A completion arrives: queued, and the notify callback called if armed. */
void fake_complete(struct uw_cq *cq, const struct uw_wc *wc);

#endif
