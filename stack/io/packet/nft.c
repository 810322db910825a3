/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/packet/nft.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netlink.h>
#include <string.h>

#define FAMILY	     5u	 /* NFPROTO_NETDEV */
#define INET_SERVICE 13u /* what nft(8) calls a port, so that it shows one */
#define LAST	     1u	 /* the sequence number of the message that is answered */
#define CHAIN	     "ingress"

enum { TYPE_AT = 12, TO_IP4 = 16, TO_IP6 = 24, TO_PORT = 2 };

/* ---- attributes ------------------------------------------------------------------------------ */

/* Room for n octets, which are 0. NULL: there is none. */
static uint8_t *room(struct nft_batch *b, size_t n)
{
	size_t whole = NLMSG_ALIGN(n), at = b->n;

	if (b->full || whole > sizeof(b->at) - at) {
		b->full = true;
		return NULL;
	}
	memset(b->at + at, 0, whole);
	b->n = at + whole;
	return b->at + at;
}

static void put(struct nft_batch *b, uint16_t type, const void *octets, size_t n)
{
	struct nlattr a = { .nla_len = (uint16_t)(NLA_HDRLEN + n), .nla_type = type };
	uint8_t *p = room(b, NLA_HDRLEN + n);

	if (!p)
		return;
	memcpy(p, &a, sizeof(a));
	memcpy(p + NLA_HDRLEN, octets, n);
}

static void put_text(struct nft_batch *b, uint16_t type, const char *text)
{
	put(b, type, text, strlen(text) + 1);
}

static void put32(struct nft_batch *b, uint16_t type, uint32_t v)
{
	v = htobe32(v);
	put(b, type, &v, sizeof(v));
}

/* Attributes inside one; its place, for close_nest. */
static size_t open_nest(struct nft_batch *b, uint16_t type)
{
	size_t at = b->n;

	put(b, type | NLA_F_NESTED, "", 0);
	return at;
}

static void close_nest(struct nft_batch *b, size_t at)
{
	uint16_t n = (uint16_t)(b->n - at);

	if (!b->full)
		memcpy(b->at + at, &n, sizeof(n));
}

/* ---- messages ------------------------------------------------------------------------------ */

static void end_message(struct nft_batch *b)
{
	uint32_t n = (uint32_t)(b->n - b->message);

	if (!b->full)
		memcpy(b->at + b->message, &n, sizeof(n));
}

static void begin_message(struct nft_batch *b, uint16_t type, uint16_t flags, uint8_t family,
			  uint16_t resource)
{
	struct nlmsghdr h = { .nlmsg_type = type, .nlmsg_flags = NLM_F_REQUEST | flags };
	struct nfgenmsg g = { .nfgen_family = family, .version = NFNETLINK_V0 };
	uint8_t *p;

	if (b->n)
		end_message(b);
	g.res_id = htobe16(resource);
	b->message = b->n;
	p = room(b, NLMSG_HDRLEN + sizeof(g));
	if (!p)
		return;
	memcpy(p, &h, sizeof(h));
	memcpy(p + NLMSG_HDRLEN, &g, sizeof(g));
}

static void message(struct nft_batch *b, uint16_t type, uint16_t flags)
{
	begin_message(b, (uint16_t)(NFNL_SUBSYS_NFTABLES << 8 | type), flags, FAMILY, 0);
}

void nft_begin(struct nft_batch *b)
{
	b->n = 0;
	b->full = false;
	begin_message(b, NFNL_MSG_BATCH_BEGIN, 0, 0, NFNL_SUBSYS_NFTABLES);
}

size_t nft_end(struct nft_batch *b)
{
	struct nlmsghdr h;

	end_message(b);
	if (b->full)
		return 0;
	memcpy(&h, b->at + b->message, sizeof(h));
	h.nlmsg_flags |= NLM_F_ACK;
	h.nlmsg_seq = LAST;
	memcpy(b->at + b->message, &h, sizeof(h));
	begin_message(b, NFNL_MSG_BATCH_END, 0, 0, NFNL_SUBSYS_NFTABLES);
	end_message(b);
	return b->full ? 0 : b->n;
}

