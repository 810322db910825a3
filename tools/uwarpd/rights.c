/* SPDX-License-Identifier: BSD-3-Clause */
#include "rights.h"

#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <pwd.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/log.h"

static bool failed(const char *what)
{
	uw_log("uwarpd: cannot give up rights: %s: %s", what, strerror(errno));
	return false;
}

/* What is not in the bounding set cannot come back by running a program. */
static void bound(bool needs_admin)
{
	for (unsigned long c = 0; prctl(PR_CAPBSET_READ, c, 0, 0, 0) >= 0; c++)
		if (c != CAP_NET_ADMIN || !needs_admin)
			prctl(PR_CAPBSET_DROP, c, 0, 0, 0);
}

static bool keep_only(bool needs_admin)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct have[2], keep[2] = { 0 };
	uint32_t admin = needs_admin ? UINT32_C(1) << CAP_NET_ADMIN : 0;

	if (syscall(SYS_capget, &h, have))
		return failed("capget");
	keep[0].permitted = keep[0].effective = have[0].permitted & admin;
	prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	return !syscall(SYS_capset, &h, keep) || failed("capset");
}

/* A user namespace without that user leaves us what we are. */
static bool become(const struct options *o)
{
	const struct passwd *user = getpwnam(o->user);

	if (!user) {
		uw_log("--user %s: there is no such user", o->user);
		return false;
	}
	prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0);
	if (!setgroups(0, NULL) && !setresgid(user->pw_gid, user->pw_gid, user->pw_gid) &&
	    !setresuid(user->pw_uid, user->pw_uid, user->pw_uid))
		return true;
	return (!o->user_given && (errno == EINVAL || errno == EPERM)) || failed(o->user);
}

/* The kernel forgets the signal at the parent's end when the user changes. */
bool rights_drop(const struct options *o, bool needs_admin)
{
	int at_parents_end = 0;

	prctl(PR_GET_PDEATHSIG, &at_parents_end, 0, 0, 0);
	if (geteuid() == 0)
		bound(needs_admin);
	if (geteuid() == 0 && !become(o))
		return false;
	prctl(PR_SET_PDEATHSIG, at_parents_end, 0, 0, 0);
	if (!keep_only(needs_admin))
		return false;
	return !prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || failed("no_new_privs");
}
