/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/packet/filter.h"

#include <linux/if_packet.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>

#include "base/be.h"

#define TAKE 0xffffffffu

/* Jumps go forward only. Those to `take` and `drop`, the last two instructions, are filled in at
 * the end. */
enum { TO_TAKE = 0xff, TO_DROP = 0xfe };

struct program {
	struct sock_filter *at;
	unsigned n;
};

static void emit(struct program *p, uint16_t code, uint32_t k)
{
	p->at[p->n++] = (struct sock_filter){ .code = code, .k = k };
}

static void jump(struct program *p, uint16_t test, uint32_t k, uint8_t yes, uint8_t no)
{
	emit(p, (uint16_t)(BPF_JMP | test | BPF_K), k);
	p->at[p->n - 1].jt = yes;
	p->at[p->n - 1].jf = no;
}

static void load(struct program *p, uint16_t size, uint32_t at)
{
	emit(p, (uint16_t)(BPF_LD | size | BPF_ABS), at);
}

static void finish(struct program *p)
{
	unsigned take = p->n, drop = p->n + 1;

	emit(p, BPF_RET | BPF_K, TAKE);
	emit(p, BPF_RET | BPF_K, 0);
	for (unsigned i = 0; i < take; i++) {
		struct sock_filter *f = &p->at[i];

		if (BPF_CLASS(f->code) != BPF_JMP)
			continue;
		if (f->jt >= TO_DROP)
			f->jt = (uint8_t)((f->jt == TO_TAKE ? take : drop) - i - 1);
		if (f->jf >= TO_DROP)
			f->jf = (uint8_t)((f->jf == TO_TAKE ? take : drop) - i - 1);
	}
}

/* The first instruction of a branch: the one at `test` goes here if its value differs. */
static void otherwise(struct program *p, unsigned test)
{
	p->at[test].jf = (uint8_t)(p->n - test - 1);
}

/* The kernel has taken the tag out. A frame of another VLAN is another interface's. */
static void in_vlan(struct program *p, uint16_t vlan)
{
	load(p, BPF_W, (uint32_t)(SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT));
	jump(p, BPF_JEQ, 0, vlan ? TO_DROP : 0, vlan ? 0 : TO_DROP);
	if (vlan) {
		load(p, BPF_W, (uint32_t)(SKF_AD_OFF + SKF_AD_VLAN_TAG));
		emit(p, BPF_ALU | BPF_AND | BPF_K, 0xfff);
		jump(p, BPF_JEQ, vlan, 0, TO_DROP);
	}
}

/* One for another host came because of promiscuity. */
static void for_this_host(struct program *p)
{
	load(p, BPF_W, (uint32_t)(SKF_AD_OFF + SKF_AD_PKTTYPE));
	jump(p, BPF_JGE, PACKET_OTHERHOST, TO_DROP, 0);
}

/* The MAC that it came from is ours, or begins as the kernel's. */
static void from_this_interface(struct program *p, const struct filter_ask *a)
{
	bool kernels = a->shared || a->shared6;

	load(p, BPF_W, 6);
	if (kernels)
		jump(p, BPF_JEQ, 0, 3, 0);
	jump(p, BPF_JEQ, uw_be32(a->mac), 0, TO_DROP);
	load(p, BPF_H, 10);
	jump(p, BPF_JEQ, uw_be16(a->mac + 4), 0, TO_DROP);
}

/* From another process that has an address. */
static void local_arp(struct program *p, const struct filter_ask *a)
{
	load(p, BPF_W, 28);
	jump(p, BPF_JEQ, ntohl(a->addr), TO_DROP, 0);
	jump(p, BPF_JEQ, 0, TO_DROP, 0);
	load(p, BPF_W, 38);
	jump(p, BPF_JEQ, ntohl(a->addr), TO_TAKE, TO_DROP);
}

static void arp(struct program *p, const struct filter_ask *a)
{
	if (a->local) {
		local_arp(p, a);
		return;
	}
	if (a->shared) { /* requests are the kernel's to answer */
		load(p, BPF_H, 20);
		jump(p, BPF_JEQ, 2, 0, TO_DROP);
	}
	load(p, BPF_W, 38);
	jump(p, BPF_JEQ, ntohl(a->addr), TO_TAKE, a->shared ? TO_DROP : 0);
	if (a->shared)
		return;
	load(p, BPF_W, 28); /* somebody else says that it is his (RFC 5227 §2.4) */
	jump(p, BPF_JEQ, ntohl(a->addr), TO_TAKE, TO_DROP);
}

/* The port is loaded. */
static void ports(struct program *p, const struct filter_ports *f)
{
	if (f->n > FILTER_PORTS) {
		emit(p, BPF_RET | BPF_K, TAKE);
		return;
	}
	for (unsigned i = 0; i < f->n; i++)
		jump(p, BPF_JEQ, ntohs(f->at[i]), TO_TAKE, 0);
	emit(p, BPF_RET | BPF_K, 0);
}

/* Errors about our segments; the kernel, which gets them too, has no connection for them. */
static void icmp_errors(struct program *p)
{
	unsigned test = p->n;

	jump(p, BPF_JEQ, IPPROTO_ICMP, 0, 0);
	emit(p, BPF_LDX | BPF_B | BPF_MSH, 14);
	emit(p, BPF_LD | BPF_B | BPF_IND, 14);
	jump(p, BPF_JEQ, ICMP_DEST_UNREACH, TO_TAKE, TO_DROP);
	otherwise(p, test);
}