void nft_table(struct nft_batch *b, const char *table)
{
	message(b, NFT_MSG_NEWTABLE, NLM_F_CREATE | NLM_F_EXCL);
	put_text(b, NFTA_TABLE_NAME, table);
	put32(b, NFTA_TABLE_FLAGS, NFT_TABLE_F_OWNER);
}

void nft_port_set(struct nft_batch *b, const char *table, const char *set, uint32_t id)
{
	message(b, NFT_MSG_NEWSET, NLM_F_CREATE | NLM_F_EXCL);
	put_text(b, NFTA_SET_TABLE, table);
	put_text(b, NFTA_SET_NAME, set);
	put32(b, NFTA_SET_KEY_TYPE, INET_SERVICE);
	put32(b, NFTA_SET_KEY_LEN, sizeof(uint16_t));
	put32(b, NFTA_SET_ID, id);
}

void nft_chain(struct nft_batch *b, const char *table, const char *interface)
{
	size_t hook;

	message(b, NFT_MSG_NEWCHAIN, NLM_F_CREATE | NLM_F_EXCL);
	put_text(b, NFTA_CHAIN_TABLE, table);
	put_text(b, NFTA_CHAIN_NAME, CHAIN);
	hook = open_nest(b, NFTA_CHAIN_HOOK);
	put32(b, NFTA_HOOK_HOOKNUM, NF_NETDEV_INGRESS);
	put32(b, NFTA_HOOK_PRIORITY, (uint32_t)INT_MIN);
	put_text(b, NFTA_HOOK_DEV, interface);
	close_nest(b, hook);
	put_text(b, NFTA_CHAIN_TYPE, "filter");
}

void nft_port(struct nft_batch *b, const char *table, const char *set, uint16_t port, bool in)
{
	size_t all, one, key;

	message(b, in ? NFT_MSG_NEWSETELEM : NFT_MSG_DELSETELEM, in ? NLM_F_CREATE : 0);
	put_text(b, NFTA_SET_ELEM_LIST_TABLE, table);
	put_text(b, NFTA_SET_ELEM_LIST_SET, set);
	all = open_nest(b, NFTA_SET_ELEM_LIST_ELEMENTS);
	one = open_nest(b, NFTA_LIST_ELEM);
	key = open_nest(b, NFTA_SET_ELEM_KEY);
	put(b, NFTA_DATA_VALUE, &port, sizeof(port));
	close_nest(b, key);
	close_nest(b, one);
	close_nest(b, all);
}

/* ---- rules --------------------------------------------------------------------------------- */

struct nest {
	size_t expr, data;
};

static struct nest open_expr(struct nft_batch *b, const char *name)
{
	struct nest at = { .expr = open_nest(b, NFTA_LIST_ELEM) };

	put_text(b, NFTA_EXPR_NAME, name);
	at.data = open_nest(b, NFTA_EXPR_DATA);
	return at;
}

static void close_expr(struct nft_batch *b, struct nest at)
{
	close_nest(b, at.data);
	close_nest(b, at.expr);
}

static void get_meta(struct nft_batch *b, uint32_t what)
{
	struct nest at = open_expr(b, "meta");

	put32(b, NFTA_META_DREG, NFT_REG_1);
	put32(b, NFTA_META_KEY, what);
	close_expr(b, at);
}

static void get(struct nft_batch *b, uint32_t base, uint32_t offset, uint32_t n)
{
	struct nest at = open_expr(b, "payload");

	put32(b, NFTA_PAYLOAD_DREG, NFT_REG_1);
	put32(b, NFTA_PAYLOAD_BASE, base);
	put32(b, NFTA_PAYLOAD_OFFSET, offset);
	put32(b, NFTA_PAYLOAD_LEN, n);
	close_expr(b, at);
}

