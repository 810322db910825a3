/* SPDX-License-Identifier: BSD-3-Clause */
/* The link over a veth pair: uw0 is host 1, with an address that only the link has, and uw1 host 2.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/fsuid.h>
#include <time.h>
#include <unistd.h>

#include "base/be.h"
#include "io/packet/filter.h"
#include "io/packet/link.h"
#include "io/packet/packet.h"
#include "io/packet/presence.h"
#include "made.h"

enum { N = 20, MSS = 1448, PORT = 4000, WAIT_US = 2000000, QUIET_US = 50000 };

struct place {
	struct io_link *a, *b; /* on uw0 and uw1 */
	struct made m[N];
	struct io_frame *v[N];
	struct io_frame *f; /* lengthen() */
	uint32_t octets;    /* of it */
};

static uint64_t now_us(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
}

static struct io_link *open_on(const struct packet_config *cfg)
{
	const struct io_env env = { 0 };
	struct io_link *l;

	assert_status(packet_link_open(cfg, &env, &l), UW_OK);
	return l;
}

static bool is_tcp6(const struct io_frame *f)
{
	return uw_be16(f->data + 12) == 0x86dd && f->data[20] == IPPROTO_TCP;
}

/* One TCP frame, which is the caller's; NULL: none came within that time. */
static struct io_frame *receive(struct io_link *l, uint64_t us)
{
	uint64_t end = now_us() + us;
	struct io_frame *f;

	for (uint64_t now; (now = now_us()) < end;) {
		if (!l->ops->rx(l, &f, 1)) {
			l->ops->sleep(l, end - now);
			continue;
		}
		if (f->len >= 54 && (uw_be16(f->data + 12) == 0x0800 || is_tcp6(f)))
			return f;
		io_free_chain(f);
	}
	return NULL;
}

static void make(struct place *p)
{
	for (unsigned i = 0; i < N; i++) {
		p->m[i] = (struct made){ .src_port = 5,
					 .dst_port = PORT,
					 .ip_id = (uint16_t)i,
					 .seq = 7 + i * MSS,
					 .flags = ACK,
					 .payload = i == N - 1 ? 99 : MSS };
		memcpy(p->m[i].src_mac, p->a->mac, 6);
		memcpy(p->m[i].dst_mac, p->b->mac, 6);
		p->v[i] = made_frame(p->a, &p->m[i]);
		p->v[i]->marks = IO_FRAME_SUM;
	}
}

static struct packet_config config_of(unsigned host)
{
	return (struct packet_config){ .interface = host == 1 ? "uw0" : "uw1",
				       .addr = MADE_HOST(host),
				       .mask = htonl(0xffffff00) };
}

/* The kernel attaches the queues of a veth some time after it was set up, and until then drops what
 * is sent. */
static bool cable_is_up(void)
{
	return made_run(
		"for i in $(seq 200); do "
		"ip link show uw0 | grep -q 'state UP' && "
		"ip link show uw1 | grep -q 'state UP' && exit 0; sleep 0.01; done; exit 1");
}

static int cable(void **state)
{
	struct place *p = calloc(1, sizeof(*p));

	assert_true(made_run("ip link add uw0 type veth peer name uw1 && "
			     "sysctl -w net.ipv6.conf.uw0.disable_ipv6=1;"
			     "sysctl -w net.ipv6.conf.uw1.disable_ipv6=1;"
			     "ip link set uw0 up && ip link set uw1 up"));
	assert_true(cable_is_up());
	*state = p;
	return 0;
}

static int up(void **state)
{
	struct packet_config one = config_of(1), two = config_of(2);
	struct place *p;

	cable(state);
	p = *state;
	p->a = open_on(&one);
	p->b = open_on(&two);
	make(p);
	return 0;
}

static int down(void **state)
{
	struct place *p = *state;

	if (p->a)
		p->a->ops->close(p->a);
	if (p->b)
		p->b->ops->close(p->b);
	free(p);
	return made_run("ip link del uw0") ? 0 : -1;
}

