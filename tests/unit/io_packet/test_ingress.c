/* SPDX-License-Identifier: BSD-3-Clause */
/* What the host's IP stack gets of frames that come over a veth pair: a link on uw0 is host 1, the
 * kernel is host 2, on uw1, where it answers each SYN with RST (RFC 9293 §3.10.7.1). */
#include "io/packet/ingress.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/be.h"
#include "io/packet/nft.h"
#include "io/packet/packet.h"
#include "made.h"

enum { PORT = 4000, OTHER = 4001, AGAIN_US = 20000, QUIET_US = 100000, TRIES = 250 };

struct place {
	struct io_link *a;
	struct ingress g;
	struct ingress_ask ask;
};

static const uint8_t mac[6] = { 2, 0, 0, 0, 0, 2 }; /* of uw1 */
static const struct uw_net one6 = { .ip = { { 0xfd, 9, [15] = 1 } }, .bits = 64 };
static const struct uw_net two6[] = {
	{ .ip = { { 0xfd, 9, [15] = 7 } }, .bits = 64 },
	{ .ip = { { 0xfd, 9, [15] = 2 } }, .bits = 64 },
};

static int up(void **state)
{
	struct packet_config cfg = { .interface = "uw0",
				     .addr = MADE_HOST(1),
				     .mask = htonl(0xffffff00),
				     .ip6 = &one6,
				     .n_ip6 = 1 };
	const struct io_env env = { 0 };
	struct place *p = calloc(1, sizeof(*p));

	ingress_init(&p->g);
	assert_true(made_run("ip link add uw0 type veth peer name uw1 && "
			     "ip link set uw0 address 02:00:00:00:00:01 up && "
			     "ip link set uw1 address 02:00:00:00:00:02 up"));
	assert_true(made_run("ip addr add 10.9.0.2/24 dev uw1 && "
			     "ip neigh add 10.9.0.1 dev uw1 lladdr 02:00:00:00:00:01 && "
			     "ip addr add fd09::2/64 dev uw1 nodad && "
			     "ip neigh add fd09::1 dev uw1 lladdr 02:00:00:00:00:01"));
	assert_status(packet_link_open(&cfg, &env, &p->a), UW_OK);
	p->ask = (struct ingress_ask){ .interface = "uw1",
				       .shared = IO_V4 | IO_V6,
				       .addr = MADE_HOST(2),
				       .ip6 = two6,
				       .n_ip6 = 2 };
	*state = p;
	return 0;
}

static int down(void **state)
{
	struct place *p = *state;

	ingress_close(&p->g);
	p->a->ops->close(p->a);
	free(p);
	return made_run("ip link del uw0") ? 0 : -1;
}

static void send_syn(struct place *p, bool ip6, uint16_t port)
{
	struct made m = { .ip6 = ip6, .src_port = 5, .dst_port = port, .flags = SYN };
	struct io_frame *f;

	memcpy(m.src_mac, p->a->mac, 6);
	memcpy(m.dst_mac, mac, 6);
	f = made_frame(p->a, &m);
	assert_int_equal(p->a->ops->tx(p->a, &f, 1), 1);
}

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static bool is_from(const struct io_frame *f, bool ip6, uint16_t port)
{
	unsigned ip = ip6 ? 40 : 20;

	return f->len >= 14 + ip + 20 && uw_be16(f->data + 12) == (ip6 ? 0x86dd : 0x0800) &&
	       f->data[ip6 ? 20 : 23] == IPPROTO_TCP && uw_be16(f->data + 14 + ip) == port;
}

/* Within that time. */
static bool comes_from(struct place *p, bool ip6, uint16_t port, uint64_t us)
{
	uint64_t end = now_us() + us;
	struct io_frame *f;
	bool it = false;

	for (uint64_t now; !it && (now = now_us()) < end;) {
		if (!p->a->ops->rx(p->a, &f, 1)) {
			p->a->ops->sleep(p->a, end - now);
			continue;
		}
		it = is_from(f, ip6, port);
		io_free_chain(f);
	}
	return it;
}

/* The first frames may be lost: the kernel sets a veth up some time after it was told to. */
static bool host_gets(struct place *p, bool ip6, uint16_t port)
{
	for (unsigned i = 0; i < TRIES; i++) {
		send_syn(p, ip6, port);
		if (comes_from(p, ip6, port, AGAIN_US))
			return true;
	}
	return false;
}

/* Others go by, so that the silence is not the cable's. */
static bool is_kept(struct place *p, bool ip6, uint16_t port)
{
	send_syn(p, ip6, port);
	assert_true(host_gets(p, ip6, OTHER));
	send_syn(p, ip6, port);
	return !comes_from(p, ip6, port, QUIET_US);
}

/* ---- tests --------------------------------------------------------------------------------- */

static void a_port_of_ours_is_kept_from_the_host(void **state)
{
	struct place *p = *state;

	assert_int_equal(ingress_open(&p->g, &p->ask), 0);
	for (unsigned six = 0; six < 2; six++) {
		assert_true(host_gets(p, six, PORT));
		ingress_port(&p->g, six ? IO_V6 : IO_V4, htons(PORT), true);
		assert_true(is_kept(p, six, PORT));
		ingress_port(&p->g, six ? IO_V6 : IO_V4, htons(PORT), false);
		assert_true(host_gets(p, six, PORT));
	}
}

