/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels: a descriptor that the program polls, and from which ibv_get_cq_event() reads
 * one record (struct ib_uverbs_comp_event_desc) for each completion event.
 */
#ifndef UWARP_CHANNEL_H
#define UWARP_CHANNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct epoll_event;

/* A new channel: a descriptor with close-on-exec, or a negative errno. */
int channel_open(void);

/* See struct uwarp_host in host.h. */
struct channel *channel_hold(int fd);
void channel_let_go(struct channel *c);
int channel_post(struct channel *c, const void *event, size_t len);
int channel_drop(struct channel *c, uint64_t handle);

/* A read of its descriptor returned end-of-file, since the program closed our end of the pipe: open
 * that again. */
void channel_revive(struct channel *c);

/* epoll_ctl(epfd, op, fd, event) if fd is a channel's, or else false. Result: 0 or a negative
 * errno. */
bool channel_epoll_ctl(int epfd, int op, int fd, struct epoll_event *event, int *result);

enum channel_has {
	CHANNEL_ASK, /* it may be no channel, or something is in the pipe */
	CHANNEL_EMPTY,
	CHANNEL_EVENT, /* *event was taken: its octets are what read() gives */
};

/* A read() of fd: what of the channel's this library keeps in memory (kept.h). */
enum channel_has channel_take(int fd, uint64_t *event);
/* The kernel had nothing: what was written to the pipe is read. */
void channel_found_empty(int fd);

#endif