/* The octets of segment i; the checksum is right in them. */
static void assert_is(const struct io_frame *f, const struct made *m)
{
	uint8_t octets[2048];
	uint32_t n = made_octets(m, octets);

	assert_int_equal(f->len, n);
	assert_memory_equal(f->data, octets, n);
}

/* IEEE 802.1Q: merged and single segments go with the tag, are the same behind it, and nobody but
 * this VLAN hears them. */
static void a_vlan_of_the_cable(void **state)
{
	struct packet_config one = config_of(1), two = config_of(2), other = config_of(2);
	struct io_link *c, *plain;
	struct io_frame *f;
	struct place *p = *state;

	one.vlan = two.vlan = 7;
	other.vlan = 8;
	p->a = open_on(&one);
	p->b = open_on(&two);
	c = open_on(&other);
	other.vlan = 0;
	plain = open_on(&other);
	make(p);
	assert_int_equal(p->a->ops->tx(p->a, p->v, N), N);
	assert_int_equal(p->a->stats.tx_chains, 1);
	f = receive(p->b, WAIT_US);
	assert_non_null(f);
	assert_true(f->len > 54 && uw_be16(f->data + 12) == 0x0800);
	assert_int_equal(uw_be16(f->data + 16), f->len - 14);
	io_free_chain(f);
	assert_null(receive(c, QUIET_US));
	assert_null(receive(plain, QUIET_US));
	c->ops->close(c);
	plain->ops->close(plain);
}

/* The kernel's address is of the network without a tag. */
static void a_vlan_needs_an_address(void **state)
{
	struct packet_config cfg = { .interface = "uw0", .vlan = 7 };
	const struct io_env env = { 0 };
	struct io_link *l;

	(void)state;
	assert_true(made_run("ip address add 10.9.0.1/24 dev uw0"));
	assert_status(packet_link_open(&cfg, &env, &l), UW_E_ADDR);
}

static void merged_segments_arrive_as_one_frame(void **state)
{
	struct place *p = *state;
	struct io_frame *f;
	struct made whole = p->m[0];
	static uint8_t octets[65536];

	assert_int_equal(p->a->flags & (IO_TSO | IO_TX_CSUM | IO_RX_CSUM),
			 IO_TSO | IO_TX_CSUM | IO_RX_CSUM);
	assert_int_equal(p->a->ops->tx(p->a, p->v, N), N);
	assert_int_equal(p->a->stats.tx_merged, N);
	assert_int_equal(p->a->stats.tx_chains, 1);
	assert_int_equal(p->a->stats.tx_frames, N);
	f = receive(p->b, WAIT_US);
	assert_non_null(f);
	assert_int_equal(f->marks, IO_FRAME_SUM_GOOD);
	whole.payload = (N - 1) * MSS + 99;
	assert_int_equal(f->len, made_octets(&whole, octets));
	assert_memory_equal(f->data + 54, octets + 54, f->len - 54);
	assert_int_equal(uw_be16(f->data + 16), f->len - 14);
	io_free_chain(f);
}

/* The kernel, which is no cutter of ours, makes the same segments again where the device does not.
 */
static void the_cut_gives_what_went_in(void **state)
{
	struct place *p = *state;

	if (!made_run("ethtool -K uw0 tx off"))
		skip();
	assert_int_equal(p->a->ops->tx(p->a, p->v, N), N);
	assert_int_equal(p->a->stats.tx_chains, 1);
	for (unsigned i = 0; i < N; i++) {
		struct io_frame *f = receive(p->b, WAIT_US);

		assert_non_null(f);
		assert_int_equal(f->marks, 0); /* to be verified */
		assert_is(f, &p->m[i]);
		io_free_chain(f);
	}
	assert_int_equal(p->b->stats.rx_frames, N);
}

