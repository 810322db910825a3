/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Decides what an impaired path does to a frame. The input is the frame's length and the time. The
 * output says whether the frame is lost, and if not, when the frame leaves, how many copies, and
 * with which change. The caller holds the frames and reads the clock. All times are nanoseconds of
 * one monotonic clock.
 *
 * A decision depends only on the seed, the number of the frame and the configuration, so the same
 * seed repeats the same decisions. What depends on time (queue, blackout, mtu after a time) depends
 * on when frames come, too.
 *
 * One model serves one direction. No locks, no allocation.
 */
#ifndef UWARP_IO_IMPAIR_MODEL_H
#define UWARP_IO_IMPAIR_MODEL_H

#include <stdbool.h>
#include <stdint.h>

/* The unit of chances: IMPAIR_ONE is 100%. */
#define IMPAIR_ONE 1000000000u
/* Least octets of a truncated frame: the Ethernet header, since no link takes less. */
#define IMPAIR_LEN_MIN 14u

struct impair_config {
	uint64_t seed;
	/* Chances for each frame, in units of 1 / IMPAIR_ONE. */
	uint32_t drop, reorder, duplicate, corrupt, truncate;
	uint32_t drop_nth; /* every n-th frame is lost; 0: none */
	/* The Gilbert-Elliott model. For each frame: the chance that a burst begins, the chance
	 * that the burst ends, and the chance that a frame within a burst is lost. */
	uint32_t burst_begin, burst_end, burst_drop;
	uint64_t delay_ns;   /* delay of every frame */
	uint64_t jitter_ns;  /* random additional delay, at most this; frames stay in order */
	uint64_t reorder_ns; /* delay of a reordered frame; later frames pass it */
	/* rate limit, bits per second; 0: none. Preamble, FCS and interframe gap count */
	uint64_t bps;
	uint32_t queue; /* with bps: most octets that wait; a frame beyond is lost */
	uint32_t ecn;	/* with bps: CE is set while more octets than this wait; 0: never */
	/* Times after the first frame: all frames are lost from `at` for `len`, and again every
	 * `every`. */
	uint64_t blackout_at_ns, blackout_len_ns, blackout_every_ns;
	/* From mtu_at after the first frame on, IP packets of more than mtu octets are lost; 0:
	 * none. */
	uint32_t mtu;
	uint64_t mtu_at_ns;
};

/* Decisions; each has a counter. */
enum impair_event {
	IMPAIR_FRAMES, /* all frames */
	/* lost: */
	IMPAIR_DROPPED,
	IMPAIR_DROPPED_NTH,
	IMPAIR_DROPPED_BURST,
	IMPAIR_DROPPED_BLACKOUT,
	IMPAIR_DROPPED_MTU,
	IMPAIR_DROPPED_QUEUE,
	IMPAIR_DROPPED_ROOM, /* counted by the caller, which had no room for the frame */
	/* not lost: */
	IMPAIR_REORDERED,
	IMPAIR_DUPLICATED,
	IMPAIR_CORRUPTED,
	IMPAIR_TRUNCATED,
	IMPAIR_DELAYED, /* delayed by delay, jitter or rate */
	IMPAIR_MARKED,
	IMPAIR_EVENTS
};

struct impair {
	struct impair_config cfg;
	uint64_t number;   /* number of the next frame */
	uint64_t start_ns; /* time of the first frame */
	uint64_t free_ns;  /* when the rate allows the next frame to begin */
	uint64_t last_ns;  /* latest departure of a frame that was sent in order */
	bool in_burst;
	uint64_t count[IMPAIR_EVENTS];
};

/* One copy of a frame to send. */
struct impair_copy {
	uint64_t due_ns;      /* departure; `now` or earlier: at once */
	uint32_t len;	      /* send only the first len octets */
	uint32_t corrupt_at;  /* index of the octet that is changed ... */
	uint8_t corrupt_with; /* ... by XOR with this; 0: no octet is changed */
	bool mark;	      /* set CE if the packet is ECN-capable (RFC 3168, 5) */
};

struct impair_verdict {
	/* 0: the frame is lost; 2: the frame is duplicated, and the second copy is unchanged */
	unsigned copies;
	struct impair_copy copy[2];
};

void impair_init(struct impair *m, const struct impair_config *cfg);
/* Decide about the next frame; len counts from the Ethernet header on. */
void impair_decide(struct impair *m, uint32_t len, uint64_t now_ns, struct impair_verdict *v);
/* Does this copy differ from the frame of len octets? Then call impair_change(). */
bool impair_changes(const struct impair_copy *c, uint32_t len);
/* Change the first c->len octets of the frame in place. */
void impair_change(struct impair *m, const struct impair_copy *c, uint8_t *frame);
/* The name of an event in options and counters: "dropped", ... */
const char *impair_event_name(enum impair_event e);
/* Write " name N" for every counter above 0; returns the length. The text ends with a NUL. */
unsigned impair_describe(const struct impair *m, char *out, unsigned size);

#endif
