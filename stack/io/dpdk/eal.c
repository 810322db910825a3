/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_interrupts.h>
#include <rte_log.h>
#include <rte_version.h>

#include "base/log.h"
#include "eal.h"
#include "io/log.h"
#include "needs.h"

#if RTE_VERSION < RTE_VERSION_NUM(22, 11, 0, 0)
#error "DPDK 22.11 or later is needed"
#endif

#define MB ((size_t)1 << 20)

/* What ports with their queues take beside the buffers, and the share of DPDK's own heap. */
#define DEVICE_MB 24

/* Of this size whatever the kernel's default is, which goes by the size of its pages. */
#define HUGE_DIR "/sys/kernel/mm/hugepages/hugepages-2048kB/"

enum { HUGE_MB = 2 };

/* The EAL is one per process by its nature, so this is too. */
static struct {
	pthread_mutex_t lock;
	pid_t pid; /* of the process that started it, 0: nobody did */
	bool failed;
	bool pci, physical;
	pthread_mutex_t run_lock; /* one eal_run at a time */
	pthread_mutex_t said_lock;
	char said[256];
	bool verbose;
} eal = {
	.lock = PTHREAD_MUTEX_INITIALIZER,
	.run_lock = PTHREAD_MUTEX_INITIALIZER,
	.said_lock = PTHREAD_MUTEX_INITIALIZER,
};

static _Thread_local bool starting;

bool eal_starting(void)
{
	return starting;
}

/* --- what DPDK logs --- */

static ssize_t log_write(void *cookie, const char *buf, size_t size)
{
	size_t n = size < sizeof(eal.said) - 1 ? size : sizeof(eal.said) - 1;

	(void)cookie;
	/* Before it aborts the process DPDK should be heard. */
	int level = rte_log_cur_msg_loglevel();
	bool loud = eal.verbose || level <= (int)RTE_LOG_CRIT;
	if (loud && uw_write_quietly(STDERR_FILENO, buf, size) < 0)
		return (ssize_t)size;
	while (n > 0 && (buf[n - 1] == '\n' || buf[n - 1] == '.'))
		n--;
	if (n == 0 || level > (int)RTE_LOG_ERR)
		return (ssize_t)size;
	pthread_mutex_lock(&eal.said_lock);
	if (!eal.said[0]) {
		memcpy(eal.said, buf, n);
		eal.said[n] = '\0';
	}
	pthread_mutex_unlock(&eal.said_lock);
	return (ssize_t)size;
}

void eal_forget(void)
{
	pthread_mutex_lock(&eal.said_lock);
	eal.said[0] = '\0';
	pthread_mutex_unlock(&eal.said_lock);
}

void eal_said(char *out, size_t size)
{
	pthread_mutex_lock(&eal.said_lock);
	snprintf(out, size, "%s", eal.said);
	pthread_mutex_unlock(&eal.said_lock);
}

/* Without a stream of ours DPDK would write to stderr and to the syslog of the program. */
static void log_open(bool verbose)
{
	cookie_io_functions_t io = { .write = log_write };
	FILE *f = fopencookie(NULL, "w", io);

	eal.verbose = verbose;
	if (f) {
		setvbuf(f, NULL, _IOLBF, BUFSIZ);
		rte_openlog_stream(f);
	}
	rte_log_set_global_level(verbose ? RTE_LOG_INFO : RTE_LOG_ERR);
}

/* --- the start --- */

/* Where DPDK's memory begins. By itself the EAL takes 4 GiB, which is what Open MPI's OpenSHMEM
 * maps its heap over (from 0xff000000 on, with MAP_FIXED). Below 2^39, which is as much as many an
 * IOMMU translates, and some arm64 kernels have for a process. It is a hint: what is taken already
 * is left, and the kernel chooses. */
#define BASE_ADDRESS "--base-virtaddr=0x4000000000"

static void add(struct arg_list *a, const char *arg)
{
	if (a->n < EAL_ARGS_MAX - 1)
		a->v[a->n++] = (char *)(uintptr_t)arg;
	a->v[a->n] = NULL;
}

/* One lcore on all the CPUs we may use, so that the EAL neither pins a thread of ours nor starts
 * a worker per CPU: "0@(0-1,4)". */
static void lcore_map(char *out, size_t size)
{
	cpu_set_t set;
	size_t len = 0;
	int from = -1;
	const char *sep = "0@(";

	CPU_ZERO(&set);
	sched_getaffinity(0, sizeof(set), &set);
	for (int cpu = 0; cpu <= CPU_SETSIZE; cpu++) {
		bool have = cpu < CPU_SETSIZE && CPU_ISSET(cpu, &set);

		if (have && from < 0)
			from = cpu;
		if (have || from < 0 || len + 16 > size)
			continue;
		len += (size_t)snprintf(out + len, size - len, "%s%d-%d", sep, from, cpu - 1);
		sep = ",";
		from = -1;
	}
	snprintf(out + len, size - len, ")");
}

static unsigned long huge_pages_free(void)
{
	unsigned long n = 0;
	FILE *f = fopen(HUGE_DIR "free_hugepages", "re");

	if (!f)
		return 0;
	if (fscanf(f, "%lu", &n) != 1)
		n = 0;
	fclose(f);
	return n;
}

static size_t need_mb(const struct eal_need *need)
{
	return (need->bytes + MB - 1) / MB + DEVICE_MB;
}