/* All segments as one long one. */
static void lengthen(struct place *p)
{
	struct made whole = p->m[0];

	p->f = p->a->ops->alloc_long(p->a);
	assert_non_null(p->f);
	whole.payload = (N - 1) * MSS + 99;
	p->octets = p->f->len = made_octets(&whole, p->f->data);
	p->f->cut = MSS;
	p->f->marks = IO_FRAME_SUM;
}

/* Of the wire are the segments that it was made of, whether the kernel cuts it or the link. */
static void are_on_the_wire(struct place *p)
{
	for (unsigned i = 0; i < N; i++) {
		struct io_frame *f = receive(p->b, WAIT_US);

		assert_non_null(f);
		assert_is(f, &p->m[i]);
		io_free_chain(f);
	}
	assert_null(receive(p->b, QUIET_US));
	assert_int_equal(p->a->stats.tx_frames, N);
	assert_int_equal(p->a->stats.tx_bytes, p->octets);
}

static void a_long_segment_is_cut_by_the_kernel(void **state)
{
	struct place *p = *state;

	if (!made_run("ethtool -K uw0 tx off"))
		skip();
	lengthen(p);
	assert_int_equal(p->a->ops->tx(p->a, &p->f, 1), 1);
	assert_int_equal(p->a->stats.tx_chains, 1);
	assert_int_equal(p->a->stats.tx_merged, N);
	are_on_the_wire(p);
}

/* 16 refusals (send.c), and no more long ones are made; what is queued goes all the same. */
static void or_by_the_link(void **state)
{
	struct place *p = *state;

	if (!made_run("ethtool -K uw0 tx off"))
		skip();
	lengthen(p);
	packet_link_of(p->a)->merges = false;
	assert_null(p->a->ops->alloc_long(p->a));
	assert_int_equal(p->a->ops->tx(p->a, &p->f, 1), 1);
	assert_int_equal(p->a->stats.tx_chains, 0);
	assert_int_equal(p->a->stats.tx_unmerged, N);
	are_on_the_wire(p);
}

/* RFC 3168 §6.1.2, whether the kernel cuts or the link. */
static void cwr_is_on_the_first_segment_alone(void **state)
{
	struct place *p = *state;

	if (!made_run("ethtool -K uw0 tx off"))
		skip();
	p->m[0].flags |= CWR;
	for (unsigned i = 0; i < 2; i++) {
		packet_link_of(p->a)->merges = true;
		lengthen(p);
		packet_link_of(p->a)->merges = !i;
		p->a->stats = (struct io_stats){ 0 };
		assert_int_equal(p->a->ops->tx(p->a, &p->f, 1), 1);
		assert_int_equal(p->a->stats.tx_chains, !i);
		are_on_the_wire(p);
	}
}

static void segments_that_do_not_merge_go_singly(void **state)
{
	struct place *p = *state;

	p->v[1]->marks = 0; /* this one has its checksum */
	assert_int_equal(p->a->ops->tx(p->a, p->v, 2), 2);
	assert_int_equal(p->a->stats.tx_chains, 0);
	for (unsigned i = 0; i < 2; i++) {
		struct io_frame *f = receive(p->b, WAIT_US);

		assert_non_null(f);
		assert_int_equal(f->marks, i ? 0 : IO_FRAME_SUM_GOOD);
		if (i)
			assert_is(f, &p->m[i]);
		io_free_chain(f);
	}
}

static void a_link_may_be_told_not_to_merge(void **state)
{
	struct place *p = *state;
	struct packet_config cfg = config_of(1);

	p->a->ops->close(p->a);
	cfg.no_tso = true;
	p->a = open_on(&cfg);
	assert_int_equal(p->a->flags & IO_TSO, 0);
	make(p);
	assert_int_equal(p->a->ops->tx(p->a, p->v, N), N);
	assert_int_equal(p->a->stats.tx_chains, 0);
	assert_int_equal(p->a->stats.tx_frames, N);
}

static void a_frame_that_is_lost_is_counted(void **state)
{
	struct place *p = *state;

	assert_true(made_run("ip link set uw0 down"));
	assert_int_equal(p->a->ops->tx(p->a, p->v, N), N);
	assert_int_equal(p->a->stats.tx_drops, N);
	assert_int_equal(p->a->stats.tx_frames, 0);
}

