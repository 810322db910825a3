/* SPDX-License-Identifier: BSD-3-Clause */
/* Every way in which programs look at /sys/class/infiniband and /dev/infiniband, and what is left
 * afterwards: nothing. UWARP_DIR is this test's own. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <cmocka.h>
#include <rdma/rdma_user_ioctl.h>

#define CLASS  "/sys/class/infiniband"
#define DEVICE "/sys/devices/platform/uwarp.0"
#define NODE   "/dev/infiniband/uverbs30071"

/* The names that programs built for an old glibc are linked with. A sanitizer's library has names
 * of its own for these. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define old_xstat(version, path, st)		      stat(path, st)
#define old_xstat64(version, path, st)		      stat64(path, st)
#define old_lxstat(version, path, st)		      lstat(path, st)
#define old_fxstat(version, fd, st)		      fstat(fd, st)
#define old_fxstatat(version, dir, path, st, flags)   fstatat(dir, path, st, flags)
#define old_lxstat64(version, path, st)		      lstat64(path, st)
#define old_fxstat64(version, fd, st)		      fstat64(fd, st)
#define old_fxstatat64(version, dir, path, st, flags) fstatat64(dir, path, st, flags)
#else
#if defined(__x86_64__)
#define OLD    "GLIBC_2.2.5"
#define OLD_AT "GLIBC_2.4"
#else
#define OLD    "GLIBC_2.17"
#define OLD_AT OLD
#endif
__asm__(".symver old_xstat,__xstat@" OLD);
__asm__(".symver old_xstat64,__xstat64@" OLD);
__asm__(".symver old_lxstat,__lxstat@" OLD);
__asm__(".symver old_fxstat,__fxstat@" OLD);
__asm__(".symver old_fxstatat,__fxstatat@" OLD_AT);
__asm__(".symver old_lxstat64,__lxstat64@" OLD);
__asm__(".symver old_fxstat64,__fxstat64@" OLD);
__asm__(".symver old_fxstatat64,__fxstatat64@" OLD_AT);
int old_xstat(int version, const char *path, struct stat *st);
int old_xstat64(int version, const char *path, struct stat64 *st);
int old_lxstat(int version, const char *path, struct stat *st);
int old_fxstat(int version, int fd, struct stat *st);
int old_fxstatat(int version, int dir, const char *path, struct stat *st, int flags);
int old_lxstat64(int version, const char *path, struct stat64 *st);
int old_fxstat64(int version, int fd, struct stat64 *st);
int old_fxstatat64(int version, int dir, const char *path, struct stat64 *st, int flags);
#endif

#if defined(__x86_64__)
#define STAT_VERSION 1
#else
#define STAT_VERSION 0
#endif

static void is_node(const struct stat *st)
{
	assert_true(S_ISCHR(st->st_mode));
	assert_int_equal(st->st_rdev, makedev(1, 3));
}

static void nodes_by_every_stat(void **state)
{
	struct stat64 st64;
	struct statx x;
	struct stat st;

	(void)state;
	assert_int_equal(stat(NODE, &st), 0);
	is_node(&st);
	assert_int_equal(lstat(NODE, &st), 0);
	is_node(&st);
	assert_int_equal(fstatat(AT_FDCWD, NODE, &st, AT_SYMLINK_NOFOLLOW), 0);
	is_node(&st);
	assert_int_equal(stat64(NODE, &st64), 0);
	assert_true(S_ISCHR(st64.st_mode));
	assert_int_equal(statx(AT_FDCWD, NODE, 0, STATX_BASIC_STATS, &x), 0);
	assert_true(S_ISCHR(x.stx_mode));
	assert_int_equal(access(NODE, R_OK | W_OK), 0);
	assert_int_equal(faccessat(AT_FDCWD, NODE, R_OK, 0), 0);
}

/* ls prints a '?' where it cannot tell. */
static void nodes_have_no_attributes(void **state)
{
	char list[64];

	(void)state;
	assert_int_equal(getxattr(NODE, "security.selinux", list, sizeof(list)), -1);
	assert_int_equal(errno, ENODATA);
	assert_int_equal(lgetxattr(NODE, "system.posix_acl_access", list, sizeof(list)), -1);
	assert_int_equal(errno, ENODATA);
	assert_int_equal(listxattr(NODE, list, sizeof(list)), 0);
	assert_int_equal(llistxattr(NODE, NULL, 0), 0);
	/* another file's are the file system's */
	assert_true(llistxattr(CLASS "/uwarp0", NULL, 0) >= 0 || errno == ENOTSUP);
}