/* Each version of IP has its own ports. */
static void and_of_the_other_version_it_is_not(void **state)
{
	struct place *p = *state;

	assert_int_equal(ingress_open(&p->g, &p->ask), 0);
	ingress_port(&p->g, IO_V4, htons(PORT), true);
	assert_true(is_kept(p, false, PORT));
	assert_true(host_gets(p, true, PORT));
}

static void another_address_is_the_hosts(void **state)
{
	struct place *p = *state;

	p->ask.addr = MADE_HOST(3);
	p->ask.n_ip6 = 1;
	assert_int_equal(ingress_open(&p->g, &p->ask), 0);
	ingress_port(&p->g, IO_V4, htons(PORT), true);
	ingress_port(&p->g, IO_V6, htons(PORT), true);
	assert_true(host_gets(p, false, PORT));
	assert_true(host_gets(p, true, PORT));
}

/* An address that nobody shares is kept whole. */
static void all_of_an_address_of_our_own(void **state)
{
	struct place *p = *state;

	assert_true(host_gets(p, false, PORT));
	p->ask.shared = IO_V6;
	assert_int_equal(ingress_open(&p->g, &p->ask), 0);
	assert_true(host_gets(p, true, PORT));
	send_syn(p, false, PORT);
	assert_false(comes_from(p, false, PORT, QUIET_US));
}

static pid_t keeper(struct place *p)
{
	int done[2];
	char c;
	pid_t child;

	assert_false(pipe(done));
	child = fork();
	if (!child) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		c = (char)ingress_open(&p->g, &p->ask);
		ingress_port(&p->g, IO_V4, htons(PORT), true);
		if (write(done[1], &c, 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(done[0], &c, 1), 1);
	assert_int_equal(c, 0);
	close(done[0]);
	close(done[1]);
	return child;
}

static void nothing_is_left_of_a_killed_process(void **state)
{
	struct place *p = *state;
	pid_t child = keeper(p);
	int status;

	assert_true(is_kept(p, false, PORT));
	assert_false(kill(child, SIGKILL));
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(host_gets(p, false, PORT));
}

static int exit_code_of(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static void give_up_rights(void)
{
	struct __user_cap_header_struct h = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct none[2] = { 0 };

	if (syscall(SYS_capset, &h, none))
		_exit(99);
}

static void without_the_right_there_is_none(void **state)
{
	struct place *p = *state;
	pid_t child = fork();

	if (!child) {
		give_up_rights();
		_exit(ingress_open(&p->g, &p->ask));
	}
	assert_int_equal(exit_code_of(child), EPERM);
}

/* Else a port that was given back would be nobody's. */
static void who_may_no_longer_take_a_port_out_ends_it(void **state)
{
	struct place *p = *state;
	pid_t child = fork();

	if (!child) {
		int bad = ingress_open(&p->g, &p->ask);

		ingress_port(&p->g, IO_V4, htons(PORT), true);
		bad |= p->g.fd < 0;
		give_up_rights();
		ingress_port(&p->g, IO_V4, htons(PORT), false);
		_exit(bad || p->g.fd >= 0);
	}
	assert_int_equal(exit_code_of(child), 0);
	assert_true(host_gets(p, false, PORT));
}

/* More than there is room for is not sent at all. */
static void a_batch_that_is_full(void **state)
{
	const struct nft_drop d = { .protocol = IPPROTO_TCP };
	struct nft_batch b;

	(void)state;
	nft_begin(&b);
	nft_table(&b, "t");
	assert_true(nft_end(&b) > 0);
	nft_begin(&b);
	for (unsigned i = 0; i < NFT_BATCH_MAX / 256; i++)
		nft_rule(&b, "t", &d);
	assert_int_equal(nft_end(&b), 0);
}

static void answers_that_are_none(void **state)
{
	_Alignas(8) uint8_t octets[64] = { 8 };
	bool more;

	(void)state;
	for (size_t n = 0; n <= sizeof(octets); n++) {
		assert_int_equal(nft_answer(octets, n, &more), 0);
		assert_true(more);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_batch_that_is_full),
		cmocka_unit_test(answers_that_are_none),
		cmocka_unit_test_setup_teardown(a_port_of_ours_is_kept_from_the_host, up, down),
		cmocka_unit_test_setup_teardown(and_of_the_other_version_it_is_not, up, down),
		cmocka_unit_test_setup_teardown(another_address_is_the_hosts, up, down),
		cmocka_unit_test_setup_teardown(all_of_an_address_of_our_own, up, down),
		cmocka_unit_test_setup_teardown(nothing_is_left_of_a_killed_process, up, down),
		cmocka_unit_test_setup_teardown(without_the_right_there_is_none, up, down),
		cmocka_unit_test_setup_teardown(who_may_no_longer_take_a_port_out_ends_it, up,
						down),
	};

	if (!made_namespace() || !made_run("ip link add uw8 type veth && ip link del uw8") ||
	    !made_socket_options()) {
		print_message("no network namespace with veth can be made here\n");
		return SKIPPED;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