/* It stays in nobody's way, and long ones are taken again when the interface is up. */
static void and_so_is_a_long_segment(void **state)
{
	struct place *p = *state;

	assert_true(made_run("ip link set uw0 down"));
	for (unsigned i = 1; i <= 20; i++) {
		lengthen(p);
		assert_int_equal(p->a->ops->tx(p->a, &p->f, 1), 1);
		assert_int_equal(p->a->stats.tx_drops, i * N);
	}
	assert_int_equal(p->a->stats.tx_frames, 0);
	assert_true(made_run("ip link set uw0 up"));
	assert_true(cable_is_up());
	for (unsigned i = 0; i < 2; i++) { /* the socket says once more that it was down */
		lengthen(p);
		assert_int_equal(p->a->ops->tx(p->a, &p->f, 1), 1);
	}
	assert_int_equal(p->a->stats.tx_frames, 2 * N);
	assert_int_equal(p->a->stats.tx_chains, 1);
}

/* Of short ones, which lie in the ring, and long ones, which do not. */
/* A queueing discipline that is full says nothing of merged frames: what it drops is lost, and
 * later ones go merged. It was taken for a device that takes none, after 16 in a row for good. */
static void a_full_queue_does_not_end_merging(void **state)
{
	struct place *p = *state;

	if (!made_run("tc qdisc add dev uw0 root bfifo limit 1"))
		skip();
	assert_int_equal(p->a->ops->tx(p->a, p->v, N), N);
	assert_int_equal(p->a->stats.tx_drops, N);
	for (unsigned i = 2; i <= 20; i++) {
		lengthen(p);
		assert_int_equal(p->a->ops->tx(p->a, &p->f, 1), 1);
		assert_int_equal(p->a->stats.tx_drops, i * N);
	}
	assert_int_equal(p->a->stats.tx_frames + p->a->stats.tx_unmerged, 0);
	assert_true(made_run("tc qdisc del dev uw0 root"));
	lengthen(p);
	assert_int_equal(p->a->ops->tx(p->a, &p->f, 1), 1);
	make(p);
	assert_int_equal(p->a->ops->tx(p->a, p->v, N), N);
	assert_int_equal(p->a->stats.tx_merged, 2 * N);
	assert_int_equal(p->a->stats.tx_chains, 2);
}

static void frames_keep_their_order(void **state)
{
	struct place *p = *state;
	struct io_frame *f;

	p->v[0]->marks = 0; /* goes alone */
	assert_int_equal(p->a->ops->tx(p->a, p->v, 1), 1);
	assert_int_equal(p->a->ops->tx(p->a, p->v + 1, N - 2), N - 2);
	assert_int_equal(p->a->ops->tx(p->a, p->v + N - 1, 1), 1);
	for (unsigned i = 0; i < 3; i++) {
		f = receive(p->b, WAIT_US);
		assert_non_null(f);
		assert_int_equal(uw_be32(f->data + 38), 7 + (i == 2 ? N - 1 : i) * MSS);
		assert_int_equal(f->len, 54 + (i == 1 ? (N - 2) * MSS : i ? 99 : MSS));
		io_free_chain(f);
	}
	assert_null(receive(p->b, 0));
}

/* Nobody looks while more come than there are slots. */
static void frames_without_room_are_counted(void **state)
{
	enum { SLOTS = PACKET_BLOCKS * RX_RING_PER_BLOCK, MANY = SLOTS + 54 };
	struct place *p = *state;
	struct io_frame *f;
	unsigned n = 0;

	for (unsigned i = 0; i < MANY; i++) {
		f = made_frame(p->a, &p->m[N - 1]);
		assert_int_equal(p->a->ops->tx(p->a, &f, 1), 1);
	}
	while ((f = receive(p->b, QUIET_US))) {
		io_free_chain(f);
		n++;
	}
	assert_int_equal(n, SLOTS);
	f = made_frame(p->a, &p->m[0]);
	assert_int_equal(p->a->ops->tx(p->a, &f, 1), 1);
	f = receive(p->b, WAIT_US);
	assert_non_null(f);
	io_free_chain(f);
	assert_int_equal(p->b->stats.rx_drops, MANY - SLOTS);
}

