/* SPDX-License-Identifier: BSD-3-Clause */
/* What uwarp-stat is told. The names of the members are part of its interface
 * (doc/man/uwarp-stat.1): they may be added to, not changed. */
#include <arpa/inet.h>
#include <errno.h>
#include <unistd.h>

#include "conn/walk.h"
#include "engine/stat/stat.h"

#ifndef UWARP_VERSION
#define UWARP_VERSION "0"
#endif

#define FORMAT 1u
#define PIECE  16u /* connections looked at under one taking of the stack lock */

static void add_uint32(struct text *t, const char *name, uint32_t v)
{
	text_number(t, name, v);
}

static void add_end(struct text *t, const char *name, const struct uw_ip *ip, uint16_t port)
{
	char addr[CONN_ADDR_TEXT];

	conn_print_addr(ip, addr);
	text_member(t, name);
	text_add(t, "{");
	text_string(t, "address", addr);
	add_uint32(t, "port", ntohs(port));
	text_add(t, "}");
}

static void add_tcp(struct text *t, const struct llp_info *i)
{
	text_member(t, "tcp");
	text_add(t, "{");
	text_string(t, "control", i->control);
	text_string(t, "phase", i->phase);
	add_uint32(t, "mss", i->mss);
	add_uint32(t, "cwnd", i->cwnd);
	add_uint32(t, "ssthresh", i->ssthresh);
	add_uint32(t, "in_flight", i->in_flight);
	add_uint32(t, "unsent", i->unsent);
	add_uint32(t, "peer_window", i->peer_window);
	add_uint32(t, "own_window", i->own_window);
	text_number(t, "rtt_us", i->srtt_us);
	text_number(t, "rtt_var_us", i->rttvar_us);
	text_number(t, "rtt_min_us", i->min_rtt_us);
	text_number(t, "rto_us", i->rto_us);
	text_number(t, "reorder_us", i->reorder_us);
	text_truth(t, "reordering", i->reordering);
	text_number(t, "delivered_bytes", i->delivered);
	text_number(t, "sent_again", i->sent_again);
	text_number(t, "recoveries", i->recoveries);
	text_number(t, "timeouts", i->timeouts);
	text_number(t, "probes", i->probes);
	text_number(t, "probe_losses", i->probe_losses);
	text_number(t, "duplicates", i->duplicates);
	text_number(t, "undone", i->undone);
	text_number(t, "spurious_timeouts", i->spurious);
	text_number(t, "reneged", i->reneged);
	text_number(t, "ecn_reductions", i->marked);
	add_uint32(t, "rx_held_bytes", i->rx_held);
	add_uint32(t, "rx_buffers", i->rx_buffers);
	text_truth(t, "paused", i->paused);
	text_add(t, "}");
}

static void add_conn(struct text *t, const struct conn_report *r, unsigned stack, uint64_t now)
{
	text_add(t, "%s{", t->n && t->p[t->n - 1] == '}' ? "," : "");
	add_uint32(t, "stack", stack);
	text_string(t, "state", r->state);
	text_string(t, "role", r->initiator ? "initiator" : "responder");
	text_truth(t, "cm_less", r->cm_less);
	add_end(t, "local", &r->local, r->lport);
	add_end(t, "remote", &r->remote, r->rport);
	add_uint32(t, "qpn", r->qpn);
	add_uint32(t, "sends", r->sends);
	add_uint32(t, "receives", r->recvs);
	add_uint32(t, "ird", r->ird);
	add_uint32(t, "ord", r->ord);
	text_truth(t, "waits_for_receive", r->rnr);
	text_number(t, "age_us", now > r->since_us ? now - r->since_us : 0);
	add_tcp(t, &r->llp);
	text_add(t, "}");
}

/* The lock is held for PIECE reports, and not while they become text. */
static unsigned take_piece(struct stack *s, struct conn_walk *w, bool first,
			   struct conn_report *out)
{
	unsigned n = 0;
	struct conn *c;

	sched_lock(&s->sched);
	if (first)
		conn_walk_begin(w, s);
	while (n < PIECE && (c = conn_walk_next(w)))
		conn_report(c, &out[n++]);
	if (n < PIECE)
		conn_walk_end(w);
	sched_unlock(&s->sched);
	return n;
}

static unsigned add_conns_of(struct text *t, struct stack *s)
{
	struct conn_report piece[PIECE];
	struct conn_walk w;
	unsigned n, all = 0;

	do {
		n = take_piece(s, &w, !all, piece);
		for (unsigned i = 0; i < n; i++)
			add_conn(t, &piece[i], s->sched.index, stack_now_us(s));
		all += n;
	} while (n == PIECE);
	return all;
}

