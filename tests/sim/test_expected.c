/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What io/lwip/pcb/tx_fast.c and rx_fast.c do instead of lwIP leaves a connection as lwIP would
 * have left it (RFC 9293 §3.10.7.4, RFC 5681, RFC 6298): they are for IPv4, so the same run over
 * IPv6, with frames that are longer by what its header is, has the same frames at the same times,
 * loses the same of them, and has the same state in every pcb after every message.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "io/lwip/conn.h"
#include "io/lwip/pcb/private.h"
#include "net.h"

#define PORT	 7471
#define MESSAGES 60u
#define LONGEST	 200000u
#define STATES	 (2 * MESSAGES)

/* Each field of io/lwip/pcb/private.h. */
#define ENTRY(field, how) FIELD_##field,
enum { LWIP_PCB_FIELDS(ENTRY) FIELDS };
#define NAME(field, how) #field,
static const char *const names[] = { LWIP_PCB_FIELDS(NAME) };

struct state {
	uint32_t v[FIELDS];
};

struct trace {
	struct state v[STATES];
	uint32_t sent[2], received[2]; /* when the connection came up */
	uint64_t at_us[MESSAGES], frames[2];
	unsigned n;
};

static unsigned length(const struct tcp_seg *seg)
{
	unsigned n = 0;

	for (; seg; seg = seg->next)
		n++;
	return n;
}

/* Sequence numbers begin somewhere else each time: they are told by how far they are from where
 * they began, and times by how long ago they were. */
#define AS_PLAIN(x)   (uint32_t)(x)
#define AS_RX_SEQ(x)  (uint32_t)(x) - received
#define AS_TX_SEQ(x)  (uint32_t)(x) - sent
#define AS_TICK(x)    (x) ? tcp_ticks - (uint32_t)(x) : UINT32_MAX
#define AS_RTT_SEQ(x) p->rttest ? (uint32_t)(x)-sent : 0
#define AS_QUEUE(x)   length(x)
#define AS_POINTER(x) (x) != NULL
#define AS_OTHER(x)   0

static struct state state_of(const struct tcp_pcb *p, uint32_t sent, uint32_t received)
{
#define VALUE(field, how) [FIELD_##field] = AS_##how(p->field),
	return (struct state){ { LWIP_PCB_FIELDS(VALUE) } };
}

static void note_start(struct trace *t)
{
	const struct llp_conn *c = edge.conns;

	for (unsigned i = 0; i < 2; i++, c = c->next) {
		t->sent[i] = c->pcb->snd_nxt;
		t->received[i] = c->pcb->rcv_nxt;
	}
}

static void note(struct sim *s, struct trace *t)
{
	const struct llp_conn *c = edge.conns;

	t->at_us[t->n / 2] = s->now_us;
	for (unsigned i = 0; i < 2; i++, c = c->next) {
		t->v[t->n++] = state_of(c->pcb, t->sent[i], t->received[i]);
	}
}

struct ends {
	uint8_t *octets[2];
	struct uw_mr *mr[2];
};

static void post(struct sim *s, struct ends *e, unsigned from, uint32_t n)
{
	struct sim_side *side[2] = { &s->a, &s->b };
	struct uw_sge sge = { (uintptr_t)e->octets[from], n, uw_mr_stag(e->mr[from]) };
	struct uw_send_wr wr = {
		.sg_list = &sge, .num_sge = 1, .opcode = UW_WR_SEND, .flags = UW_SEND_SIGNALED
	};

	sim_post_recv(side[!from], 0, e->octets[!from], LONGEST, e->mr[!from]);
	sim_post_send(side[from], &wr);
}

