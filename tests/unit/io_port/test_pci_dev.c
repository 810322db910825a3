/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said about a PCI device before DPDK is asked for it, from a sysfs made up here. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "io_dpdk/node.h"

#include "io/dpdk/eal.h"
#include "io/fds.h"
#include "io/port/pci_dev.h"

static int setup(void **state)
{
	*state = board_new();
	return 0;
}

static int teardown(void **state)
{
	board_free(*state);
	return 0;
}

static void put(const char *dir, const char *name, const char *text)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	FILE *f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

/* driver NULL: none. */
static void device(const struct board *b, const char *addr, const char *driver, bool iommu)
{
	char dir[128], path[256], target[128];

	snprintf(dir, sizeof(dir), "%s/%s", b->dir, addr);
	assert_int_equal(mkdir(dir, 0700), 0);
	put(dir, "vendor", "0x15ad\n");
	put(dir, "device", "0x07b0\n");
	if (driver) {
		snprintf(path, sizeof(path), "%s/driver", dir);
		snprintf(target, sizeof(target), "../../../bus/pci/drivers/%s", driver);
		assert_int_equal(symlink(target, path), 0);
	}
	snprintf(path, sizeof(path), "%s/iommu_group", dir);
	if (iommu)
		assert_int_equal(symlink("../../../kernel/iommu_groups/7", path), 0);
}

struct question {
	const char *root, *addr;
	struct pci_dev d;
	uw_status st;
};

static void ask(void *arg)
{
	struct question *q = arg;

	q->st = pci_dev_check(q->root, q->addr, &q->d);
}

static bool says(struct question *q, const char *text)
{
	char said[512];

	capture_stderr(ask, q, said, sizeof(said));
	if (!strstr(said, text))
		print_message("said: %s", said);
	return q->st != UW_OK && strstr(said, text);
}

static void what_to_do_first_is_said(void **state)
{
	struct board *b = *state;
	struct question q = { .root = b->dir };

	q.addr = "0000:01:00.0";
	assert_true(says(&q, "there is no PCI device 0000:01:00.0"));
	device(b, "0000:02:00.0", "vmxnet3", true);
	q.addr = "02:00.0";
	assert_true(says(&q, "0000:02:00.0 is in use by the kernel's driver vmxnet3"));
	device(b, "0000:03:00.0", NULL, true);
	q.addr = "0000:03:00.0";
	assert_true(says(&q, "is bound to no driver"));
}

static struct pci_dev checked(const struct board *b, const char *addr)
{
	struct pci_dev d;

	assert_int_equal(pci_dev_check(b->dir, addr, &d), UW_OK);
	assert_int_equal(d.vendor, 0x15ad);
	assert_int_equal(d.device, 0x07b0);
	return d;
}

static void devices_with_physical_addresses(void **state)
{
	struct board *b = *state;
	struct pci_dev d;

	device(b, "0000:04:00.0", "vfio-pci", true);
	d = checked(b, "0000:04:00.0");
	assert_false(pci_dev_physical(&d));
	device(b, "0000:05:00.0", "vfio-pci", false); /* without an IOMMU */
	d = checked(b, "0000:05:00.0");
	assert_true(pci_dev_physical(&d));
	char group[160], path[256];
	snprintf(group, sizeof(group), "%s/group", b->dir);
	assert_int_equal(mkdir(group, 0700), 0);
	put(group, "name", "vfio-noiommu\n");
	device(b, "0000:07:00.0", "vfio-pci", false);
	snprintf(path, sizeof(path), "%s/0000:07:00.0/iommu_group", b->dir);
	assert_int_equal(symlink(group, path), 0);
	d = checked(b, "0000:07:00.0");
	assert_true(pci_dev_physical(&d));
	device(b, "0000:06:00.0", "uio_pci_generic", true);
	d = checked(b, "0000:06:00.0");
	assert_true(pci_dev_physical(&d));
}

/* --- how DPDK is started for them --- */