/* The error that it leaves at the socket must not end every sleep. */
static void an_interface_that_is_down_lets_it_sleep(void **state)
{
	struct place *p = *state;
	uint64_t began;

	assert_true(made_run("ip link set uw1 down"));
	p->b->ops->sleep(p->b, 1);
	began = now_us();
	p->b->ops->sleep(p->b, 20000);
	assert_true(now_us() - began >= 20000);
}

static void sleep_ends_with_a_frame_and_with_rouse(void **state)
{
	struct place *p = *state;
	uint64_t start = now_us();

	p->b->ops->rouse(p->b);
	p->b->ops->sleep(p->b, 60000000);
	assert_int_equal(p->a->ops->tx(p->a, p->v, 1), 1);
	p->b->ops->sleep(p->b, 60000000);
	assert_true(p->b->ops->pending(p->b));
	assert_true(now_us() - start < 30000000);
}

static bool is_readable(int fd, int ms)
{
	struct pollfd fds = { .fd = fd, .events = POLLIN };

	return poll(&fds, 1, ms) == 1;
}

/* A thread of the program may sleep on the descriptors itself. */
static void one_that_waits_hears_of_frames_and_of_rings(void **state)
{
	struct place *p = *state;
	struct io_frame *f;

	assert_true(p->b->flags & IO_WAITS);
	assert_false(is_readable(p->b->frames_fd[0], 0));
	assert_false(is_readable(p->b->wait.fd, 0));
	assert_int_equal(p->a->ops->tx(p->a, p->v, 1), 1);
	assert_true(is_readable(p->b->frames_fd[0], 5000));
	f = receive(p->b, WAIT_US);
	assert_non_null(f);
	io_free_chain(f);
	assert_false(is_readable(p->b->frames_fd[0], 0));
	doorbell_wake(&p->b->wait, IO_ASLEEP_FD);
	assert_true(is_readable(p->b->wait.fd, 0));
}

/* ---- the kernel has the address, too ------------------------------------------------------- */

static int up_shared(void **state)
{
	struct packet_config one = config_of(1), two = { .interface = "uw1" };
	char command[128];
	struct place *p;

	cable(state);
	p = *state;
	p->a = open_on(&one);
	snprintf(command, sizeof(command),
		 "ip addr add 10.9.0.2/24 dev uw1 && ip neigh add 10.9.0.1 dev uw1 lladdr "
		 "%02x:%02x:%02x:%02x:%02x:%02x",
		 p->a->mac[0], p->a->mac[1], p->a->mac[2], p->a->mac[3], p->a->mac[4],
		 p->a->mac[5]);
	assert_true(made_run(command));
	p->b = open_on(&two);
	make(p);
	return 0;
}

static void send_syn(struct place *p, uint16_t port)
{
	struct made m = { .src_port = 5, .dst_port = port, .flags = SYN };
	struct io_frame *f;

	memcpy(m.src_mac, p->a->mac, 6);
	memcpy(m.dst_mac, p->b->mac, 6);
	f = made_frame(p->a, &m);
	assert_int_equal(p->a->ops->tx(p->a, &f, 1), 1);
}

static void a_port_that_is_claimed_is_ours(void **state)
{
	struct place *p = *state;
	struct io_frame *f;

	assert_int_equal(p->b->addr, MADE_HOST(2));
	assert_true(p->b->flags & IO_SHARED);
	assert_status(p->b->ops->claim_port(p->b, htons(PORT), IO_V4), UW_OK);
	send_syn(p, PORT);
	f = receive(p->b, WAIT_US);
	assert_non_null(f);
	assert_int_equal(uw_be16(f->data + 36), PORT);
	io_free_chain(f);
	assert_null(receive(p->a, QUIET_US)); /* the kernel says nothing */
}

