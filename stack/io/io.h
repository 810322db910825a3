/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The interface between the engine and a link. A link moves Ethernet frames (14-octet header first)
 * and knows nothing of TCP or iWARP. Links are in io/memif, io/port, io/packet, io/uwarpd and
 * io/loop; that of io/socket has no frames.
 *
 * Every function is called under the stack lock unless its comment says otherwise; `resolve` and
 * `close` are called without the lock and may block, `claim_port` with or without it.
 */
#ifndef UWARP_IO_H
#define UWARP_IO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/doorbell.h"
#include "base/ip.h"
#include "base/status.h"

struct io_link;
struct route_table;

#define IO_LLP_ROOM 64
/* Octets of TCP payload in a long segment: with all headers, Ethernet's too, its length has 16
 * bits.
 */
#define IO_LONG_MAX (65535u - 14 - 40 - 60)
/* The largest MTU of a link: with Ethernet's header a frame's length has 16 bits, too. */
#define IO_MTU_MAX 65280u
/* The smallest one: what every IPv4 host takes (RFC 791 §3.1). */
#define IO_MTU_LEAST 576u
#define IO_MTU_PORT  16000u /* of a port that DPDK drives */
/* Of a link between processes, unless another is asked for. */
#define IO_MTU_PROCESSES 9000u
/* Nominal bits per second of a link that does not tell. */
#define IO_BPS_UNKNOWN UINT64_C(10000000000)
#define IO_IP6_MAX     6u

/* One buffer of a frame. The struct lies beside the octets (in an mbuf's private area), so no
 * memory is allocated to pass a frame on. A frame of several buffers is a chain, named by its first
 * buffer. */
struct io_frame {
	_Alignas(16) uint8_t llp[IO_LLP_ROOM]; /* scratch memory of the transport (a pbuf) */
	struct io_frame *next;		       /* next buffer of this frame, NULL at the end */
	struct io_link *link;
	uint8_t *buf;	/* first octet of the buffer */
	uint32_t room;	/* octets in the buffer */
	uint32_t marks; /* enum io_marks; set in the first buffer of a frame */
	uint8_t *data;	/* first octet in use */
	uint32_t len;	/* octets in use, this buffer only */
	/* alloc_long: most octets of TCP payload in one segment; the link cuts the frame into such
	 * segments. 0: the frame is one segment. The user of alloc_long sets it. */
	uint32_t cut;
};

enum io_marks {
	IO_FRAME_SUM_GOOD = 1, /* received: the card found the TCP checksum right (IO_RX_CSUM) */
	IO_FRAME_SUM = 2,      /* to send: the card must compute the TCP checksum (IO_TX_CSUM) */
	/* received: a copy. The stack that has the frame itself answers and counts it, if it turns
	 * out to be for nobody (steer.h) */
	IO_FRAME_COPY = 4,
};

enum io_flags {
	IO_P2P = 1,   /* no ARP, no ND: the destination MAC is io_mac_of(destination address) */
	IO_RINGS = 2, /* peers ring our doorbell, so the engine may sleep until then */
	IO_TSO = 8,   /* the port cuts long TCP segments (TSO) */
	/* TCP checksums by the card. Software checks and computes the checksum of other frames. */
	IO_RX_CSUM = 16, /* received frames may be marked IO_FRAME_SUM_GOOD */
	/* frames may be sent with IO_FRAME_SUM; the link then writes to their checksum field */
	IO_TX_CSUM = 32,
	/* With IO_P2P: frames may be damaged, so TCP and IP checksums are used nevertheless. */
	IO_SUMS = 64,
	/* The kernel has the IPv4 address too: a local port must be claimed before use (claim_port,
	   which does not block on such a link and may be called under the stack lock). */
	IO_SHARED = 128,
	/* Another process of this machine moves the frames, and may need the CPU of a thread that
	   polls for them. */
	IO_YIELD = 256,
	/* A thread of the program can wait for frames with poll() on wait.fd and frames_fd. */
	IO_WAITS = 1 << 17,
	/* Other hosts share the network, and one may have our address (io/dad). */
	IO_NEIGHBOURS = 1 << 18,
	/* What is sent waits in a queue behind the link, the kernel's for one, which smooths
	   bursts. */
	IO_QUEUE = 1 << 19,
	/* A frame is never damaged on its way, since it stays in this machine's memory. */
	IO_INTACT = 1 << 20,
	IO_SHARED6 = 1 << 21, /* as IO_SHARED, of all IPv6 addresses */
};

/* Versions of IP, of which each has its own ports. IO_NAMED, in a claim: the program named the
 * port, and connections of the kernel's that have ended shall not keep it. */
enum io_versions { IO_V4 = 1, IO_V6 = 2, IO_NAMED = 4 };

