/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Keeps a packet link's frames out of the host's IP stack, which would look at each and drop it: a
 * chain of nf_tables at the interface's ingress, where packet sockets have had every frame already
 * (doc/adr/0046). Its table is owned by a socket of this process and ends with it. Without the
 * right (CAP_NET_ADMIN) or without nf_tables the host sees the frames, and drops them as before.
 *
 * One thread at a time may call these functions for a struct ingress.
 */
#ifndef UWARP_IO_PACKET_INGRESS_H
#define UWARP_IO_PACKET_INGRESS_H

#include "io/io.h"

struct ingress {
	int fd; /* -1: none */
	char table[24];
};

struct ingress_ask {
	const char *interface;
	/* The addresses' versions that the kernel has, too (enum io_versions): of these, TCP to the
	 * ports that ingress_port names is kept away, else all IP to the addresses. */
	unsigned shared;
	uint32_t addr; /* IPv4, network order; 0: none */
	const struct uw_net *ip6;
	unsigned n_ip6;
};

void ingress_init(struct ingress *g);
/* 0, or an errno: the host sees the frames. */
int ingress_open(struct ingress *g, const struct ingress_ask *a);
void ingress_close(struct ingress *g);

/* A port (network order) of a shared version is ours, or is the host's again. Nothing without a
 * chain. If the kernel refuses, the chain ends. */
void ingress_port(struct ingress *g, enum io_versions version, uint16_t port, bool ours);
/* RoCEv2 to the addresses of *a is ours, too. */
void ingress_roce(struct ingress *g, const struct ingress_ask *a);

#endif
