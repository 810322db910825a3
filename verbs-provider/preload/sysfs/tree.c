/* SPDX-License-Identifier: BSD-3-Clause */
#include "tree.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>

#include "base/log.h"
#include "facts.h"
#include "libc/next.h"
#include "libc/raw.h"
#include "loader/loader.h"
#include "io/run_dir.h"
#include "netdev.h"

#define BASE_MAX 256	  /* of the run directory, as in struct uw_config */
#define ROOM	 "sysfs-" /* what the folders' names begin with */
#define DEVICE	 "sys/devices/platform/uwarp.0"
#define IBDEVS	 DEVICE "/infiniband/"
#define IBDEV	 IBDEVS UWARP_DEV_NAME /* named() puts the device's real name in */
#define PORT	 IBDEV "/ports/1"
#define VERBSDEV DEVICE "/infiniband_verbs/" UWARP_UVERBS_NODE

#define VERBS_ABI 6 /* IB_USER_VERBS_ABI_VERSION */

static struct {
	pthread_mutex_t lock;
	atomic_bool made; /* root and fd are set; release/acquire */
	bool failed;	  /* a message has said so */
	pid_t owner;	  /* the process that made it */
	int fd;		  /* of the folder, with the lock on it; see own_fd() */
	dev_t dev;	  /* what fstat() of it says */
	ino_t ino;
	char root[BASE_MAX + 32];
} tree = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

/* ---- the descriptor --------------------------------------------------------------------- */

/* A program that closes descriptors it does not know may have closed this one, too, and the number
 * may name something of its own. */
static bool fd_is_ours(void)
{
	struct stat st;

	return tree.fd >= 0 && !raw_fstat(tree.fd, &st) && st.st_dev == tree.dev &&
	       st.st_ino == tree.ino;
}

/* High, not to disturb programs that count on low numbers. */
static void keep_fd(int fd)
{
	int high = raw_fcntl(fd, F_DUPFD_CLOEXEC, 200);
	struct stat st;

	if (high >= 0)
		raw_close(fd);
	tree.fd = high >= 0 ? high : fd;
	if (!raw_fstat(tree.fd, &st)) {
		tree.dev = st.st_dev;
		tree.ino = st.st_ino;
	}
}

