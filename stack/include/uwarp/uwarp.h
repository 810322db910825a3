/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * uwarp: a software RNIC (RDMAP/DDP/MPA over TCP) as a library.
 *
 * This is the whole interface of libuwarp.so. The libibverbs provider and the rdma_cm emulation
 * are its two users; neither knows what is below, and nothing below knows them.
 *
 * Conventions
 *  - Every function that can fail returns 0 or a negative errno value.
 *  - Objects are created by uw_*_create/alloc/reg and stay valid until the matching destroy call,
 *    which fails with -EBUSY while something else still refers to the object.
 *  - Addresses of the program's memory are plain virtual addresses; lengths are octets.
 *  - Constants that verbs also has carry the verbs values (ibv_wc_status, ibv_wr_opcode, ...), so
 *    the provider passes them through; the provider asserts the equality at compile time.
 *  - Unless a line says otherwise functions may be called from any thread. Callbacks run under
 *    the stack lock, in whatever thread drives the stack: they must not block and must not call
 *    back into this interface.
 */
#ifndef UWARP_UWARP_H
#define UWARP_UWARP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "uwarp/types.h"

#define UW_API_VERSION 6u

/* RFC 5044 §7.1.1: a start-up frame carries at most 512 octets of private data. */
#define UW_PRIVATE_DATA_MAX 512u

struct uw_engine;
struct uw_stack; /* a part of the engine with a lock of its own */
struct uw_pd;
struct uw_mr;
struct uw_mw;
struct uw_cq;
struct uw_srq;
struct uw_qp;
struct uw_ep;

/* ---- configuration ---------------------------------------------------------------------- */

/* Which threads do the stack's work (doc/adr/0010). */
enum uw_threads {
	UW_THREADS_ADAPTIVE, /* programs that poll; else the RX thread */
	UW_THREADS_C1,	     /* the RX thread does everything */
	UW_THREADS_C2,	     /* the program; the thread only where the program does not call */
	UW_THREADS_C3,	     /* the RX thread receives, the program sends */
};

/* TCP segments that follow each other go merged to a port that cuts them (doc/adr/0023). */
enum uw_tso {
	UW_TSO_AUTO, /* where the port does, and its peers get them cut */
	UW_TSO_ON,   /* else the link does not come up */
	UW_TSO_OFF,
};

/* What decides how much a connection has in flight (doc/adr/0022). */
enum uw_congestion {
	UW_CC_CUBIC,
	UW_CC_DCTCP, /* for networks whose switches mark (ECN); turns ecn on */
	UW_CC_DELAY, /* for networks that lose without congestion */
};

#define UW_STACKS_MAX 8

struct uw_config {
	/* Which TCP: "raw" (lwIP's raw API, in the thread that drives), "socket" (the kernel's,
	 * over the link "host"); "" = raw */
	char transport[16];
	char link[256]; /* "memif", "af_packet:IF", "loop" or DPDK devargs; "" = memif */
	/* "A" or "A/N", several with commas between: one of IPv4, a few of IPv6; "" = chosen by the
	 * link */
	char ip[256];
	char run_dir[256]; /* rendezvous directory of this user's processes; "" = default */
	bool ip_auto;	   /* `ip` was not asked for: if another process has it, take a free one */
	int addr_fd;	   /* descriptor that reserves `ip` (inherited from uwarp-run), or -1 */
	unsigned mtu;	   /* IP MTU of the link in octets; 0 = the link's default */
	uint64_t rate_bps; /* no faster than this, bits per second; 0 = as fast as the link is */
	char impair[256];  /* what the link does to frames (io/impair/options.h); "" = nothing */
	enum uw_tso tso;   /* default UW_TSO_AUTO */
	/* Transport raw, and not between processes, where nothing is lost. */
	enum uw_congestion congestion; /* default UW_CC_CUBIC */
	bool ecn;	   /* offer explicit congestion notification (RFC 3168); default false */
	bool crc;	   /* ask for MPA CRC32c (RFC 5044 §7.1.1 C bit); default true */
	bool markers;	   /* ask the peer to send MPA markers (RFC 5044 §4.3); default false */
	unsigned mpa_rev;  /* MPA revision offered when connecting: 1 or 2 (RFC 6581); default 2 */
	bool p2p;	   /* offer peer-to-peer (RFC 6581 A bit) when connecting; default true */
	unsigned ird, ord; /* upper limits, 1..0x3ffe; default 128 */
	unsigned rnr_ms; /* a Send without a receive waits that long (doc/adr/0005); 0: not at all;
			  * default 10000 */
	unsigned
		rc_wait_ms; /* CM-less: how long what is posted waits for the peer, default 60000 */
	bool roce;	    /* the device is presented as InfiniBand over Ethernet; default false */
	unsigned connect_ms; /* start-up timeout (RFC 5044 §7.1, DoS), default 5000 */
	/* A responder is silent until the initiator's first FPDU came (RFC 5044 §7.1.2). Not 0:
	 * only so long, if the initiator asked for no peer-to-peer; default 0 */
	unsigned speak_first_ms;
	/* Not 0: ask a peer that was silent for so long whether it is still there, and twice more
	 * (RFC 1122 §4.2.3.6). Not asked where the link tells; default 4000 */
	unsigned keepalive_ms;
	enum uw_threads threads; /* default UW_THREADS_ADAPTIVE; with several stacks that is C3 */
	/* Stacks, each with a lock, a thread and a queue of the link of its own, 1..UW_STACKS_MAX
	 * (doc/adr/0016); default 1. More than one: transport raw, no memory windows */
	unsigned stacks;
	bool verbose; /* say on stderr what was chosen */
};

