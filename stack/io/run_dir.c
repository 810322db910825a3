/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/run_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* In a shell of su XDG_RUNTIME_DIR still names the directory of the user before, and what root made
 * there would lock that user out. System calls: libuwarp-preload.so has functions of its own under
 * libc's names, which look for this directory. */
static bool is_own(const char *dir)
{
	struct stat st;

	return !syscall(SYS_newfstatat, AT_FDCWD, dir, &st, 0) && st.st_uid == getuid() &&
	       !syscall(SYS_faccessat, AT_FDCWD, dir, W_OK | X_OK);
}

bool run_dir_find(const char *chosen, char *dir, size_t size)
{
	const char *xdg = secure_getenv("XDG_RUNTIME_DIR");
	char here[PATH_MAX];
	int n;

	if (chosen && *chosen == '/') {
		n = snprintf(dir, size, "%s", chosen);
	} else if (chosen && *chosen) {
		if (!getcwd(here, sizeof(here)))
			return false;
		n = snprintf(dir, size, "%s/%s", here, chosen);
	} else if (xdg && *xdg && is_own(xdg)) {
		n = snprintf(dir, size, "%s/uwarp", xdg);
	} else {
		n = snprintf(dir, size, "/tmp/uwarp-%u", (unsigned)getuid());
	}
	errno = ENAMETOOLONG;
	return n > 0 && (size_t)n < size;
}
