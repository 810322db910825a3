/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events, and how many of them the program has acknowledged.
 *
 * ibv_get_async_event() reads one record from context->async_fd. Here that is the reading end of a
 * pipe, since poll() would report a socket as writable, and event loops that ask for both would
 * never sleep. The provider has the pipe open a second time, to write and to read without blocking;
 * so there is always a reader, and no write raises SIGPIPE. This file makes its system calls
 * itself: events are raised under the stack's lock, and libc's functions may be wrapped by
 * preloaded libraries (librspreload, our own).
 */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "provider.h"

#include "base/log.h"

/* Both ends of a pipe have the same inode. */
static bool identify(struct uwarp_pipe *p)
{
	struct stat st;

	if (syscall(SYS_fstat, p->fd, &st))
		return false;
	p->dev = st.st_dev;
	p->ino = st.st_ino;
	return true;
}

/* A program that became a daemon may have closed every descriptor and opened others since. */
static bool pipe_is_ours(const struct uwarp_pipe *p)
{
	struct uwarp_pipe now = { .fd = p->fd };

	return p->fd >= 0 && identify(&now) && now.dev == p->dev && now.ino == p->ino;
}

/* The pipe once more, for both directions, and with O_NONBLOCK for ours alone. */
static int open_again(int fd)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	return (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_NONBLOCK | O_CLOEXEC);
}

int uwarp_async_open(struct uwarp_context *ctx)
{
	int fd[2], own;

	if (syscall(SYS_pipe2, fd, O_CLOEXEC)) {
		if (errno == EMFILE)
			uw_log("no file descriptor is left for the events of a "
			       "device: raise the limit (ulimit -n)");
		return -errno;
	}
	own = open_again(fd[0]);
	if (own >= 0) {
		syscall(SYS_close, fd[1]);
	} else { /* no /proc: events can be written, and not be taken back */
		own = fd[1];
		syscall(SYS_fcntl, own, F_SETFL, O_NONBLOCK);
	}
	ctx->async = (struct uwarp_pipe){ .fd = own };
	identify(&ctx->async);
	/* Set here, libibverbs does not ask the kernel for one; it closes it with the context. */
	ctx->ibctx.async_fd = fd[0];
	pthread_mutex_init(&ctx->async_lock, NULL);
	return 0;
}

void uwarp_async_close(struct uwarp_context *ctx)
{
	if (pipe_is_ours(&ctx->async))
		syscall(SYS_close, ctx->async.fd);
	pthread_mutex_destroy(&ctx->async_lock);
}

static bool send_record(const struct uwarp_context *ctx, const struct ib_uverbs_async_event_desc *d)
{
	return syscall(SYS_write, ctx->async.fd, d, sizeof(*d)) == (long)sizeof(*d);
}

/* Called under the stack lock. A program that never reads its events loses the later ones once
 * the pipe is full. */
void uwarp_async_post(struct uwarp_source *src, uint32_t event_type)
{
	struct ib_uverbs_async_event_desc d = { .element = src->element, .event_type = event_type };

	if (!pipe_is_ours(&src->ctx->async) || !send_record(src->ctx, &d))
		return;
	src->reported++;
	src->raised_in = getpid();
}

/* Each unread record is taken out once: ours end here, the others go to the back in their order. */
void uwarp_async_drop(struct uwarp_source *src)
{
	struct uwarp_context *ctx = src->ctx;
	struct ib_uverbs_async_event_desc d;
	int unread = 0;

	if (!src->reported)
		return; /* and under the stack lock it has just ended: nothing will be */
	if (src->raised_in != getpid()) { /* a forked child: they are its parent's to read */
		src->reported = 0;
		return;
	}
	pthread_mutex_lock(&ctx->async_lock);
	if (pipe_is_ours(&ctx->async))
		syscall(SYS_ioctl, ctx->async.fd, FIONREAD, &unread);
	for (size_t n = (size_t)unread / sizeof(d); n; n--) {
		if (syscall(SYS_read, ctx->async.fd, &d, sizeof(d)) != (long)sizeof(d))
			break;
		if (d.element == src->element)
			src->reported--;
		else
			send_record(ctx, &d);
	}
	pthread_mutex_unlock(&ctx->async_lock);
}

bool uwarp_acked(pthread_mutex_t *lock, pthread_cond_t *cond, const uint32_t *completed,
		 uint32_t reported)
{
	struct timespec until;
	int rc = 0;
	bool ok;

	clock_gettime(CLOCK_REALTIME, &until); /* the clock of libibverbs' condition variables */
	until.tv_sec += UWARP_ACK_WAIT_MS / 1000;
	pthread_mutex_lock(lock);
	while (!(ok = (int32_t)(*completed - reported) >= 0) && !rc)
		rc = pthread_cond_timedwait(cond, lock, &until);
	pthread_mutex_unlock(lock);
	return ok;
}