/* DPDK takes all of its memory when it starts, so some free pages are not enough. */
/* Are free_pages huge pages of 2 MB enough? */
static bool pages_suffice(const struct eal_need *need, unsigned long free_pages)
{
	return free_pages * HUGE_MB >= need_mb(need);
}

static uw_status check_pages(const struct eal_need *need, unsigned long free_pages)
{
	unsigned long want = (need_mb(need) + HUGE_MB - 1) / HUGE_MB;

	if (!need->physical || pages_suffice(need, free_pages))
		return UW_OK;
	return log_error(
		UW_E_NOMEM,
		"link %s needs %lu free huge pages of 2 MB, and there are %lu: add %lu to " HUGE_DIR
		"nr_hugepages, or bind the device to vfio-pci behind an IOMMU, where it "
		"needs none",
		need->device, want, free_pages, want - free_pages);
}

void eal_args(struct arg_list *a, const struct eal_need *need, unsigned long free_pages)
{
	memset(a, 0, sizeof(*a));
	add(a, "uwarp");
	lcore_map(a->lcores, sizeof(a->lcores));
	add(a, "--lcores");
	add(a, a->lcores);
	snprintf(a->memory, sizeof(a->memory), "%zu", need_mb(need));
	add(a, "-m");
	add(a, a->memory);
	add(a, BASE_ADDRESS);
	add(a, "--no-telemetry");
	if (need->pci && pages_suffice(need, free_pages)) {
		add(a, "--in-memory");
	} else {
		add(a, "--no-huge");
		add(a, "--no-shconf");
	}
	if (need->pci) {
		/* An allow list that names no device: nothing is probed before we ask for it. */
		add(a, "-a");
		add(a, "ffff:ff:1f.7");
		/* So DPDK cannot see by itself what the device needs. */
		if (need->physical)
			add(a, "--iova-mode=pa");
	} else {
		add(a, "--no-pci");
	}
}

static void *start_thread(void *arg)
{
	struct arg_list *a = arg;
	int *rc = calloc(1, sizeof(*rc));

	if (!rc)
		return NULL;
	starting = true;
	*rc = rte_eal_init(a->n, a->v) < 0 ? -rte_errno : 0;
	starting = false;
	return rc;
}

/* In a thread of its own that takes no signal: what the EAL does to its caller's affinity ends
 * with it, and the threads it starts inherit the mask. */
static int start_apart(struct arg_list *a)
{
	sigset_t all, old;
	pthread_t t;
	void *result = NULL;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	rc = pthread_create(&t, NULL, start_thread, a);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (rc)
		return -rc;
	pthread_join(t, &result);
	if (!result)
		return -ENOMEM;
	rc = *(int *)result;
	free(result);
	return rc;
}

static uw_status start(const struct eal_need *need)
{
	struct arg_list args;
	char why[sizeof(eal.said)];

	uw_status st = eal_needs_check();
	if (st)
		return st;

	unsigned long pages = need->pci ? huge_pages_free() : 0;
	st = check_pages(need, pages);
	if (st)
		return st;
	log_open(need->verbose);
	eal_args(&args, need, pages);
	eal.pid = getpid();
	eal.pci = need->pci;
	eal.physical = need->physical;
	int rc = start_apart(&args);
	if (rc == 0)
		return UW_OK;
	eal.failed = true;
	eal_said(why, sizeof(why));
	return log_error(UW_E_NO_LINK, "DPDK does not start with %s MB: %s", args.memory,
			 why[0] ? why : strerror(-rc));
}

static uw_status start_locked(const struct eal_need *need)
{
	if (eal.pid && eal.pid != getpid())
		return log_error(UW_E_STATE,
				 "this process was forked after its parent opened a link: "
				 "open the link in the process that uses it");
	if (eal.failed)
		return log_error(UW_E_NO_LINK,
				 "DPDK did not start before in this process and cannot be "
				 "started again");
	if (eal.pid && need->pci && !eal.pci)
		return log_error(UW_E_NO_LINK,
				 "DPDK was started in this process without PCI: open the "
				 "PCI link first");
	if (eal.pid && need->physical && !eal.physical)
		return log_error(UW_E_NO_LINK,
				 "DPDK was started in this process without physical addresses: "
				 "open link %s first",
				 need->device);
	if (eal.pid)
		return UW_OK;
	return start(need);
}

uw_status eal_start(const struct eal_need *need)
{
	pthread_mutex_lock(&eal.lock);
	uw_status st = start_locked(need);
	pthread_mutex_unlock(&eal.lock);
	return st;
}

/* --- the interrupt thread --- */

struct job {
	int (*fn)(void *arg);
	void *arg;
	int rc;
	sem_t done;
};

static void job_run(void *arg)
{
	struct job *j = arg;

	j->rc = j->fn(j->arg);
	sem_post(&j->done);
}

int eal_run(int (*fn)(void *arg), void *arg)
{
	struct job j = { .fn = fn, .arg = arg, .rc = -EIO };

	if (rte_thread_is_intr())
		return fn(arg);
	if (sem_init(&j.done, 0, 0))
		return -errno;
	pthread_mutex_lock(&eal.run_lock);
	if (rte_eal_alarm_set(1, job_run, &j) == 0)
		while (sem_wait(&j.done) && errno == EINTR)
			;
	pthread_mutex_unlock(&eal.run_lock);
	sem_destroy(&j.done);
	return j.rc;
}
