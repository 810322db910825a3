/* SPDX-License-Identifier: BSD-3-Clause */
/* libuwarp.so as the shim's own parts see it; ../host.h is what the provider sees. */
#ifndef UWARP_HOST_PRIV_H
#define UWARP_HOST_PRIV_H

#include <stdbool.h>

#include "host.h"

/* As in struct uwarp_host. Never call these with a lock of the shim held. */
const struct uw_api *host_api(void);
struct uw_engine *host_engine(void);

/* The node GUID, host order; the same for the life of the process. 0: no libuwarp.so. */
uint64_t host_guid(void);
/* What the engine says of the device now. False: no libuwarp.so. */
bool host_device(struct uw_device_attr *attr);
/* The same, with the address that the device has or will have for good: this may start the link. */
bool host_device_settled(struct uw_device_attr *attr);

/* Note that this process is about to start its engine: a child will need its own. */
void host_starting(void);

/* The process calls _exit(): end the connections. Signal handlers may call it. */
void host_exiting(void);

/* True once the process ends and the engine is gone. */
bool host_ended(void);

void host_fork_prepare(void);
void host_fork_parent(void);
/* True: the parent's engine runs there and is of no use here; the next host_engine() opens one of
 * this process's own. */
bool host_fork_child(void);

#endif
