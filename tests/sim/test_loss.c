/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Goodput of Writes over a link that loses, delays and reorders, the whole stack on a virtual
 * clock: how much of the link is left. A table of it: sim_loss PPM DELAY_US MTU MEGABYTES.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "net.h"

#define ACCESS	 (UW_ACCESS_LOCAL_WRITE | UW_ACCESS_REMOTE_WRITE)
#define SIZE	 (1u << 20)
#define AT_ONCE	 16u
#define LINK_BPS 10000000000u

struct transfer {
	uint32_t ppm, mtu;
	uint64_t delay_us;
	uint32_t reorder_ppm;
	unsigned megabytes;
};

struct outcome {
	double gbps;
	uint64_t longest_us; /* between two completions */
	uint64_t dropped;
	struct uw_stats stats;
};

static void post_write(struct sim *s, const uint8_t *a, const uint8_t *b, uint32_t lkey,
		       uint32_t rkey)
{
	struct uw_sge sge = { (uintptr_t)a, SIZE, lkey };
	struct uw_send_wr wr = { .sg_list = &sge,
				 .num_sge = 1,
				 .opcode = UW_WR_RDMA_WRITE,
				 .flags = UW_SEND_SIGNALED,
				 .remote_addr = (uintptr_t)b,
				 .rkey = rkey };

	sim_post_send(&s->a, &wr);
}

static struct outcome transfer(const struct transfer *t)
{
	struct sim *s = calloc(1, sizeof(*s));
	uint8_t *a = calloc(1, SIZE), *b = calloc(1, SIZE);
	struct sim_options o = { .mtu = t->mtu,
				 .delay_us = t->delay_us,
				 .bps = LINK_BPS,
				 .reorder_ppm = t->reorder_ppm,
				 .roce = true };
	struct outcome out = { 0 };
	struct uw_mr *ma, *mb;
	uint64_t start, last;

	sim_open(s, &o);
	if (s->wall)
		skip(); /* a kernel's or another lwIP's recovery */
	sim_connect(s, 7471);
	ma = sim_mr(&s->a, a, SIZE, ACCESS);
	mb = sim_mr(&s->b, b, SIZE, ACCESS);
	for (unsigned i = 0; i < 2; i++)
		loop_set_drop(s->link[i], t->ppm);
	start = last = s->now_us;
	for (unsigned posted = 0, done = 0; done < t->megabytes; done++) {
		for (; posted < t->megabytes && posted - done < AT_ONCE; posted++)
			post_write(s, a, b, uw_mr_stag(ma), uw_mr_stag(mb));
		assert_int_equal(sim_wc(s, s->a.scq).status, UW_WC_SUCCESS);
		if (s->now_us - last > out.longest_us)
			out.longest_us = s->now_us - last;
		last = s->now_us;
	}
	out.gbps = t->megabytes * 8.388608e3 / (double)(s->now_us - start);
	out.stats = sim_stats(s);
	out.dropped = loop_faults(s->link[0]).dropped;
	for (unsigned i = 0; i < 2; i++)
		loop_set_drop(s->link[i], 0);
	assert_int_equal(uw_mr_dereg(ma), 0);
	assert_int_equal(uw_mr_dereg(mb), 0);
	sim_close(s);
	free(a);
	free(b);
	free(s);
	return out;
}

/* RFC 8985, RFC 6937, RFC 9438: 1.22 / sqrt(p) segments in a round trip and more would be up to
 * four times this; the simulated port and clock move in steps of up to a millisecond. */
static void test_loss_leaves_what_it_may(void **state)
{
	(void)state;
	assert_true(transfer(&(struct transfer){ 0, 1500, 50, 0, 64 }).gbps > 8);
	assert_true(transfer(&(struct transfer){ 1000, 1500, 50, 0, 64 }).gbps > 1.2);
	assert_true(transfer(&(struct transfer){ 10000, 1500, 50, 0, 32 }).gbps > 0.2);
	assert_true(transfer(&(struct transfer){ 10000, 9000, 50, 0, 32 }).gbps > 2);
	assert_true(transfer(&(struct transfer){ 50000, 1500, 50, 0, 8 }).gbps > 0.04);
}

/* RFC 8985 §6.2 step 4: one frame in a hundred comes 400 us late, nothing is lost. */
static void test_lateness_is_no_loss(void **state)
{
	struct outcome o = transfer(&(struct transfer){ 0, 1500, 50, 10000, 64 });

	(void)state;
	assert_true(o.gbps > 6);
	/* of some 470 late ones */
	assert_in_range(o.stats.tcp_tx_again, 0, 150);
}