/* The kernel's own may be another process's as well; one that the kernel does not have is of the
 * uwarpd alone. */
static void a_uwarpds_addresses_are_known(void **state)
{
	struct place *p = *state;
	const struct uw_ip own = uw_ip_v4(MADE_HOST(77)), shared = uw_ip_v4(p->b->addr);
	int index = (int)if_nametoindex("uw1");
	int fd[2];

	assert_true(p->b->ops->reaches(p->b, &own));
	fd[0] = presence_tell(index, &own);
	fd[1] = presence_tell(index, &shared);
	assert_true(fd[0] >= 0 && fd[1] >= 0);
	assert_int_equal(presence_tell(index, &own), -1);
	assert_false(p->b->ops->reaches(p->b, &own));
	assert_true(p->b->ops->reaches(p->b, &shared));
	close(fd[0]);
	close(fd[1]);
	setfsuid(65534); /* any user may bind the name, and is not believed */
	fd[0] = presence_tell(index, &own);
	setfsuid(geteuid());
	assert_true(fd[0] >= 0 && p->b->ops->reaches(p->b, &own));
	close(fd[0]);
}

static void any_other_is_the_kernels(void **state)
{
	struct place *p = *state;
	struct io_frame *f;

	assert_status(p->b->ops->claim_port(p->b, htons(PORT), IO_V4), UW_OK);
	send_syn(p, PORT + 1);
	f = receive(p->a, WAIT_US);
	assert_non_null(f);
	assert_int_equal(f->data[47], RST | ACK); /* the kernel's, RFC 9293 §3.5.2 */
	io_free_chain(f);
	assert_null(receive(p->b, QUIET_US));
}

/* ---- and its IPv6 addresses ---------------------------------------------------------------- */

static const struct uw_net one6 = { { { 0xfd, 9, [15] = 1 } }, 64 },
			   two6 = { { { 0xfd, 9, [15] = 2 } }, 64 },
			   three6 = { { { 0xfd, 9, [15] = 3 } }, 64 };

/* uw1's kernel has fe80::b and fd09::2, and knows host 1. */
static int up_six(void **state)
{
	struct packet_config one = config_of(1);
	char command[256];
	struct place *p;

	cable(state);
	p = *state;
	one.ip6 = &one6;
	one.n_ip6 = 1;
	p->a = open_on(&one);
	assert_true(made_run("ip link set dev uw1 addrgenmode none && "
			     "echo 0 >/proc/sys/net/ipv6/conf/uw1/disable_ipv6 && "
			     "ip address replace fe80::b/64 dev uw1 nodad && "
			     "ip address replace fd09::2/64 dev uw1 nodad"));
	snprintf(command, sizeof(command),
		 "ip neigh add fd09::1 dev uw1 lladdr %02x:%02x:%02x:%02x:%02x:%02x", p->a->mac[0],
		 p->a->mac[1], p->a->mac[2], p->a->mac[3], p->a->mac[4], p->a->mac[5]);
	assert_true(made_run(command));
	return 0;
}

static void send_syn6(struct place *p, uint16_t port)
{
	struct made m = { .ip6 = true, .src_port = 5, .dst_port = port, .flags = SYN };
	struct io_frame *f;

	memcpy(m.src_mac, p->a->mac, 6);
	memcpy(m.dst_mac, p->b->mac, 6);
	f = made_frame(p->a, &m);
	assert_int_equal(p->a->ops->tx(p->a, &f, 1), 1);
}

