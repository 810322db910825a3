/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to nf_tables (nfnetlink): one batch, which the kernel carries out whole or not at all.
 * No function here does I/O. */
#ifndef UWARP_IO_PACKET_NFT_H
#define UWARP_IO_PACKET_NFT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NFT_BATCH_MAX 8192u

struct nft_batch {
	_Alignas(8) uint8_t at[NFT_BATCH_MAX];
	size_t n;
	size_t message; /* where the last message begins */
	bool full;	/* something found no room: do not send it */
};

/* Of the interface's ingress, in the family netdev. */
void nft_begin(struct nft_batch *b);
/* A table that ends with the socket that makes it (NFT_TABLE_F_OWNER). */
void nft_table(struct nft_batch *b, const char *table);
/* A set of ports. */
void nft_port_set(struct nft_batch *b, const char *table, const char *set, uint32_t id);
/* Before all other chains of the interface. */
void nft_chain(struct nft_batch *b, const char *table, const char *interface);
/* Put the port (network order) into the set, or take it out. */
void nft_port(struct nft_batch *b, const char *table, const char *set, uint16_t port, bool in);

/* Which frames to this host, without a tag, are dropped. */
struct nft_drop {
	bool ip6;
	uint8_t addr[16];  /* destination; the first 4 octets for IPv4 */
	uint8_t protocol;  /* 0: all */
	const char *ports; /* the set that has the destination port, or NULL ... */
	uint16_t port;	   /* ... the port (network order), or 0: any */
};

void nft_rule(struct nft_batch *b, const char *table, const struct nft_drop *d);

/* The kernel answers the last message before it. Returns octets to send; 0: they found no room. */
size_t nft_end(struct nft_batch *b);

/* An answer of n octets: 0, or an errno. *more: the last message is not answered yet. */
int nft_answer(const void *octets, size_t n, bool *more);

#endif
