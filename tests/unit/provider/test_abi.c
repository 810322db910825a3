/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The provider, as it is installed, under doubles of libibverbs of several versions. Arguments:
 * the provider, then the doubles in the order of `rows`. One process has one libibverbs, so every
 * row is a child.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_host.h"
#include "fake_ibverbs.h"
#include "uwtest.h"

#define OPS_OF_V36 76
#define MAX_NEW	   20

/* Read off each version's driver.h: the place of free_context, and of the operations that v36 has
 * not; the latter end with 0. */
static const struct row {
	unsigned version, free_context;
	uint8_t added[MAX_NEW];
} rows[] = {
	{ 36, 39, { 0 } },
	{ 56, 39, { 0 } },
	{ 57, 39, { 0 } },
	{ 59, 41, { 2, 26, 71 } },
	{ 62, 42, { 2, 26, 41, 64, 73 } },
	{ 64, 44, { 1, 3, 27, 42, 43, 66, 75 } },
	{ 65, 46, { 1, 3, 16, 28, 34, 44, 45, 52, 53, 67, 68, 72, 77, 79, 83, 87, 89 } },
};
enum { NOT_A_VERSION = COUNT(rows) }; /* index of the double of rdma-core 35 */

enum { V36_ALLOC_DM = 1, V36_ALLOC_PD = 5, V36_FREE_CONTEXT = 39, V36_RESIZE_CQ = 71 };

#define EXIT_NOT_REGISTERED 3

static char **files; /* the doubles */
static const char *provider;
static ptrdiff_t *seen; /* shared with the children: [row][operation], relative to the provider */

static struct fake_ibverbs *load(size_t row)
{
	void *lib = dlopen(files[row], RTLD_NOW | RTLD_LOCAL);

	if (!lib || !dlopen(provider, RTLD_NOW | RTLD_LOCAL)) {
		print_error("%s\n", dlerror());
		_exit(2);
	}
	return dlsym(lib, "fake_ibverbs");
}

static bool opens_and_closes(struct fake_ibverbs *lib, size_t place)
{
	struct verbs_device *dev = lib->driver->alloc_device(NULL);
	struct verbs_context *context;
	void (*free_context)(struct ibv_context *);
	bool good;

	dev->ops = lib->driver; /* as libibverbs does */
	context = lib->driver->alloc_context(&dev->device, -1, NULL);
	good = context && context == lib->start && lib->ibctx->num_comp_vectors == 1 &&
	       lib->ibctx->async_fd >= 0;

	if (!good || !lib->ops[place])
		return false;
	close(lib->ibctx->async_fd);
	memcpy(&free_context, &lib->ops[place], sizeof(free_context));
	free_context(lib->ibctx);
	lib->driver->uninit_device(dev);
	return lib->ended == context;
}

static void in_child(size_t row)
{
	struct fake_ibverbs *lib = load(row);
	Dl_info self;

	if (!lib->driver)
		_exit(EXIT_NOT_REGISTERED);
	if (!opens_and_closes(lib, rows[row].free_context) || !dladdr(lib->driver, &self))
		_exit(4);
	for (size_t i = 0; i < FAKE_OPS; i++)
		if (lib->ops[i])
			seen[row * FAKE_OPS + i] = (char *)lib->ops[i] - (char *)self.dli_fbase;
	_exit(0);
}

static int run_child(size_t row)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (!pid)
		in_child(row);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void every_version_registers_and_opens_a_device(void **state)
{
	(void)state;
	for (size_t row = 0; row < COUNT(rows); row++) {
		int code = run_child(row);

		if (code)
			print_error("as rdma-core %u: exit code %d\n", rows[row].version, code);
		assert_int_equal(code, 0);
	}
}

/* With one line, that names the copy and what is wrong with it. */
static void an_older_version_is_refused(void **state)
{
	int was = dup(STDERR_FILENO), fd = memfd_create("stderr", MFD_CLOEXEC);
	char said[512] = "", want[512];
	ssize_t n;

	(void)state;
	assert_true(was >= 0 && dup2(fd, STDERR_FILENO) >= 0);
	assert_int_equal(run_child(NOT_A_VERSION), EXIT_NOT_REGISTERED);
	n = pread(fd, said, sizeof(said) - 1, 0);
	dup2(was, STDERR_FILENO);
	close(was);
	close(fd);
	assert_true(n > 0);
	snprintf(want, sizeof(want), "uwarp: no device for %s: it is older than rdma-core 36\n",
		 files[NOT_A_VERSION]);
	assert_string_equal(said, want);
}

static void the_oldest_table_is_as_in_its_driver_h(void **state)
{
	(void)state;
	assert_true(seen[V36_ALLOC_DM] && seen[V36_ALLOC_PD] && seen[V36_FREE_CONTEXT] &&
		    seen[V36_RESIZE_CQ]);
	assert_false(seen[V36_ALLOC_PD + 2] || seen[V36_FREE_CONTEXT + 2]);
	assert_false(seen[OPS_OF_V36 - 1]);
}

/* What is left when the new operations are taken out is the table of v36. */
static void later_tables_have_the_new_operations_in_between(void **state)
{
	(void)state;
	for (size_t row = 1; row < COUNT(rows); row++) {
		const uint8_t *added = rows[row].added;
		const ptrdiff_t *table = &seen[row * FAKE_OPS];

		for (size_t i = 0, old = 0; old < OPS_OF_V36; i++) {
			if (*added && i == *added)
				added++;
			else
				assert_int_equal(table[i], seen[old++]);
		}
		assert_int_equal(*added, 0);
	}
}

/* A second libibverbs comes later, with another ABI and a name of its own (a wheel brings such):
 * the provider is loaded already, and hears of it when devices are looked for. */
static void two_copies(void)
{
	char name[] = "/tmp/libibverbs-XXXXXX";
	struct fake_ibverbs *first = load(0), *second;
	const size_t newest = COUNT(rows) - 1;
	int fd = mkstemp(name), from = open(files[newest], O_RDONLY);
	struct stat st;
	void *lib;

	if (fstat(from, &st) || sendfile(fd, from, NULL, (size_t)st.st_size) != st.st_size)
		_exit(5);
	lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	unlink(name);
	if (!lib)
		_exit(6);
	second = dlsym(lib, "fake_ibverbs");
	if (second->driver)
		_exit(7);
	fake_host.discovery();
	fake_host.discovery(); /* and only once */
	if (!second->driver || second->driver == first->driver || second->registered != 1 ||
	    first->registered != 1)
		_exit(8);
	if (!opens_and_closes(first, rows[0].free_context) ||
	    !opens_and_closes(second, rows[newest].free_context))
		_exit(9);
	_exit(0);
}

static void each_copy_in_a_process_is_served(void **state)
{
	pid_t pid = fork();
	int status;

	(void)state;
	if (!pid)
		two_copies();
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(int argc, char **argv)
{
	/* in this order: the later ones look at what the children of the first have seen */
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_version_registers_and_opens_a_device),
		cmocka_unit_test(the_oldest_table_is_as_in_its_driver_h),
		cmocka_unit_test(later_tables_have_the_new_operations_in_between),
		cmocka_unit_test(an_older_version_is_refused),
		cmocka_unit_test(each_copy_in_a_process_is_served),
	};

	if (argc != 3 + NOT_A_VERSION)
		return 2;
	provider = argv[1];
	files = argv + 2;
	seen = mmap(NULL, sizeof(*seen) * FAKE_OPS * COUNT(rows), PROT_READ | PROT_WRITE,
		    MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	fake_host_reset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
