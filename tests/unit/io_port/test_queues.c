/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One port as several links, each with a queue and a thread of its own. The kernel sends datagrams
 * of many flows to it; each thread notes what came and gives the frame to the other one, which
 * sends it back on its own link.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>

#include "io_dpdk/node.h"

enum {
	QUEUES = 2,
	FLOWS = 64,
	EACH = 100,	/* datagrams of a flow */
	UNDER_WAY = 32, /* at once: no ring overflows */
	PAYLOAD_AT = 14 + 20 + 8,
	BACK = 0x88b6, /* EtherType of what is sent back */
	PORT = 7471,
};

static int setup(void **state)
{
	*state = board_new();
	return 0;
}

static int teardown(void **state)
{
	board_free(*state);
	return 0;
}

struct said {
	uint16_t flow, number;
};

struct queue {
	struct io_link *l;
	pthread_mutex_t lock; /* the stack lock */
	struct queue *other;
	pthread_mutex_t box_lock;
	struct io_frame *box[FLOWS * EACH]; /* from the other thread, to be sent here */
	unsigned boxed, sent;
	unsigned came[FLOWS][EACH];
	_Atomic bool *stop;
	pthread_t thread;
};

static void on_lock(void *arg)
{
	pthread_mutex_lock(&((struct queue *)arg)->lock);
}

static void on_unlock(void *arg)
{
	pthread_mutex_unlock(&((struct queue *)arg)->lock);
}

/* --- a queue's thread --- */

static bool is_ours(const struct io_frame *f)
{
	static const uint8_t udp_port[2] = { PORT >> 8, PORT & 255 };

	return f->len >= PAYLOAD_AT + sizeof(struct said) && f->data[12] == 8 && !f->data[13] &&
	       f->data[23] == IPPROTO_UDP && !memcmp(f->data + 36, udp_port, 2);
}

static void give(struct queue *to, struct io_frame *f)
{
	pthread_mutex_lock(&to->box_lock);
	CHECK(to->boxed < COUNT(to->box));
	to->box[to->boxed++] = f;
	pthread_mutex_unlock(&to->box_lock);
}

static void turn_around(struct io_frame *f)
{
	uint8_t mac[6];

	memcpy(mac, f->data, 6);
	memcpy(f->data, f->data + 6, 6);
	memcpy(f->data + 6, mac, 6);
	f->data[12] = BACK >> 8;
	f->data[13] = BACK & 255;
}

static unsigned receive(struct queue *q)
{
	struct io_frame *v[16];
	unsigned n;

	on_lock(q);
	n = q->l->ops->rx(q->l, v, COUNT(v));
	for (unsigned i = 0; i < n; i++) {
		struct said s;

		CHECK(v[i]->link == q->l && !v[i]->next);
		if (!is_ours(v[i])) {
			q->l->ops->free(v[i]);
			continue;
		}
		memcpy(&s, v[i]->data + PAYLOAD_AT, sizeof(s));
		CHECK(s.flow < FLOWS && s.number < EACH);
		q->came[s.flow][s.number]++;
		turn_around(v[i]);
		give(q->other, v[i]);
	}
	on_unlock(q);
	return n;
}

/* Each frame of the other link, and behind it one of our own of the same octets. */
static void send_back(struct queue *q, struct io_frame *f)
{
	struct io_frame *own = q->l->ops->alloc(q->l);

	CHECK(own && f->link == q->other->l);
	memcpy(own->data, f->data, f->len);
	own->len = f->len;
	f->link->ops->ref(f); /* as lwIP keeps what is not acknowledged */
	while (q->l->ops->tx(q->l, &f, 1) != 1)
		;
	while (q->l->ops->tx(q->l, &own, 1) != 1)
		;
	f->link->ops->free(f);
}

static unsigned transmit(struct queue *q)
{
	unsigned n;

	pthread_mutex_lock(&q->box_lock);
	n = q->boxed;
	pthread_mutex_unlock(&q->box_lock);
	on_lock(q);
	for (; q->sent < n; q->sent++)
		send_back(q, q->box[q->sent]);
	on_unlock(q);
	return n;
}

static void *drive(void *arg)
{
	struct queue *q = arg;

	while (!atomic_load(q->stop)) {
		unsigned before = q->sent;

		if (!receive(q) && transmit(q) == before)
			sched_yield();
	}
	q->l->ops->close(q->l);
	return NULL;
}

/* --- the kernel's side --- */

struct kernel {
	int flow[FLOWS];
	int nudge, back;
	unsigned came[FLOWS][EACH];
};