static void ip4(struct program *p, const struct filter_ask *a)
{
	unsigned test;

	load(p, BPF_W, 30);
	if (a->groups) {
		jump(p, BPF_JEQ, ntohl(a->addr), 2, 0);
		emit(p, BPF_ALU | BPF_AND | BPF_K, 0xf0000000u);
		jump(p, BPF_JEQ, 0xe0000000u, 0, TO_DROP);
	} else {
		jump(p, BPF_JEQ, ntohl(a->addr), 0, TO_DROP);
	}
	load(p, BPF_H, 20);
	jump(p, BPF_JSET, 0x3fff, TO_DROP, 0); /* a fragment */
	load(p, BPF_B, 23);
	test = p->n;
	jump(p, BPF_JEQ, IPPROTO_UDP, 0, 0);
	load(p, BPF_B, 14);
	jump(p, BPF_JEQ, 0x45, 0, TO_DROP); /* options */
	load(p, BPF_H, 36);
	jump(p, BPF_JEQ, ROCE_PORT, TO_TAKE, TO_DROP);
	otherwise(p, test);
	if (!a->shared) {
		jump(p, BPF_JEQ, IPPROTO_ICMP, TO_TAKE, 0);
		jump(p, BPF_JEQ, IPPROTO_TCP, TO_TAKE, TO_DROP);
		return;
	}
	icmp_errors(p);
	jump(p, BPF_JEQ, IPPROTO_TCP, 0, TO_DROP);
	emit(p, BPF_LDX | BPF_B | BPF_MSH, 14); /* the IP header's length */
	emit(p, BPF_LD | BPF_H | BPF_IND, 16);
	ports(p, &a->ports);
}

/* RoCEv2 passes on to the address, and to any group; other UDP does not. */
static void ip6_udp(struct program *p, const struct filter_ask *a)
{
	load(p, BPF_H, 56);
	jump(p, BPF_JEQ, ROCE_PORT, 0, TO_DROP);
	if (a->groups6) {
		load(p, BPF_B, 38);
		jump(p, BPF_JEQ, 0xff, TO_TAKE, 0);
	}
}

/* To an address that the kernel has, too. */
static void ip6_shared(struct program *p, const struct filter_ask *a)
{
	unsigned test;

	load(p, BPF_B, 20);
	jump(p, BPF_JEQ, IPPROTO_UDP, TO_TAKE, 0);
	test = p->n;
	jump(p, BPF_JEQ, IPPROTO_ICMPV6, 0, 0);
	load(p, BPF_B, 54);
	jump(p, BPF_JEQ, ICMP6_DST_UNREACH, TO_TAKE, 0);
	jump(p, BPF_JEQ, ICMP6_PACKET_TOO_BIG, TO_TAKE, 0);
	if (a->local)
		jump(p, BPF_JEQ, ND_NEIGHBOR_SOLICIT, TO_TAKE, 0);
	jump(p, BPF_JEQ, ND_NEIGHBOR_ADVERT, TO_TAKE, TO_DROP);
	otherwise(p, test);
	load(p, BPF_H, 56);
	ports(p, &a->ports6);
}

/* To one of ours, or to its solicited-node address (RFC 4291 §2.7.1), as far as the last four
 * octets tell, which are loaded. */
static void ip6_addresses(struct program *p, const struct filter_ask *a)
{
	const uint32_t all_nodes = 1;	      /* who has an address tells all (RFC 4862 §5.4.3) */
	bool asked = !a->shared6 || a->local; /* else the kernel is */

	for (unsigned i = 0; i < a->n_ip6; i++) {
		uint32_t end = uw_be32(a->ip6[i].ip.b + 12);
		/* behind what is left to test */
		unsigned past = (a->n_ip6 - i) * (asked ? 2 : 1);

		jump(p, BPF_JEQ, end, a->shared6 ? (uint8_t)past : TO_TAKE, 0);
		if (asked)
			jump(p, BPF_JEQ, 0xff000000u | end,
			     a->shared6 ? (uint8_t)(past - 1) : TO_TAKE, 0);
	}
	jump(p, BPF_JEQ, all_nodes, a->local ? TO_DROP : TO_TAKE, TO_DROP);
	if (a->shared6)
		ip6_shared(p, a);
}

static void ip6(struct program *p, const struct filter_ask *a)
{
	unsigned test;

	load(p, BPF_B, 20);
	test = p->n;
	jump(p, BPF_JEQ, IPPROTO_UDP, 0, 0);
	ip6_udp(p, a);
	emit(p, BPF_JMP | BPF_JA, 2); /* to the address */
	otherwise(p, test);
	jump(p, BPF_JEQ, IPPROTO_TCP, 1, 0);
	jump(p, BPF_JEQ, IPPROTO_ICMPV6, 0, TO_DROP);
	if (a->local) { /* a probe comes from nobody */
		load(p, BPF_W, 22);
		jump(p, BPF_JEQ, 0, TO_DROP, 0);
	}
	load(p, BPF_W, 50);
	ip6_addresses(p, a);
}

unsigned filter_make(const struct filter_ask *a, struct sock_filter *out)
{
	struct program p = { .at = out };
	unsigned test;

	in_vlan(&p, a->vlan);
	if (a->local)
		from_this_interface(&p, a);
	else
		for_this_host(&p);
	load(&p, BPF_H, 12);
	if (a->addr) {
		test = p.n;
		jump(&p, BPF_JEQ, 0x0806, 0, 0);
		arp(&p, a);
		otherwise(&p, test);
		test = p.n;
		jump(&p, BPF_JEQ, 0x0800, 0, 0);
		ip4(&p, a);
		otherwise(&p, test);
	}
	jump(&p, BPF_JEQ, 0x86dd, 0, TO_DROP);
	ip6(&p, a);
	finish(&p);
	return p.n;
}
