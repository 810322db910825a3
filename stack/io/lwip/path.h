/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the network tells of the path of a connection: how long packets may be (RFC 1191, RFC 8201,
 * RFC 4821), and that a peer cannot be reached (RFC 1122 §4.2.3.9). The sizes of paths are in
 * edge.paths; link_cut.c cuts the segments that were queued before. Private to this folder.
 */
#ifndef UWARP_LWIP_PATH_H
#define UWARP_LWIP_PATH_H

#include "io/lwip/conn.h"

/* The handshake is over: from now on segments fit the path. */
void edge_conn_path_begin(struct llp_conn *c);
/* A frame came. True: it was an ICMP error, and there is nothing more to do with it. May end a
 * connection. */
bool edge_icmp_in(const struct io_frame *f);
/* Often: segments fit the paths as they are known now; those known for too long are forgotten. */
void edge_path_timer(void);
/* The link's MTU or its routes have changed. */
void edge_path_changed(void);

#endif
