/* SPDX-License-Identifier: BSD-3-Clause */
#include "host_priv.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <time.h>

#include <linux/futex.h>

#include "channel.h"
#include "shim.h"

#define EXPORT __attribute__((visibility("default")))

static struct {
	pthread_mutex_t lock;
	_Atomic(const struct uw_api *) api;
	_Atomic(struct uw_engine *) engine;
	bool failed;		   /* said so already: do not try again */
	bool copy;		   /* this child needs a library of its own */
	bool was_started;	   /* as fork() found it */
	struct uw_engine *forking; /* ... and its engine, if it runs */
	atomic_bool starting;	   /* an endpoint has been asked for */
	atomic_bool ended;
	_Atomic uint64_t guid;
	pid_t owner;
} host = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- the library ------------------------------------------------------------------------ */

/* The directory that this library lies in, absolute. */
static bool own_dir(char dir[PATH_MAX])
{
	Dl_info info;
	char *slash;

	if (!dladdr((void *)&own_dir, &info) || !info.dli_fname || !realpath(info.dli_fname, dir))
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
	else if (own_dir(dir))
		n = snprintf(path, PATH_MAX, "%s/libuwarp.so", dir);
	else
		return false;
	return n > 0 && n < PATH_MAX;
}

static int copy_to_memfd(const char *path)
{
	int from = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	int to = from < 0 ? -1 : memfd_create("libuwarp.so", MFD_CLOEXEC);
	struct stat st;
	ssize_t n = 1;
	off_t off = 0;

	if (to < 0 || raw_fstat(from, &st)) {
		raw_close(from);
		return to;
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

static const struct uw_api *load_locked(void)
{
	__typeof__(uw_api_get) *get = NULL;
	const struct uw_api *api;
	char path[PATH_MAX];
	void *lib;

	if (!library_path(path)) {
		fprintf(stderr, "uwarp: cannot tell where libuwarp.so is: set UWARP_LIB\n");
		return NULL;
	}
	lib = host.copy ? open_copy(path) : dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!lib) {
		const char *why = dlerror();

		fprintf(stderr, "uwarp: cannot load the stack, check UWARP_LIB: %s\n",
			why ? why : path);
		return NULL;
	}
	*(void **)&get = dlsym(lib, "uw_api_get");
	api = get ? get(UW_API_VERSION) : NULL;
	if (!api)
		fprintf(stderr,
			"uwarp: %s is not the libuwarp.so of this libuwarp-preload.so (interface "
			"%u): install both from one build\n",
			path, UW_API_VERSION);
	return api;
}

static const struct uw_api *api_locked(void)
{
	const struct uw_api *api = atomic_load_explicit(&host.api, memory_order_relaxed);

	if (api || host.failed)
		return api;
	shim_watch_forks();
	api = load_locked();
	host.failed = !api;
	/* release: pairs with the acquire in host_api() */
	atomic_store_explicit(&host.api, api, memory_order_release);
	return api;
}

const struct uw_api *host_api(void)
{
	const struct uw_api *api = atomic_load_explicit(&host.api, memory_order_acquire);

	if (SHIM_LIKELY(api != NULL))
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
		/* -EINVAL is a bad UWARP_* variable, which the library has named. */
		if (err != -EINVAL)
			fprintf(stderr, "uwarp: cannot open the stack: %s\n", strerror(-err));
		return NULL;
	}
	host.owner = getpid();
	/* release: pairs with the acquire in host_engine() */
	atomic_store_explicit(&host.engine, e, memory_order_release);
	return e;
}

struct uw_engine *host_engine(void)
{
	struct uw_engine *e = atomic_load_explicit(&host.engine, memory_order_acquire);

	if (SHIM_LIKELY(e != NULL))
		return e;
	pthread_mutex_lock(&host.lock);
	e = open_locked();
	pthread_mutex_unlock(&host.lock);
	return e;
}

bool host_device(struct uw_device_attr *attr)
{
	struct uw_engine *e = host_engine();

	if (e)
		host_api()->engine_query(e, attr);
	return e;
}

bool host_device_settled(struct uw_device_attr *attr)
{
	if (!host_device(attr))
		return false;
	if (attr->addr_is_final)
		return true;
	host_starting();
	/* If it does not start, that has been said; nobody will be reached either way. */
	host_api()->engine_start(host_engine());
	return host_device(attr);
}

/* librdmacm compares what netlink said with what rdma_cm says later. */
uint64_t host_guid(void)
{
	uint64_t none = 0, guid = atomic_load_explicit(&host.guid, memory_order_relaxed);
	struct uw_device_attr attr;

	if (guid)
		return guid;
	guid = host_device(&attr) ? attr.guid : 0;
	if (guid && !atomic_compare_exchange_strong(&host.guid, &none, guid))
		guid = none;
	return guid;
}