struct io_stats {
	uint64_t rx_frames, rx_bytes, tx_frames, tx_bytes;
	uint64_t tx_full;  /* calls of tx() that took fewer frames than offered */
	uint64_t no_frame; /* calls of alloc() with an empty pool */
	uint64_t rx_drops, tx_drops;
	uint64_t rings;	      /* doorbells rung at peers */
	uint64_t tx_lent;     /* memif, of tx_frames: those that the peer copied where they lay */
	uint64_t peer_faults; /* memif: peers that wrote invalid values into shared memory */
	uint64_t handed;      /* steer.h: frames handed to other stacks */
	/* IO_TSO, of tx_frames: tx_merged were sent merged, in tx_chains long segments; tx_unmerged
	 * were sent singly, since the port refused their long segment. */
	uint64_t tx_merged, tx_chains, tx_unmerged;
	/* DPDK ports: frames whose TCP checksum the card found right, and was asked to compute;
	 * frames and long segments that were sent out of several buffers */
	uint64_t rx_sums, tx_sums, tx_parts;
	uint64_t rx_big; /* io/packet: frames longer than an IP packet, cut (big_tcp.h) */
	uint64_t kept;	 /* io/packet: 1: the host's IP stack does not get our frames */
};

struct io_ops {
	const char *name;
	/* Take up to n received frames into v; the caller owns them. Never blocks. */
	unsigned (*rx)(struct io_link *l, struct io_frame **v, unsigned n);
	/* Send frames. Returns how many were taken, always the first ones of v; the link takes over
	 * one reference of each. The rest stays the caller's. Wakes sleeping peers. */
	unsigned (*tx)(struct io_link *l, struct io_frame **v, unsigned n);
	/* Has the receiver at this address room for a datagram, behind n frames that are not sent
	 * yet and may go there, too? False: sent now it would be lost; whoever has it keeps it and
	 * asks again later, since nobody tells when there is room. NULL: yes. */
	bool (*has_room)(struct io_link *l, const struct uw_ip *to, unsigned n);
	/* A frame of one buffer with data = buf + headroom (at least 128 octets) and len 0; NULL:
	 * the pool is empty (counted in no_frame). */
	struct io_frame *(*alloc)(struct io_link *l);
	/* The same with room for IO_LONG_MAX octets behind the headroom, for a TCP segment that the
	 * link cuts (io_frame.cut). NULL: none is to be had now; use alloc. The function NULL: the
	 * link cuts none. */
	struct io_frame *(*alloc_long)(struct io_link *l);
	/* Drop one reference of this buffer alone (not of the chain). */
	void (*free)(struct io_frame *f);
	void (*ref)(struct io_frame *f);
	unsigned (*refs)(const struct io_frame *f);
	/* Is a frame waiting to be received? May be true by mistake, never false. Asked just before
	 * sleeping. */
	bool (*pending)(struct io_link *l);
	/* When a frame that waits inside the link can leave it, in nanoseconds of the stack's
	 * clock; UINT64_MAX: none waits. Frames that leave soon are pending instead. NULL: frames
	 * never wait. */
	uint64_t (*due_ns)(struct io_link *l);
	/* No lock held. Wait until a frame comes, at most `us` microseconds, or until rouse().
	 * NULL: the link cannot wait; sleepers use its doorbell. */
	void (*sleep)(struct io_link *l, uint64_t us);
	/* Any thread: end the current sleep(), or the next one. NULL together with sleep. */
	void (*rouse)(struct io_link *l);
	/* No lock held. Make *to reachable. In: the address that the program asked for; out: the
	 * address to use instead, e.g. for 127.0.0.1 that of the process that listens on `port`
	 * (network order); a multicast address stands for all who are there. UW_OK,
	 * UW_E_UNREACHABLE, UW_E_TIMEOUT. With a timeout of 0 also UW_MORE: the answer is not known
	 * yet. NULL: no need to resolve. */
	uw_status (*resolve)(struct io_link *l, struct uw_ip *to, uint16_t port,
			     unsigned timeout_ms);
	/* No lock held. False: another process of this machine has the address, and neither hears
	 * the other; a line on stderr says so. NULL: true. */
	bool (*reaches)(struct io_link *l, const struct uw_ip *to);
	/* With the stack lock, or without: a link takes a lock of its own for it. Make this process
	 * the one that listens on `port` (network order) for 127.0.0.1; UW_E_ADDR_IN_USE: another
	 * process does; any other error holds for all ports. NULL: ports need no claim. `versions`
	 * (enum io_versions) counts where the kernel has addresses of both. */
	uw_status (*claim_port)(struct io_link *l, uint16_t port, unsigned versions);
	void (*release_port)(struct io_link *l, uint16_t port, unsigned versions);
	/* From now on packets of RoCEv2 (UDP port 4791) to this QP of our address come to us, and
	 * no other process or kernel answers them. QP 1 has the management datagrams. A link with
	 * release_packets is asked for RC QPs without rdma_cm as well, so that no other process
	 * answers where they are (doc/adr/0048). May be called again for the same QP.
	 * UW_E_ADDR_IN_USE, UW_E_ADDR, UW_E_PERM, UW_E_NOMEM, UW_E_NO_LINK, with a line on stderr.
	 * NULL: no other process or kernel has the address. */
	uw_status (*claim_packets)(struct io_link *l, uint32_t qpn);
	/* The QP is gone. NULL: nothing to do. */
	void (*release_packets)(struct io_link *l, uint32_t qpn);
	/* No lock held; may block. Join or leave a multicast group, of which packets of RoCEv2 are
	 * to come. UW_E_NOMEM, UW_E_UNSUPPORTED, with a line on stderr. NULL: they come anyway. */
	uw_status (*group)(struct io_link *l, const struct uw_ip *group, bool in);
	/* A segment goes to our own address, which is shared (IO_SHARED, IO_SHARED6): is it for
	 * this process? False: for another process of the host, so it goes to the link, with our
	 * own MAC as destination. NULL: yes. */
	bool (*is_ours)(struct io_link *l, uint16_t port, enum io_versions version);
	/* No lock held, any thread, every few seconds: give back what was kept for a while only.
	 * NULL: there is nothing. */
	void (*tidy)(struct io_link *l);
	/* No lock held. Stop, return buffers, say BYE to peers, free l. */
	void (*close)(struct io_link *l);
};

