/* SPDX-License-Identifier: BSD-3-Clause */
/* libuwarp.so and this process's engine. */
#include "loader.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <time.h>

#include "base/log.h"
#include "exit.h"
#include "libc/raw.h"
#include "sysfs/tree.h"

static struct {
	pthread_mutex_t lock;
	/* Both are written with the lock held and read without it. */
	_Atomic(const struct uw_api *) api;
	_Atomic(struct uw_engine *) engine;
	bool failed; /* a message has said why: do not try again */
	bool copy;   /* this process is a child that needs a library of its own */
	/* from fork()'s prepare handler for the two others */
	bool was_started;
	struct uw_engine *forking; /* the engine, if its link is up */
	atomic_bool starting;	   /* loader_starting() was called in this process */
	atomic_bool ended;
	atomic_uint helpers; /* threads of ours inside the stack */
	_Atomic uint64_t guid;
	pid_t owner; /* the process that opened the engine */
} host = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- the library ------------------------------------------------------------------------ */

/* The directory that this library lies in, absolute. */
bool loader_own_dir(char dir[PATH_MAX])
{
	Dl_info info;
	char *slash;

	if (!dladdr((void *)&loader_own_dir, &info) || !info.dli_fname ||
	    !realpath(info.dli_fname, dir))
		return false;
	slash = strrchr(dir, '/');
	if (slash)
		*slash = '\0';
	return slash != NULL;
}

static bool library_path(char path[PATH_MAX])
{
	const char *env = secure_getenv("UWARP_LIB");
	char dir[PATH_MAX];
	int n;

	if (env && *env)
		n = snprintf(path, PATH_MAX, "%s", env);
	else if (loader_own_dir(dir))
		n = snprintf(path, PATH_MAX, "%s/libuwarp.so", dir);
	else
		return false;
	return n > 0 && n < PATH_MAX;
}

/* Its first octet too many would end the process (SIGXFSZ). */
static bool is_too_long(off_t size)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_FSIZE, &most) || (rlim_t)size <= most.rlim_cur)
		return false;
	uw_log("a copy of the stack is more than a file of this process may have: raise the limit "
	       "(ulimit -f)");
	return true;
}

static int copy_to_memfd(const char *path)
{
	int from = raw_open(path, O_RDONLY | O_CLOEXEC);
	int to = from < 0 ? -1 : memfd_create("libuwarp.so", MFD_CLOEXEC);
	struct stat st;
	ssize_t n = 1;
	off_t off = 0;

	if (to < 0 || raw_fstat(from, &st) || is_too_long(st.st_size)) {
		raw_close(from);
		raw_close(to);
		return -1;
	}
	while (off < st.st_size && n > 0)
		n = sendfile(to, from, &off, (size_t)(st.st_size - off));
	raw_close(from);
	if (off == st.st_size)
		return to;
	raw_close(to);
	return -1;
}

/* The dynamic loader loads one file once, and what the parent's threads left behind in the loaded
 * one cannot be started again. A copy has an inode of its own; the pid keeps its name apart from
 * that of a copy which the parent made in its turn. */
static void *open_copy(const char *path)
{
	char name[64];
	void *lib;
	int fd = copy_to_memfd(path);

	if (fd < 0)
		return NULL;
	snprintf(name, sizeof(name), "/proc/%d/fd/%d", getpid(), fd);
	lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	raw_close(fd);
	return lib;
}

/* What Debian calls the package of a library that is missing. */
static const char *package_of(const char *name)
{
	static const struct {
		const char *begin, *package;
	} packages[] = { { "libnuma.so.", "libnuma1" }, { "libbsd.so.", "libbsd0" },
			 { "libisal.so.", "libisal2" }, { "libxdp.so.", "libxdp1" },
			 { "libbpf.so.", "libbpf1" },	{ "libelf.so.", "libelf1" },
			 { "librte_", "libdpdk-dev" } };

	for (unsigned i = 0; i < sizeof(packages) / sizeof(packages[0]); i++)
		if (!strncmp(name, packages[i].begin, strlen(packages[i].begin)))
			return packages[i].package;
	return NULL;
}

/* Of a library that is here the loader says something else, such as that there is no room for it
 * (ulimit -d). */