static void add_conns(struct text *t, struct uw_engine *e)
{
	unsigned n = 0;

	text_member(t, "connections");
	text_add(t, "[");
	for (unsigned i = 0; i < e->n_stacks; i++)
		n += add_conns_of(t, e->stack[i]);
	text_add(t, "]");
	add_uint32(t, "n_connections", n);
}

/* ---- the process ------------------------------------------------------------------------- */

static void add_addrs(struct text *t, const struct io_link *l)
{
	struct uw_ip four = uw_ip_v4(l->addr);
	char addr[CONN_ADDR_TEXT];

	text_member(t, "addresses");
	text_add(t, "[");
	if (l->addr) {
		conn_print_addr(&four, addr);
		text_add(t, "\"%s\"", addr);
	}
	for (unsigned i = 0; i < l->n_ip6; i++) {
		conn_print_addr(&l->ip6[i].ip, addr);
		text_add(t, "%s\"%s\"", l->addr || i ? "," : "", addr);
	}
	text_add(t, "]");
}

static void add_link(struct text *t, const struct io_link *l)
{
	const struct io_stats *st = &l->stats;

	text_add(t, "%s{", t->p && t->n && t->p[t->n - 1] == '}' ? "," : "");
	text_string(t, "name", l->ops->name);
	add_uint32(t, "mtu", l->mtu);
	add_addrs(t, l);
	text_number(t, "rx_frames", st->rx_frames);
	text_number(t, "rx_bytes", st->rx_bytes);
	text_number(t, "rx_drops", st->rx_drops);
	text_number(t, "tx_frames", st->tx_frames);
	text_number(t, "tx_bytes", st->tx_bytes);
	text_number(t, "tx_drops", st->tx_drops);
	text_number(t, "tx_full", st->tx_full);
	text_number(t, "no_frame", st->no_frame);
	text_number(t, "rings", st->rings);
	text_number(t, "tx_lent", st->tx_lent);
	text_number(t, "peer_faults", st->peer_faults);
	text_number(t, "handed", st->handed);
	text_number(t, "tx_merged", st->tx_merged);
	text_number(t, "kept", st->kept);
	text_add(t, "}");
}

/* A link's end, engine_close_links, comes after that of our thread. */
static void add_links(struct text *t, struct uw_engine *e)
{
	text_member(t, "links");
	text_add(t, "[");
	for (unsigned k = 0; k < e->n_stacks; k++) {
		struct stack *s = e->stack[k];
		struct io_link copy[STACK_LINKS];
		unsigned n = s->n_links;

		sched_lock(&s->sched);
		for (unsigned i = 0; i < n; i++)
			copy[i] = *s->links[i];
		sched_unlock(&s->sched);
		for (unsigned i = 0; i < n; i++)
			add_link(t, &copy[i]);
	}
	text_add(t, "]");
}

static void add_counter(void *arg, const char *name, uint64_t n)
{
	text_number(arg, name, n);
}

static void add_counters(struct text *t, struct uw_engine *e)
{
	text_member(t, "counters");
	text_add(t, "{");
	uw_engine_counters(e, add_counter, t);
	text_add(t, "}");
}

static void add_objects(struct text *t, struct uw_engine *e)
{
	uint32_t regions;

	sched_lock(&e->stack[0]->sched);
	regions = e->verbs.mem.used;
	sched_unlock(&e->stack[0]->sched);
	text_member(t, "objects");
	text_add(t, "{");
	add_uint32(t, "qps", atomic_load(&e->conn.n_qps));
	add_uint32(t, "endpoints", atomic_load(&e->conn.n_eps));
	add_uint32(t, "regions", regions);
	text_add(t, "}");
}

void stat_snapshot(struct uw_engine *e, struct text *t)
{
	text_add(t, "{");
	add_uint32(t, "format", FORMAT);
	text_string(t, "version", UWARP_VERSION);
	add_uint32(t, "pid", (uint32_t)getpid());
	text_string(t, "program", program_invocation_short_name);
	text_string(t, "transport", *e->cfg.transport ? e->cfg.transport : "raw");
	text_string(t, "link", *e->cfg.link ? e->cfg.link : "memif");
	add_uint32(t, "stacks", e->n_stacks);
	add_objects(t, e);
	add_links(t, e);
	add_counters(t, e);
	add_conns(t, e);
	text_add(t, "}\n");
}