/* The functions of the engine that a link calls. */
struct io_env {
	void *arg;
	void (*lock)(void *arg); /* the stack lock, under which most of io_ops run */
	void (*unlock)(void *arg);
	/* Under the stack lock: the peer process with this IPv4 address (network order) has ended;
	 * its connections are dead. Its IPv6 addresses end in the same octets. 0: all connections
	 * of the link are dead. */
	void (*peer_down)(void *arg, uint32_t addr);
	/* Under the stack lock: wake once the lock is free. `was` is what was swapped out of the
	 * doorbell: IO_ASLEEP or IO_ASLEEP_FD. NULL: the link wakes at once. */
	void (*wake)(void *arg, const struct io_ring *ring, uint32_t was);
};

struct io_link {
	const struct io_ops *ops;
	struct io_env env;
	uint32_t addr, mask;	       /* IPv4, network order; 0: the link has none */
	struct uw_net ip6[IO_IP6_MAX]; /* set by io_set_ip6; the first is the link-local one */
	unsigned n_ip6;
	uint32_t scope; /* sin6_scope_id of the link-local address */
	uint8_t mac[6]; /* the engine changes it with the kernel's, under the stack's lock */
	/* io/route/table.h: ways to other networks; NULL: none. Set by the engine. */
	struct route_table *routes;
	uint32_t mtu;	   /* IP octets per frame; the engine lowers it with the kernel's */
	uint32_t headroom; /* octets before data in a frame of alloc() */
	unsigned flags;	   /* enum io_flags */
	uint64_t bps;	   /* nominal speed, bits per second */
	/* The doorbell (base/doorbell.h). A peer that stores frames for us and finds IO_ASLEEP
	 * swaps in IO_RUNG + its CPU and wakes sleepers with FUTEX_WAKE (not private: processes
	 * share the word). Without IO_RINGS nobody outside of this process rings. */
	_Atomic uint32_t *doorbell;
	/* With IO_YIELD: 1 + the CPU on which the process that moves the frames was last seen; 0:
	 * not known. The word stays valid as long as the link. */
	const _Atomic uint32_t *mover_cpu;
	/* With IO_WAITS. wait: what ends the wait of a thread that set the doorbell to IO_ASLEEP_FD
	 * and polls wait.fd; frames_fd: sockets that are readable when a frame comes without a
	 * ring, -1: none. Without any all peers ring.
	 */
	struct io_ring wait;
	int frames_fd[2];
	struct io_stats stats;
};

/* Drop one reference of every buffer of a frame. */
static inline void io_free_chain(struct io_frame *f)
{
	while (f) {
		struct io_frame *next = f->next;

		f->link->ops->free(f);
		f = next;
	}
}

/* Of which versions of IP does the kernel have the addresses, too (enum io_versions)? */
static inline unsigned io_shared_versions(const struct io_link *l)
{
	return (l->flags & IO_SHARED ? IO_V4 : 0u) | (l->flags & IO_SHARED6 ? IO_V6 : 0u);
}

/* Are frames of this link accepted and sent without checksums? */
static inline bool io_unsummed(const struct io_link *l)
{
	return (l->flags & (IO_P2P | IO_SUMS)) == IO_P2P;
}

/* The MAC of an address on an IO_P2P link: locally administered, and ending in the last four octets
 * of the address. */
static inline void io_mac_of(uint32_t addr_be, uint8_t mac[6])
{
	const uint8_t *a = (const uint8_t *)&addr_be;

	mac[0] = 0x02;
	mac[1] = 0x75;
	for (int i = 0; i < 4; i++)
		mac[2 + i] = a[i];
}

#endif