static bool is_missing(const char *why)
{
	const char *last = strrchr(why, ':');

	return last && last[1] == ' ' && !strcmp(last + 2, strerror(ENOENT));
}

/* The loader's words begin with the file that it could not load, a name without a directory if it
 * has found none; the rest is in the user's language. */
static void say_not_loaded(const char *path, const char *why)
{
	const char *end = why ? strchr(why, ':') : NULL, *package;

	if (!end || !is_missing(end) || memchr(why, '/', (size_t)(end - why)) ||
	    strncmp(why, "lib", 3) || !strchr(path, '/')) {
		uw_log("cannot load the stack, check UWARP_LIB: %s", why ? why : path);
		return;
	}
	package = package_of(why);
	uw_log("%s needs the library %.*s, which is not here: install %s%s", path, (int)(end - why),
	       why, package ? "it; on Debian: apt install " : "it", package ? package : "");
}

static const struct uw_api *load_locked(void)
{
	__typeof__(uw_api_get) *get = NULL;
	const struct uw_api *api;
	char path[PATH_MAX];
	void *lib;

	if (!library_path(path)) {
		uw_log("cannot tell where libuwarp.so is: set UWARP_LIB");
		return NULL;
	}
	lib = host.copy ? open_copy(path) : dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		say_not_loaded(path, dlerror());
		return NULL;
	}
	*(void **)&get = dlsym(lib, "uw_api_get");
	api = get ? get(UW_API_VERSION) : NULL;
	if (!api)
		uw_log("%s is not the libuwarp.so of this libuwarp-preload.so (interface "
		       "%u): install both from one build",
		       path, UW_API_VERSION);
	return api;
}

static const struct uw_api *api_locked(void)
{
	const struct uw_api *api = atomic_load_explicit(&host.api, memory_order_relaxed);

	if (api || host.failed)
		return api;
	loader_watch_forks();
	api = load_locked();
	host.failed = !api;
	/* release: pairs with the acquire in loader_api() */
	atomic_store_explicit(&host.api, api, memory_order_release);
	return api;
}

const struct uw_api *loader_api(void)
{
	const struct uw_api *api = atomic_load_explicit(&host.api, memory_order_acquire);

	if (LIKELY(api != NULL))
		return api;
	pthread_mutex_lock(&host.lock);
	api = api_locked();
	pthread_mutex_unlock(&host.lock);
	return api;
}

/* ---- the engine ------------------------------------------------------------------------- */

static struct uw_engine *open_locked(void)
{
	struct uw_engine *e = atomic_load_explicit(&host.engine, memory_order_relaxed);
	const struct uw_api *api = api_locked();
	int err;

	if (e || !api || host.failed)
		return e;
	err = api->engine_open(NULL, &e);
	if (err) {
		host.failed = true;
		/* of a bad UWARP_* variable and missing random numbers the library has told */
		if (err != -EINVAL && err != -EPERM)
			uw_log("cannot open the stack: %s", strerror(-err));
		return NULL;
	}
	host.owner = getpid();
	/* release: pairs with the acquire in loader_engine() */
	atomic_store_explicit(&host.engine, e, memory_order_release);
	return e;
}

struct uw_engine *loader_engine(void)
{
	struct uw_engine *e = atomic_load_explicit(&host.engine, memory_order_acquire);

	if (LIKELY(e != NULL))
		return e;
	pthread_mutex_lock(&host.lock);
	e = open_locked();
	pthread_mutex_unlock(&host.lock);
	return e;
}

bool loader_device(struct uw_device_attr *attr)
{
	struct uw_engine *e = loader_engine();

	if (e)
		loader_api()->engine_query(e, attr);
	return e;
}

bool loader_device_settled(struct uw_device_attr *attr)
{
	if (!loader_device(attr))
		return false;
	if (attr->addr_is_final)
		return true;
	loader_starting();
	/* If it does not start, that has been said; nobody will be reached either way. */
	loader_api()->engine_start(loader_engine());
	return loader_device(attr);
}

/* librdmacm compares what netlink said with what rdma_cm says later. */
uint64_t loader_guid(void)
{
	uint64_t none = 0, guid = atomic_load_explicit(&host.guid, memory_order_relaxed);
	struct uw_device_attr attr;

	if (guid)
		return guid;
	guid = loader_device(&attr) ? attr.guid : 0;
	if (guid && !atomic_compare_exchange_strong(&host.guid, &none, guid))
		guid = none;
	return guid;
}