static int connect_to(uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr.s_addr = htonl(0x0a090001) };

	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	CHECK(fd >= 0 && !connect(fd, (struct sockaddr *)&to, sizeof(to)));
	return fd;
}

static void open_kernel(struct kernel *k, const char *face)
{
	struct sockaddr_ll at = { .sll_family = AF_PACKET,
				  .sll_protocol = htons(BACK),
				  .sll_ifindex = (int)if_nametoindex(face) };
	int room = 4 << 20;

	memset(k, 0, sizeof(*k));
	for (unsigned i = 0; i < FLOWS; i++)
		k->flow[i] = connect_to(PORT);
	k->nudge = connect_to(PORT + 1);
	k->back = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, htons(BACK));
	CHECK(k->back >= 0 && !bind(k->back, (struct sockaddr *)&at, sizeof(at)));
	setsockopt(k->back, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room));
}

static void close_kernel(struct kernel *k)
{
	for (unsigned i = 0; i < FLOWS; i++)
		close(k->flow[i]);
	close(k->nudge);
	close(k->back);
}

/* DPDK's tap driver counts the kernel's signals in a handler that two threads may be in at once,
 * and then waits for one more before it looks: so now and then something else comes, to nobody. */
static void wait_back(const struct kernel *k)
{
	struct pollfd p = { .fd = k->back, .events = POLLIN };
	uint64_t end = ms_now() + WAIT_MS;

	while (poll(&p, 1, 20) != 1) {
		CHECK(ms_now() < end);
		CHECK(send(k->nudge, "", 1, 0) == 1);
	}
}

static void take_back(struct kernel *k)
{
	uint8_t octets[2048];
	struct said s;

	wait_back(k);
	CHECK(recv(k->back, octets, sizeof(octets), 0) >= PAYLOAD_AT + (ssize_t)sizeof(s));
	memcpy(&s, octets + PAYLOAD_AT, sizeof(s));
	CHECK(s.flow < FLOWS && s.number < EACH);
	k->came[s.flow][s.number]++;
}

/* Everything comes back twice. */
static void converse(struct kernel *k)
{
	unsigned sent = 0, back = 0;

	while (back < 2 * FLOWS * EACH) {
		struct said s = { (uint16_t)(sent % FLOWS), (uint16_t)(sent / FLOWS) };

		if (sent < FLOWS * EACH && 2 * sent - back < 2 * UNDER_WAY) {
			CHECK(send(k->flow[s.flow], &s, sizeof(s), 0) == sizeof(s));
			sent++;
		} else {
			take_back(k);
			back++;
		}
	}
}

/* --- together --- */

static void open_queues(struct queue q[QUEUES], const char *link, _Atomic bool *stop)
{
	struct dpdk_config cfg = { .link = link,
				   .addr = htonl(0x0a090001),
				   .mask = htonl(0xffffff00),
				   .queues = QUEUES,
				   .addr_fd = -1 };
	struct io_env env[QUEUES];
	struct io_link *l[QUEUES];

	for (unsigned i = 0; i < QUEUES; i++) {
		memset(&q[i], 0, sizeof(q[i]));
		pthread_mutex_init(&q[i].lock, NULL);
		pthread_mutex_init(&q[i].box_lock, NULL);
		q[i].other = &q[!i];
		q[i].stop = stop;
		env[i] = (struct io_env){ .arg = &q[i], .lock = on_lock, .unlock = on_unlock };
	}
	CHECK(dpdk_links_open(&cfg, env, l) == UW_OK);
	for (unsigned i = 0; i < QUEUES; i++) {
		q[i].l = l[i];
		CHECK(l[i]->env.arg == &q[i] && l[i]->addr == cfg.addr);
		CHECK(l[i]->mtu == l[0]->mtu && !memcmp(l[i]->mac, l[0]->mac, 6));
	}
	CHECK(q[0].l != q[1].l && q[0].l->doorbell != q[1].l->doorbell);
}

static bool make_known(const struct io_link *l, const char *face)
{
	const uint8_t *m = l->mac;
	char command[256];

	snprintf(command, sizeof(command),
		 "ip neigh replace 10.9.0.1 lladdr %02x:%02x:%02x:%02x:%02x:%02x dev %s nud "
		 "permanent",
		 m[0], m[1], m[2], m[3], m[4], m[5], face);
	return run(command);
}

static unsigned of_flow(const struct queue *q, unsigned flow)
{
	unsigned n = 0;

	for (unsigned i = 0; i < EACH; i++)
		n += q->came[flow][i];
	return n;
}

