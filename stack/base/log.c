/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/log.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* SIGPIPE goes to the thread that writes, so it can be taken back here. The system call is neither
 * a point where the thread may be cancelled nor the preloaded library's write(). */
ssize_t uw_write_quietly(int fd, const void *octets, size_t n)
{
	static const struct timespec now;
	sigset_t broken, old, before;
	ssize_t done;
	int err;

	sigemptyset(&broken);
	sigaddset(&broken, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &broken, &old);
	sigpending(&before);
	done = syscall(SYS_write, fd, octets, n);
	err = errno;
	if (done < 0 && err == EPIPE && !sigismember(&before, SIGPIPE))
		sigtimedwait(&broken, NULL, &now);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	errno = err;
	return done;
}

void uw_vlog(const char *fmt, va_list ap)
{
	char line[512] = "uwarp: ";
	size_t n = strlen(line);
	int k = vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);

	if (k > 0)
		n += (size_t)k < sizeof(line) - n - 1 ? (size_t)k : sizeof(line) - n - 2;
	line[n++] = '\n';
	if (uw_write_quietly(STDERR_FILENO, line, n) < 0)
		return; /* standard error is closed: nobody to tell */
}

void uw_log(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	uw_vlog(fmt, ap);
	va_end(ap);
}
