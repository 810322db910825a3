/* SPDX-License-Identifier: BSD-3-Clause */
/* The ring of a packet socket on uw1, of two blocks of slots; frames come from a socket on uw0. */
#include "io/packet/rx_ring.h"

#include <linux/if_packet.h>
#include <linux/virtio_net.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "io/packet/interface.h"
#include "made.h"

enum {
	BLOCKS = 2,
	SLOTS = BLOCKS * RX_RING_PER_BLOCK,
	SHORT = 60,
	FULL = 1518,
	MERGED = 4096 + 3 * 24 + 66 + 20, /* 4 KiB in three FPDUs, by IPv6 */
	LONG = 5000,
	VNET = sizeof(struct virtio_net_hdr),
	WAIT_MS = 2000
};

struct place {
	struct interface to;
	int from, fd;
	struct rx_ring ring;
};

static int bound_to(const char *name)
{
	struct sockaddr_ll a = { .sll_family = AF_PACKET,
				 .sll_ifindex = (int)if_nametoindex(name) };
	int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	assert_false(bind(fd, (void *)&a, sizeof(a)));
	return fd;
}

static int up(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	assert_true(made_run("ip link add uw0 mtu 9000 type veth peer name uw1 mtu 9000 && "
			     "sysctl -w net.ipv6.conf.uw0.disable_ipv6=1;"
			     "sysctl -w net.ipv6.conf.uw1.disable_ipv6=1;"
			     "ip link set uw0 up && ip link set uw1 up && "
			     "for i in $(seq 200); do "
			     "ip link show uw0 | grep -q 'state UP' && exit 0; sleep 0.01; done; "
			     "exit 1"));
	assert_status(interface_read("uw1", &p->to), UW_OK);
	assert_status(interface_socket(&p->to, &p->fd), UW_OK);
	assert_true(rx_ring_open(&p->ring, p->fd, BLOCKS));
	assert_status(interface_bind(&p->to, p->fd), UW_OK);
	p->from = bound_to("uw0");
	*state = p;
	return 0;
}

static int down(void **state)
{
	struct place *p = *state;

	rx_ring_close(&p->ring);
	assert_null(p->ring.slots);
	assert_false(rx_ring_any(&p->ring));
	close(p->fd);
	close(p->from);
	free(p);
	return made_run("ip link del uw0") ? 0 : -1;
}

/* The i-th frame, of n octets: its number, and the low octet of it up to the end. */
static void fill(uint8_t *frame, unsigned i, size_t n)
{
	memset(frame, (int)(i & 0xff), n);
	memset(frame, 0xff, 6);
	frame[12] = 0x88; /* IEEE 802: a local experiment */
	frame[13] = 0xb5;
}

static void send_one(const struct place *p, unsigned i, size_t n)
{
	uint8_t frame[LONG];

	fill(frame, i, n);
	assert_int_equal(send(p->from, frame, n, 0), n);
}

/* Waits for frame i of the ring. */
static struct rx_slot look(const struct place *p, unsigned i)
{
	struct rx_slot s = { 0 };

	for (unsigned ms = 0; ms < WAIT_MS && !rx_ring_look(&p->ring, i, &s); ms++)
		poll(NULL, 0, 1);
	assert_non_null(s.frame);
	return s;
}

static void assert_is(const struct rx_slot *s, unsigned i, size_t n)
{
	uint8_t frame[LONG];

	fill(frame, i, n);
	assert_int_equal(s->len, n);
	assert_memory_equal(s->frame, frame, s->queued ? SHORT : n);
}

/* Ten times around. */
static void frames_come_in_their_order(void **state)
{
	struct place *p = *state;
	struct rx_slot s;

	assert_false(rx_ring_any(&p->ring));
	for (unsigned i = 0; i < 10 * SLOTS; i += SLOTS / 2) {
		for (unsigned k = 0; k < SLOTS / 2; k++)
			send_one(p, i + k, SHORT + k);
		for (unsigned k = 0; k < SLOTS / 2; k++) {
			s = look(p, k);
			assert_is(&s, i + k, SHORT + k);
			assert_false(s.queued || s.lost || s.gap);
		}
		assert_true(rx_ring_any(&p->ring));
		rx_ring_give_back(&p->ring, SLOTS / 2);
		assert_false(rx_ring_any(&p->ring));
	}
}

static void assert_fits(const struct place *p, size_t n)
{
	struct rx_slot s;

	send_one(p, 1, n);
	s = look(p, 0);
	assert_is(&s, 1, n);
	assert_false(s.queued || s.lost);
}

static void one_of_the_usual_mtu_with_a_tag_fits(void **state)
{
	assert_fits(*state, FULL);
}

static void four_KiB_that_came_merged_fit(void **state)
{
	assert_fits(*state, MERGED);
}

static void a_long_one_is_whole_in_the_queue(void **state)
{
	struct place *p = *state;
	uint8_t octets[VNET + LONG + 1], want[LONG];
	struct rx_slot s;

	send_one(p, 1, SHORT);
	send_one(p, 2, LONG);
	send_one(p, 3, SHORT);
	s = look(p, 2);
	assert_is(&s, 3, SHORT);
	assert_false(s.queued);
	s = look(p, 1);
	assert_true(s.queued && !s.lost);
	assert_is(&s, 2, LONG);
	assert_int_equal(recv(p->fd, octets, sizeof(octets), MSG_DONTWAIT), VNET + LONG);
	fill(want, 2, LONG);
	assert_memory_equal(octets + VNET, want, LONG);
	assert_int_equal(recv(p->fd, octets, sizeof(octets), MSG_DONTWAIT), -1);
}

static void without_a_slot_it_is_lost_and_told(void **state)
{
	struct place *p = *state;
	struct rx_slot s;

	for (unsigned i = 0; i < SLOTS + 5; i++)
		send_one(p, i, SHORT);
	s = look(p, SLOTS - 1);
	assert_is(&s, SLOTS - 1, SHORT);
	assert_false(s.gap);
	assert_false(rx_ring_look(&p->ring, SLOTS, &s));
	rx_ring_give_back(&p->ring, SLOTS);
	send_one(p, 77, SHORT);
	s = look(p, 0);
	assert_is(&s, 77, SHORT);
	assert_true(s.gap);
}

static void a_long_one_is_lost_when_the_queue_is_full(void **state)
{
	struct place *p = *state;
	int few = 1;
	struct rx_slot s;

	assert_false(setsockopt(p->fd, SOL_SOCKET, SO_RCVBUF, &few, sizeof(few)));
	send_one(p, 0, LONG);
	send_one(p, 1, LONG);
	s = look(p, 0);
	assert_true(s.queued && !s.lost);
	s = look(p, 1);
	assert_true(s.lost && !s.queued);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(frames_come_in_their_order, up, down),
		cmocka_unit_test_setup_teardown(one_of_the_usual_mtu_with_a_tag_fits, up, down),
		cmocka_unit_test_setup_teardown(four_KiB_that_came_merged_fit, up, down),
		cmocka_unit_test_setup_teardown(a_long_one_is_whole_in_the_queue, up, down),
		cmocka_unit_test_setup_teardown(without_a_slot_it_is_lost_and_told, up, down),
		cmocka_unit_test_setup_teardown(a_long_one_is_lost_when_the_queue_is_full, up,
						down),
	};

	if (!made_namespace() || !made_socket_options())
		return SKIPPED;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