/* Hardly more is sent again than was lost: the peer has the rest (RFC 2018). */
static void test_only_what_was_lost_goes_again(void **state)
{
	struct outcome o = transfer(&(struct transfer){ 10000, 1500, 500, 0, 16 });

	(void)state;
	assert_in_range(o.stats.tcp_tx_again, o.dropped - 20, o.dropped + o.dropped / 10 + 20);
}

/* ---- explicit congestion notification ---------------------------------------------------- */

#define ECE_CWR 0xc0u
#define SYN_ACK 0x12u

struct seen {
	unsigned syn, syn_ack, data, data_ect, others_ect;
};

/* One captured frame, Ethernet and IPv4. */
static void look_at(const uint8_t *f, uint32_t len, bool on, struct seen *seen)
{
	const uint8_t *ip = f + 14, *tcp = ip + 20;
	unsigned octets, field = ip[1] & 3, flags = tcp[13];

	if (len < 54 || f[12] != 8 || f[13] || ip[9] != 6)
		return;
	octets = (unsigned)(ip[2] << 8 | ip[3]) - 20 - (tcp[12] >> 4) * 4u;
	if ((flags & SYN_ACK) == 2) {
		assert_int_equal(flags & ECE_CWR, on ? ECE_CWR : 0);
		seen->syn++;
	} else if ((flags & SYN_ACK) == SYN_ACK) {
		assert_int_equal(flags & ECE_CWR, on ? 0x40 : 0);
		seen->syn_ack++;
	} else if (octets) {
		seen->data++;
		seen->data_ect += field == 2;
	}
	if (!octets)
		seen->others_ect += field != 0;
}

static struct seen look_into(const char *path, bool on)
{
	FILE *in = fopen(path, "rb");
	struct seen seen = { 0 };
	uint8_t file[24], frame[65536];
	uint32_t head[4];

	assert_non_null(in);
	assert_int_equal(fread(file, sizeof(file), 1, in), 1);
	while (fread(head, sizeof(head), 1, in) == 1) {
		assert_true(head[2] <= sizeof(frame));
		assert_int_equal(fread(frame, head[2], 1, in), 1);
		look_at(frame, head[2], on, &seen);
	}
	fclose(in);
	return seen;
}

/* RFC 3168 §6.1.1: SYN with ECE and CWR, SYN-ACK with ECE; then octets go as ECN-capable, §6.1.4
 * and §6.1.5: but no pure ACK and nothing that is sent again. Without it nobody says a word. */
static void ecn(bool on)
{
	const char *dir = getenv("TMPDIR");
	char path[4096];
	struct outcome o;
	struct seen seen;

	snprintf(path, sizeof(path), "%s/uwarp-sim-ecn-%d.pcap", dir ? dir : "/tmp", getpid());
	setenv("UWARP_PCAP", path, 1);
	setenv("UWARP_ECN", on ? "1" : "0", 1);
	o = transfer(&(struct transfer){ 5000, 1500, 50, 0, 2 });
	unsetenv("UWARP_PCAP");
	unsetenv("UWARP_ECN");
	seen = look_into(path, on);
	unlink(path);
	assert_true(seen.syn && seen.syn_ack && seen.data > 1000);
	assert_int_equal(seen.others_ect, 0);
	if (on) /* captured at the sender; at the receiver, too, unless lost */
		assert_in_range(seen.data - seen.data_ect, 1, 2 * o.stats.tcp_tx_again + 40);
	else
		assert_int_equal(seen.data_ect, 0);
}

/* RFC 7323: nothing of this connection is taken for old, late or sent again, and no goodput is
 * lost. */
static void test_timestamps_do_no_harm(void **state)
{
	struct outcome o;

	(void)state;
	setenv("UWARP_TIMESTAMPS", "1", 1);
	o = transfer(&(struct transfer){ 10000, 1500, 50, 0, 16 });
	assert_true(o.gbps > 0.2);
	assert_in_range(o.stats.tcp_rx_old, 0, o.stats.tcp_tx_again / 10 + 2);
	assert_in_range(o.stats.tcp_tx_again, o.dropped - 20, o.dropped + o.dropped / 4 + 20);
	o = transfer(&(struct transfer){ 0, 1500, 50, 10000, 32 });
	assert_true(o.gbps > 6);
	/* of some 470 late ones, those that a newer one has overtaken */
	assert_in_range(o.stats.tcp_rx_old, 0, 200);
	unsetenv("UWARP_TIMESTAMPS");
}

static void test_ecn_is_agreed_on(void **state)
{
	(void)state;
	ecn(true);
	ecn(false);
}