/* One way, both ways at once, few and many octets; sometimes time passes between two. */
static void message(struct sim *s, struct ends *e, unsigned i)
{
	static const uint32_t sizes[] = { 64, 1, 9000, 64, 1448, LONGEST, 0, 30000 };
	uint32_t n = sizes[i % 8];

	post(s, e, i & 1, n);
	if (i % 5 == 0)
		post(s, e, !(i & 1), n / 2);
	assert_int_equal(sim_wc(s, i & 1 ? s->a.rcq : s->b.rcq).byte_len, n);
	assert_int_equal(sim_wc(s, i & 1 ? s->b.scq : s->a.scq).status, UW_WC_SUCCESS);
	if (i % 5 == 0) {
		assert_int_equal(sim_wc(s, i & 1 ? s->b.rcq : s->a.rcq).byte_len, n / 2);
		assert_int_equal(sim_wc(s, i & 1 ? s->a.scq : s->b.scq).status, UW_WC_SUCCESS);
	}
	if (i % 7 == 0)
		sim_run_us(s, 40000);
}

static bool run(const struct sim_options *o, struct trace *t)
{
	struct sim *s = calloc(1, sizeof(*s));
	struct ends e;

	sim_rewind();
	sim_open(s, o);
	if (s->wall) {
		sim_close(s);
		free(s);
		return false;
	}
	sim_connect(s, PORT);
	for (unsigned i = 0; i < 2; i++) {
		e.octets[i] = calloc(1, LONGEST);
		e.mr[i] = sim_mr(i ? &s->b : &s->a, e.octets[i], LONGEST, UW_ACCESS_LOCAL_WRITE);
	}
	note_start(t);
	for (unsigned i = 0; i < MESSAGES; i++) {
		message(s, &e, i);
		note(s, t);
	}
	for (unsigned i = 0; i < 2; i++) {
		t->frames[i] = s->link[i]->stats.tx_frames;
		assert_int_equal(uw_mr_dereg(e.mr[i]), 0);
		free(e.octets[i]);
	}
	sim_close(s);
	free(s);
	return true;
}

static void same_state(unsigned i, const struct state *a, const struct state *b)
{
	for (unsigned k = 0; k < FIELDS; k++) {
		if (a->v[k] != b->v[k])
			print_error("message %u, end %u: %s\n", i / 2, i % 2, names[k]);
		assert_int_equal(a->v[k], b->v[k]);
	}
}

static void same_over_both(struct sim_options o)
{
	struct trace *four = calloc(1, sizeof(*four)), *six = calloc(1, sizeof(*six));

	o.direct = true;
	if (!run(&o, four)) {
		free(four);
		free(six);
		skip();
	}
	o.ip6 = true;
	o.mtu += 20;
	assert_true(run(&o, six));
	for (unsigned i = 0; i < STATES; i++)
		same_state(i, &four->v[i], &six->v[i]);
	assert_memory_equal(four->at_us, six->at_us, sizeof(four->at_us));
	assert_memory_equal(four->frames, six->frames, sizeof(four->frames));
	free(four);
	free(six);
}

static void test_same_state_as_lwip(void **state)
{
	(void)state;
	same_over_both((struct sim_options){ .mtu = 1500, .seed = 1 });
	same_over_both((struct sim_options){ .mtu = 9000, .seed = 1 });
	same_over_both((struct sim_options){ .mtu = 9000, .seed = 1, .roce = true });
}

static void test_same_state_with_faults(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 12; seed++)
		same_over_both((struct sim_options){ .mtu = seed & 1 ? 1500 : 9000,
						     .roce = seed & 2,
						     .drop_ppm = 10000,
						     .dup_ppm = 20000,
						     .reorder_ppm = 20000,
						     .seed = seed });
}

/* lwIP's clock is 0 at first, and a measurement that begins at 0 is none: let it pass. */
static int pass_first_tick(void **state)
{
	struct trace *t = calloc(1, sizeof(*t));

	(void)state;
	run(&(struct sim_options){ .mtu = 1500 }, t);
	free(t);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_same_state_as_lwip),
		cmocka_unit_test(test_same_state_with_faults),
	};

	return cmocka_run_group_tests_name("expected", tests, pass_first_tick, NULL);
}