static bool has(const struct arg_list *a, const char *arg)
{
	for (int i = 0; i < a->n; i++)
		if (!strcmp(a->v[i], arg))
			return true;
	return false;
}

static void huge_pages_only_if_they_suffice(void **state)
{
	/* 33 MB of buffers and 24 MB for DPDK: 57 MB are 29 pages */
	struct eal_need need = { .bytes = 33 << 20, .pci = true };
	struct arg_list a;

	(void)state;
	eal_args(&a, &need, 0);
	assert_true(has(&a, "--no-huge") && !has(&a, "--in-memory") && !has(&a, "--iova-mode=pa"));
	eal_args(&a, &need, 20);
	assert_true(has(&a, "--no-huge") && !has(&a, "--in-memory"));
	eal_args(&a, &need, 28);
	assert_true(has(&a, "--no-huge"));
	eal_args(&a, &need, 29);
	assert_true(!has(&a, "--no-huge") && has(&a, "--in-memory") && !has(&a, "--iova-mode=pa"));
	need.physical = true;
	eal_args(&a, &need, 29);
	assert_true(has(&a, "--in-memory") && has(&a, "--iova-mode=pa"));
	need.pci = need.physical = false;
	eal_args(&a, &need, 1000);
	assert_true(has(&a, "--no-huge") && has(&a, "--no-pci"));
}

/* At 4 GiB, the EAL's own choice, OpenSHMEM maps its heap over it. */
static void memory_begins_where_programs_map_nothing(void **state)
{
	struct eal_need need = { .bytes = 1 << 20 };
	struct arg_list a;
	char *end;

	(void)state;
	for (int pci = 0; pci < 2; pci++) {
		uint64_t base = 0;

		need.pci = pci;
		eal_args(&a, &need, 1000);
		for (int i = 0; i < a.n; i++)
			if (!strncmp(a.v[i], "--base-virtaddr=", 16))
				base = strtoull(a.v[i] + 16, &end, 16);
		assert_in_range(base, 64ull << 30, 1ull << 38);
	}
}

static void start(void *arg)
{
	const struct eal_need need = { .bytes = (size_t)1 << 50, /* nobody has so much */
				       .pci = true,
				       .physical = true,
				       .device = "pci:0000:06:00.0" };

	*(uw_status *)arg = eal_start(&need);
}

static void huge_pages_are_asked_for_by_name(void **state)
{
	uw_status st = UW_OK;
	char said[512];

	(void)state;
	capture_stderr(start, &st, said, sizeof(said));
	assert_int_equal(st, UW_E_NOMEM);
	assert_non_null(strstr(said, "link pci:0000:06:00.0 needs "));
	/* vm.nr_hugepages counts pages of the default size: 512 MB on arm64 with pages of 64K */
	assert_non_null(strstr(said, "/hugepages-2048kB/nr_hugepages"));
}

static void one_process_has_a_device(void **state)
{
	struct board *b = *state;
	struct pci_dev d;
	int fd;

	device(b, "0000:01:00.0", "uio_pci_generic", false);
	assert_int_equal(pci_dev_read(b->dir, "0000:01:00.0", &d), UW_OK);
	fd = pci_dev_lock(b->dir, &d);
	assert_true(fd >= 0);
	assert_int_equal(pci_dev_lock(b->dir, &d), -EBUSY); /* as of another process */
	fds_close(fd);
	fd = pci_dev_lock(b->dir, &d);
	assert_true(fd >= 0);
	fds_close(fd);
	strcpy(d.addr, "0000:09:00.0");
	assert_int_equal(pci_dev_lock(b->dir, &d), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(what_to_do_first_is_said, setup, teardown),
		cmocka_unit_test_setup_teardown(devices_with_physical_addresses, setup, teardown),
		cmocka_unit_test_setup_teardown(one_process_has_a_device, setup, teardown),
		cmocka_unit_test(huge_pages_only_if_they_suffice),
		cmocka_unit_test(memory_begins_where_programs_map_nothing),
		cmocka_unit_test(huge_pages_are_asked_for_by_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
