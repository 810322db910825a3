/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The part of the fake libuwarp.so that threads call which wait for completions (wait_look and so
 * on, uwarp/device.h). A test finds the record by its name in the loaded library.
 */
#ifndef UWARP_TEST_FAKE_WAITS_H
#define UWARP_TEST_FAKE_WAITS_H

#include "uwarp/uwarp.h"

#define FAKE_WAITS_NAME "fake_waits"

struct fake_waits {
	/* what the test sets */
	bool able;		      /* false: wait_look() says that threads wait plainly */
	bool elsewhere;		      /* wait_elsewhere() */
	_Atomic uint64_t look_us;     /* a look without an event lasts so long, if it may */
	_Atomic enum uw_wait_how how; /* what wait_begin() returns */
	int fd;			      /* the link's descriptor, -1: none */
	int socket;		      /* ... and the socket of its frames */
	int signal;		      /* comes in the middle of each look; 0: none does */
	void (*in_look)(void);	      /* as what the stack does in a look; NULL: nothing */
	void (*in_begin)(void);	      /* ... in wait_begin() */
	/* what was called */
	_Atomic unsigned looks, looking, begins, ends, dones;
	_Atomic unsigned heard;	  /* of the looks: an event ended it */
	_Atomic unsigned unheard; /* of the ends: the ring was still in the descriptor */
	_Atomic int plain;	  /* threads that wait plainly */
	_Atomic unsigned plains, yields;
	_Atomic uint64_t longest_us; /* the largest limit of a look */
};

void fake_waits_fill(struct uw_api *api);

#endif
