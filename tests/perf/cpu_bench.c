/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How fast octets go from one CPU to another through memory that both have in their caches. What
 * two processes of a machine reach depends on that, and a virtual machine's host may move CPUs
 * meanwhile: nearer to each other or further apart.
 *
 *   cpu_bench
 *
 * One thread writes OCTETS, the other one, on another CPU, reads them; then the same again. Prints
 * a JSON object: nanoseconds of the write and of the read (medians), and octets per nanosecond of
 * both together. Exit code 1: there is only one CPU, or the other
 * one does not answer.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>

#include "perf.h"

enum {
	OCTETS = 96 << 10, /* fits into most second-level caches, two times */
	TURNS = 101,
	WARM = 10,	/* turns before */
	GIVE_UP = 1000, /* ms: the CPUs are others' */
};

static _Alignas(4096) char shared[OCTETS];
static _Alignas(4096) char mine[OCTETS];
static _Alignas(4096) char theirs[OCTETS];

/* Odd: written, and not read yet. release: what was written, or read, is done; acquire: it is seen.
 */
static _Alignas(64) _Atomic unsigned turn;

/* The first two CPUs that the process may use. */
static bool two_cpus(unsigned cpu[2])
{
	cpu_set_t set;
	unsigned n = 0;

	if (sched_getaffinity(0, sizeof(set), &set))
		return false;
	for (unsigned i = 0; i < CPU_SETSIZE && n < 2; i++)
		if (CPU_ISSET(i, &set))
			cpu[n++] = i;
	return n == 2;
}

static void go_to(unsigned cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	sched_setaffinity(0, sizeof(set), &set);
}

static bool wait_for(unsigned value)
{
	uint64_t end = now_ns() + (uint64_t)GIVE_UP * 1000000;

	while (atomic_load_explicit(&turn, memory_order_acquire) != value)
		if (now_ns() > end)
			return false;
	return true;
}

static void *reader(void *cpu)
{
	go_to(*(unsigned *)cpu);
	for (unsigned i = 0; i < TURNS + WARM; i++) {
		if (!wait_for(2 * i + 1))
			break;
		memcpy(theirs, shared, OCTETS);
		atomic_store_explicit(&turn, 2 * i + 2, memory_order_release);
	}
	return NULL;
}

/* Writes what the reader read in the turn before, in nanoseconds; its reading is in *read. False:
 * the reader does not answer. */
static bool one_turn(unsigned i, float *written, float *read)
{
	uint64_t begin = now_ns(), done;

	memcpy(shared, mine, OCTETS);
	done = now_ns();
	atomic_store_explicit(&turn, 2 * i + 1, memory_order_release);
	*written = (float)(done - begin);
	if (!wait_for(2 * i + 2))
		return false;
	*read = (float)(now_ns() - done);
	return true;
}

static double median(float *v)
{
	qsort(v, TURNS, sizeof(v[0]), perf_compare);
	return (double)v[TURNS / 2];
}

int main(void)
{
	static float written[TURNS + WARM], read[TURNS + WARM];
	bool answered = true;
	pthread_t thread;
	double w, r;
	unsigned cpu[2];

	if (!two_cpus(cpu))
		return 1;
	memset(mine, 1, OCTETS);
	memset(theirs, 1, OCTETS);
	go_to(cpu[0]);
	if (pthread_create(&thread, NULL, reader, &cpu[1]))
		return 1;
	for (unsigned i = 0; answered && i < TURNS + WARM; i++)
		answered = one_turn(i, &written[i], &read[i]);
	pthread_join(thread, NULL);
	if (!answered)
		return 1;
	w = median(written + WARM);
	r = median(read + WARM);
	printf("{\"octets\": %d, \"written_ns\": %.0f, \"read_ns\": %.0f, \"gbytes\": %.3f}\n",
	       OCTETS, w, r, OCTETS / (w + r));
	return 0;
}