static void own_fd(void)
{
	int fd;

	if (fd_is_ours())
		return;
	fd = raw_open(tree.root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	syscall(SYS_flock, fd, LOCK_EX | LOCK_NB);
	keep_fd(fd);
}

/* ---- writing ---------------------------------------------------------------------------- */

#define PATH(buf, ...) (snprintf(buf, sizeof(buf), __VA_ARGS__), (buf))

/* The path below IBDEV with the device's name in it; any other path as it is. */
static const char *named(const char *path, char buf[256])
{
	const size_t len = sizeof(IBDEV) - 1;

	if (strncmp(path, IBDEV, len) || (path[len] && path[len] != '/'))
		return path;
	snprintf(buf, 256, IBDEVS "%s%s", uwarp_device_name(), path + len);
	return buf;
}

static void make_dir(const char *path)
{
	char buf[256];

	syscall(SYS_mkdirat, tree.fd, named(path, buf), 0755);
}

static void make_link(const char *path, const char *to)
{
	char buf[256];

	syscall(SYS_symlinkat, to, tree.fd, named(path, buf));
}

/* The file stays the same one when its text changes: cp, for one, insists. */
static void put(const char *path, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(const char *path, const char *fmt, ...)
{
	char text[128], buf[256];
	va_list ap;
	int fd, n;

	va_start(ap, fmt);
	n = vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fd = (int)syscall(SYS_openat, tree.fd, named(path, buf), O_WRONLY | O_CREAT | O_CLOEXEC,
			  0644);
	if (fd < 0)
		return;
	if (syscall(SYS_write, fd, text, (size_t)n) == n)
		syscall(SYS_ftruncate, fd, (off_t)n);
	raw_close(fd);
}

static void put_guid(const char *path, uint64_t guid)
{
	put(path, "%04x:%04x:%04x:%04x\n", (unsigned)(guid >> 48), (unsigned)(guid >> 32 & 0xffff),
	    (unsigned)(guid >> 16 & 0xffff), (unsigned)(guid & 0xffff));
}

static void put_gid(const char *path, const uint8_t g[16])
{
	char text[48], *p = text;

	for (int i = 0; i < 16; i += 2)
		p += sprintf(p, "%s%02x%02x", i ? ":" : "", g[i], g[i + 1]);
	put(path, "%s\n", text);
}

static void put_gids(const struct uwarp_facts *f)
{
	struct netdev dev;
	char path[128];

	netdev_find(&dev);
	for (unsigned i = 0; i < f->n_gids; i++) {
		put_gid(PATH(path, PORT "/gids/%u", i), f->gid[i].raw);
		if (!f->gid[i].present)
			continue;
		put(PATH(path, PORT "/gid_attrs/types/%u", i), "%s\n",
		    f->gid_type ? "RoCE v2" : "IB/RoCE v1");
		put(PATH(path, PORT "/gid_attrs/ndevs/%u", i), "%s\n", dev.name);
	}
}

static void put_rate(const struct uwarp_facts *f)
{
	const struct uwarp_rate r = uwarp_rate_of(f);
	const unsigned tenths = r.lanes * r.tenths;

	put(PORT "/rate", "%u%s Gb/sec (%uX %s)\n", tenths / 10, tenths % 10 ? ".5" : "", r.lanes,
	    r.name);
}

static void put_port(const struct uwarp_facts *f)
{
	put(PORT "/state", "%u: ACTIVE\n", f->state);
	put(PORT "/phys_state", "%u: LinkUp\n", f->phys_state);
	put(PORT "/link_layer", "%s\n",
	    f->link_layer == UWARP_LINK_INFINIBAND ? "InfiniBand" : "Ethernet");
	put(PORT "/lid", "0x%x\n", f->lid);
	put(PORT "/lid_mask_count", "0\n");
	put(PORT "/sm_lid", "0x0\n");
	put(PORT "/sm_sl", "0\n");
	put(PORT "/cap_mask", "0x%08x\n", UWARP_PORT_CAPS);
	put_rate(f);
	if (f->n_pkeys) {
		make_dir(PORT "/pkeys");
		put(PORT "/pkeys/0", "0xffff\n");
	}
	put_gids(f);
}

static void put_device(const struct uwarp_facts *f)
{
	put(IBDEV "/node_type", "%u: %s\n", f->node_type, f->roce ? "CA" : "RNIC");
	put_guid(IBDEV "/node_guid", f->node_guid);
	put_guid(IBDEV "/sys_image_guid", f->node_guid);
	put(IBDEV "/node_desc", "%s\n", uwarp_device_name());
	put(IBDEV "/fw_ver", "%s\n", f->fw_ver);
	/* What ibstat shows. Kernels leave both to the driver; those of cards have them. */
	put(IBDEV "/hca_type", UWARP_HCA_TYPE "\n");
	put(IBDEV "/hw_rev", "%x\n", UWARP_HW_VER);
	put(VERBSDEV "/ibdev", "%s\n", uwarp_device_name());
	put(VERBSDEV "/abi_version", "%d\n", UWARP_UVERBS_ABI);
	put(VERBSDEV "/dev", "%d:%d\n", UWARP_NODE_MAJOR, UWARP_NODE_MINOR);
	put("sys/class/infiniband_verbs/abi_version", "%d\n", VERBS_ABI);
}

/* The host's file, into text, which is left alone if it cannot be read. */
static void read_host(const char *path, char *text, size_t size)
{
	int fd = raw_open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : syscall(SYS_read, fd, text, size - 1);

	if (n > 0)
		text[n] = '\0';
	if (fd >= 0)
		raw_close(fd);
}

/* The NUMA node of the interface's device. The kernel says -1 where the firmware names none, of
 * real cards too; where there is one node alone it can only be that, and programs that take the
 * number for an index find it. */
static void put_interface(void)
{
	struct netdev dev;
	char path[128], to[128], text[16] = "-1\n", online[16] = "";

	netdev_find(&dev);
	read_host(PATH(path, "/sys/class/net/%s/device/numa_node", dev.name), text, sizeof(text));
	read_host("/sys/devices/system/node/online", online, sizeof(online));
	put(DEVICE "/numa_node", "%s",
	    !strcmp(text, "-1\n") && !strcmp(online, "0\n") ? online : text);
	make_link(PATH(path, DEVICE "/net/%s", dev.name), PATH(to, "/sys/class/net/%s", dev.name));
}

/* ---- counters --------------------------------------------------------------------------- */

/* In the port's folder they have the names that InfiniBand gives them; data counts words. */
static const struct {
	const char *name, *port_name;
	unsigned unit;
} port_counters[] = {
	{ "payload_rx_bytes", "port_rcv_data", 4 },    { "payload_tx_bytes", "port_xmit_data", 4 },
	{ "mpa_rx_fpdus", "port_rcv_packets", 1 },     { "mpa_tx_fpdus", "port_xmit_packets", 1 },
	{ "mpa_rx_crc_errors", "port_rcv_errors", 1 },
};

/* arg: the name of the one file to write, or NULL for all. */
static void put_counter(void *arg, const char *name, uint64_t value)
{
	const char *only = arg;
	char path[128];

	if (!only || !strcmp(only, name))
		put(PATH(path, IBDEV "/hw_counters/%s", name), "%llu\n", (unsigned long long)value);
	for (size_t i = 0; i < sizeof(port_counters) / sizeof(port_counters[0]); i++)
		if (!strcmp(name, port_counters[i].name) &&
		    (!only || !strcmp(only, port_counters[i].port_name)))
			put(PATH(path, PORT "/counters/%s", port_counters[i].port_name), "%llu\n",
			    (unsigned long long)value / port_counters[i].unit);
}

static void put_counters(const char *only)
{
	struct uw_engine *e = loader_engine();

	if (e)
		loader_api()->engine_counters(e, put_counter, (void *)only);
}

/* ---- the kernel's own devices ----------------------------------------------------------- */

/* Everything in the real folder `from`, as links in ours. Returns how many. */
static unsigned link_others(const char *from)
{
	DIR *d = next_fn()->opendir(from);
	char path[PATH_MAX], to[PATH_MAX];
	struct dirent *e;
	unsigned n = 0;

	while (d && (e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", from + 1, e->d_name);
		snprintf(to, sizeof(to), "%s/%s", from, e->d_name);
		make_link(path, to); /* there already: ours */
		n++;
	}
	if (d)
		closedir(d);
	return n;
}

/* PSM3 looks for the node by the device's place among the others, not by its name in sysfs. */
static void number_node(unsigned others)
{
	char path[64];

	snprintf(path, sizeof(path), "dev/infiniband/uverbs%u", others);
	make_link(path, UWARP_UVERBS_NODE); /* there already: a kernel device's */
}

/* ---- removing --------------------------------------------------------------------------- */

struct entry { /* of getdents64(2) */
	uint64_t ino;
	int64_t off;
	uint16_t len;
	uint8_t type;
	char name[];
};

static bool delete_entry(int dir, const char *name);

/* False: nothing could be removed. Removing may make the kernel skip entries, so this is called
 * again. */
static bool delete_inside(int fd)
{
	_Alignas(struct entry) char buf[1024];
	bool any = false;
	long n;

	syscall(SYS_lseek, fd, 0, SEEK_SET);
	while ((n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n;) {
			const struct entry *e = (struct entry *)(buf + at);

			at += e->len;
			if (!strcmp(e->name, ".") || !strcmp(e->name, ".."))
				continue;
			any |= delete_entry(fd, e->name);
		}
	}
	return any;
}

/* False: it is still there, and another pass over its folder would fare no better. */
static bool delete_entry(int dir, const char *name)
{
	int fd;

	if (!syscall(SYS_unlinkat, dir, name, 0))
		return true;
	fd = (int)syscall(SYS_openat, dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return false;
	for (int passes = 0; delete_inside(fd) && passes < 16; passes++)
		;
	raw_close(fd);
	return !syscall(SYS_unlinkat, dir, name, AT_REMOVEDIR);
}

void tree_remove(void)
{
	if (!atomic_load_explicit(&tree.made, memory_order_acquire) || tree.owner != getpid())
		return;
	atomic_store_explicit(&tree.made, false, memory_order_relaxed);
	delete_entry(AT_FDCWD, tree.root);
}

/* ---- the folder ------------------------------------------------------------------------- */

static const char *const folders[] = {
	"sys",
	"sys/class",
	"sys/class/infiniband",
	"sys/class/infiniband_verbs",
	"sys/devices",
	"sys/devices/platform",
	DEVICE,
	DEVICE "/net",
	DEVICE "/infiniband",
	IBDEV,
	IBDEV "/hw_counters",
	IBDEV "/ports",
	PORT,
	PORT "/gids",
	PORT "/gid_attrs",
	PORT "/gid_attrs/types",
	PORT "/gid_attrs/ndevs",
	PORT "/counters",

	DEVICE "/infiniband_verbs",
	VERBSDEV,
	"dev",
	"dev/infiniband",
};

static const struct {
	const char *path, *to;
} links[] = {
	{ "sys/class/infiniband_verbs/" UWARP_UVERBS_NODE,
	  "../../devices/platform/uwarp.0/infiniband_verbs/" UWARP_UVERBS_NODE },
	{ DEVICE "/subsystem", "/sys/bus/platform" },
	{ IBDEV "/device", "../../../uwarp.0" },
	{ IBDEV "/subsystem", "../../../../../class/infiniband" },
	{ VERBSDEV "/device", "../../../uwarp.0" },
	/* who opens one below a descriptor of this folder: libc/paths.c */
	{ "dev/infiniband/" UWARP_UVERBS_NODE, "/dev/null" },
	{ "dev/infiniband/" UWARP_UCMA_NODE, "/dev/null" },
};

static void link_class(void)
{
	char path[128], to[128];

	make_link(PATH(path, "sys/class/infiniband/%s", uwarp_device_name()),
		  PATH(to, "../../devices/platform/uwarp.0/infiniband/%s", uwarp_device_name()));
}

static void fill(const struct uwarp_facts *f)
{
	unsigned others;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		make_dir(folders[i]);
	for (size_t i = 0; i < sizeof(links) / sizeof(links[0]); i++)
		make_link(links[i].path, links[i].to);
	link_class();
	put_device(f);
	put_port(f);
	put_interface();
	put_counters(NULL);
	others = link_others("/sys/class/infiniband");
	link_others("/sys/class/infiniband_verbs");
	link_others(UWARP_NODE_DIR);
	number_node(others);
}

/* A folder that nobody holds the lock of belongs to a process that was killed. */
static void sweep(const char *base)
{
	DIR *d = next_fn()->opendir(base);
	struct dirent *e;
	int fd;

	while (d && (e = readdir(d))) {
		if (strncmp(e->d_name, ROOM, strlen(ROOM)) != 0)
			continue;
		fd = (int)syscall(SYS_openat, dirfd(d), e->d_name,
				  O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		if (fd >= 0 && !syscall(SYS_flock, fd, LOCK_EX | LOCK_NB))
			delete_entry(dirfd(d), e->d_name);
		if (fd >= 0)
			raw_close(fd);
	}
	if (d)
		closedir(d);
}

/* The run directory, as uwarp-run and the stack find it. Others must not be able to write there. */
static bool find_base(char base[BASE_MAX])
{
	struct stat st;

	if (!run_dir_find(secure_getenv("UWARP_DIR"), base, BASE_MAX))
		return false;
	syscall(SYS_mkdirat, AT_FDCWD, base, 0700);
	if (syscall(SYS_newfstatat, AT_FDCWD, base, &st, AT_SYMLINK_NOFOLLOW))
		return false;
	errno = EACCES;
	return S_ISDIR(st.st_mode) && st.st_uid == getuid() && !(st.st_mode & 022);
}

/* It is born under a name that sweep() does not touch, and gets its own with the lock. */
static int make_folder(const char *base)
{
	char born[BASE_MAX + 32];
	int fd;

	snprintf(born, sizeof(born), "%s/.new-XXXXXX", base);
	if (!mkdtemp(born))
		return -1;
	snprintf(tree.root, sizeof(tree.root), "%s/" ROOM "%s", base, strrchr(born, '-') + 1);
	fd = raw_open(born, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd >= 0 && !syscall(SYS_flock, fd, LOCK_EX | LOCK_NB) &&
	    !syscall(SYS_renameat2, AT_FDCWD, born, AT_FDCWD, tree.root, 0))
		return fd;
	if (fd >= 0)
		raw_close(fd);
	syscall(SYS_unlinkat, AT_FDCWD, born, AT_REMOVEDIR);
	return -1;
}

static bool make(void)
{
	struct uwarp_facts f;
	char base[BASE_MAX];
	int fd;

	if (!loader_facts(&f)) /* a message has said why */
		return false;
	if (!find_base(base)) {
		uw_log("no files in /sys/class/infiniband: run directory %s: %s; name "
		       "another "
		       "one in UWARP_DIR",
		       base, strerror(errno));
		return false;
	}
	sweep(base);
	fd = make_folder(base);
	if (fd < 0) {
		uw_log("no files in /sys/class/infiniband: cannot make a folder in %s: "
		       "%s",
		       base, strerror(errno));
		return false;
	}
	keep_fd(fd);
	tree.owner = getpid();
	fill(&f);
	return true;
}

const char *tree_root(void)
{
	bool made = atomic_load_explicit(&tree.made, memory_order_acquire);

	if (LIKELY(made))
		return tree.root;
	pthread_mutex_lock(&tree.lock);
	made = atomic_load_explicit(&tree.made, memory_order_relaxed);
	if (!made && !tree.failed) {
		made = make();
		tree.failed = !made;
		atomic_store_explicit(&tree.made, made, memory_order_release);
	}
	pthread_mutex_unlock(&tree.lock);
	return made ? tree.root : NULL;
}

const char *tree_root_if_made(void)
{
	return atomic_load_explicit(&tree.made, memory_order_acquire) ? tree.root : NULL;
}

void tree_refresh_counter(const char *name)
{
	pthread_mutex_lock(&tree.lock);
	own_fd();
	put_counters(name);
	pthread_mutex_unlock(&tree.lock);
}

void tree_refresh_gids(void)
{
	struct uwarp_facts f;

	if (!loader_facts_settled(&f))
		return;
	pthread_mutex_lock(&tree.lock);
	own_fd();
	put_gids(&f);
	pthread_mutex_unlock(&tree.lock);
}

/* The forking thread is the only one of the child, and it is not in here: what it found may be half
 * of a folder in another thread's hands. */
void tree_fork_child(void)
{
	pthread_mutex_init(&tree.lock, NULL);
	if (fd_is_ours())
		raw_close(tree.fd); /* else the lock would outlive the parent */
	tree.fd = -1;
	tree.failed = false;
	atomic_store_explicit(&tree.made, false, memory_order_relaxed);
}
