/* SPDX-License-Identifier: BSD-3-Clause */
/* The transports (io/llp.h): a table with one row for each. */
#ifndef UWARP_ENGINE_TRANSPORT_H
#define UWARP_ENGINE_TRANSPORT_H

#include "engine/links.h"
#include "io/llp.h"

struct transport {
	const char *name;
	const struct llp_ops *ops;
	/* Instance i of the transport, the first is `ops`; NULL: there is only one. */
	const struct llp_ops *(*instance)(unsigned i);
	/* Opens the transport's own link, which has no frames; NULL: the transport uses any link.
	 */
	uw_status (*open_link)(struct uw_engine *e, const struct io_env *env, struct io_link **out);
};

/* The transport of that name; "" means the first. NULL: no such transport; one line on stderr lists
 * the names. */
const struct transport *transport_find(const char *name);

#endif
