/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which threads of the process wait in the calls that this library wraps, and in what. Where none
 * but the calling thread may want what it has for itself, the kernel need not know of it
 * (uverbs/kept.h, uverbs/watch.h).
 */
#ifndef UWARP_WAITERS_H
#define UWARP_WAITERS_H

#include <stdbool.h>

/* The calling thread begins to wait: with epoll descriptor epfd, or in another way (-1). A thread
 * that keeps an event or a change of epoll checks afterwards that nobody waits; a thread that
 * begins to wait checks afterwards what is kept. So one of the two sees the other (Dekker, all
 * seq_cst). False: the thread waits already. A signal handler waits inside of its wait, or it left
 * that wait by a jump. From then on it counts as a thread that waits; if it waits for something
 * else now, for anything. */
bool waiters_enter(int epfd);
/* With the address of what that returned. */
void waiters_leave(void *entered);

/* From now on (or no more) the calling thread runs the stack within its wait. An event that it
 * makes there may be left in memory: it asks for these before it sleeps. */
void waiters_look(bool on);

/* Does no other thread wait for what epoll descriptor epfd tells; for anything (-1)? False also
 * where the calling thread waits itself, but does not look. */
bool waiters_none_else(int epfd);

/* The calling thread begins a wait with an epoll descriptor that has no channel yet. Such waits are
 * not counted, and may go on when it gets one; so it is noted which thread has begun them. False:
 * that is new (the thread is the first, or the second): look again whether it has a channel. */
bool waiters_pass(int epfd);
/* fd may be an epoll descriptor, and others may wait for what it tells: it is inside of another
 * one, or has two numbers. Its waits are not known until it is a new one. */
void waiters_note_unseen(int fd);
void waiters_note_new(int epfd);

/* Epoll descriptors are inside of each other, or one has two numbers: who waits with one may wait
 * for what another tells. */
void waiters_note_nested(void);
bool waiters_nested(void);

/* The epoll descriptor of the calling thread's last wait; -1: it was another wait, or there was
 * none. */
int waiters_epoll(void);
void waiters_set_epoll(int epfd);

#endif
