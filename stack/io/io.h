/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the engine asks of a link, and what a link gives it: frames. A link moves Ethernet frames
 * (14-octet header first) and knows nothing of TCP or iWARP. io/memif, io/port and io/loop are links.
 *
 * Every function is called under the stack lock unless it says otherwise; `resolve`,
 * `claim_port`, `open` and `close` are called without it and may block.
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

#define IO_LLP_ROOM 64
#define IO_IP6_MAX  6u

/* One buffer of a frame. It lives beside the octets (an mbuf's private area), so handing a frame
 * on costs nothing. A frame of several buffers is a chain; only the first counts as the frame. */
struct io_frame {
	_Alignas(16) uint8_t llp[IO_LLP_ROOM]; /* the TCP edge's own (a pbuf) */
	struct io_frame *next;		       /* next buffer of this frame, NULL at the end */
	struct io_link *link;
	uint8_t *buf;	/* first octet of the buffer */
	uint32_t room;	/* octets in it */
	uint32_t marks; /* enum io_marks; of the first buffer */
	uint8_t *data;	/* first octet in use */
	uint32_t len;	/* octets in use, this buffer only */
};

enum io_marks {
	IO_FRAME_SUM_GOOD = 1, /* received: the card found the TCP checksum right (IO_RX_CSUM) */
	IO_FRAME_SUM = 2,      /* to send: the card is to compute the TCP checksum (IO_TX_CSUM) */
};

enum io_flags {
	IO_P2P = 1,   /* no ARP, no ND: the destination MAC is io_mac_of(destination address) */
	IO_RINGS = 2, /* peers ring our doorbell: when idle the engine may sleep until then */
	IO_TSO = 8,   /* TCP segments go to a port that cuts them */
	/* TCP checksums by the card; what is not marked is the receiver's and the sender's own */
	IO_RX_CSUM = 16, /* received frames may be marked IO_FRAME_SUM_GOOD */
	IO_TX_CSUM = 32, /* frames may be sent with IO_FRAME_SUM; their checksum field is written to */
	/* With IO_P2P: frames may be damaged, so TCP and IP are checksummed all the same. */
	IO_SUMS = 64,
};

struct io_stats {
	uint64_t rx_frames, rx_bytes, tx_frames, tx_bytes;
	uint64_t tx_full;  /* tx() took less than was offered */
	uint64_t no_frame; /* alloc() found the pool empty */
	uint64_t rx_drops, tx_drops;
	uint64_t rings;	      /* doorbells rung at peers */
	uint64_t peer_faults; /* memif: peers that wrote nonsense into shared memory */
	uint64_t handed;      /* steer.h: given to other stacks */
	/* IO_TSO: of tx_frames, those that went as part of one of so many chains, and those that
	 * had to go singly since the port did not take their chain */
	uint64_t tx_merged, tx_chains, tx_unmerged;
};

struct io_ops {
	const char *name;
	/* Take up to n received frames into v; the caller owns them. Never blocks. */
	unsigned (*rx)(struct io_link *l, struct io_frame **v, unsigned n);
	/* Offer n frames; returns how many were taken (one reference of each, always a prefix of
	 * v). The rest stays the caller's. Wakes sleeping peers. */
	unsigned (*tx)(struct io_link *l, struct io_frame **v, unsigned n);
	/* A one-buffer frame, data = buf + headroom of at least 128 octets, len 0; NULL when the
	 * pool is empty (counted). */
	struct io_frame *(*alloc)(struct io_link *l);
	/* Drop one reference of this buffer alone (not of the chain). */
	void (*free)(struct io_frame *f);
	void (*ref)(struct io_frame *f);
	unsigned (*refs)(const struct io_frame *f);
	/* Is anything waiting to be received? Exact or "maybe" (true): asked just before sleeping.
	 */
	bool (*pending)(struct io_link *l);
	/* No lock held. Make *to reachable (in: what the program asked; out: what to use instead,
	 * e.g. for 127.0.0.1 the address of the process that listens on `port`, network order).
	 * UW_OK, UW_E_UNREACHABLE, UW_E_TIMEOUT; with a timeout of 0 UW_MORE: one would have to
	 * wait. NULL = nothing to do. */
	uw_status (*resolve)(struct io_link *l, struct uw_ip *to, uint16_t port,
			     unsigned timeout_ms);
	/* No lock held. Tell the neighbourhood that this process listens on `port` (network order),
	 * so that 127.0.0.1 finds it; UW_E_ADDR_IN_USE if another process has it. NULL = no-op. */
	uw_status (*claim_port)(struct io_link *l, uint16_t port);
	void (*release_port)(struct io_link *l, uint16_t port);
	/* No lock held. Stop, hand buffers back, say good-bye to peers, free l. */
	void (*close)(struct io_link *l);
};

/* What a link may call back. */
struct io_env {
	void *arg;
	void (*lock)(void *arg); /* the stack lock; excludes every op above that runs under it */
	void (*unlock)(void *arg);
	/* Under the stack lock: a peer went away (its process ended); its connections are dead.
	 * addr: its IPv4 address, network order, in which all its addresses end. */
	void (*peer_down)(void *arg, uint32_t addr);
	/* Under the stack lock: futex-wake this word once the lock is free. NULL: do it at once. */
	void (*wake)(void *arg, _Atomic uint32_t *word);
};

struct io_link {
	const struct io_ops *ops;
	struct io_env env;
	uint32_t addr, mask;	       /* IPv4, network order; 0: it has none */
	struct uw_net ip6[IO_IP6_MAX]; /* io_set_ip6; the first is the link-local one */
	unsigned n_ip6;
	uint32_t scope; /* sin6_scope_id of its link-local addresses */
	uint8_t mac[6];
	uint32_t mtu;	   /* IP octets per frame */
	uint32_t headroom; /* of alloc() */
	unsigned flags;	   /* enum io_flags */
	uint64_t bps;	   /* nominal speed */
	/* One word that says whether the engine sleeps; a peer that stores frames for us and finds
	 * IO_ASLEEP here swaps in IO_RUNG + its CPU and futex-wakes it (FUTEX_WAKE, not private:
	 * the word is shared between processes). Without IO_RINGS it is private and nobody rings.
	 */
	_Atomic uint32_t *doorbell;
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

/* Are frames of this link believed as they are, without checksums? */
static inline bool io_unsummed(const struct io_link *l)
{
	return (l->flags & (IO_P2P | IO_SUMS)) == IO_P2P;
}

/* MAC of an address on an IO_P2P link: locally administered, the address's last 4 octets in its
 * own. */
static inline void io_mac_of(uint32_t addr_be, uint8_t mac[6])
{
	const uint8_t *a = (const uint8_t *)&addr_be;

	mac[0] = 0x02;
	mac[1] = 0x75;
	for (int i = 0; i < 4; i++)
		mac[2 + i] = a[i];
}

#endif
