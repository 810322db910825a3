/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Failed assertions of lwIP (doc/adr/0020). lwIP goes on after one, as in a build without
 * assertions. The first one of a process is written to stderr. The transport counts all of them and
 * ends the connection whose segment led to one. Compiled for each of the two lwIPs.
 */
#ifndef UWARP_LWIP_ASSERTION_H
#define UWARP_LWIP_ASSERTION_H

/* How many failed since the last call. Any thread. */
unsigned lwip_assertions_take(void);

#endif