/* Fill *cfg with the defaults, then with what the UWARP_* environment variables say.
 * -EINVAL when a variable does not parse; the bad variable is named on stderr. */
int uw_config_from_env(struct uw_config *cfg);

/* ---- engine ----------------------------------------------------------------------------- */

/* Make an engine. Cheap: no thread, no descriptor, no link (those come with the first bind,
 * resolve, listen or connect, or with uw_engine_start), so a program may fork afterwards.
 * cfg is copied; NULL = uw_config_from_env. */
int uw_engine_open(const struct uw_config *cfg, struct uw_engine **out);

/* Bring the link up and start the RX thread; 0 if already up. May take 0.3 s. On failure one line
 * on stderr names what to fix. Errors: -ENODEV unknown link, -EADDRINUSE the address belongs to
 * another process, -EPERM/-EACCES missing rights, -EINVAL bad address, -EIO. */
int uw_engine_start(struct uw_engine *e);

/* True once the link is up in this process (a forked child of a started process must open its own
 * engine from its own copy of the library). */
bool uw_engine_started(const struct uw_engine *e);

/* Drain (bounded by 2 s), close every connection, stop the thread, release everything; but what
 * the program still holds (PDs, CQs, endpoints) stays valid and dead, so that threads which run on
 * while the process exits come to no harm. */
void uw_engine_close(struct uw_engine *e);

#define UW_GIDS_MAX 8

/* Around fork(), of an engine that has started. The child's copies of the objects are dead: what is
 * posted on its QPs is flushed, silently; they can be destroyed. The parent's are none the wiser.
 */
enum uw_fork { UW_FORK_PREPARE, UW_FORK_PARENT, UW_FORK_CHILD };
void uw_engine_fork(struct uw_engine *e, enum uw_fork when);

struct uw_device_attr {
	uint64_t guid; /* EUI-64 made from the address; host order; never 0 */
	uint32_t max_qp, max_qp_wr, max_sge, max_cq, max_cqe, max_mr, max_mw, max_pd, max_srq,
		max_srq_wr;
	uint32_t max_inline;  /* octets */
	uint32_t max_rd_atom; /* IRD = ORD limit per QP */
	uint32_t mtu;	      /* IP MTU of the link */
	uint32_t mulpdu;      /* MULPDU at that MTU, RFC 5044 §4.5 */
	uint64_t link_bps;    /* nominal speed, bits per second */
	bool link_up;
	struct sockaddr_storage addr; /* the engine's address; what it will be, before start */
	/* All its addresses as GIDs are made of them in RoCEv2: IPv4 as ::ffff:a.b.c.d and first,
	 * IPv6 as it is, the link-local one last. */
	uint8_t gid[UW_GIDS_MAX][16];
	unsigned n_gids;
	bool addr_is_final; /* it will not change: see uw_config.ip_auto */
	bool roce;	    /* as configured */
	char fw_ver[32];
};
/* Never fails; works before start. */
void uw_engine_query(struct uw_engine *e, struct uw_device_attr *attr);

