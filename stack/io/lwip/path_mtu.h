/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long packets of a connection may be, and what timeouts and ACKs tell of that (RFC 4821). What
 * is learned is in edge.paths at once, by which what goes again is cut (link_cut.c); new segments
 * follow in edge_path_timer (path.h). Private to this folder.
 */
#ifndef UWARP_LWIP_PATH_MTU_H
#define UWARP_LWIP_PATH_MTU_H

#include "io/lwip/conn.h"

/* Octets of a packet, from the IP header on. */
uint32_t edge_conn_path_mtu(const struct llp_conn *c);
/* Those of the headers of a segment of octets. */
uint32_t edge_conn_path_headers(const struct llp_conn *c);
/* A segment of so many octets was sent again and again and is not answered: shorter packets are
 * tried if that is long. */
void edge_conn_path_suspect(const struct llp_conn *c, uint32_t octets);
/* ACK number `ack` came, before loss_acked. Only if edge.paths has any. */
void edge_conn_path_acked(const struct llp_conn *c, uint32_t ack);

#endif
