/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of descriptors that this library answers for, and the object behind each.
 *
 * A program can close a descriptor without a call that this library sees: closefrom, close_range, a
 * raw system call. Its number may then name another file. So an entry of the table is only a hint.
 * Every look-up compares the device and inode numbers of the open file with those of the object,
 * and for the uverbs node an open flag too; but not where what is written shows what it is for.
 *
 * One mutex, fdtab_lock(), guards the table and the pipes of its objects. Callbacks of the stack
 * take the mutex, so a thread that holds the mutex must not call the stack.
 */
#ifndef UWARP_FDTAB_H
#define UWARP_FDTAB_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>

/* The table has two levels, since few programs have more than FDTAB_CHUNK descriptors. The kernel
 * allows at most FDTAB_MAX (fs.nr_open). */
#define FDTAB_CHUNK  65536u
#define FDTAB_CHUNKS 16384u
#define FDTAB_MAX    (FDTAB_CHUNK * FDTAB_CHUNKS)

struct fd_obj;

/* How one kind of descriptor handles each call. The result is that of the call, or a negative
 * errno. NULL: the call goes to the kernel. */
struct fd_class {
	/* Do these octets, which the program writes to a descriptor that was o's, show by
	 * themselves that they are for o? Then the open file is not compared. NULL: never. */
	bool (*is_meant)(struct fd_obj *o, const void *buf, size_t len);
	ssize_t (*write)(struct fd_obj *o, int fd, const void *buf, size_t len);
	int (*ioctl)(struct fd_obj *o, unsigned long request, void *arg);
	ssize_t (*sendmsg)(struct fd_obj *o, int fd, const struct msghdr *m);
	/* Called before close() of a descriptor, while the descriptor still works. */
	void (*closing)(struct fd_obj *o);
	/* The last descriptor was closed. Calls on the object may still be under way. */
	void (*closed)(struct fd_obj *o);
	void (*free)(struct fd_obj *o);
	/* Called in a forked child, which has one thread at that moment. */
	void (*forked)(struct fd_obj *o);
	bool is_cdev;	/* fstat() reports a character device */
	bool is_pipe;	/* made by fd_obj_pipe(); a forked child gets a new one */
	bool outlives;	/* our end of the pipe stays as long as the object, after the last known
			 * descriptor as well */
	int open_flags; /* flags of fcntl(F_GETFL) that every look-up compares, or 0 */
};

struct fd_obj {
	const struct fd_class *cls;
	atomic_uint refs;
	/* all fields below: under fdtab_lock() */
	unsigned nfds;	/* number of descriptors in the table for this object */
	int fd;		/* one of these descriptors, -1: none */
	int wfd;	/* the end of the pipe that only this library uses; -1: no pipe */
	bool wfd_reads; /* it was opened for reading, too */
	unsigned forks; /* how many forks led to the process that made the pipe */
	int fork_fd;	/* the new pipe while a forked child makes one, else -1 */
	/* device number that fstat() must return, as ino; both ends of a pipe have the same */
	dev_t dev;
	ino_t ino;
};

typedef _Atomic(struct fd_obj *) fdtab_entry;

/* Indexed by fd / FDTAB_CHUNK; NULL: no descriptor in that range is in the table. A chunk is never
 * freed. */
extern _Atomic(fdtab_entry *) fdtab[FDTAB_CHUNKS];

/* Initialise o with one reference, which is the caller's. */
void fd_obj_init(struct fd_obj *o, const struct fd_class *cls);
void fd_obj_put(struct fd_obj *o);

/* A negative errno, which comes back. The first time that it is for want of a descriptor, a line
 * names the limit: programs say nothing that leads there (librdmacm's ADDR_ERROR is -1). */
int fdtab_no_descriptor(int err);
/* Enter fd for object o. The table takes a reference of its own. -EMFILE: fd is FDTAB_MAX or above;
 * -ENOMEM. */
int fdtab_add(int fd, struct fd_obj *o);

/* Is the table this process's own? A vfork()ed child, which runs on our memory with descriptors of
 * its own, must leave it alone, and all else that tells of descriptors. */
bool fdtab_is_ours(void);

struct fd_obj *fdtab_get_slow(int fd);

/* Is there an entry for fd, right or not? */
static inline bool fdtab_has(int fd)
{
	unsigned n = (unsigned)fd;
	fdtab_entry *chunk;

	if (n >= FDTAB_MAX)
		return false;
	/* acquire: pairs with the release that publishes a chunk */
	chunk = atomic_load_explicit(&fdtab[n / FDTAB_CHUNK], memory_order_acquire);
	return __builtin_expect(
		chunk && atomic_load_explicit(&chunk[n % FDTAB_CHUNK], memory_order_relaxed), 0);
}

/* The object behind fd, with a reference for the caller. NULL: fd is not in the table. */
static inline struct fd_obj *fdtab_get(int fd)
{
	return fdtab_has(fd) ? fdtab_get_slow(fd) : NULL;
}

/* As fdtab_get(), for a write: see fd_class.is_meant. */
struct fd_obj *fdtab_get_to_write(int fd, const void *buf, size_t len);

/* Before fd is closed: run the closing() of its object. */
void fdtab_closing(int fd);
/* Remove fd from the table. Returns the object if that was its last descriptor, else NULL. The
 * caller later passes the object to fdtab_closed(). */
struct fd_obj *fdtab_forget(int fd);
void fdtab_closed(struct fd_obj *o);

/* The program made `copy` a duplicate of `fd`. */
void fdtab_dup(int fd, int copy);

/* Make a pipe for o, from which the program reads what this library writes. Returns the end for the
 * program, close-on-exec and blocking, or a negative errno. The other end is closed with the last
 * descriptor of o, or with o itself (fd_class.outlives). A pipe, since poll() reports a socket as
 * writable, and an eventfd has no inode number of its own. */
int fd_obj_pipe(struct fd_obj *o);

/* A read of the pipe returned end-of-file, since the program closed the other end: open that end
 * again. */
void fd_obj_revive(struct fd_obj *o);

/* Write to, or read from, the pipe of o. Never blocks. Returns the number of octets or a negative
 * errno. Where the program has closed its end unseen, a write may succeed; a read takes it out. */
ssize_t fd_obj_send(struct fd_obj *o, const void *buf, size_t len);
ssize_t fd_obj_recv(struct fd_obj *o, void *buf, size_t len);
/* Combine several of these calls into one atomic step: take the lock, and use the _locked
 * functions. */
void fdtab_lock(void);
void fdtab_unlock(void);
/* The object that the table has for fd; NULL: none. Does not compare the open file. */
struct fd_obj *fdtab_peek_locked(int fd);
/* Has the program its end of the pipe, under the number that it had (o->fd)? Not if the pipe is
 * that of the process that this one was forked from. */
bool fd_obj_is_programs_locked(const struct fd_obj *o);
ssize_t fd_obj_send_locked(struct fd_obj *o, const void *buf, size_t len);
ssize_t fd_obj_recv_locked(struct fd_obj *o, void *buf, size_t len);

/* At-fork handlers: prepare takes the lock, the two others release it. */
bool fdtab_is_locked_here(void);
void fdtab_fork_free_lock(void);
void fdtab_fork_prepare(void);
void fdtab_fork_parent(void);
void fdtab_fork_child(void);

#endif
