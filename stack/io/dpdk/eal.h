/* SPDX-License-Identifier: BSD-3-Clause */
/* DPDK's environment: started once per process, without leaving a trace in it. */
#ifndef UWARP_IO_DPDK_EAL_H
#define UWARP_IO_DPDK_EAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

struct eal_need {
	size_t bytes; /* for buffers; what devices take comes on top */
	bool pci; /* a real device: look at the PCI bus, and use huge pages if there are enough */
	bool physical;	    /* it uses physical addresses: huge pages are a must */
	const char *device; /* physical: its name, for messages */
	bool verbose;
};

/* The first call starts the EAL, later ones only check that it can serve the need. */
UW_CHECK uw_status eal_start(const struct eal_need *need);

/*
 * Run fn in the EAL's interrupt thread, wait for it and return what it returned. All that makes,
 * starts, stops or removes a device runs there: memif handles its peers' coming and going in
 * that thread without a lock, so anywhere else a stop could meet it half way through the same
 * work. Not to be called with the stack lock held.
 */
int eal_run(int (*fn)(void *arg), void *arg);

/* The first line that DPDK logged since eal_forget, for messages: the cause comes first and its
 * consequences later. "" if none. */
void eal_forget(void);
void eal_said(char *out, size_t size);

/* How it is started, for the test: the arguments of rte_eal_init. */
enum { EAL_ARGS_MAX = 24, EAL_LCORES_MAX = 1024 };

struct arg_list {
	char *v[EAL_ARGS_MAX];
	int n;
	char lcores[EAL_LCORES_MAX];
	char memory[24];
};

void eal_args(struct arg_list *a, const struct eal_need *need, unsigned long free_pages);
/* Are so many free huge pages of 2 MB enough? */
bool eal_pages_suffice(const struct eal_need *need, unsigned long free_pages);

/* Is a start under way in this thread? (wrap.c shortens its sleeps) */
bool eal_starting(void);

#endif
