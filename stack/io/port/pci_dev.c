/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "io/fds.h"
#include "io/log.h"
#include "pci_dev.h"

static unsigned read_hex(const char *dir, const char *name)
{
	char path[PATH_MAX];
	unsigned value = 0;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *f = fopen(path, "re");
	if (f && fscanf(f, "%x", &value) != 1)
		value = 0;
	if (f)
		fclose(f);
	return value;
}

static void read_driver(const char *dir, char *out, size_t size)
{
	char path[PATH_MAX + 16], target[PATH_MAX];

	snprintf(path, sizeof(path), "%s/driver", dir);
	ssize_t n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	const char *slash = strrchr(target, '/');
	snprintf(out, size, "%.31s", slash ? slash + 1 : target);
}

/* VFIO without an IOMMU makes a group, too, whose name says so. */
static bool has_iommu(const char *dir)
{
	char path[PATH_MAX + 32], text[32] = "";

	snprintf(path, sizeof(path), "%s/iommu_group", dir);
	if (readlink(path, text, sizeof(text) - 1) < 0)
		return false;
	snprintf(path, sizeof(path), "%s/iommu_group/name", dir);
	FILE *f = fopen(path, "re");
	if (f && !fgets(text, sizeof(text), f))
		text[0] = '\0';
	if (f)
		fclose(f);
	return !f || strncmp(text, "vfio-noiommu", 12);
}

uw_status pci_dev_read(const char *root, const char *addr, struct pci_dev *d)
{
	char dir[PATH_MAX];
	const char *colon = strchr(addr, ':');
	bool has_domain = colon && strchr(colon + 1, ':');

	memset(d, 0, sizeof(*d));
	snprintf(d->addr, sizeof(d->addr), "%s%.*s",
		 has_domain ? "" : "0000:", has_domain ? 15 : 10, addr);
	snprintf(dir, sizeof(dir), "%.2000s/%s", root, d->addr);
	if (access(dir, F_OK))
		return UW_E_NOENT;
	d->vendor = read_hex(dir, "vendor");
	d->device = read_hex(dir, "device");
	read_driver(dir, d->driver, sizeof(d->driver));
	d->iommu = has_iommu(dir);
	return UW_OK;
}

static bool is_uio(const struct pci_dev *d)
{
	return !strcmp(d->driver, "uio_pci_generic") || !strcmp(d->driver, "igb_uio");
}

/* Is the device bound to a kernel driver that gives devices to processes (vfio-pci, uio)? */
static bool is_handed_out(const struct pci_dev *d)
{
	return is_uio(d) || !strcmp(d->driver, "vfio-pci");
}

bool pci_dev_physical(const struct pci_dev *d)
{
	return is_uio(d) || !d->iommu;
}

/* On its directory in sysfs, which is the same one in every container. */
int pci_dev_lock(const char *root, const struct pci_dev *d)
{
	char dir[PATH_MAX];
	int fd;

	snprintf(dir, sizeof(dir), "%.2000s/%s", root, d->addr);
	fd = fds_keep(open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	if (fd < 0 || !flock(fd, LOCK_EX | LOCK_NB))
		return fd;
	bool taken = errno == EWOULDBLOCK;

	fds_close(fd);
	return taken ? -EBUSY : -1;
}

uw_status pci_dev_check(const char *root, const char *addr, struct pci_dev *d)
{
	if (pci_dev_read(root, addr, d))
		return log_error(UW_E_NO_LINK, "there is no PCI device %s (lspci -D lists them)",
				 d->addr);
	if (is_handed_out(d))
		return UW_OK;
	if (d->driver[0])
		return log_error(UW_E_NO_LINK,
				 "PCI device %s is in use by the kernel's driver %s: bind it to "
				 "vfio-pci first (dpdk-devbind.py -b vfio-pci %s)",
				 d->addr, d->driver, d->addr);
	return log_error(UW_E_NO_LINK,
			 "PCI device %s is bound to no driver: bind it to vfio-pci first "
			 "(dpdk-devbind.py -b vfio-pci %s)",
			 d->addr, d->addr);
}
