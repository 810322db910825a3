/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/shm.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "base/log.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010 /* Linux 5.1 */
#endif

enum { SIZE_SEALS = F_SEAL_SHRINK | F_SEAL_GROW };

static void *map_file(int fd, size_t size, int prot)
{
	void *p = mmap(NULL, size, prot, MAP_SHARED, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* To make a file longer than that is not only refused: a signal ends the process (SIGXFSZ). */
static bool is_allowed(size_t size)
{
	struct rlimit most;

	if (getrlimit(RLIMIT_FSIZE, &most) || size <= most.rlim_cur)
		return true;
	uw_log("shared memory of %zu KiB is more than a file of this process may have: raise the "
	       "limit (ulimit -f)",
	       (size + 1023) / 1024);
	errno = EFBIG;
	return false;
}

static int make_file(const char *name, size_t size)
{
	if (!is_allowed(size))
		return -1;
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd >= 0 && (ftruncate(fd, (off_t)size) || fcntl(fd, F_ADD_SEALS, SIZE_SEALS))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

void *shm_make(const char *name, size_t size, enum shm_access others, int *out)
{
	int fd = make_file(name, size);
	void *p = fd < 0 ? NULL : map_file(fd, size, PROT_READ | PROT_WRITE);

	/* From here on nobody can map it for writing. Older kernels do not know this seal: then
	 * only the peer's good manners keep it from writing to what we do not read. */
	if (p && others == SHM_READ_ONLY && fcntl(fd, F_ADD_SEALS, F_SEAL_FUTURE_WRITE) &&
	    errno != EINVAL) {
		munmap(p, size);
		p = NULL;
	}
	if (!p && fd >= 0) {
		int err = errno;

		close(fd);
		errno = err;
		fd = -1;
	}
	*out = fd;
	return p;
}

/* Can we touch size octets of it, whatever its maker does? Of huge pages none may be left when we
 * do: so it has to be of ordinary ones. */
bool shm_fits(int fd, size_t size)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct statfs fs;
	struct stat s;

	return seals >= 0 && seals & F_SEAL_SHRINK && fstatfs(fd, &fs) == 0 &&
	       fs.f_type == TMPFS_MAGIC && fstat(fd, &s) == 0 && s.st_size >= 0 &&
	       (size_t)s.st_size >= size;
}

void *shm_map(int fd, size_t size, enum shm_access access)
{
	void *p = NULL;

	if (fd < 0)
		return NULL;
	if (shm_fits(fd, size))
		p = map_file(fd, size, access == SHM_WRITABLE ? PROT_READ | PROT_WRITE : PROT_READ);
	close(fd);
	return p;
}

void shm_unmap(const volatile void *p, size_t size)
{
	if (p)
		munmap((void *)(uintptr_t)p, size);
}
