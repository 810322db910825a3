/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said on stderr about connections: what happened and what to do about it. */
#include <arpa/inet.h>

#include "base/log.h"
#include "conn/conn.h"

void conn_print_addr(const struct uw_ip *a, char out[CONN_ADDR_TEXT])
{
	if (uw_ip_is_v4(a))
		inet_ntop(AF_INET, a->b + 12, out, CONN_ADDR_TEXT);
	else
		inet_ntop(AF_INET6, a->b, out, CONN_ADDR_TEXT);
}

/* Who would have answered depends on what is below. */
static const char *unreachable(const struct stack *s)
{
	const struct io_link *l = s->n_links ? s->links[0] : NULL;

	if (!l || l->flags & IO_P2P)
		return "no uwarp process has that address: see `uwarp-run --list`, or check --link "
		       "and --ip";
	if (l->ops->tx)
		return "nobody on the network answers for that address, or a router has no way to "
		       "it: check the address, the link and --ip";
	return "the kernel has no way to it from this process's address (--ip): see `ip route "
	       "get`; one of 127.0.0.0/8 leads nowhere but to this machine";
}

const char *conn_advice(const struct stack *s, uw_status why)
{
	switch (why) {
	case UW_E_REFUSED:
		return "nothing listens on that port: start the server first, or check the port";
	case UW_E_UNREACHABLE:
		return unreachable(s);
	case UW_E_NO_ROUTE:
		return "no route leads to that address: see `ip route`, or give --gateway, --route "
		       "or a prefix (--ip A/N)";
	case UW_E_AFAMILY:
		return "this process has, or is bound to, addresses of the other version of IP "
		       "alone: see `ip addr`, or give one of that version (--ip)";
	case UW_E_TIMEOUT:
		return "no answer: check the address, the link and the peer";
	case UW_E_MPA_TIMEOUT:
		return "it accepts TCP but does not answer in MPA: is it an iWARP listener?";
	case UW_E_MPA_FRAME:
	case UW_E_MPA_INITIATOR:
	case UW_E_MPA_REVISION:
		return "it does not speak iWARP (MPA) on that port: check the port";
	case UW_E_LLP_CLOSED:
		return "it closed the connection during start-up: is it an iWARP listener?";
	default:
		return uw_status_name(why);
	}
}

static uint64_t who_of(const struct uw_ip *to, uint16_t port)
{
	return uw_ip_hash(to) ^ port;
}

static void say_failed(struct stack *s, const struct uw_ip *to, uint16_t port, const char *text)
{
	char addr[CONN_ADDR_TEXT];

	if (!said_may(&s->domain->said, who_of(to, port), (uintptr_t)text, stack_now_us(s)))
		return;
	conn_print_addr(to, addr);
	uw_log("cannot connect to %s:%u: %s", addr, ntohs(port), text);
}

void conn_log_failed(struct stack *s, const struct uw_ip *to, uint16_t port, uw_status why)
{
	say_failed(s, to, port, conn_advice(s, why));
}

void conn_log_unanswered(const struct conn *c, bool acknowledged)
{
	const char *text =
		acknowledged
			? "it accepts TCP and has our MPA Request but does not answer: is it an "
			  "iWARP listener, and does its program accept?"
			: "it accepted TCP, and then acknowledged nothing of what was sent: is its "
			  "process stopped, or the way to it broken?";

	say_failed(c->stack, &c->remote, c->rport, text);
}

void conn_log_worked(const struct conn *c)
{
	said_forget(&c->stack->domain->said, who_of(&c->remote, c->rport));
}

void conn_log_no_address(const struct stack *s, const struct uw_ip *asked)
{
	static _Atomic bool said;
	char addr[CONN_ADDR_TEXT], own[CONN_ADDR_TEXT];
	struct uw_ip has = uw_ip_v4(s->n_links ? s->links[0]->addr : 0);

	if (atomic_exchange(&said, true))
		return;
	conn_print_addr(asked, addr);
	conn_print_addr(&has, own);
	uw_log("%s is no address of this process, which has %s: give that one to the program, or "
	       "the other one to uwarp-run (--ip A/N)",
	       addr, own);
}

void conn_log_port_taken(const struct uw_ip *addr, uint16_t port)
{
	static _Atomic bool said;
	char text[CONN_ADDR_TEXT];

	if (atomic_exchange(&said, true))
		return;
	conn_print_addr(addr, text);
	uw_log("TCP port %u of %s is a kernel socket's, of another program or of this one (`ss "
	       "-tanp` tells whose): choose another",
	       ntohs(port), text);
}

void conn_log_both_wait(const struct conn *c)
{
	static _Atomic bool said;
	char addr[CONN_ADDR_TEXT];

	if (atomic_exchange(&said, true))
		return;
	conn_print_addr(&c->remote, addr);
	uw_log("%s connected and is silent, and this program wants to send first, which RFC 5044 "
	       "7.1.2 forbids: UWARP_SPEAK_FIRST_MS=500 allows it",
	       addr);
}