static void check_all(const struct queue q[QUEUES], const struct kernel *k)
{
	unsigned flows[QUEUES] = { 0 };

	for (unsigned i = 0; i < FLOWS * EACH; i++) {
		CHECK(q[0].came[i % FLOWS][i / FLOWS] + q[1].came[i % FLOWS][i / FLOWS] == 1);
		CHECK(k->came[i % FLOWS][i / FLOWS] == 2);
	}
	for (unsigned i = 0; i < FLOWS; i++) {
		unsigned n = of_flow(&q[0], i);

		CHECK(n == 0 || n == EACH);
		flows[n == 0]++;
	}
	CHECK(flows[0] && flows[1]);
	print_message("flows on each queue: %u and %u\n", flows[0], flows[1]);
}

static void once(const char *link, const char *face)
{
	static struct queue q[QUEUES];
	static struct kernel k;
	_Atomic bool stop = false;

	open_queues(q, link, &stop);
	CHECK(run("ip addr replace 10.9.0.2/24 dev uw1 && ip link set uw1 up"));
	CHECK(make_known(q[0].l, face));
	open_kernel(&k, face);
	for (unsigned i = 0; i < QUEUES; i++)
		CHECK(!pthread_create(&q[i].thread, NULL, drive, &q[i]));
	converse(&k);
	/* They close their links at once, whoever is the last. */
	atomic_store(&stop, true);
	for (unsigned i = 0; i < QUEUES; i++)
		CHECK(!pthread_join(q[i].thread, NULL));
	close_kernel(&k);
	check_all(q, &k);
}

static int over_packet_sockets(struct node *n, int arg)
{
	(void)n;
	(void)arg;
	if (!own_namespace() ||
	    !run("ip link add uw0 type veth peer name uw1 && ip link set uw0 up && "
		 "ip link set uw1 up"))
		return SKIPPED;
	once("af_packet:uw0", "uw1");
	once("af_packet:uw0", "uw1"); /* what the first had is free again */
	return 0;
}

static int over_tap(struct node *n, int arg)
{
	(void)n;
	(void)arg;
	if (access("/dev/net/tun", R_OK | W_OK) || !own_namespace())
		return SKIPPED;
	once("net_tap0,iface=uw1", "uw1");
	return 0;
}

static void in_a_child(struct board *b, node_fn fn)
{
	int rc = reap(spawn(b, fn, 0), 4 * WAIT_MS);

	if (rc == SKIPPED)
		skip();
	assert_int_equal(rc, 0);
}

static void a_frame_comes_to_one_queue_and_goes_on_any(void **state)
{
	in_a_child(*state, over_packet_sockets);
}

static void the_same_over_a_tap_port(void **state)
{
	in_a_child(*state, over_tap);
}

/* --- too many --- */

struct attempt {
	struct dpdk_config cfg;
	uw_status st;
};

static void try_open(void *arg)
{
	struct attempt *a = arg;
	struct io_env env[DPDK_QUEUES_MAX + 1] = { 0 };
	struct io_link *l[DPDK_QUEUES_MAX + 1];

	a->st = dpdk_links_open(&a->cfg, env, l);
}

static bool refused(const char *link, unsigned queues, const char *text)
{
	struct attempt a = { .cfg = { .link = link,
				      .addr = htonl(0x0a090001),
				      .mask = htonl(0xffffff00),
				      .queues = queues,
				      .addr_fd = -1 } };
	char said[512];

	capture_stderr(try_open, &a, said, sizeof(said));
	bool ok = a.st == UW_E_UNSUPPORTED && strstr(said, text) &&
		  strchr(said, '\n') == said + strlen(said) - 1;
	if (!ok)
		fprintf(stderr, "%s: status %d, said: %s", link, (int)a.st, said);
	return ok;
}

static int too_many(struct node *n, int arg)
{
	char link[128];

	(void)arg;
	CHECK(refused("memif", DPDK_QUEUES_MAX + 1, "at most"));
	CHECK(refused("net_null0", DPDK_QUEUES_MAX + 1, "at most"));
	snprintf(link, sizeof(link), "net_vhost0,queues=1,iface=%s/vhost", n->board->dir);
	CHECK(refused(link, 2, "has 1 queue and 2 are asked for"));
	if (own_namespace() && run("ip link set lo up mtu 1500"))
		CHECK(refused("af_xdp:lo", 2, "af_xdp:lo has 1 queue and 2 are asked for"));
	return 0;
}

static void more_than_there_are_is_refused(void **state)
{
	assert_int_equal(reap(spawn(*state, too_many, 0), WAIT_MS), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_frame_comes_to_one_queue_and_goes_on_any, setup,
						teardown),
		cmocka_unit_test_setup_teardown(the_same_over_a_tap_port, setup, teardown),
		cmocka_unit_test_setup_teardown(more_than_there_are_is_refused, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
