/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#include "lwip/err.h"
#include "lwip/sys.h"

/* ---- time, randomness, the short lock ---------------------------------------------------- */

uint64_t uw_lwip_now_us(void)
{
	return uw_clock_us();
}

u32_t sys_now(void)
{
	return (u32_t)(uw_lwip_now_us() / 1000);
}

/* lwIP's thread asks, too, so the engine's generator is not there for it. */
uint32_t uw_lwip_random(void)
{
	uint32_t r = 0;

	if (getrandom(&r, sizeof(r), GRND_NONBLOCK) != sizeof(r))
		r = sys_now() * 2654435761u;
	return r;
}

static pthread_mutex_t prot = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

sys_prot_t sys_arch_protect(void)
{
	pthread_mutex_lock(&prot);
	return 0;
}

void sys_arch_unprotect(sys_prot_t pval)
{
	(void)pval;
	pthread_mutex_unlock(&prot);
}

void sys_init(void)
{
}

/* ---- the core lock ----------------------------------------------------------------------- */

enum { MUTEX_FREE, MUTEX_HELD, MUTEX_WANTED };

#define SPINS 100u

err_t sys_mutex_new(sys_mutex_t *m)
{
	atomic_init(&m->word, MUTEX_FREE);
	return ERR_OK;
}

void sys_mutex_free(sys_mutex_t *m)
{
	(void)m;
}

/* acquire: pairs with the release in sys_mutex_unlock */
static bool try_mutex(sys_mutex_t *m)
{
	uint32_t is = MUTEX_FREE;

	return atomic_compare_exchange_strong_explicit(&m->word, &is, MUTEX_HELD,
						       memory_order_acquire, memory_order_relaxed);
}

void sys_mutex_lock(sys_mutex_t *m)
{
	for (unsigned i = 0; i < SPINS; i++) {
		if (try_mutex(m))
			return;
	}
	while (atomic_exchange_explicit(&m->word, MUTEX_WANTED, memory_order_acquire) != MUTEX_FREE)
		syscall(SYS_futex, &m->word, FUTEX_WAIT_PRIVATE, MUTEX_WANTED, NULL, NULL, 0);
}

void sys_mutex_unlock(sys_mutex_t *m)
{
	if (atomic_exchange_explicit(&m->word, MUTEX_FREE, memory_order_release) == MUTEX_WANTED)
		syscall(SYS_futex, &m->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}

/* ---- waiting ----------------------------------------------------------------------------- */

static void cond_new(pthread_cond_t *c)
{
	pthread_condattr_t a;

	pthread_condattr_init(&a);
	pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	pthread_cond_init(c, &a);
	pthread_condattr_destroy(&a);
}

static struct timespec in_ms(u32_t ms)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	t.tv_sec += ms / 1000;
	t.tv_nsec += (long)(ms % 1000) * 1000000;
	if (t.tv_nsec >= 1000000000) {
		t.tv_nsec -= 1000000000;
		t.tv_sec++;
	}
	return t;
}

/* Until there is one, or the time is over; 0 ms: for ever. False: there is none. */
static bool wait_for(const unsigned *n, pthread_cond_t *c, pthread_mutex_t *m, u32_t ms)
{
	struct timespec until = in_ms(ms);
	bool over = false;

	while (!*n && !over) {
		if (ms)
			over = pthread_cond_timedwait(c, m, &until) == ETIMEDOUT;
		else
			pthread_cond_wait(c, m);
	}
	return *n;
}

/* ---- semaphores -------------------------------------------------------------------------- */

err_t sys_sem_new(sys_sem_t *s, u8_t count)
{
	pthread_mutex_init(&s->lock, NULL);
	cond_new(&s->there);
	s->count = count;
	s->valid = true;
	return ERR_OK;
}

void sys_sem_free(sys_sem_t *s)
{
	pthread_cond_destroy(&s->there);
	pthread_mutex_destroy(&s->lock);
	s->valid = false;
}

void sys_sem_signal(sys_sem_t *s)
{
	pthread_mutex_lock(&s->lock);
	s->count++;
	/* Under the lock: it is the waiter's own, who may be gone once it has it. */
	pthread_cond_signal(&s->there);
	pthread_mutex_unlock(&s->lock);
}

u32_t sys_arch_sem_wait(sys_sem_t *s, u32_t timeout)
{
	u32_t res = SYS_ARCH_TIMEOUT;

	pthread_mutex_lock(&s->lock);
	if (wait_for(&s->count, &s->there, &s->lock, timeout)) {
		s->count--;
		res = 0;
	}
	pthread_mutex_unlock(&s->lock);
	return res;
}

sys_sem_t *seq_thread_sem(void)
{
	static __thread sys_sem_t own;

	if (!own.valid)
		sys_sem_new(&own, 0);
	return &own;
}

/* ---- mailboxes --------------------------------------------------------------------------- */

#define MBOX_FIRST 16u

/* A ring that grows as it is filled, up to its limit. */
struct seq_mbox {
	pthread_mutex_t lock;
	pthread_cond_t filled, emptied;
	void **v;
	unsigned cap, limit;
	unsigned first, n;
};

