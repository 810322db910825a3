/* SPDX-License-Identifier: BSD-3-Clause */
/* How an engine is configured; conventions are in uwarp.h. */
#ifndef UWARP_CONFIG_H
#define UWARP_CONFIG_H

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

#endif
