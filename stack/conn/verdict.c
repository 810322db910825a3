/* SPDX-License-Identifier: BSD-3-Clause */
#include "conn/verdict.h"

#include <arpa/inet.h>
#include <stdio.h>

#define SECONDS(ms) ((double)(ms) / 1000)

struct case_at_hand {
	const struct conn *c;
	const char *peer; /* its address and port */
	uint32_t sends;	  /* requests that are not done */
	char *out;
};

/* The history cannot count timeouts: between two of them are repeats, and it keeps few events. */
static void say_unanswered(const struct case_at_hand *k, uint32_t ms)
{
	const struct history_event *t = history_last(&k->c->history, LLP_TIMEOUTS);
	char how_long[32] = "", how_often[48] = "";

	if (ms)
		snprintf(how_long, sizeof(how_long), " for %.1f s", SECONDS(ms));
	if (t)
		snprintf(how_often, sizeof(how_often), " after %u timeout%s in a row", t->arg,
			 t->arg == 1 ? "" : "s");
	snprintf(k->out, CONN_VERDICT_TEXT, "peer %s sent no ACK%s: TCP gave up%s", k->peer,
		 how_long, how_often);
}

/* The last of what TCP noted about its end. */
static const struct history_event *end_of_llp(const struct history *h)
{
	for (uint32_t i = history_count(h); i > 0; i--) {
		const struct history_event *e = history_at(h, i - 1);

		if (e->kind >= LLP_RESET && e->kind < LLP_NOTES)
			return e;
	}
	return NULL;
}

static void say_lost(const struct case_at_hand *k)
{
	const struct history_event *e = end_of_llp(&k->c->history);

	switch (e ? e->kind : LLP_NOTES) {
	case LLP_RESET:
		snprintf(k->out, CONN_VERDICT_TEXT, "peer %s reset the TCP connection (RST)",
			 k->peer);
		break;
	case LLP_UNANSWERED:
		say_unanswered(k, e->arg);
		break;
	case LLP_SILENT:
		snprintf(k->out, CONN_VERDICT_TEXT,
			 "peer %s sent nothing for %.1f s and answered no keepalive", k->peer,
			 SECONDS(e->arg));
		break;
	case LLP_PROCESS_GONE:
		snprintf(k->out, CONN_VERDICT_TEXT, "the process of peer %s has ended", k->peer);
		break;
	default:
		snprintf(k->out, CONN_VERDICT_TEXT, "the TCP connection to peer %s is lost",
			 k->peer);
		break;
	}
}

static void say_status(const struct case_at_hand *k, uw_status why)
{
	const struct rdmap_term *t = &k->c->qp->qp.peer_term;

	switch (why) {
	case UW_OK:
		snprintf(k->out, CONN_VERDICT_TEXT,
			 "peer %s closed the connection while %u requests were not done", k->peer,
			 k->sends);
		break;
	case UW_E_TERMINATED:
		snprintf(k->out, CONN_VERDICT_TEXT, "peer %s sent a Terminate: %s", k->peer,
			 uw_status_name(uw_status_from_term(t->layer, t->etype, t->code)));
		break;
	case UW_E_DDP_NO_BUFFER:
		snprintf(k->out, CONN_VERDICT_TEXT,
			 "peer %s sent a message, and no receive was posted for it in time",
			 k->peer);
		break;
	case UW_E_LKEY:
	case UW_E_BIND:
	case UW_E_ORD:
		snprintf(k->out, CONN_VERDICT_TEXT,
			 "a request of this program to peer %s cannot be carried out: %s", k->peer,
			 uw_status_name(why));
		break;
	case UW_E_NOMEM:
		snprintf(k->out, CONN_VERDICT_TEXT,
			 "a completion queue of the QP connected to peer %s overflowed", k->peer);
		break;
	default:
		snprintf(k->out, CONN_VERDICT_TEXT, "what peer %s sent cannot be carried out: %s",
			 k->peer, uw_status_name(why));
		break;
	}
}

void conn_verdict(const struct conn *c, uw_status why, char out[CONN_VERDICT_TEXT])
{
	char addr[CONN_ADDR_TEXT], peer[CONN_ADDR_TEXT + 8];
	struct conn_report r;

	conn_report(c, &r);
	conn_print_addr(&c->remote, addr);
	snprintf(peer, sizeof(peer), "%s:%u", addr, ntohs(c->rport));
	const struct case_at_hand k = { c, peer, r.sends, out };
	if (why == UW_E_LLP_CLOSED || !c->qp)
		say_lost(&k);
	else
		say_status(&k, why);
}

/* The program ends the connection, or the peer does so when nothing is left to do. */
static bool is_orderly(const struct conn *c, uw_status why)
{
	if (why == UW_E_FLUSHED)
		return true;
	return why == UW_OK && (!c->qp || sq_empty(&c->qp->qp.sq));
}

void conn_failed(struct conn *c, uw_status why)
{
	const struct conn_hooks *h = &c->stack->domain->hooks;

	conn_note(c, HISTORY_FAILED, why);
	if (h->failed && !is_orderly(c, why))
		h->failed(h->failed_arg, c, why);
}
