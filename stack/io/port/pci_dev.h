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
	char driver[32];	 /* kernel driver of the device; "": none */
	bool iommu;		 /* an IOMMU translates the addresses of the device */
};

/* Read the device at addr, "0000:01:00.0" or "01:00.0", from root (PCI_DEV_ROOT). NOENT: no such
 * device. */
UW_CHECK uw_status pci_dev_read(const char *root, const char *addr, struct pci_dev *d);

/* Does the device use physical addresses? DPDK then must use physical addresses too (IOVA mode PA),
 * which needs huge pages. */
bool pci_dev_physical(const struct pci_dev *d);

/* Make this process the only one with uwarp that has the device: uio gives it to several, which
 * would then program its queues against each other. Returns a descriptor for fds_close, which ends
 * it; -EBUSY: another process has it. -1: it cannot be found out. */
int pci_dev_lock(const char *root, const struct pci_dev *d);

/* Can DPDK use the device? If not, one line on stderr says what to do first. */
UW_CHECK uw_status pci_dev_check(const char *root, const char *addr, struct pci_dev *d);

#endif