static int table(char **v)
{
	struct transfer t = { .ppm = (uint32_t)strtoul(v[0], NULL, 10),
			      .delay_us = strtoul(v[1], NULL, 10),
			      .mtu = (uint32_t)strtoul(v[2], NULL, 10),
			      .megabytes = (unsigned)strtoul(v[3], NULL, 10) };
	struct outcome o = transfer(&t);

	printf("loss %.2f %%, RTT %.1f ms, MTU %u: %.3f Gb/s, longest gap %.1f ms, lost %lu, "
	       "again %lu, probes %lu, timeouts %lu\n",
	       t.ppm / 1e4, (double)t.delay_us * 2 / 1e3, t.mtu, o.gbps, (double)o.longest_us / 1e3,
	       (unsigned long)o.dropped, (unsigned long)o.stats.tcp_tx_again,
	       (unsigned long)o.stats.tcp_tx_probes, (unsigned long)o.stats.tcp_timeouts);
	return 0;
}

/* Everything is lost for 2 s; then the link says that it is up. The next attempt would be due
 * at 3.8 s. */
static void test_a_link_that_is_up_again_is_tried_at_once(void **state)
{
	const struct sim_options o = { .seed = 25 };
	uint8_t *a = calloc(1, SIZE), *b = calloc(1, SIZE);
	struct uw_mr *ma, *mb;
	uint64_t start;
	struct sim s;

	(void)state;
	sim_open(&s, &o);
	if (s.wall)
		skip();
	sim_connect(&s, 7471);
	ma = sim_mr(&s.a, a, SIZE, ACCESS);
	mb = sim_mr(&s.b, b, SIZE, ACCESS);
	memset(a, 1, SIZE);
	sim_run_us(&s, 1000000);
	for (unsigned i = 0; i < 2; i++)
		loop_set_drop(s.link[i], 1000000);
	post_write(&s, a, b, uw_mr_stag(ma), uw_mr_stag(mb));
	sim_run_us(&s, 2000000);
	assert_int_equal(b[0], 0);
	for (unsigned i = 0; i < 2; i++)
		loop_set_drop(s.link[i], 0);
	start = s.now_us;
	s.e->stack[0]->llp->link_up(s.link[0]);
	while (!b[0] && s.now_us - start < 5000000)
		sim_run_us(&s, 1000);
	assert_in_range(s.now_us - start, 0, 20000);
	sim_settle(&s);
	assert_int_equal(uw_mr_dereg(ma), 0);
	assert_int_equal(uw_mr_dereg(mb), 0);
	sim_close(&s);
	free(a);
	free(b);
}

/* Between processes the link tells when the peer's has ended. One that is stopped (a debugger) is
 * silent for as long as it likes, and goes on. */
static void test_a_stopped_process_is_waited_for(void **state)
{
	const struct sim_options o = { .seed = 26, .direct = true };
	uint8_t *a = calloc(1, SIZE), *b = calloc(1, SIZE);
	struct uw_mr *ma, *mb;
	struct sim s;

	(void)state;
	sim_open(&s, &o);
	if (s.wall)
		skip();
	sim_connect(&s, 7471);
	ma = sim_mr(&s.a, a, SIZE, ACCESS);
	mb = sim_mr(&s.b, b, SIZE, ACCESS);
	memset(a, 1, SIZE);
	for (unsigned i = 0; i < 2; i++)
		loop_set_drop(s.link[i], 1000000);
	post_write(&s, a, b, uw_mr_stag(ma), uw_mr_stag(mb));
	sim_run_us(&s, 300000000);
	for (unsigned i = 0; i < 2; i++)
		loop_set_drop(s.link[i], 0);
	sim_run_us(&s, 70000000);
	assert_int_equal(b[0], 1);
	assert_false(sim_had(&s.a, UW_CM_DISCONNECTED));
	assert_int_equal(uw_mr_dereg(ma), 0);
	assert_int_equal(uw_mr_dereg(mb), 0);
	sim_close(&s);
	free(a);
	free(b);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loss_leaves_what_it_may),
		cmocka_unit_test(test_lateness_is_no_loss),
		cmocka_unit_test(test_only_what_was_lost_goes_again),
		cmocka_unit_test(test_ecn_is_agreed_on),
		cmocka_unit_test(test_timestamps_do_no_harm),
		cmocka_unit_test(test_a_link_that_is_up_again_is_tried_at_once),
		cmocka_unit_test(test_a_stopped_process_is_waited_for),
	};

	if (argc == 5)
		return table(argv + 1);
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