static bool facts_of(bool known, const struct uw_device_attr *attr, struct uwarp_facts *f)
{
	if (!known)
		return false;
	uwarp_facts_of(attr, f);
	f->node_guid = loader_guid();
	return true;
}

bool loader_facts(struct uwarp_facts *f)
{
	struct uw_device_attr attr;

	return facts_of(loader_device(&attr), &attr, f);
}

bool loader_facts_settled(struct uwarp_facts *f)
{
	struct uw_device_attr attr;

	return facts_of(loader_device_settled(&attr), &attr, f);
}

bool loader_is_open(void)
{
	return atomic_load_explicit(&host.engine, memory_order_acquire);
}

bool loader_ended(void)
{
	return atomic_load_explicit(&host.ended, memory_order_relaxed);
}

bool loader_helper_begin(void)
{
	atomic_fetch_add_explicit(&host.helpers, 1, memory_order_seq_cst);
	if (!atomic_load_explicit(&host.ended, memory_order_seq_cst))
		return true;
	loader_helper_end();
	return false;
}

void loader_helper_end(void)
{
	atomic_fetch_sub_explicit(&host.helpers, 1, memory_order_release); /* helpers_left() */
}

/* Does a helper stay in the stack for a second longer? */
static bool helpers_left(void)
{
	struct timespec ms = { .tv_nsec = 1000000 };

	for (unsigned i = 0; i < 1000; i++) {
		if (!atomic_load_explicit(&host.helpers, memory_order_seq_cst))
			return false;
		nanosleep(&ms, NULL);
	}
	return true;
}

/*
 * Connections end with the process, as the kernel's do. This is a destructor because destructors
 * run after the program's exit handlers, which may still use the device. The engine itself stays: a
 * thread that goes on, or a later destructor, may ask it. A helper that goes on waiting for a
 * peer's address would touch a link that engine_end closes: then the connections end as those of a
 * killed process do.
 */
__attribute__((destructor)) void loader_end(void)
{
	struct uw_engine *e = atomic_load_explicit(&host.engine, memory_order_acquire);

	tree_remove();
	if (!e || host.owner != getpid())
		return;
	/* The thread for _exit() and exit()'s may come at once. */
	if (atomic_exchange_explicit(&host.ended, true, memory_order_seq_cst))
		return;
	if (loader_api()->engine_started(e) && !helpers_left())
		loader_api()->engine_end(e);
}

/* ---- fork ------------------------------------------------------------------------------- */

/* The process starts its link. */
void loader_starting(void)
{
	atomic_store_explicit(&host.starting, true, memory_order_relaxed);
	exit_watch();
}

void loader_fork_prepare(void)
{
	struct uw_engine *e;
	const struct uw_api *api;

	pthread_mutex_lock(&host.lock);
	e = atomic_load_explicit(&host.engine, memory_order_relaxed);
	api = atomic_load_explicit(&host.api, memory_order_relaxed);
	host.forking = e && api->engine_started(e) ? e : NULL;
	host.was_started =
		atomic_load_explicit(&host.starting, memory_order_relaxed) || host.forking;
	if (host.forking)
		api->engine_fork(host.forking, UW_FORK_PREPARE);
}

static void forked(enum uw_fork where)
{
	if (host.forking)
		host.api->engine_fork(host.forking, where);
}

void loader_fork_parent(void)
{
	forked(UW_FORK_PARENT);
	pthread_mutex_unlock(&host.lock);
}

bool loader_fork_child(void)
{
	bool lost = host.was_started;

	forked(UW_FORK_CHILD);
	atomic_store_explicit(&host.helpers, 0, memory_order_relaxed); /* the parent's */
	if (lost) {
		atomic_store_explicit(&host.api, NULL, memory_order_relaxed);
		atomic_store_explicit(&host.engine, NULL, memory_order_relaxed);
		atomic_store_explicit(&host.starting, false, memory_order_relaxed);
		host.failed = false;
		host.copy = true;
	} else {
		host.owner = getpid();
	}
	pthread_mutex_unlock(&host.lock);
	return lost;
}
