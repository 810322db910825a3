/* SPDX-License-Identifier: BSD-3-Clause */
/* A fake of host.h, what the preloaded library gives the provider, over the fake engine. */
#ifndef UWARP_TEST_FAKE_HOST_H
#define UWARP_TEST_FAKE_HOST_H

#include "fake_engine.h"
#include "host.h"

struct fake_host {
	bool no_engine; /* there is none */
	unsigned engine_asked;
	void (*discovery)(void);    /* what the provider wants called when devices are looked for */
	int channel_wr, channel_rd; /* the two ends of the one completion channel */
	unsigned held;		    /* how often it is */
};

extern struct fake_host fake_host;

/* This and the fake engine back to the start. */
void fake_host_reset(void);

#endif
