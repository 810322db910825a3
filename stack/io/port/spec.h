/* SPDX-License-Identifier: BSD-3-Clause */
/* How to make a port: arguments of the driver, buffers, and properties of its links. */
#ifndef UWARP_IO_PORT_SPEC_H
#define UWARP_IO_PORT_SPEC_H

#include "io/dpdk/dpdk.h"
#include "ethdev.h"
#include "pci_dev.h"
#include "port.h"

struct port_spec {
	enum port_kind kind;
	const char *device;
	unsigned queues;
	const char *bus;
	char name[ETHDEV_NAME_LEN];
	char args[512];
	unsigned room;	    /* octets of a buffer after the headroom */
	unsigned nrx, ntx;  /* number of receive and of send buffers of a queue */
	struct pci_dev pci; /* PORT_PCI */
	unsigned vlan;	    /* tag of all frames, 1 to 4094; 0: none */
	unsigned set_mtu;   /* MTU to set in the device; 0: leave the MTU of the device */
	bool mtu_asked;	    /* the user named the MTU */
	bool promiscuous;   /* the kernel interface's flag */
	/* properties of the links */
	unsigned mtu;
	uint32_t addr, mask; /* IPv4 address of the kernel interface; 0: not wanted, or none */
	uint32_t scope;
};

/* Fill in all fields except kind, device and queues, which the caller has set. */
UW_CHECK uw_status spec_fill(struct port_spec *s, const struct dpdk_config *cfg);

/* Of a device whose MTU no kernel knows: lower the MTU to `most`, the largest that its driver
 * takes. False: the user asked for more. A longer frame would never leave some drivers' queues. */
bool spec_fit_mtu(struct port_spec *s, unsigned most);

/* Print that the port has fewer queues than asked for; returns UW_E_UNSUPPORTED. */
UW_CHECK uw_status spec_say_queues(const char *link, unsigned has, unsigned asked);

#endif
