/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A uwarpd tells packet links which addresses it has on an interface, since neither hears the
 * other there: the names of sockets, which belong to the network namespace as the interface does.
 * Anybody may bind such a name, so only one of root's or of the process's own user counts: with it
 * a connection which would time out fails at once.
 */
#ifndef UWARP_IO_PACKET_PRESENCE_H
#define UWARP_IO_PACKET_PRESENCE_H

#include <stdbool.h>

#include "base/ip.h"

/* Until the descriptor is closed. -1: it could not, or another uwarpd does. */
int presence_tell(int interface, const struct uw_ip *addr);
bool presence_of_uwarpd(int interface, const struct uw_ip *addr);

#endif