static void the_kernels_ip6_addresses_are_shared(void **state)
{
	const struct packet_config two = { .interface = "uw1" };
	struct place *p = *state;
	struct io_frame *f;

	p->b = open_on(&two);
	assert_int_equal(p->b->flags & (IO_SHARED | IO_SHARED6), IO_SHARED6);
	assert_int_equal(p->b->n_ip6, 2);
	assert_true(uw_ip_is_link_local(&p->b->ip6[0].ip));
	assert_true(uw_ip_eq(&p->b->ip6[1].ip, &two6.ip));
	assert_status(p->b->ops->claim_port(p->b, htons(PORT), IO_V4 | IO_V6), UW_OK);
	send_syn6(p, PORT);
	f = receive(p->b, WAIT_US);
	assert_non_null(f);
	assert_int_equal(uw_be16(f->data + 56), PORT);
	io_free_chain(f);
	assert_null(receive(p->a, QUIET_US)); /* the kernel says nothing */
	/* with so many ports the filter lets all in */
	for (uint16_t i = 0; i <= FILTER_PORTS; i++) {
		send_syn6(p, PORT + 1);
		f = receive(p->a, WAIT_US);
		assert_non_null(f);
		assert_int_equal(f->data[67], RST | ACK); /* the kernel's, RFC 9293 §3.5.2 */
		io_free_chain(f);
		assert_null(receive(p->b, 0));
		assert_status(p->b->ops->claim_port(p->b, htons(PORT + 2 + i), IO_V6), UW_OK);
	}
	send_syn6(p, PORT + 1);
	assert_null(receive(p->b, QUIET_US));
}

/* Of both versions or of none. */
static void a_port_is_claimed_whole(void **state)
{
	const struct packet_config two = { .interface = "uw1" };
	struct place *p = *state;

	assert_true(made_run("ip address add 10.9.0.2/24 dev uw1"));
	p->b = open_on(&two);
	assert_int_equal(p->b->flags & (IO_SHARED | IO_SHARED6), IO_SHARED | IO_SHARED6);
	assert_status(p->b->ops->claim_port(p->b, htons(PORT), IO_V6), UW_OK);
	p->a->ops->close(p->a);
	p->a = open_on(&two); /* another process of the host */
	assert_status(p->a->ops->claim_port(p->a, htons(PORT), IO_V4 | IO_V6), UW_E_ADDR_IN_USE);
	p->b->ops->release_port(p->b, htons(PORT), IO_V6);
	assert_status(p->b->ops->claim_port(p->b, htons(PORT), IO_V4), UW_E_ADDR_IN_USE);
	assert_false(p->b->ops->is_ours(p->b, htons(PORT), IO_V4)); /* held for late segments */
	assert_true(p->b->ops->is_ours(p->b, htons(PORT), IO_V6));
}

static void ip6_addresses_of_our_own_are_not_shared(void **state)
{
	const struct uw_net both[2] = { two6, three6 };
	const struct io_env env = { 0 };
	struct packet_config two = { .interface = "uw1", .ip6 = &three6, .n_ip6 = 1 };
	struct place *p = *state;
	struct io_link *l;

	p->b = open_on(&two);
	assert_int_equal(p->b->flags & IO_SHARED6, 0);
	assert_true(uw_ip_eq(&p->b->ip6[1].ip, &three6.ip));
	p->b->ops->close(p->b);
	two.ip6 = &two6;
	p->b = open_on(&two);
	assert_int_equal(p->b->flags & IO_SHARED6, IO_SHARED6);
	assert_int_equal(p->b->n_ip6, 2);
	two.ip6 = both;
	two.n_ip6 = 2;
	assert_status(packet_link_open(&two, &env, &l), UW_E_ADDR);
	two.n_ip6 = 1;
	two.interface = "uw0"; /* the kernel's, elsewhere */
	assert_status(packet_link_open(&two, &env, &l), UW_E_ADDR);
}

/* RFC 4862 §5.4: an address that is still searched for is waited for. */
static void a_tentative_address_is_waited_for(void **state)
{
	const struct packet_config two = { .interface = "uw1" };
	struct place *p = *state;

	assert_true(made_run("ip address del fd09::2/64 dev uw1 && "
			     "ip address add fd09::2/64 dev uw1"));
	p->b = open_on(&two);
	assert_int_equal(p->b->n_ip6, 2);
}

/* ---- what is refused ----------------------------------------------------------------------- */