/* Call fn(arg, name, value) for every counter (base/stats.h), the sum over all stacks. Works before
 * start, when all are 0. */
typedef void uw_counter_fn(void *arg, const char *name, uint64_t value);
void uw_engine_counters(struct uw_engine *e, uw_counter_fn *fn, void *arg);

/* ---- protection domains and memory ------------------------------------------------------ */

int uw_pd_alloc(struct uw_engine *e, struct uw_pd **out);
int uw_pd_dealloc(struct uw_pd *pd); /* -EBUSY while MRs, QPs or SRQs use it */

/* Register [addr, addr+len) so that remote TO `iova` means addr. The memory is not pinned: it must
 * stay mapped until dereg. Unknown access bits are ignored. STags are random and not reused soon
 * (RFC 5040 §8.1.1). -EINVAL: wraps, or remote write/atomic without local write. -EFAULT: not all
 * of it is mapped, or it is to be written and cannot be. With UW_ACCESS_ON_DEMAND nobody looks, but
 * every access does: all of the address space may be registered so (NULL, SIZE_MAX). -ENOMEM. */
int uw_mr_reg(struct uw_pd *pd, void *addr, size_t len, uint64_t iova, unsigned access,
	      struct uw_mr **out);
/* For any address: reads give zeros, what is written is dropped. Local use only. */
int uw_mr_alloc_null(struct uw_pd *pd, struct uw_mr **out);
struct uw_mr_change {
	struct uw_pd *pd; /* NULL: the same */
	bool move;	  /* to addr, len, iova */
	void *addr;
	size_t len;
	uint64_t iova;
	bool set_access; /* to access */
	unsigned access;
};
/* All or nothing; the STag stays. Errors as uw_mr_reg; -EBUSY: windows are bound to it. */
int uw_mr_change(struct uw_mr *mr, const struct uw_mr_change *c);
/* After it returns no packet, however late, reaches the memory (RFC 5042 §6.2.2). -EBUSY: windows
 * are bound to it. */
int uw_mr_dereg(struct uw_mr *mr);
uint32_t uw_mr_stag(const struct uw_mr *mr); /* lkey = rkey = STag */

/* Memory windows: type 1 belongs to the PD, type 2 to the QP that binds it, whose peer may
 * invalidate it (SEND_WITH_INV). Not bound at first. The upper 24 bits of its rkey stay, the lower
 * 8 are chosen with each UW_WR_BIND_MW. */
int uw_mw_alloc(struct uw_pd *pd, unsigned type, struct uw_mw **out); /* -EINVAL type, -ENOMEM */
int uw_mw_dealloc(struct uw_mw *mw);				      /* bound or not */
uint32_t uw_mw_rkey(const struct uw_mw *mw);

/* ---- completions ------------------------------------------------------------------------ */

/* `notify(ctx)` is called at most once per uw_cq_arm; NULL if never armed. depth >= 1 entries.
 * `error(ctx)` is called once when the CQ overflows; its QPs then go to error. */
struct uw_cq_attr {
	uint32_t depth;
	void (*notify)(void *ctx);
	void (*error)(void *ctx);
	void *ctx;
	bool stamps;	     /* uw_cq_poll_stamped will be asked */
	bool ignore_overrun; /* completions that do not fit are dropped instead */
};
int uw_cq_create(struct uw_engine *e, const struct uw_cq_attr *attr, struct uw_cq **out);
int uw_cq_resize(struct uw_cq *cq, uint32_t depth); /* -EINVAL: holds more than depth entries */
int uw_cq_destroy(struct uw_cq *cq);		    /* -EBUSY while QPs use it */

/* Take up to n completions into wc; returns their number, or negative errno if the CQ is in error.
 * While it finds nothing it drives the stack (the `adaptive` thread model, doc/path.md). */
int uw_cq_poll(struct uw_cq *cq, int n, struct uw_wc *wc);

/* One completion and when it came, in nanoseconds of CLOCK_MONOTONIC; else as uw_cq_poll. */
int uw_cq_poll_stamped(struct uw_cq *cq, struct uw_wc *wc, uint64_t *stamp_ns);

/* Notify only once `count` completions wait or `us` microseconds have passed since the first; 0 in
 * either: at once. */
