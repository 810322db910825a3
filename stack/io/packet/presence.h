/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How a packet link learns that an address is a uwarpd's. On one interface neither hears the other,
 * so a connection to that address would time out. For each of its addresses a uwarpd binds a socket
 * to an abstract name, "uwarpd/INDEX/ADDRESS", which belongs to the network namespace as the
 * interface does. Any user may bind such a name, so only a socket of root's or of the process's own
 * user counts (doc/adr/0024).
 */
#ifndef UWARP_IO_PACKET_PRESENCE_H
#define UWARP_IO_PACKET_PRESENCE_H

#include <stdbool.h>

#include "base/ip.h"

/* Bind the name of an address on the interface of this index. Returns the descriptor, which is the
 * caller's; the name is free again when it is closed. -1: no socket, or another one has the name.
 */
int presence_tell(int interface, const struct uw_ip *addr);
/* Has a uwarpd this address on the interface of this index? Asks the kernel: not while frames wait.
 */
bool presence_of_uwarpd(int interface, const struct uw_ip *addr);

#endif
