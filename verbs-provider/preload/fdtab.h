/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which descriptors of this process are ours, and what stands behind each.
 *
 * Programs lose descriptors without telling libc's close(): closefrom, close_range, dup2 over one,
 * raw system calls. So a number in the table is only a hint; what it names is checked against the
 * object's mark (the inode, for the uverbs node also an open flag) before anything is done with it.
 */
#ifndef UWARP_FDTAB_H
#define UWARP_FDTAB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* Descriptors from here on are never ours; opening a node there fails with EMFILE. */
#define FDTAB_MAX 65536

struct fd_obj;

/* What a kind of descriptor does. Results are the call's, or a negative errno. NULL: what the
 * descriptor does by itself. */
struct fd_class {
	ssize_t (*write)(struct fd_obj *o, int fd, const void *buf, size_t len);
	int (*ioctl)(struct fd_obj *o, unsigned long request, void *arg);
	ssize_t (*sendmsg)(struct fd_obj *o, int fd, const struct msghdr *m);
	/* The program closes a descriptor, and it still works. */
	void (*closing)(struct fd_obj *o);
	/* The last descriptor is gone; calls may still be under way. */
	void (*closed)(struct fd_obj *o);
	void (*free)(struct fd_obj *o);
	/* In a forked child, which is single-threaded at that moment. */
	void (*forked)(struct fd_obj *o);
	bool is_cdev;	/* fstat() shall see a character device */
	bool is_loop;	/* made by loop_socket(): a forked child gets its own */
	int open_flags; /* part of the mark besides the inode */
};

struct fd_obj {
	const struct fd_class *cls;
	atomic_uint refs;
	unsigned nfds; /* descriptors in the table */
	int fd;	       /* one of them */
	int fork_fd;
	dev_t dev;
	ino_t ino;
};

extern _Atomic(struct fd_obj *) fdtab[FDTAB_MAX];

void fd_obj_init(struct fd_obj *o, const struct fd_class *cls); /* one reference, the caller's */
void fd_obj_put(struct fd_obj *o);

/* Let `fd` stand for o (takes a reference of its own). -EMFILE */
int fdtab_add(int fd, struct fd_obj *o);

struct fd_obj *fdtab_get_slow(int fd);

/* The object behind fd with a reference, or NULL: not ours. */
static inline struct fd_obj *fdtab_get(int fd)
{
	if (__builtin_expect((unsigned)fd >= FDTAB_MAX ||
				     !atomic_load_explicit(&fdtab[fd], memory_order_relaxed),
			     1))
		return NULL;
	return fdtab_get_slow(fd);
}

/* fd will be closed: what its object does before. */
void fdtab_closing(int fd);
/* fd is about to be closed. Returns the object if that was its last descriptor: pass it to
 * fdtab_closed() afterwards. */
struct fd_obj *fdtab_forget(int fd);
void fdtab_closed(struct fd_obj *o);

/* `copy` now is a duplicate of `fd`. */
void fdtab_dup(int fd, int copy);

/* A datagram socket that is connected to itself: what the shim sends to it the program finds
 * readable. Unlike a socketpair it needs no second descriptor that the program could close by
 * accident, unlike an eventfd it has an inode of its own. flags: SOCK_CLOEXEC, SOCK_NONBLOCK. */
int loop_socket(int flags);

/* Put one record into the socket behind o, or take one out. Never block. Octets or -errno. */
ssize_t fd_obj_send(struct fd_obj *o, const void *buf, size_t len);
ssize_t fd_obj_recv(struct fd_obj *o, void *buf, size_t len);
/* Several of these as one: the caller holds o's socket for itself. */
void fdtab_lock(void);
void fdtab_unlock(void);
ssize_t fd_obj_send_locked(struct fd_obj *o, const void *buf, size_t len);
ssize_t fd_obj_recv_locked(struct fd_obj *o, void *buf, size_t len);

/* fork(): prepare holds the table, parent and child let go of it. */
void fdtab_fork_prepare(void);
void fdtab_fork_parent(void);
void fdtab_fork_child(void);

#endif
