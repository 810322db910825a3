/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an impaired path does to frames, decided and nothing else: a frame's octets and the time go
 * in; out comes whether it is lost, and if not, when it leaves, how often and with what change. The
 * caller holds the frames and has the clock. All times are nanoseconds of one monotonic clock.
 *
 * Every decision about a frame is a function of the seed, of the frame's number and of the
 * configuration, so the same seed replays the same decisions whatever the clock does. What a rate
 * or a time of day decides (queue, blackout, mtu after a time) depends on when frames come, too.
 *
 * One model serves one direction. No locks, no allocation.
 */
#ifndef UWARP_IO_IMPAIR_MODEL_H
#define UWARP_IO_IMPAIR_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* A chance is a number out of this. */
#define IMPAIR_ONE 1000000000u
/* The Ethernet header stays when a frame is cut, since no link takes less. */
#define IMPAIR_LEN_MIN 14u

struct impair_config {
	uint64_t seed;
	/* Chances for each frame. */
	uint32_t drop, reorder, duplicate, corrupt, truncate;
	uint32_t drop_nth; /* every n-th frame is lost; 0: none */
	/* Gilbert's and Elliott's two states: for each frame the chance that a burst begins, that
	 * it ends, and within it that a frame is lost. */
	uint32_t burst_begin, burst_end, burst_drop;
	uint64_t delay_ns;   /* of every frame */
	uint64_t jitter_ns;  /* up to so much more; frames stay in order */
	uint64_t reorder_ns; /* how late a reordered frame is: others pass it */
	uint64_t bps;	     /* 0: no limit. Preamble, FCS and gap of an Ethernet count */
	uint32_t queue;	     /* with bps: octets that wait at most; a frame beyond is lost */
	uint32_t ecn;	     /* with bps: CE is set while more octets than this wait; 0: never */
	/* After the first frame: everything is lost from `at` on for `len`, again each `every`. */
	uint64_t blackout_at_ns, blackout_len_ns, blackout_every_ns;
	/* Larger packets (octets of IP) are lost from a time after the first frame on; 0: none. */
	uint32_t mtu;
	uint64_t mtu_at_ns;
};

/* What was decided; each has a counter. */
enum impair_event {
	IMPAIR_FRAMES, /* all that came */
	/* lost: */
	IMPAIR_DROPPED,
	IMPAIR_DROPPED_NTH,
	IMPAIR_DROPPED_BURST,
	IMPAIR_DROPPED_BLACKOUT,
	IMPAIR_DROPPED_MTU,
	IMPAIR_DROPPED_QUEUE,
	IMPAIR_DROPPED_ROOM, /* counted by the caller: it could not hold the frame */
	/* not lost: */
	IMPAIR_REORDERED,
	IMPAIR_DUPLICATED,
	IMPAIR_CORRUPTED,
	IMPAIR_TRUNCATED,
	IMPAIR_DELAYED, /* by delay, jitter or rate */
	IMPAIR_MARKED,
	IMPAIR_EVENTS
};

struct impair {
	struct impair_config cfg;
	uint64_t number;   /* of the next frame */
	uint64_t start_ns; /* the first frame's time */
	uint64_t free_ns;  /* when the rate allows the next frame to begin */
	uint64_t last_ns;  /* the latest of the times at which frames leave in order */
	bool in_burst;
	uint64_t count[IMPAIR_EVENTS];
};

/* One frame that leaves. */
struct impair_copy {
	uint64_t due_ns;      /* not before this; `now` or earlier: at once */
	uint32_t len;	      /* of the frame's octets so many */
	uint32_t corrupt_at;  /* this octet is changed ... */
	uint8_t corrupt_with; /* ... by XOR with this; 0: none is */
	bool mark;	      /* set CE if the packet is ECN-capable (RFC 3168, 5) */
};

struct impair_verdict {
	unsigned copies; /* 0: the frame is lost; 2: it comes twice, the second as it was */
	struct impair_copy copy[2];
};

void impair_init(struct impair *m, const struct impair_config *cfg);
/* The next frame: len octets from the Ethernet header on. */
void impair_decide(struct impair *m, uint32_t len, uint64_t now_ns, struct impair_verdict *v);
/* Does this copy differ from the frame of len octets? Then impair_change() makes it so. */
bool impair_changes(const struct impair_copy *c, uint32_t len);
/* Change the first c->len octets of the frame in place. */
void impair_change(struct impair *m, const struct impair_copy *c, uint8_t *frame);
/* "dropped", ... as options and counters name it. */
const char *impair_event_name(enum impair_event e);
/* Every counter above 0 as " name N" for each, 0-terminated; returns its length. */
unsigned impair_describe(const struct impair *m, char *out, unsigned size);

#endif
