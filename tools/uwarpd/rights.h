/* SPDX-License-Identifier: BSD-3-Clause */
/* Rights that the uwarpd gives up once its port is open. */
#ifndef UWARPD_RIGHTS_H
#define UWARPD_RIGHTS_H

#include <stdbool.h>

#include "options.h"

/* Become o->user, if root; keep CAP_NET_ADMIN if needs_admin, and no other capability; never gain
 * any again. False: one line on stderr says why. */
bool rights_drop(const struct options *o, bool needs_admin);

#endif
