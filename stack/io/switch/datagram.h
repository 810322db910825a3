/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of RoCEv2 in the switch: UDP to port 4791 (IBA Annex A17), of UD and UC. UDP has no ports
 * to hold here; packets belong to QPs.
 */
#ifndef UWARP_IO_SWITCH_DATAGRAM_H
#define UWARP_IO_SWITCH_DATAGRAM_H

#include "io/switch/head.h"

/* The packet is UDP's. As switch_out. UD names the QP that it comes from, which must be one of
 * the client's; for UC the client must have any. */
struct switch_result datagram_out(const struct switch_table *t, uint16_t client,
				  const struct switch_frame *f, const struct switch_ip *p);
/* As switch_in. */
struct switch_result datagram_in(const struct switch_table *t, const struct switch_frame *f,
				 const struct switch_ip *p);

#endif
