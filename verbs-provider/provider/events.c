/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asynchronous events, and how many of them the program has acknowledged.
 *
 * ibv_get_async_event() reads one record from context->async_fd. Here that is one end of a
 * SEQPACKET socket pair, and the provider writes to the other end. This file makes its system calls
 * itself: events are raised under the stack's lock, and libc's functions may be wrapped by
 * preloaded libraries (librspreload, our own).
 */
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "provider.h"

static uint64_t sock_cookie(int fd)
{
	uint64_t cookie = 0;
	socklen_t len = sizeof(cookie);

	if (syscall(SYS_getsockopt, fd, SOL_SOCKET, SO_COOKIE, &cookie, &len))
		return 0;
	return cookie;
}

/* A program that became a daemon may have closed every descriptor and opened others since. */
static bool sock_is_ours(const struct uwarp_sock *s)
{
	return s->fd >= 0 && sock_cookie(s->fd) == s->cookie;
}

int uwarp_async_open(struct uwarp_context *ctx)
{
	int fd[2];

	if (syscall(SYS_socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fd))
		return -errno;
	ctx->async_rd = (struct uwarp_sock){ fd[0], sock_cookie(fd[0]) };
	ctx->async_wr = (struct uwarp_sock){ fd[1], sock_cookie(fd[1]) };
	/* Set here, libibverbs does not ask the kernel for one; it closes it with the context. */
	ctx->ibctx.async_fd = fd[0];
	pthread_mutex_init(&ctx->async_lock, NULL);
	return 0;
}

void uwarp_async_close(struct uwarp_context *ctx)
{
	if (sock_is_ours(&ctx->async_wr))
		syscall(SYS_close, ctx->async_wr.fd);
	pthread_mutex_destroy(&ctx->async_lock);
}

static bool send_record(const struct uwarp_context *ctx, const struct ib_uverbs_async_event_desc *d)
{
	return syscall(SYS_sendto, ctx->async_wr.fd, d, sizeof(*d), MSG_DONTWAIT | MSG_NOSIGNAL,
		       NULL, 0) == (long)sizeof(*d);
}

/* Called under the stack lock. A program that never reads its events loses the later ones once
 * the socket is full. */
void uwarp_async_post(struct uwarp_source *src, uint32_t event_type)
{
	struct ib_uverbs_async_event_desc d = { .element = src->element, .event_type = event_type };

	if (sock_is_ours(&src->ctx->async_wr) && send_record(src->ctx, &d))
		src->reported++;
}

/* Each unread record is taken out once: ours end here, the others go to the back in their order. */
void uwarp_async_drop(struct uwarp_source *src)
{
	struct uwarp_context *ctx = src->ctx;
	struct ib_uverbs_async_event_desc d;
	int unread = 0;

	if (!src->reported)
		return; /* and under the stack lock it has just ended: nothing will be */
	pthread_mutex_lock(&ctx->async_lock);
	if (sock_is_ours(&ctx->async_rd) && sock_is_ours(&ctx->async_wr))
		syscall(SYS_ioctl, ctx->async_rd.fd, FIONREAD, &unread);
	for (size_t n = (size_t)unread / sizeof(d); n; n--) {
		if (syscall(SYS_recvfrom, ctx->async_rd.fd, &d, sizeof(d), MSG_DONTWAIT, NULL,
			    NULL) != (long)sizeof(d))
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
