/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * DPDK's environment abstraction layer (EAL). The EAL is started once per process, and in a way
 * that changes nothing that the program can see: no signal mask, no CPU affinity, no file, no
 * syslog identity.
 */
#ifndef UWARP_IO_DPDK_EAL_H
#define UWARP_IO_DPDK_EAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct eal_need {
	size_t bytes; /* memory for buffers, in octets, not counting what devices need */
	/* the device is on the PCI bus: scan the bus, and use huge pages if there are enough */
	bool pci;
	bool physical;	    /* the device uses physical addresses, so huge pages are required */
	const char *device; /* if physical: name of the device, for messages */
	bool verbose;
};

/* The first call starts the EAL. Later calls check that the running EAL fits the need. */
UW_CHECK uw_status eal_start(const struct eal_need *need);

/* Run fn in the EAL's interrupt thread, wait for the end of fn and return its result. Devices are
 * created, started, stopped and removed in that thread only, since drivers handle interrupts there
 * without a lock. The caller must not hold a stack lock. */
int eal_run(int (*fn)(void *arg), void *arg);

/* eal_said: the first line that DPDK logged since eal_forget, "" if none. The first line usually
 * names the cause, later ones consequences. */
void eal_forget(void);
void eal_said(char *out, size_t size);

/* For the test: the arguments of rte_eal_init. */
enum { EAL_ARGS_MAX = 24, EAL_LCORES_MAX = 1024 };

struct arg_list {
	char *v[EAL_ARGS_MAX];
	int n;
	char lcores[EAL_LCORES_MAX];
	char memory[24];
};

void eal_args(struct arg_list *a, const struct eal_need *need, unsigned long free_pages);

/* Is this the thread that starts the EAL? (wrap.c shortens the sleeps of DPDK then.) */
bool eal_starting(void);

#endif
