/* SPDX-License-Identifier: BSD-3-Clause */
/* lwIP's operating system layer on POSIX threads: semaphores, mailboxes, threads. */
#ifndef UWARP_SEQ_SYS_ARCH_H
#define UWARP_SEQ_SYS_ARCH_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

typedef struct seq_sem {
	pthread_mutex_t lock;
	pthread_cond_t there;
	unsigned count;
	bool valid;
} sys_sem_t;

/* lwIP's core lock. */
typedef struct seq_mutex {
	_Atomic uint32_t word;
} sys_mutex_t;

typedef struct seq_mbox *sys_mbox_t;
typedef pthread_t sys_thread_t;
typedef int sys_prot_t;

#define sys_mbox_valid(m)	(*(m) != NULL)
#define sys_mbox_valid_val(m)	((m) != NULL)
#define sys_mbox_set_invalid(m) (*(m) = NULL)
#define sys_sem_valid(s)	((s)->valid)
#define sys_sem_valid_val(s)	((s).valid)
#define sys_sem_set_invalid(s)	((s)->valid = false)

/* The semaphore of the calling thread, for API calls that wait. */
sys_sem_t *seq_thread_sem(void);

/* After tcpip_init(): make lwIP's thread, unless it is there. False: it cannot be made now. */
bool seq_thread_is_there(void);

/* seq_mark_thread: the calling thread is lwIP's own. seq_is_lwips: is the calling thread lwIP's
 * own? */
void seq_mark_thread(void);
bool seq_is_lwips(void);

#endif