static void is(struct nft_batch *b, const void *octets, size_t n)
{
	struct nest at = open_expr(b, "cmp");
	size_t value;

	put32(b, NFTA_CMP_SREG, NFT_REG_1);
	put32(b, NFTA_CMP_OP, NFT_CMP_EQ);
	value = open_nest(b, NFTA_CMP_DATA);
	put(b, NFTA_DATA_VALUE, octets, n);
	close_nest(b, value);
	close_expr(b, at);
}

static void is_in(struct nft_batch *b, const char *set)
{
	struct nest at = open_expr(b, "lookup");

	put_text(b, NFTA_LOOKUP_SET, set);
	put32(b, NFTA_LOOKUP_SREG, NFT_REG_1);
	close_expr(b, at);
}

static void drop(struct nft_batch *b)
{
	struct nest at = open_expr(b, "immediate");
	size_t data, verdict;

	put32(b, NFTA_IMMEDIATE_DREG, NFT_REG_VERDICT);
	data = open_nest(b, NFTA_IMMEDIATE_DATA);
	verdict = open_nest(b, NFTA_DATA_VERDICT);
	put32(b, NFTA_VERDICT_CODE, NF_DROP);
	close_nest(b, verdict);
	close_nest(b, data);
	close_expr(b, at);
}

/* The frame's own type is read, not what the kernel knows, which sees through a tag (IEEE 802.1Q).
 */
static void is_version(struct nft_batch *b, bool ip6)
{
	const uint16_t type = htobe16(ip6 ? ETH_P_IPV6 : ETH_P_IP);

	get(b, NFT_PAYLOAD_LL_HEADER, TYPE_AT, sizeof(type));
	is(b, &type, sizeof(type));
}

/* A fragment has no ports, and goes by. */
static void is_port(struct nft_batch *b, const struct nft_drop *d)
{
	if (!d->ports && !d->port)
		return;
	get(b, NFT_PAYLOAD_TRANSPORT_HEADER, TO_PORT, sizeof(d->port));
	if (d->ports)
		is_in(b, d->ports);
	else
		is(b, &d->port, sizeof(d->port));
}

void nft_rule(struct nft_batch *b, const char *table, const struct nft_drop *d)
{
	const uint8_t host = PACKET_HOST;
	uint32_t n = d->ip6 ? 16 : 4;
	size_t all;

	message(b, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);
	put_text(b, NFTA_RULE_TABLE, table);
	put_text(b, NFTA_RULE_CHAIN, CHAIN);
	all = open_nest(b, NFTA_RULE_EXPRESSIONS);
	is_version(b, d->ip6);
	get(b, NFT_PAYLOAD_NETWORK_HEADER, d->ip6 ? TO_IP6 : TO_IP4, n);
	is(b, d->addr, n);
	if (d->protocol) {
		get_meta(b, NFT_META_L4PROTO);
		is(b, &d->protocol, 1);
	}
	is_port(b, d);
	get_meta(b, NFT_META_PKTTYPE);
	is(b, &host, 1);
	drop(b);
	close_nest(b, all);
}

/* ---- answers ------------------------------------------------------------------------------- */

int nft_answer(const void *octets, size_t n, bool *more)
{
	const uint8_t *p = octets;
	struct nlmsghdr h;
	struct nlmsgerr e;

	*more = true;
	for (; n >= NLMSG_HDRLEN + sizeof(e);
	     p += NLMSG_ALIGN(h.nlmsg_len), n -= NLMSG_ALIGN(h.nlmsg_len)) {
		memcpy(&h, p, sizeof(h));
		if (h.nlmsg_len < NLMSG_HDRLEN || NLMSG_ALIGN(h.nlmsg_len) > n)
			break;
		if (h.nlmsg_type != NLMSG_ERROR)
			continue;
		memcpy(&e, p + NLMSG_HDRLEN, sizeof(e));
		if (e.error || h.nlmsg_seq == LAST) {
			*more = false;
			return -e.error;
		}
	}
	return *more ? 0 : EPROTO;
}
