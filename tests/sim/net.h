/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ends of one cable under one engine, on a virtual clock: the whole stack but for the card and
 * the threads. A run depends on its seed alone.
 */
#ifndef UWARP_TESTS_SIM_NET_H
#define UWARP_TESTS_SIM_NET_H

#include "engine/engine.h"
#include "io/loop/loop.h"

#define SIM_A	   0x0a000001u /* 10.0.0.1 */
#define SIM_B	   0x0a000002u
#define SIM_EVENTS 64

struct sim_side {
	struct uw_pd *pd;
	struct uw_cq *scq, *rcq;
	struct uw_qp *qp;
	struct uw_ep *ep;
	enum uw_cm_event_type events[SIM_EVENTS];
	int errors[SIM_EVENTS];
	unsigned n_events;
	uint8_t pd_got[UW_PRIVATE_DATA_MAX];
	unsigned pd_len;
	struct uw_cm_param param;
	struct uw_ep *request; /* listener: the last CONNECT_REQUEST's endpoint */
	bool declines;	       /* listener: takes none */
	unsigned async[32];
};

struct sim_options {
	uint32_t mtu;
	uint32_t drop_ppm, dup_ppm, reorder_ppm;
	uint64_t seed;
	uint32_t depth;	   /* SQ and RQ entries; 0 = 64 */
	uint32_t cq_depth; /* 0 = 4 times depth */
	bool no_crc, rev1, no_p2p, markers, roce;
	uint64_t bps;	   /* each end sends no faster; 0: as it likes */
	uint64_t delay_us; /* of a frame on the link; 0 = 50 */
	unsigned cuts;	   /* links that cut long segments (cutting.h), with so many long frames */
	unsigned smalls;   /* with cuts: so many other frames at the first end; 0: no limit */
	const char *impair[2]; /* what happens to the frames that an end sends (UWARP_IMPAIR) */
	unsigned rnr_ms;       /* 0 = the default */
	bool rnr_for_ever;
	unsigned speak_first_ms;
	unsigned connect_ms; /* how long a start-up may take; 0: 30000, since faults may cost
				several RTOs */
	bool ip6;	     /* the ends have fd00::1 and fd00::2 too, and connect over them */
	bool self;	     /* the connecting end is the other one: an address and itself */
	unsigned frames;     /* in the pool of each link; 0: 4096 */
	bool direct;	     /* the link of memif's kind: no ARP, acknowledged by the burst */
	uint16_t from_port;  /* of the connecting end; 0: any */
	uint8_t reads;	     /* IRD and ORD; 0 = 4 */
	enum uw_threads threads;
	void (*notify)(void *ctx); /* of all CQs; ctx is their struct sim_side */
};

struct sim {
	struct uw_engine *e;
	struct io_link *link[2];
	struct io_link *cutting[2], *impaired[2]; /* with those options, above link */
	uint64_t now_us;
	uint64_t (*real)(void *arg); /* not NULL: threads run, on this clock */
	uint64_t real_offset_us;     /* what to add to it */
	bool wall; /* UWARP_TRANSPORT names one with threads: on the real clock throughout */
	struct sim_options opt;
	struct sim_side a, b, listener;
};

uint64_t sim_real_us(void *arg);
/* From the virtual clock to the real one: every stack gets its RX thread, until sim_threads_stop.
 */
void sim_threads_start(struct sim *s);
void sim_threads_stop(struct sim *s);
/* The address of an end (SIM_A, SIM_B), of the version that the ends connect over. */
struct sockaddr_storage sim_addr(const struct sim *s, uint32_t end, uint16_t port);
void sim_open(struct sim *s, const struct sim_options *o);
/* Everything destroyed; asserts that no frame leaked. */
void sim_close(struct sim *s);
/* The next run begins at the time of the first one, for tests that compare two runs. Else each goes
 * on where the last one ended. */
void sim_rewind(void);
/* Advance until cond(arg) or the virtual deadline; true: cond came. */
bool sim_until(struct sim *s, bool (*cond)(void *arg), void *arg, uint64_t limit_us);
void sim_run_us(struct sim *s, uint64_t us);
/* Long enough for whatever is under way to arrive and be answered: a second, a tenth of one on the
 * real clock. */
void sim_settle(struct sim *s);

/* Run the tests; with an argument the one of that name alone. Over another transport than raw,
 * whose threads would outlive a test that fails, each has a process of its own. Returns how many
 * failed. */
#define sim_run_tests(tests, argc, argv)                                                           \
	sim_run_each(tests, sizeof(tests) / sizeof((tests)[0]), argc, argv)
struct CMUnitTest;
int sim_run_each(const struct CMUnitTest *tests, size_t n, int argc, char **argv);

/* Enters what happens into the struct sim_side ctx. */
uw_cm_event_fn sim_event;
/* Counts an asynchronous event in the struct sim_side ctx. */
void sim_async(void *ctx, enum uw_event ev);
void sim_listen(struct sim *s, uint16_t port);
/* a connects to b; asserts that both are established. */
void sim_connect(struct sim *s, uint16_t port);
/* One more pair: its objects (receives from srq if there is one), connected; and their end. */
void sim_open_side(struct sim *s, struct sim_side *side, struct uw_srq *srq);
void sim_close_side(struct sim_side *side);
void sim_connect_pair(struct sim *s, struct sim_side *a, struct sim_side *b, uint16_t port);
/* CM-less: name the QP qpn at `addr` as the peer of a QP at `own` (both IPv4, host order). 0 or a
 * negative errno, as uw_qp_name_peer(). */
int sim_name_peer(struct uw_qp *qp, uint32_t own, uint32_t addr, uint32_t qpn);
struct uw_mr *sim_mr(struct sim_side *side, void *p, size_t n, unsigned access);

/* Poll one completion of the CQ, advancing time; asserts that it comes within 60 virtual seconds.
 */
struct uw_wc sim_wc(struct sim *s, struct uw_cq *cq);
void sim_post_send(struct sim_side *side, const struct uw_send_wr *wr);
void sim_post_recv(struct sim_side *side, uint64_t id, void *p, uint32_t n, struct uw_mr *mr);
/* Of all stacks. */
struct uw_stats sim_stats(const struct sim *s);
bool sim_had(const struct sim_side *side, enum uw_cm_event_type type);

#endif