int uw_cq_moderate(struct uw_cq *cq, uint16_t count, uint16_t us);

/* Ask for one notify callback at the next completion (solicited_only: at the next solicited or
 * failed one). As with verbs: poll again after arming. Arming "any" is not weakened by a later
 * solicited_only. */
int uw_cq_arm(struct uw_cq *cq, bool solicited_only);

/* ---- queue pairs ------------------------------------------------------------------------ */

struct uw_srq_attr {
	uint32_t max_wr, max_sge;
	void (*event)(void *ctx, enum uw_event ev);
	void *ctx;
};
int uw_srq_create(struct uw_pd *pd, const struct uw_srq_attr *attr, struct uw_srq **out);
int uw_srq_destroy(struct uw_srq *srq); /* -EBUSY while QPs use it */
/* Raise SRQ_LIMIT_REACHED once when fewer than `limit` receives are left; 0 disarms. */
int uw_srq_set_limit(struct uw_srq *srq, uint32_t limit);
/* *max_wr: at least what is wanted; what was granted comes back. -EINVAL: more receives are posted
 * than that, or too many are wanted. -ENOMEM. */
int uw_srq_resize(struct uw_srq *srq, uint32_t *max_wr);
uint32_t uw_srq_limit(const struct uw_srq *srq);
/* Post n receives; *done = how many were taken. -ENOMEM full, -EINVAL too many SGEs. */
int uw_srq_post_recv(struct uw_srq *srq, const struct uw_recv_wr *wr, unsigned n, unsigned *done);

struct uw_qp_attr {
	struct uw_cq *send_cq, *recv_cq;
	struct uw_srq *srq; /* NULL: the QP has its own RQ */
	uint32_t max_send_wr, max_recv_wr, max_send_sge, max_recv_sge, max_inline; /* in/out */
	bool sq_sig_all;
	void (*event)(void *ctx, enum uw_event ev);
	void *ctx;
};

/* attr's capacities come back as granted (>= asked). -EINVAL beyond uw_device_attr, -ENOMEM. */
int uw_qp_create(struct uw_pd *pd, struct uw_qp_attr *attr, struct uw_qp **out);
/* Ends the connection if there is one; completions still in the CQs disappear. */
int uw_qp_destroy(struct uw_qp *qp);
uint32_t uw_qp_num(const struct uw_qp *qp);
enum uw_qp_state uw_qp_state(const struct uw_qp *qp);
/* RESET, INIT and ERR are taken as asked (RESET forgets what is posted and its completions); RTR
 * and RTS are accepted and take effect when the connection manager has the stream (iWARP: RFC 5040
 * has no QP states); SQD is taken as a graceful close of the stream once what was posted is sent
 * (rdma_disconnect). -EINVAL otherwise. */
int uw_qp_modify(struct uw_qp *qp, enum uw_qp_state to);

/* CM-less RC (doc/adr/0006-cm-less-rc.md): name the peer, to RTR. From now on the QP's states are
 * the verbs' of InfiniBand: uw_qp_modify takes it to RTS at once, requests that are posted before
 * the peer is there wait for it (cfg.rc_wait_ms, then the first fails with UW_WC_RETRY_EXC_ERR),
 * SQD stops sending and back, and that the peer went away shows in the next request. A Send that
 * finds no receive waits for one. Starts the link. peer: the address, any port; from: ours, NULL =
 * the link's. -EINVAL not in INIT, or itself; -EAFNOSUPPORT, -EADDRNOTAVAIL, -EADDRINUSE, -ENOMEM.
 */
struct uw_peer {
	const struct sockaddr *addr, *from;
	uint32_t qpn;
	uint16_t ird; /* reads and atomics that it may have under way here */
	uint8_t tos;  /* as uw_ep_set_tos */
};
int uw_qp_name_peer(struct uw_qp *qp, const struct uw_peer *peer);
/* What InfiniBand's programs say of timers, in its encodings; at any time. The peer hears of
 * rnr_retry if it is known before RTS, or 20 ms after RTR. */
