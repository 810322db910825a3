/* SPDX-License-Identifier: BSD-3-Clause */
#include "engine/say.h"

#include <arpa/inet.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine.h"

void engine_say(const char *fmt, ...)
{
	char line[512] = "uwarp: ";
	size_t n = strlen(line);
	va_list ap;
	int k;

	va_start(ap, fmt);
	k = vsnprintf(line + n, sizeof(line) - n - 1, fmt, ap);
	va_end(ap);
	if (k > 0)
		n += (size_t)k < sizeof(line) - n - 1 ? (size_t)k : sizeof(line) - n - 2;
	line[n++] = '\n';
	if (write(STDERR_FILENO, line, n) < 0)
		return; /* nobody to tell */
}

#define ADDR_TEXT    INET6_ADDRSTRLEN
#define COUNTER_TEXT 48 /* a name and twenty digits */

static void print_addr(const struct uw_ip *a, char out[ADDR_TEXT])
{
	if (uw_ip_is_v4(a))
		inet_ntop(AF_INET, a->b + 12, out, ADDR_TEXT);
	else
		inet_ntop(AF_INET6, a->b, out, ADDR_TEXT);
}

static const char *advice(uw_status why)
{
	switch (why) {
	case UW_E_REFUSED:
		return "nothing listens on that port: start the server first, or check the port";
	case UW_E_UNREACHABLE:
		return "no uwarp process has that address: see `uwarp-run --list`, or check --link "
		       "and --ip";
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

struct counter {
	const char *name;
	uint64_t n;
};

/* Those that counted anything, in as many lines as it takes. */
static void say_counted(const char *what, const struct counter *c, size_t n)
{
	char line[400];
	size_t at = 0;

	for (size_t i = 0; i < n; i++) {
		if (!c[i].n)
			continue;
		at += (size_t)snprintf(line + at, sizeof(line) - at, " %s %llu", c[i].name,
				       (unsigned long long)c[i].n);
		if (at > sizeof(line) - COUNTER_TEXT) {
			engine_say("%s:%s", what, line);
			at = 0;
		}
	}
	if (at)
		engine_say("%s:%s", what, line);
}

void engine_say_counters(const struct uw_stats *st)
{
	const struct counter c[] = {
#define UW_STAT(name) { #name, st->name },
		UW_STATS_LIST(UW_STAT)
#undef UW_STAT
	};

	say_counted("counters", c, sizeof(c) / sizeof(c[0]));
}

void engine_say_link(const struct io_link *l)
{
	const struct io_stats *st = &l->stats;
	const struct counter c[] = {
		{ "rx_frames", st->rx_frames }, { "rx_bytes", st->rx_bytes },
		{ "rx_drops", st->rx_drops },	{ "tx_frames", st->tx_frames },
		{ "tx_bytes", st->tx_bytes },	{ "tx_drops", st->tx_drops },
		{ "tx_full", st->tx_full },	{ "no_frame", st->no_frame },
		{ "rings", st->rings },		{ "handed", st->handed },
	};

	say_counted(l->ops->name, c, sizeof(c) / sizeof(c[0]));
}

void engine_say_tso(const struct io_stats *st)
{
	engine_say("TSO: of %llu frames sent %llu went in %llu chains; %llu singly after all",
		   (unsigned long long)st->tx_frames, (unsigned long long)st->tx_merged,
		   (unsigned long long)st->tx_chains, (unsigned long long)st->tx_unmerged);
}

void engine_say_connect_failed(const struct uw_ep *ep, uw_status why)
{
	static _Atomic uint64_t last;
	uint64_t key = uw_ip_hash(&ep->asked) ^ (uint64_t)ep->rport << 16 ^ (uint16_t)why;
	char addr[ADDR_TEXT];

	if (atomic_exchange(&last, key) == key)
		return;
	print_addr(&ep->asked, addr);
	engine_say("cannot connect to %s:%u: %s", addr, ntohs(ep->rport), advice(why));
}

void engine_say_both_wait(const struct uw_ep *ep)
{
	static _Atomic bool said;
	char addr[ADDR_TEXT];

	if (atomic_exchange(&said, true))
		return;
	print_addr(&ep->remote, addr);
	engine_say("%s connected and is silent, and this program wants to send first, which RFC "
		   "5044 7.1.2 forbids: UWARP_SPEAK_FIRST_MS=500 allows it",
		   addr);
}

static void say_about(const struct uw_rc *rc, const char *what)
{
	char addr[ADDR_TEXT];

	print_addr(&rc->peer.addr, addr);
	engine_say("QP %u has no connection to QP %u at %s: %s", rc->self.qpn, rc->peer.qpn, addr,
		   what);
}

static const char *rc_advice(const struct uw_rc *rc)
{
	if (!rc_connects(&rc->self, &rc->peer))
		return "it did not connect: is it a uwarp process, and has it named this QP (GID, "
		       "QP number) in ibv_modify_qp? Other iWARP devices need rdma_cm";
	switch (rc->last) {
	case UW_E_REFUSED:
		return "nothing there answers for QPs without rdma_cm: is it a uwarp process that "
		       "got as far as ibv_modify_qp(RTR)? Other iWARP devices need rdma_cm";
	case UW_E_REJECTED:
		return "that QP never got as far as RTR: has its program called ibv_modify_qp?";
	default:
		return advice(rc->last);
	}
}

void engine_say_no_peer(const struct uw_rc *rc)
{
	say_about(rc, rc_advice(rc));
}

void engine_say_refused(const struct uw_rc *rc, enum rc_refusal why)
{
	switch (why) {
	case RC_NO_SUCH_QP:
		say_about(rc, "there is no such QP: check the QP number and the GID");
		break;
	case RC_OTHER_PEER:
		say_about(rc, "it names another peer in ibv_modify_qp: check the QP numbers and "
			      "the GIDs on both sides");
		break;
	default:
		say_about(rc, "the two sides do not agree on their addresses: check the GIDs");
		break;
	}
}