static void programs_of_an_old_glibc(void **state)
{
	struct stat64 st64;
	struct stat st;
	int fd = open("/dev/infiniband/rdma_cm", O_RDWR | O_CLOEXEC);

	(void)state;
	assert_int_equal(old_xstat(STAT_VERSION, NODE, &st), 0);
	is_node(&st);
	assert_int_equal(old_xstat64(STAT_VERSION, NODE, &st64), 0);
	assert_int_equal(old_lxstat(STAT_VERSION, NODE, &st), 0);
	is_node(&st);
	assert_true(fd >= 0);
	assert_int_equal(old_fxstat(STAT_VERSION, fd, &st), 0);
	is_node(&st);
	assert_int_equal(old_fxstatat(STAT_VERSION, AT_FDCWD, NODE, &st, 0), 0);
	is_node(&st);
	assert_int_equal(old_lxstat64(STAT_VERSION, NODE, &st64), 0);
	assert_true(S_ISCHR(st64.st_mode));
	assert_int_equal(old_fxstat64(STAT_VERSION, fd, &st64), 0);
	assert_true(S_ISCHR(st64.st_mode));
	assert_int_equal(old_fxstatat64(STAT_VERSION, AT_FDCWD, NODE, &st64, AT_SYMLINK_NOFOLLOW),
			 0);
	assert_true(S_ISCHR(st64.st_mode));
	assert_int_equal(old_xstat(STAT_VERSION, CLASS "/uwarp0/node_guid", &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(old_xstat(STAT_VERSION, "/proc/self/stat", &st), 0); /* not ours */
	close(fd);
}

static bool dir_has(const char *path, const char *name)
{
	DIR *d = opendir(path);
	struct dirent *e;
	bool has = false;

	assert_non_null(d);
	while ((e = readdir(d)))
		has |= !strcmp(e->d_name, name);
	closedir(d);
	return has;
}

static int visible(const struct dirent *e)
{
	return e->d_name[0] != '.';
}

static void directories(void **state)
{
	struct dirent **list;
	glob_t g;
	int n;

	(void)state;
	assert_true(dir_has(CLASS, "uwarp0"));
	assert_true(dir_has("/dev/infiniband", "uverbs30071"));
	assert_true(dir_has("/sys/class/infiniband_verbs", "uverbs30071"));
	n = scandir(CLASS "/uwarp0/ports", &list, visible, alphasort);
	assert_int_equal(n, 1);
	assert_string_equal(list[0]->d_name, "1");
	free(list[0]);
	free(list);
	assert_int_equal(glob(CLASS "/*/ports/*/state", 0, NULL, &g), 0);
	assert_string_equal(g.gl_pathv[0], CLASS "/uwarp0/ports/1/state");
	globfree(&g);
}

static void links(void **state)
{
	char buf[PATH_MAX] = "";
	char *real;

	(void)state;
	/* what Mooncake's transfer engine and NCCL do to find a device's place */
	assert_string_equal(realpath(CLASS "/uwarp0/../..", buf), DEVICE);
	real = realpath(CLASS "/uwarp0/device", NULL);
	assert_string_equal(real, DEVICE);
	free(real);
	memset(buf, 0, sizeof(buf));
	assert_true(readlink(CLASS "/uwarp0", buf, sizeof(buf) - 1) > 0);
	assert_string_equal(buf, "../../devices/platform/uwarp.0/infiniband/uwarp0");
	assert_int_equal(access(DEVICE "/numa_node", R_OK), 0);
	assert_null(realpath(CLASS "/uwarp1", buf));
	assert_int_equal(errno, ENOENT);
}

static int node_in(const char *path)
{
	FILE *f = fopen(path, "re");
	int n = -1;

	if (f && (fscanf(f, "%d", &n) != 1 || getc(f) != '\n'))
		n = -1;
	if (f)
		fclose(f);
	return n;
}

/* The kernel says -1 of many interfaces, lo among them; programs take it for an index. */
static void on_a_machine_with_one_node_the_device_is_there(void **state)
{
	(void)state;
	if (node_in("/sys/devices/system/node/online") != 0)
		skip(); /* several, or a kernel without them */
	assert_int_equal(node_in(CLASS "/uwarp0/device/numa_node"), 0);
}

/* PSM3 takes the number of the node from the device's place among all. */
static void the_node_has_the_number_of_the_device(void **state)
{
	struct dirent **list;
	int n = scandir(CLASS, &list, visible, alphasort);
	char path[64];
	struct stat st;

	(void)state;
	assert_true(n > 0);
	snprintf(path, sizeof(path), "/dev/infiniband/uverbs%d", n - 1);
	while (n)
		free(list[--n]);
	free(list);
	assert_int_equal(stat(path, &st), 0);
	assert_true(S_ISCHR(st.st_mode));
	assert_int_equal(access(path, R_OK | W_OK), 0);
}

/* The nodes are the same by a descriptor of their directory. */
static void by_descriptors(void **state)
{
	int dir = open("/dev/infiniband", O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd;
	struct stat st;

	(void)state;
	assert_true(dir >= 0);
	assert_int_equal(fstatat(dir, "uverbs30071", &st, AT_SYMLINK_NOFOLLOW), 0);
	is_node(&st);
	fd = openat(dir, "uverbs30071", O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	errno = 0;
	assert_int_equal(ioctl(fd, RDMA_VERBS_IOCTL, NULL), -1); /* a real /dev/null: ENOTTY */
	assert_int_equal(errno, EFAULT);
	close(fd);
	close(dir);
}

static unsigned long long number_in(const char *path)
{
	FILE *f = fopen(path, "re");
	unsigned long long n = 0;

	assert_non_null(f);
	assert_int_equal(fscanf(f, "%llu", &n), 1);
	fclose(f);
	return n;
}

/* What the fake engine counted; data counts words of four octets. */
static void counters(void **state)
{
	(void)state;
	assert_int_equal(number_in(CLASS "/uwarp0/hw_counters/mpa_tx_fpdus"), 7);
	assert_int_equal(number_in(CLASS "/uwarp0/ports/1/counters/port_xmit_packets"), 7);
	assert_int_equal(number_in(CLASS "/uwarp0/ports/1/counters/port_rcv_data"), 1024);
}

/* By pointers of types that do not promise the compiler a path. */
static int (*volatile call_statx)(int, const char *, int, unsigned, struct statx *) = statx;
static int (*volatile call_stat)(const char *, struct stat *) = stat;
static int (*volatile call_fstatat)(int, const char *, struct stat *, int) = fstatat;
static int (*volatile call_access)(const char *, int) = access;
static int (*volatile call_open)(const char *, int, ...) = open;
static int (*volatile call_chdir)(const char *) = chdir;

static void is_efault(int result)
{
	assert_int_equal(result, -1);
	assert_int_equal(errno, EFAULT);
}

/* Rust's standard library asks so whether there is a statx(): EFAULT says yes. */
static void no_path_is_efault(void **state)
{
	struct stat st;

	(void)state;
	is_efault(call_statx(0, NULL, 0, STATX_BASIC_STATS, NULL));
	is_efault(call_stat(NULL, &st));
	is_efault(call_fstatat(AT_FDCWD, NULL, &st, 0));
	is_efault(call_access(NULL, R_OK));
	is_efault(call_open(NULL, O_RDONLY));
	is_efault(call_chdir(NULL));
}

static void others_are_left_alone(void **state)
{
	struct stat st;

	(void)state;
	assert_int_equal(stat(CLASS "/none", &st), -1);
	assert_int_equal(errno, ENOENT);
	assert_int_equal(open("/dev/infiniband/uverbs0x", O_RDONLY), -1);
	assert_int_equal(stat("/sys/class/net", &st), 0);
	assert_int_equal(stat("/sys/class/infiniband_madness", &st), -1);
}

/* ---- what is left ----------------------------------------------------------------------- */

static int folders(void)
{
	DIR *d = opendir(getenv("UWARP_DIR"));
	struct dirent *e;
	int n = 0;

	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.' || strncmp(e->d_name, ".new", 4) == 0;
	if (d)
		closedir(d);
	return n;
}

/* A child that looks, and then ends as `how` says. */
static void child(void (*how)(void))
{
	pid_t pid = fork();

	if (!pid) {
		if (access(CLASS "/uwarp0/node_guid", R_OK))
			_exit(1);
		how();
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void by_exit(void)
{
	_exit(0);
}

static void by_kill(void)
{
	kill(getpid(), SIGKILL);
}

static void nothing_is_left(void **state)
{
	(void)state;
	assert_int_equal(folders(), 1); /* this process's own */
	child(by_exit);
	assert_int_equal(folders(), 1);
	assert_int_equal(access(CLASS "/uwarp0/node_guid", R_OK), 0); /* and that one still is */
	child(by_kill);
	assert_int_equal(folders(), 2);
	child(by_exit); /* finds that nobody holds it */
	assert_int_equal(folders(), 1);
}

/* A folder that is somebody else's: root makes one, others take root's. */
static void make_foreign(char *path, size_t size)
{
	snprintf(path, size, "/");
	if (getuid())
		return;
	snprintf(path, size, "%s/.foreign", getenv("UWARP_DIR"));
	mkdir(path, 0777);
	assert_int_equal(chown(path, 65534, 65534), 0);
}

/* As a program in a shell of su, which keeps XDG_RUNTIME_DIR; 0: it found the device. */
static int look_with(const char *xdg)
{
	pid_t pid = fork();
	int status = -1;

	if (!pid) {
		unsetenv("UWARP_DIR");
		setenv("XDG_RUNTIME_DIR", xdg, 1);
		_exit(access(CLASS "/uwarp0/node_guid", R_OK) != 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void the_runtime_directory_of_another_user_is_left_alone(void **state)
{
	char foreign[PATH_MAX], in[PATH_MAX + 8], own[64];
	struct stat st;
	bool there;

	(void)state;
	snprintf(own, sizeof(own), "/tmp/uwarp-%u", (unsigned)getuid());
	there = !stat(own, &st);
	make_foreign(foreign, sizeof(foreign));
	snprintf(in, sizeof(in), "%s/uwarp", foreign);
	if (!getuid())
		rmdir(in); /* left by a run that failed */
	assert_int_equal(look_with(foreign), 0);
	assert_int_equal(stat(in, &st), -1);
	if (!getuid())
		rmdir(foreign);
	if (!there)
		rmdir(own);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nodes_by_every_stat),
		cmocka_unit_test(nodes_have_no_attributes),
		cmocka_unit_test(programs_of_an_old_glibc),
		cmocka_unit_test(directories),
		cmocka_unit_test(links),
		cmocka_unit_test(on_a_machine_with_one_node_the_device_is_there),
		cmocka_unit_test(the_node_has_the_number_of_the_device),
		cmocka_unit_test(by_descriptors),
		cmocka_unit_test(counters),
		cmocka_unit_test(no_path_is_efault),
		cmocka_unit_test(others_are_left_alone),
		cmocka_unit_test(nothing_is_left),
		cmocka_unit_test(the_runtime_directory_of_another_user_is_left_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