struct uw_path {
	/* A Send that finds no receive here waits for one as long as the peer's retries, of which
	 * each would take min_rnr_timer, and not less than 3 s: then the peer's QP goes to error,
	 * and a request that it has no acknowledgement of fails with UW_WC_RNR_RETRY_EXC_ERR. 7
	 * retries: for ever (the default). */
	uint8_t rnr_retry, min_rnr_timer;
};
int uw_qp_set_path(struct uw_qp *qp, const struct uw_path *path);
/* UW_ACCESS_REMOTE_* that the stream may use; default all (the MR decides). */
int uw_qp_set_access(struct uw_qp *qp, unsigned access);

/* Post n requests in order, one doorbell for all; *done = how many were taken. The first refused
 * one gives the return value: -EINVAL state, opcode, too many SGEs or inline too long; -ENOMEM SQ
 * full (a slot is free again when its completion, or a later one, was polled). A posted request on
 * a QP in error completes with UW_WC_WR_FLUSH_ERR. */
int uw_post_send(struct uw_qp *qp, const struct uw_send_wr *wr, unsigned n, unsigned *done);
/* All n or none. */
int uw_post_send_all(struct uw_qp *qp, const struct uw_send_wr *wr, unsigned n);
/* The same of receives; -ENOMEM RQ full. */
int uw_post_recv(struct uw_qp *qp, const struct uw_recv_wr *wr, unsigned n, unsigned *done);

/* ---- connections (what rdma_cm needs; RFC 5044 §7, RFC 6581) ----------------------------- */

enum uw_cm_event_type {
	UW_CM_CONNECT_REQUEST, /* on a listener: ev->ep is the new endpoint, owned by the callee */
	UW_CM_ESTABLISHED,     /* both sides; param = the peer's, on the connecting side */
	UW_CM_REJECTED,	       /* by the peer's program; param has its private data */
	UW_CM_REFUSED,	       /* TCP refused: nobody listens on that port */
	UW_CM_UNREACHABLE,     /* no route, no such peer, or no answer in time */
	UW_CM_CONNECT_ERROR,   /* start-up failed: the peer does not speak MPA, or broke it */
	UW_CM_DISCONNECTED,    /* an established connection ended, whoever ended it */
};

struct uw_cm_param {
	const void *private_data; /* valid during the call only */
	uint16_t private_data_len;
	uint16_t ird; /* responder resources: what this side answers (RFC 6581 §9.1 IRD) */
	uint16_t ord; /* initiator depth: what this side asks */
	/* A Send that finds no receive here waits without a limit, as an RNR retry count of 7 says.
	 */
	bool rnr_for_ever;
};

struct uw_cm_event {
	enum uw_cm_event_type type;
	int error;	  /* negative errno for the failures, else 0 */
	struct uw_ep *ep; /* UW_CM_CONNECT_REQUEST: the new endpoint */
	struct uw_cm_param param;
	struct uw_stack *stack; /* for uw_later() */
};

/* Called in the order in which things happened on each endpoint. `ctx` is the endpoint's. */
typedef void uw_cm_event_fn(void *ctx, const struct uw_cm_event *ev);

/* Within a callback: fn(arg) as soon as the stack lets its lock go, which it may have taken for
 * many events. A thread that is woken before that takes this very core, and then waits for the
 * lock. fn may call nothing of the stack. False: too many wait already. */
bool uw_later(struct uw_stack *stack, void (*fn)(void *arg), void *arg);

/* An endpoint is what a TCP socket is below a rdma_cm_id. Starts the engine's link. */
int uw_ep_create(struct uw_engine *e, uw_cm_event_fn *fn, void *ctx, struct uw_ep **out);
/* Give an endpoint that came with CONNECT_REQUEST its context. From then on it has its events. */
void uw_ep_set_ctx(struct uw_ep *ep, void *ctx);
/* Claim a local address; port 0 = any free one; wildcards, 127.0.0.1 and ::1 mean this engine's
 * addresses, :: those of IPv4 too (but: uw_ep_only6), 0.0.0.0 and 127.0.0.1 that of IPv4 alone.
 * -EADDRINUSE, -EADDRNOTAVAIL, -EAFNOSUPPORT, -EINVAL (bound already). */
int uw_ep_bind(struct uw_ep *ep, const struct sockaddr *addr);
/* From bind on: share the local port with other endpoints that do, as long as none listens
 * (SO_REUSEADDR, RDMA_OPTION_ID_REUSEADDR). -EINVAL: it has a port already. */
int uw_ep_share_port(struct uw_ep *ep, bool on);
/* Until listen: its :: stands for IPv6 alone (IPV6_V6ONLY, RDMA_OPTION_ID_AFONLY). -EINVAL later.
 */
