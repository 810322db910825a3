/* SPDX-License-Identifier: BSD-3-Clause */
/* Which TCP carries the streams (io/llp.h): one row for each that there is. */
#ifndef UWARP_ENGINE_TRANSPORT_H
#define UWARP_ENGINE_TRANSPORT_H

#include "engine/links.h"
#include "io/llp.h"

struct transport {
	const char *name;
	const struct llp_ops *ops;
	/* Several of it in one process, the first is `ops`; NULL: there are not. */
	const struct llp_ops *(*instance)(unsigned i);
	/* It has a link of its own, without frames; NULL: it takes any. */
	uw_status (*open_link)(struct uw_engine *e, const struct io_env *env, struct io_link **out);
};

/* "" is the first. NULL: there is none such, and stderr says which there are. */
const struct transport *transport_find(const char *name);

#endif
