/* SPDX-License-Identifier: BSD-3-Clause */
/* Properties of a PCI device, read from sysfs without DPDK. */
#ifndef UWARP_IO_PORT_PCI_DEV_H
#define UWARP_IO_PORT_PCI_DEV_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

#define PCI_DEV_ROOT "/sys/bus/pci/devices"

struct pci_dev {
	char addr[16];		 /* 0000:01:00.0 */
	unsigned vendor, device; /* 0: unknown */
	char driver[32];	 /* the kernel's driver it is bound to; "": none */
	bool iommu;		 /* an IOMMU translates its addresses */
};

/* Read the device at addr, "0000:01:00.0" or "01:00.0", from root (PCI_DEV_ROOT). NOENT: there is
 * none. */
UW_CHECK uw_status pci_dev_read(const char *root, const char *addr, struct pci_dev *d);

/* Is it bound to a driver that hands a device to a process? */
bool pci_dev_handed_out(const struct pci_dev *d);
/* Does the device use physical addresses? DPDK then has to use them too (IOVA mode PA), which takes
 * huge pages. */
bool pci_dev_physical(const struct pci_dev *d);

/* Can DPDK use the device? If not, one line on stderr says what to do first. */
UW_CHECK uw_status pci_dev_check(const char *root, const char *addr, struct pci_dev *d);

#endif