bool host_ended(void)
{
	return atomic_load_explicit(&host.ended, memory_order_relaxed);
}

/* Connections end with the process, as a kernel would see to. A destructor, because it runs after
 * the exit handlers of the program, which may still use the device. */
__attribute__((destructor)) static void end(void)
{
	struct uw_engine *e = atomic_load_explicit(&host.engine, memory_order_acquire);

	if (!e || host.owner != getpid() || !host_api()->engine_started(e))
		return;
	if (!atomic_exchange_explicit(&host.ended, true, memory_order_relaxed))
		host_api()->engine_close(e);
}

/* ---- _exit() ---------------------------------------------------------------------------- */

/*
 * _exit() runs no destructor, and may come from a signal handler that interrupted a holder of the
 * stack's locks. So a thread that waits for it since the start does the work, and the caller waits
 * for that thread, but not for ever. The word is a futex; only atomics and system calls touch it.
 */
enum { NOBODY, AWAITED, EXITING, ENDED };

static struct {
	atomic_int word;
	_Atomic pid_t pid; /* whose thread it is: a child has none of its own */
} last;

static void wait_word(int value, const struct timespec *limit)
{
	syscall(SYS_futex, &last.word, FUTEX_WAIT_PRIVATE, value, limit, NULL, 0);
}

static void say_word(int value)
{
	/* release: pairs with the acquires in await_exit() and host_exiting() */
	atomic_store_explicit(&last.word, value, memory_order_release);
	syscall(SYS_futex, &last.word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

static void *await_exit(void *arg)
{
	prctl(PR_SET_NAME, "uwarp-exit");
	while (atomic_load_explicit(&last.word, memory_order_acquire) == AWAITED)
		wait_word(AWAITED, NULL);
	end();
	say_word(ENDED);
	return arg;
}

void host_exiting(void)
{
	static const struct timespec limit = { .tv_sec = 3 }; /* the stack's own is 2 */
	int awaited = AWAITED;

	if (atomic_load_explicit(&last.pid, memory_order_relaxed) != getpid() ||
	    !atomic_compare_exchange_strong(&last.word, &awaited, EXITING))
		return;
	say_word(EXITING);
	if (atomic_load_explicit(&last.word, memory_order_acquire) == EXITING)
		wait_word(EXITING, &limit);
}

void host_starting(void)
{
	pid_t self = getpid();

	atomic_store_explicit(&host.starting, true, memory_order_relaxed);
	if (atomic_exchange_explicit(&last.pid, self, memory_order_relaxed) == self)
		return;
	atomic_store_explicit(&last.word, AWAITED, memory_order_relaxed);
	if (shim_spawn(await_exit, NULL))
		atomic_store_explicit(&last.word, NOBODY, memory_order_relaxed);
}

/* ---- fork ------------------------------------------------------------------------------- */

void host_fork_prepare(void)
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

void host_fork_parent(void)
{
	forked(UW_FORK_PARENT);
	pthread_mutex_unlock(&host.lock);
}

bool host_fork_child(void)
{
	bool lost = host.was_started;

	forked(UW_FORK_CHILD);
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

/* ---- the provider's side ---------------------------------------------------------------- */

EXPORT const struct uwarp_host *uwarp_host(uint32_t version)
{
	static const struct uwarp_host table = {
		.version = UWARP_HOST_VERSION,
		.api = host_api,
		.engine = host_engine,
		.channel_post = channel_post,
		.channel_drop = channel_drop,
	};

	return version == UWARP_HOST_VERSION ? &table : NULL;
}

/* The suffixes that libibverbs appends to a name in IBV_DRIVERS, one per private ABI. */
static const char *const provider_suffix[] = { "-rdmav34.so", "-rdmav57.so", "-rdmav59.so",
					       "-rdmav64.so", "-rdmav65.so" };

/* uwarp-run sets IBV_DRIVERS; a bare LD_PRELOAD finds the provider beside this library. */
__attribute__((constructor)) static void name_provider(void)
{
	char dir[PATH_MAX], path[PATH_MAX + 32];

	if (getenv("IBV_DRIVERS") || !own_dir(dir))
		return;
	for (size_t i = 0; i < sizeof(provider_suffix) / sizeof(provider_suffix[0]); i++) {
		snprintf(path, sizeof(path), "%s/libuwarp%s", dir, provider_suffix[i]);
		if (syscall(SYS_faccessat, AT_FDCWD, path, R_OK))
			continue;
		path[strlen(path) - strlen(provider_suffix[i])] = '\0';
		setenv("IBV_DRIVERS", path, 0);
		return;
	}
}