static void refuse(const struct packet_config *cfg, uw_status why)
{
	const struct io_env env = { 0 };
	struct io_link *l;

	assert_status(packet_link_open(cfg, &env, &l), why);
}

static void wrong_wishes_are_refused(void **state)
{
	struct packet_config cfg = config_of(1);

	(void)state;
	cfg.interface = "uw7";
	refuse(&cfg, UW_E_NO_LINK);
	cfg.interface = "lo";
	refuse(&cfg, UW_E_NO_LINK);
	cfg = config_of(1);
	cfg.mtu = 1501;
	refuse(&cfg, UW_E_INVAL);
	cfg = config_of(1);
	cfg.addr = htonl(INADDR_LOOPBACK); /* the kernel's, elsewhere */
	refuse(&cfg, UW_E_ADDR);
	cfg.addr = 0;
	refuse(&cfg, UW_E_ADDR);
	cfg = config_of(1);
	assert_true(made_run("ip link set uw0 down"));
	refuse(&cfg, UW_E_NO_LINK);
}

static void an_interface_by_its_name(void **state)
{
	(void)state;
	assert_string_equal(packet_interface("uw0"), "uw0");
	assert_string_equal(packet_interface("packet:uw9"), "uw9");
	assert_null(packet_interface("uw9"));
	assert_null(packet_interface("memif"));
	assert_null(packet_interface(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(merged_segments_arrive_as_one_frame, up, down),
		cmocka_unit_test_setup_teardown(the_cut_gives_what_went_in, up, down),
		cmocka_unit_test_setup_teardown(a_long_segment_is_cut_by_the_kernel, up, down),
		cmocka_unit_test_setup_teardown(or_by_the_link, up, down),
		cmocka_unit_test_setup_teardown(cwr_is_on_the_first_segment_alone, up, down),
		cmocka_unit_test_setup_teardown(segments_that_do_not_merge_go_singly, up, down),
		cmocka_unit_test_setup_teardown(a_link_may_be_told_not_to_merge, up, down),
		cmocka_unit_test_setup_teardown(a_frame_that_is_lost_is_counted, up, down),
		cmocka_unit_test_setup_teardown(and_so_is_a_long_segment, up, down),
		cmocka_unit_test_setup_teardown(a_full_queue_does_not_end_merging, up, down),
		cmocka_unit_test_setup_teardown(frames_keep_their_order, up, down),
		cmocka_unit_test_setup_teardown(frames_without_room_are_counted, up, down),
		cmocka_unit_test_setup_teardown(an_interface_that_is_down_lets_it_sleep, up, down),
		cmocka_unit_test_setup_teardown(sleep_ends_with_a_frame_and_with_rouse, up, down),
		cmocka_unit_test_setup_teardown(one_that_waits_hears_of_frames_and_of_rings, up,
						down),
		cmocka_unit_test_setup_teardown(a_port_that_is_claimed_is_ours, up_shared, down),
		cmocka_unit_test_setup_teardown(a_uwarpds_addresses_are_known, up_shared, down),
		cmocka_unit_test_setup_teardown(the_kernels_ip6_addresses_are_shared, up_six, down),
		cmocka_unit_test_setup_teardown(a_port_is_claimed_whole, up_six, down),
		cmocka_unit_test_setup_teardown(ip6_addresses_of_our_own_are_not_shared, up_six,
						down),
		cmocka_unit_test_setup_teardown(a_tentative_address_is_waited_for, up_six, down),
		cmocka_unit_test_setup_teardown(any_other_is_the_kernels, up_shared, down),
		cmocka_unit_test_setup_teardown(a_vlan_of_the_cable, cable, down),
		cmocka_unit_test_setup_teardown(a_vlan_needs_an_address, cable, down),
		cmocka_unit_test_setup_teardown(wrong_wishes_are_refused, cable, down),
		cmocka_unit_test_setup_teardown(an_interface_by_its_name, cable, down),
	};

	if (!made_ready())
		return SKIPPED;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
