/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames that the tests of the packet link make, and a network namespace of the test's own. */
#ifndef UWARP_TESTS_IO_PACKET_MADE_H
#define UWARP_TESTS_IO_PACKET_MADE_H

#include "io/packet/frames.h"
#include "uwtest.h"

enum { SKIPPED = 77 };

/* A TCP segment over IPv4 or IPv6 between the hosts 1 and 2 of 10.9.0.0/24 or fd09::/64. */
struct made {
	bool ip6;
	uint8_t src_mac[6], dst_mac[6];
	uint16_t src_port, dst_port, ip_id;
	uint32_t seq, ack;
	uint8_t flags;
	uint32_t payload;
};

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16, ECE = 64, CWR = 128 };

#define MADE_HOST(n) htonl(0x0a090000u + (n))

/* Into a frame of l, with all checksums right; every octet of the payload follows from its sequence
 * number. */
struct io_frame *made_frame(struct io_link *l, const struct made *m);
/* The same into memory; returns its octets. */
uint32_t made_octets(const struct made *m, uint8_t *out);

/* Go on in a network namespace of our own. False: there can be none. */
bool made_namespace(void);
/* False: an emulator between the test and the kernel does not know the socket options of the link
 * (qemu-aarch64 knows neither SO_LOCK_FILTER nor PACKET_VNET_HDR). */
bool made_socket_options(void);
/* Both, and veth. False: a line says what is missing, and the tests are to be skipped. */
bool made_ready(void);
/* Run it by the shell, silently; true: it ended with 0. */
bool made_run(const char *command);

#endif
