/* SPDX-License-Identifier: BSD-3-Clause */
/* The frames of an interface, by a packet socket (packet(7)) in promiscuous mode. */
#ifndef UWARP_TOOLS_IMPAIR_PACKET_H
#define UWARP_TOOLS_IMPAIR_PACKET_H

#include <stdint.h>

/* Octets of the largest frame that is handed on: jumbo frames with headers and a VLAN tag. */
#define PACKET_MAX 9728u

struct packet;

enum packet_sent { PACKET_SENT, PACKET_FULL, PACKET_REFUSED };

/* NULL: said on stderr. */
struct packet *packet_open(const char *interface);
void packet_close(struct packet *p);
int packet_fd(const struct packet *p);
const char *packet_name(const struct packet *p);
/* The next frame that the interface received, with its VLAN tag; NULL: none. Valid until the next
 * call. What cannot be handed on (uncut, or without checksums) is left out, said once. */
const uint8_t *packet_receive(struct packet *p, uint32_t *len);
/* PACKET_FULL: try again later. PACKET_REFUSED: the interface does not take it (too long, down). */
enum packet_sent packet_send(struct packet *p, const uint8_t *frame, uint32_t len);

#endif
