/* SPDX-License-Identifier: BSD-3-Clause */
/* A uwarpd with a port that is made up and two clients, whose ends of the conduits are here, too.
 */
#ifndef UWARP_TESTS_UWARPD_BED_H
#define UWARP_TESTS_UWARPD_BED_H

#include "io_switch/frame6.h"
#include "server.h"

enum { BED_FRAMES = 64 };

struct bed_port {
	struct uplink p; /* first */
	bool full;	 /* it takes no frame */
	struct octets sent[BED_FRAMES], coming[BED_FRAMES];
	unsigned n_sent, n_coming, taken; /* coming[taken] is next */
	unsigned flushed;		  /* of those sent */
	unsigned looks;			  /* calls of receive */
	bool waits, loses;		  /* what comes waits in the port, and is lost there */
	uint8_t begin[SWITCH_HEAD_MAX];	  /* ... but for this */
	unsigned fetched;
	uint16_t refuses; /* a port (host order) that others have */
	unsigned claimed, released;
	bool deaf;		  /* packets to QPs are another program's */
	enum io_versions version; /* that was claimed last */
};

struct bed {
	struct server s;
	struct bed_port port;
	struct client c[3]; /* ALICE, BOB: with a port each */
	struct conduit theirs[3];
	_Atomic uint32_t bell[3][32];
};

int bed_up(void **state);
int bed_down(void **state);

/* A client puts a frame into its conduit. */
void bed_put(struct bed *b, unsigned client, const struct octets *f);
/* The next frame in a client's conduit; false: there is none. */
bool bed_take(struct bed *b, unsigned client, struct octets *out);

#endif
