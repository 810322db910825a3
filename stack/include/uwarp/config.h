/* SPDX-License-Identifier: BSD-3-Clause */
/* How an engine is configured; conventions are in uwarp.h. */
#ifndef UWARP_CONFIG_H
#define UWARP_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

#include "uwarp/types.h"

#define UW_API_VERSION 17u

/* RFC 5044 §7.1.1: a start-up frame carries at most 512 octets of private data. */
#define UW_PRIVATE_DATA_MAX 512u

struct uw_engine;
struct uw_stack; /* a stack of the engine (doc/adr/0016) */
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
	UW_THREADS_ADAPTIVE, /* program threads that poll; else the RX thread */
	UW_THREADS_C1,	     /* the RX thread does everything */
	UW_THREADS_C2, /* program threads; the RX thread only while the program makes no calls */
	UW_THREADS_C3, /* the RX thread receives, the program sends */
};

/* TCP segmentation offload: consecutive segments are sent merged to a port that cuts them
 * (doc/adr/0023). */
enum uw_tso {
	UW_TSO_AUTO, /* if the port can, and its peers receive them cut */
	UW_TSO_ON,   /* as AUTO; if the port cannot, the link fails to open */
	UW_TSO_OFF,
};

/* The congestion control (doc/adr/0022). */
enum uw_congestion {
	UW_CC_CUBIC,
	UW_CC_DCTCP, /* for networks whose switches mark packets (ECN); turns ecn on */
	UW_CC_DELAY, /* for networks that lose without congestion */
};

/* MPA's CRC32c (doc/adr/0043). Where the peer asks for it, it is used in any case. */
enum uw_crc {
	UW_CRC_OFF,
	UW_CRC_ON,
	UW_CRC_AUTO, /* ask for it, but not between processes that share memory */
};

#define UW_STACKS_MAX 8

struct uw_config {
	/* Which TCP (doc/adr/0008): "raw" (lwIP's raw API, in the thread that runs the stack),
	 * "seq" (lwIP's sequential API) or "socket" (the kernel's TCP, over the link "host"); "" =
	 * raw */
	char transport[16];
	/* "memif", "uwarpd", "uwarpd:PATH", "packet:IF", "af_packet:IF", "af_xdp:IF", "pci:ADDR",
	 * "loop", "host" or DPDK devargs, see uwarp-run(1); "" = memif */
	char link[256];
	/* "A" or "A/N", separated by commas: at most one IPv4 address, a few IPv6 ones; "" = the
	 * link chooses */
	char ip[256];
	/* directory in which this user's processes find each other; "" = the default of
	 * io/run_dir.h */
	char run_dir[256];
	/* the user did not ask for `ip`: if another process has it, take a free address */
	bool ip_auto;
	int addr_fd; /* descriptor that reserves `ip` (inherited from uwarp-run), or -1 */
	/* "GATEWAY", or one for each version of IP, separated by a comma; "" = where the link is an
	 * interface of the kernel, the kernel's */
	char gateway[128];
	char routes[512]; /* "NETWORK/BITS=GATEWAY", separated by commas */
	unsigned mtu;	  /* IP MTU of the link in octets; 0 = the link's default */
	/* IEEE 802.1Q: VLAN whose tag all frames of the link have, 1 to 4094; 0 = none */
	unsigned vlan;
	uint64_t rate_bps; /* limit of the rate of sending, bits per second; 0 = none */
	char impair[256];  /* impairment of frames (io/impair/options.h); "" = none */
	enum uw_tso tso;   /* default UW_TSO_AUTO */
	/* Only with transport raw. Not used between processes, where no packet is lost. */
	enum uw_congestion congestion; /* default UW_CC_CUBIC */
	bool ecn;	   /* offer explicit congestion notification (RFC 3168); default false */
	bool timestamps;   /* offer TCP timestamps (RFC 7323); default false */
	enum uw_crc crc;   /* ask for MPA CRC32c (RFC 5044 §7.1.1 C bit)? default UW_CRC_AUTO */
	bool markers;	   /* ask the peer to send MPA markers (RFC 5044 §4.3); default false */
	unsigned mpa_rev;  /* MPA revision offered when connecting: 1 or 2 (RFC 6581); default 2 */
	bool p2p;	   /* offer peer-to-peer (RFC 6581 A bit) when connecting; default true */
	unsigned ird, ord; /* upper limits of IRD and ORD, 1..0x3ffe; default 128 */
	/* how long a Send waits if no receive is posted (doc/adr/0005); 0: not at all; default
	 * 10000 */
	unsigned rnr_ms;
	/* CM-less RC: how long posted requests wait for the peer; default 60000 */
	unsigned rc_wait_ms;
	bool roce;	 /* the device presents itself as RoCE instead of iWARP; default false */
	bool infiniband; /* with roce: its port as one of InfiniBand, with LIDs; default false */
	/* Start-up timeout: how long TCP may take to connect, and the responder waits for the MPA
	 * Request (RFC 5044 §7.1.2, DoS); default 5000. The initiator waits three times as long for
	 * the MPA Reply (RFC 5044 §7.1.4), since a program has to accept first */
	unsigned connect_ms;
	/* Connections of one host on one stack that have said nothing yet; 0: no limit; default
	 * 2048 */
	unsigned silent_per_host;
	/* Connections that one host may have begun on one stack; 0: no limit; default 12288, of the
	 * 16384 that the transport raw has room for */
	unsigned conns_per_host;
	/* A responder sends nothing before the first FPDU of the initiator (RFC 5044 §7.1.2). If
	 * not 0 and the initiator did not ask for peer-to-peer, the responder may send after this
	 * time; default 0 */
	unsigned speak_first_ms;
	/* If not 0: ask a peer that was silent for this time, in milliseconds, then again and
	 * again, and give it up after as long without an answer (RFC 1122 §4.2.3.6, doc/adr/0037).
	 * Not used on links that report the end of a peer; default 4000 */
	unsigned keepalive_ms;
	/* How long to wait, before an address of our own is used on a network, for another host to
	 * say that it has it (RFC 5227, RFC 4862); 0: do not ask; default 200 */
	unsigned dad_ms;
	/* default UW_THREADS_ADAPTIVE; with several stacks, ADAPTIVE means C3 */
	enum uw_threads threads;
	/* Number of stacks, 1..UW_STACKS_MAX; each has its own lock, thread and queue of the link
	 * (doc/adr/0016); default 1. With more than one: only transport raw, no memory windows */
	unsigned stacks;
	bool verbose; /* print to stderr what was chosen */
	bool stat;    /* answer uwarp-stat on a socket in run_dir (doc/adr/0029); default true */
	/* File to which the history of a connection is appended whose QP fails; "": with verbose
	 * stderr, else none */
	char record[256];
	char pcap[4096];  /* file for all frames, those of stack N in FILE.N; "" = none */
	char uwarpd[108]; /* the link uwarpd: the socket of the uwarpd; "" = where one is */
};

/* Fill *cfg with the defaults, then with the values of UWARP_* environment variables. -EINVAL: a
 * variable does not parse; one line on stderr names that variable. */
int uw_config_from_env(struct uw_config *cfg);

#endif