int uw_ep_only6(struct uw_ep *ep, bool on);
/* The DS field of every IPv4 packet that it sends, the traffic class of every IPv6 one
 * (RDMA_OPTION_ID_TOS); the lower two bits are ECN's and count as 0. Before connect, listen or
 * accept; later it has no effect. What a listener has when it begins to listen its
 * CONNECT_REQUESTs' endpoints have, from the SYN-ACK on. 0 at first. */
void uw_ep_set_tos(struct uw_ep *ep, uint8_t tos);
/* Find the way to dst, joining a peer process if need be (blocks, at most timeout_ms), and choose
 * the local address. With a timeout of 0 it does not block: -EAGAIN, it is not known yet.
 * -EHOSTUNREACH, -ETIMEDOUT, -EAFNOSUPPORT. */
int uw_ep_resolve(struct uw_ep *ep, const struct sockaddr *src, const struct sockaddr *dst,
		  unsigned timeout_ms);
int uw_ep_listen(struct uw_ep *ep, int backlog);
/* Connect QP number qpn to the resolved destination; the outcome is an event. -ENOENT no such QP,
 * -EINVAL wrong state or private data longer than 508 (rev 2) or 512 octets (rev 1). */
int uw_ep_connect(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p);
/* Answer a CONNECT_REQUEST. */
int uw_ep_accept(struct uw_ep *ep, uint32_t qpn, const struct uw_cm_param *p);
int uw_ep_reject(struct uw_ep *ep, const struct uw_cm_param *p);
/* End gracefully after what was posted has been sent; DISCONNECTED follows. -ENOTCONN. */
int uw_ep_disconnect(struct uw_ep *ep);
/* No event of this endpoint is delivered after return. A listener drops connections whose
 * Request is still to come; a live connection is closed and its QP goes to error. */
void uw_ep_destroy(struct uw_ep *ep);
void uw_ep_local_addr(const struct uw_ep *ep, struct sockaddr_storage *a);
void uw_ep_peer_addr(const struct uw_ep *ep, struct sockaddr_storage *a);

/* ---- the table that a dlopen()ed libuwarp.so hands out ------------------------------------ */

#define UW_API_LIST(X)                                                                             \
	X(config_from_env)                                                                         \
	X(engine_open)                                                                             \
	X(engine_start)                                                                            \
	X(engine_started)                                                                          \
	X(engine_close)                                                                            \
	X(engine_query)                                                                            \
	X(pd_alloc)                                                                                \
	X(pd_dealloc)                                                                              \
	X(mr_reg)                                                                                  \
	X(mr_dereg)                                                                                \
	X(mr_stag)                                                                                 \
	X(cq_create)                                                                               \
	X(cq_resize)                                                                               \
	X(cq_destroy)                                                                              \
	X(cq_poll)                                                                                 \
	X(cq_arm)                                                                                  \
	X(srq_create) X(srq_destroy) X(srq_set_limit) X(srq_limit) X(srq_post_recv) X(qp_create)   \
		X(qp_destroy) X(qp_num) X(qp_state) X(qp_modify) X(qp_name_peer) X(qp_set_path) X( \
			qp_set_access) X(post_send) X(post_recv) X(ep_create) X(ep_set_ctx)        \
			X(ep_bind) X(ep_share_port) X(ep_resolve) X(ep_listen) X(ep_connect) X(    \
				ep_accept) X(ep_reject) X(ep_disconnect) X(ep_destroy)             \
				X(ep_local_addr) X(ep_peer_addr) X(mr_alloc_null) X(mr_change)     \
					X(mw_alloc) X(mw_dealloc) X(mw_rkey) X(cq_poll_stamped)    \
						X(cq_moderate) X(post_send_all) X(ep_only6)        \
							X(srq_resize) X(engine_fork) X(ep_set_tos) \
								X(later) X(engine_counters)

struct uw_api {
	uint32_t version; /* UW_API_VERSION */
#define UW_X(name) __typeof__(uw_##name) *name;
	UW_API_LIST(UW_X)
#undef UW_X
};

/* The one exported symbol of libuwarp.so. NULL if `version` is not what the library has. */
const struct uw_api *uw_api_get(uint32_t version);

#endif