err_t sys_mbox_new(sys_mbox_t *mbox, int size)
{
	struct seq_mbox *m = calloc(1, sizeof(*m));

	if (!m)
		return ERR_MEM;
	m->cap = MBOX_FIRST;
	m->limit = (unsigned)size < MBOX_FIRST ? MBOX_FIRST : (unsigned)size;
	m->v = calloc(m->cap, sizeof(*m->v));
	if (!m->v) {
		free(m);
		return ERR_MEM;
	}
	pthread_mutex_init(&m->lock, NULL);
	cond_new(&m->filled);
	cond_new(&m->emptied);
	*mbox = m;
	return ERR_OK;
}

void sys_mbox_free(sys_mbox_t *mbox)
{
	struct seq_mbox *m = *mbox;

	pthread_cond_destroy(&m->filled);
	pthread_cond_destroy(&m->emptied);
	pthread_mutex_destroy(&m->lock);
	free(m->v);
	free(m);
}

static bool grow(struct seq_mbox *m)
{
	unsigned cap = 2 * m->cap < m->limit ? 2 * m->cap : m->limit;
	void **v = cap > m->cap ? malloc(cap * sizeof(*v)) : NULL;

	if (!v)
		return false;
	for (unsigned i = 0; i < m->n; i++)
		v[i] = m->v[(m->first + i) % m->cap];
	free(m->v);
	m->v = v;
	m->cap = cap;
	m->first = 0;
	return true;
}

/* Under its lock. */
static bool put(struct seq_mbox *m, void *msg)
{
	if (m->n == m->cap && !grow(m))
		return false;
	m->v[(m->first + m->n++) % m->cap] = msg;
	pthread_cond_signal(&m->filled);
	return true;
}

void sys_mbox_post(sys_mbox_t *mbox, void *msg)
{
	struct seq_mbox *m = *mbox;

	pthread_mutex_lock(&m->lock);
	while (!put(m, msg))
		pthread_cond_wait(&m->emptied, &m->lock);
	pthread_mutex_unlock(&m->lock);
}

err_t sys_mbox_trypost(sys_mbox_t *mbox, void *msg)
{
	struct seq_mbox *m = *mbox;
	bool ok;

	pthread_mutex_lock(&m->lock);
	ok = put(m, msg);
	pthread_mutex_unlock(&m->lock);
	return ok ? ERR_OK : ERR_MEM;
}

/* There are no interrupts, but lwIP has a function for them. */
err_t sys_mbox_trypost_fromisr(sys_mbox_t *mbox, void *msg)
{
	return sys_mbox_trypost(mbox, msg);
}

static void *get(struct seq_mbox *m)
{
	void *msg = m->v[m->first];

	m->first = (m->first + 1) % m->cap;
	m->n--;
	pthread_cond_signal(&m->emptied);
	return msg;
}

static void take(struct seq_mbox *m, void **msg)
{
	void *x = get(m);

	if (msg)
		*msg = x;
}

u32_t sys_arch_mbox_fetch(sys_mbox_t *mbox, void **msg, u32_t timeout)
{
	struct seq_mbox *m = *mbox;
	u32_t res = SYS_ARCH_TIMEOUT;

	pthread_mutex_lock(&m->lock);
	if (wait_for(&m->n, &m->filled, &m->lock, timeout)) {
		take(m, msg);
		res = 0;
	}
	pthread_mutex_unlock(&m->lock);
	return res;
}

u32_t sys_arch_mbox_tryfetch(sys_mbox_t *mbox, void **msg)
{
	struct seq_mbox *m = *mbox;
	u32_t res = SYS_MBOX_EMPTY;

	pthread_mutex_lock(&m->lock);
	if (m->n) {
		take(m, msg);
		res = 0;
	}
	pthread_mutex_unlock(&m->lock);
	return res;
}

/* ---- threads ----------------------------------------------------------------------------- */

static __thread bool is_lwips;

void seq_mark_thread(void)
{
	is_lwips = true;
}

bool seq_is_lwips(void)
{
	return is_lwips;
}

struct start {
	lwip_thread_fn fn;
	void *arg;
	char name[16];
};

static void *run(void *arg)
{
	const struct start *s = arg;

	pthread_setname_np(pthread_self(), s->name);
	s->fn(s->arg);
	return NULL;
}

/* lwIP asks for one thread, and looks at no error: seq_thread_is_there() makes it. Under the stack
 * lock. */
static struct start lwips;
static bool is_there;

bool seq_thread_is_there(void)
{
	sigset_t all, old;
	pthread_t t;

	if (is_there)
		return true;
	/* The program's signals are the program's threads' business. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	is_there = !pthread_create(&t, NULL, run, &lwips);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	if (is_there)
		pthread_detach(t);
	return is_there;
}

sys_thread_t sys_thread_new(const char *name, lwip_thread_fn fn, void *arg, int stacksize, int prio)
{
	(void)stacksize;
	(void)prio;
	LWIP_ASSERT("one thread", !lwips.fn);
	lwips = (struct start){ .fn = fn, .arg = arg };
	strncpy(lwips.name, name, sizeof(lwips.name) - 1);
	return 0;
}
