/* SPDX-License-Identifier: BSD-3-Clause */
/* rtnetlink's messages as octets, good and bad. */
#include "io/route/message.h"

#include <linux/if_addr.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>

#include <cmocka.h>

#define INDEX 7
#define SEQ   3

struct made {
	_Alignas(8) uint8_t b[1024];
	size_t n;
};

static struct nlmsghdr *begin(struct made *m, uint16_t type, const void *body, size_t n)
{
	struct nlmsghdr h = { .nlmsg_type = type, .nlmsg_seq = SEQ };

	m->n = 0;
	memset(m->b, 0, sizeof(m->b));
	memcpy(m->b + NLMSG_HDRLEN, body, n);
	memcpy(m->b, &h, sizeof(h));
	m->n = NLMSG_HDRLEN + NLMSG_ALIGN(n);
	return (struct nlmsghdr *)(void *)m->b;
}

static void attr(struct made *m, uint16_t type, const void *p, size_t n)
{
	struct rtattr a = { .rta_type = type, .rta_len = (uint16_t)RTA_LENGTH(n) };

	memcpy(m->b + m->n, &a, sizeof(a));
	memcpy(m->b + m->n + RTA_LENGTH(0), p, n);
	m->n += RTA_SPACE(n);
}

static void attr_u32(struct made *m, uint16_t type, uint32_t v)
{
	attr(m, type, &v, sizeof(v));
}

static enum route_read read_it(struct route_kernel *k, struct made *m)
{
	((struct nlmsghdr *)(void *)m->b)->nlmsg_len = (uint32_t)m->n;
	return route_read(k, m->b, m->n, SEQ);
}

static struct rtmsg route4(void)
{
	return (struct rtmsg){ .rtm_family = AF_INET,
			       .rtm_table = RT_TABLE_MAIN,
			       .rtm_type = RTN_UNICAST };
}

static void a_default_route(void **state)
{
	struct route_kernel k = { .index = INDEX };
	struct rtmsg r = route4();
	struct made m;

	(void)state;
	begin(&m, RTM_NEWROUTE, &r, sizeof(r));
	attr_u32(&m, RTA_OIF, INDEX);
	attr_u32(&m, RTA_GATEWAY, htobe32(0x0a000001));
	attr_u32(&m, RTA_PRIORITY, 100);
	assert_int_equal(read_it(&k, &m), ROUTE_MORE);
	assert_int_equal(k.routes.n, 1);
	assert_int_equal(k.routes.at[0].net.bits, UW_IP_V4_BITS);
	assert_int_equal(uw_ip_v4_be(&k.routes.at[0].via), htobe32(0x0a000001));
	assert_int_equal(k.routes.at[0].metric, 100);
	route_clear(&k.routes);
}

static void its_mtu(void **state)
{
	struct route_kernel k = { .index = INDEX };
	struct rtmsg r = route4();
	struct {
		struct rtattr a;
		uint32_t v;
	} mtu = { { 8, RTAX_MTU }, 1400 };
	struct made m;

	(void)state;
	begin(&m, RTM_NEWROUTE, &r, sizeof(r));
	attr_u32(&m, RTA_OIF, INDEX);
	attr(&m, RTA_METRICS, &mtu, sizeof(mtu));
	read_it(&k, &m);
	assert_int_equal(k.routes.at[0].mtu, 1400);
	route_clear(&k.routes);
}

static void the_hop_of_this_interface(void **state)
{
	struct route_kernel k = { .index = INDEX };
	struct rtmsg r = route4();
	struct {
		struct rtnexthop h;
		struct rtattr a;
		uint32_t via;
	} hops[2] = { { { 16, 0, 0, INDEX + 1 }, { 8, RTA_GATEWAY }, htobe32(0x0a000001) },
		      { { 16, 0, 0, INDEX }, { 8, RTA_GATEWAY }, htobe32(0x0a000002) } };
	struct made m;

	(void)state;
	begin(&m, RTM_NEWROUTE, &r, sizeof(r));
	attr(&m, RTA_MULTIPATH, hops, sizeof(hops));
	read_it(&k, &m);
	assert_int_equal(k.routes.n, 1);
	assert_int_equal(uw_ip_v4_be(&k.routes.at[0].via), htobe32(0x0a000002));
	route_clear(&k.routes);
}

static void others_are_passed_over(void **state)
{
	struct route_kernel k = { .index = INDEX };
	struct rtmsg r = route4();
	struct made m;

	(void)state;
	begin(&m, RTM_NEWROUTE, &r, sizeof(r));
	attr_u32(&m, RTA_OIF, INDEX + 1);
	read_it(&k, &m);
	r.rtm_type = RTN_LOCAL;
	begin(&m, RTM_NEWROUTE, &r, sizeof(r));
	attr_u32(&m, RTA_OIF, INDEX);
	read_it(&k, &m);
	r = route4();
	begin(&m, RTM_NEWROUTE, &r, sizeof(r));
	attr_u32(&m, RTA_OIF, INDEX);
	attr_u32(&m, RTA_TABLE, 1000);
	read_it(&k, &m);
	r.rtm_dst_len = 33;
	begin(&m, RTM_NEWROUTE, &r, sizeof(r));
	attr_u32(&m, RTA_OIF, INDEX);
	read_it(&k, &m);
	assert_int_equal(k.routes.n, 0);
}

/* RFC 8950's gateways, tunnels, and hops whose interface is down. */
static void what_leads_elsewhere_is_passed_over(void **state)
{
	struct route_kernel k = { .index = INDEX };
	struct rtmsg r = route4();
	struct {
		struct rtnexthop h;
		struct rtattr a;
		uint32_t via;
	} hops[2] = {
		{ { 16, RTNH_F_DEAD, 0, INDEX }, { 8, RTA_GATEWAY }, htobe32(0x0a000001) },
		{ { 16, 0, 0, INDEX }, { 8, RTA_ENCAP }, 0 },
	};
	const uint8_t via[18] = { AF_INET6, 0, 0xfe, 0x80 };
	struct made m;

	(void)state;
	begin(&m, RTM_NEWROUTE, &r, sizeof(r));
	attr_u32(&m, RTA_OIF, INDEX);
	attr(&m, RTA_VIA, via, sizeof(via));
	read_it(&k, &m);
	begin(&m, RTM_NEWROUTE, &r, sizeof(r));
	attr_u32(&m, RTA_OIF, INDEX);
	attr_u32(&m, RTA_ENCAP, 0);
	read_it(&k, &m);
	begin(&m, RTM_NEWROUTE, &r, sizeof(r));
	attr(&m, RTA_MULTIPATH, hops, sizeof(hops));
	read_it(&k, &m);
	assert_int_equal(k.routes.n, 0);
}

static struct ndmsg neighbour(void)
{
	return (struct ndmsg){ .ndm_family = AF_INET,
			       .ndm_ifindex = INDEX,
			       .ndm_state = NUD_PERMANENT };
}

static void make_neighbour(struct made *m, uint16_t type, const struct ndmsg *n, size_t mac)
{
	static const uint8_t octets[8] = { 2, 0, 0, 0, 0, 9 };

	begin(m, type, n, sizeof(*n));
	attr_u32(m, NDA_DST, htobe32(0x0a000009));
	attr(m, NDA_LLADDR, octets, mac);
	((struct nlmsghdr *)(void *)m->b)->nlmsg_len = (uint32_t)m->n;
}

/* ip neighbour add ... nud permanent */
static void a_fixed_neighbour(void **state)
{
	const struct uw_ip ip = uw_ip_v4(htobe32(0x0a000009));
	struct route_kernel k = { .index = INDEX };
	struct ndmsg n[4] = { neighbour(), neighbour(), neighbour(), neighbour() };
	struct made m;

	(void)state;
	n[0].ndm_state = NUD_REACHABLE;
	n[1].ndm_ifindex = INDEX + 1;
	n[2].ndm_flags = NTF_PROXY;
	for (unsigned i = 0; i < 4; i++) { /* the last one's MAC address is none of Ethernet's */
		make_neighbour(&m, RTM_NEWNEIGH, &n[i], i < 3 ? 6 : 8);
		read_it(&k, &m);
	}
	assert_int_equal(k.routes.n_near, 0);
	make_neighbour(&m, RTM_NEWNEIGH, &n[3], 6);
	read_it(&k, &m);
	route_sort(&k.routes);
	assert_int_equal(route_mac(&k.routes, &ip)[5], 9);
	route_clear(&k.routes);
}

static bool is_news(uint16_t type, uint16_t nud, int index)
{
	struct ndmsg n = neighbour();
	struct made m;

	n.ndm_state = nud;
	make_neighbour(&m, type, &n, 6);
	return route_is_news(m.b, m.n, index);
}

/* Neighbours that are asked for come and go. */
static void what_is_news(void **state)
{
	struct rtmsg r = route4();
	struct made m;

	(void)state;
	assert_false(is_news(RTM_NEWNEIGH, NUD_STALE, INDEX));
	assert_false(is_news(RTM_NEWNEIGH, NUD_PERMANENT, INDEX + 1));
	assert_true(is_news(RTM_NEWNEIGH, NUD_PERMANENT, INDEX));
	assert_true(is_news(RTM_DELNEIGH, NUD_FAILED, INDEX));
	begin(&m, RTM_NEWROUTE, &r, sizeof(r));
	((struct nlmsghdr *)(void *)m.b)->nlmsg_len = (uint32_t)m.n;
	assert_true(route_is_news(m.b, m.n, INDEX));
	assert_true(route_is_news(m.b, m.n - 4, INDEX)); /* cut short: who knows */
	assert_false(route_is_news(m.b, 0, INDEX));
}

static void an_address(void **state)
{
	struct route_kernel k = { .index = INDEX };
	struct ifaddrmsg a = { .ifa_family = AF_INET, .ifa_prefixlen = 24, .ifa_index = INDEX };
	struct made m;

	(void)state;
	begin(&m, RTM_NEWADDR, &a, sizeof(a));
	attr_u32(&m, IFA_LOCAL, htobe32(0x0a000005));
	read_it(&k, &m);
	assert_int_equal(k.n_addr, 1);
	assert_int_equal(k.addr[0].bits, UW_IP_V4_BITS + 24);
	for (unsigned i = 0; i < 2 * ROUTE_ADDRS_MAX; i++)
		read_it(&k, &m);
	assert_int_equal(k.n_addr, ROUTE_ADDRS_MAX);
}

static void put_address6(struct route_kernel *k, uint32_t flags, uint8_t last)
{
	struct ifaddrmsg a = { .ifa_family = AF_INET6, .ifa_prefixlen = 64, .ifa_index = INDEX };
	const uint8_t ip[16] = { 0xfd, 9, [15] = last };
	struct made m;

	begin(&m, RTM_NEWADDR, &a, sizeof(a));
	attr(&m, IFA_ADDRESS, ip, sizeof(ip));
	attr_u32(&m, IFA_FLAGS, flags);
	assert_int_equal(read_it(k, &m), ROUTE_MORE);
}

/* RFC 4862 §5.4, §5.5.4, RFC 8981 */
static void addresses_of_ip6(void **state)
{
	struct route_kernel k = { .index = INDEX };

	(void)state;
	put_address6(&k, IFA_F_PERMANENT, 1);
	put_address6(&k, IFA_F_TEMPORARY, 2);
	put_address6(&k, IFA_F_DADFAILED | IFA_F_TENTATIVE, 3);
	assert_false(k.tentative);
	put_address6(&k, IFA_F_DEPRECATED, 4);
	assert_int_equal(k.n_addr, 0);
	assert_int_equal(k.n_addr6, 2);
	assert_int_equal(k.addr6[0].ip.b[15], 1);
	assert_int_equal(k.addr6[0].bits, 64);
	assert_int_equal(k.addr6[1].ip.b[15], 4);
	assert_int_equal(k.deprecated6, 2);
	put_address6(&k, IFA_F_TENTATIVE | IFA_F_OPTIMISTIC, 5);
	assert_true(k.n_addr6 == 3 && !k.tentative);
	put_address6(&k, IFA_F_TENTATIVE, 6);
	assert_true(k.n_addr6 == 3 && k.tentative);
	for (unsigned i = 0; i < 2 * ROUTE_ADDRS_MAX; i++)
		put_address6(&k, IFA_F_DEPRECATED, 7);
	assert_int_equal(k.n_addr6, ROUTE_ADDRS_MAX);
}

static void the_interface(void **state)
{
	struct route_kernel k = { .index = INDEX };
	struct ifinfomsg l = { .ifi_index = INDEX, .ifi_flags = 1 };
	struct made m;

	(void)state;
	begin(&m, RTM_NEWLINK, &l, sizeof(l));
	attr_u32(&m, IFLA_MTU, 9000);
	read_it(&k, &m);
	assert_int_equal(k.mtu, 9000);
	assert_true(k.up);
	assert_false(k.has_mac);
}

static void its_mac(void **state)
{
	static const uint8_t mac[20] = { 2, 3, 4, 5, 6, 7 };
	struct route_kernel k = { .index = INDEX };
	struct ifinfomsg l = { .ifi_index = INDEX, .ifi_flags = 1 };
	struct made m;

	(void)state;
	begin(&m, RTM_NEWLINK, &l, sizeof(l));
	attr(&m, IFLA_ADDRESS, mac, sizeof(mac)); /* InfiniBand's */
	read_it(&k, &m);
	assert_false(k.has_mac);
	begin(&m, RTM_NEWLINK, &l, sizeof(l));
	attr(&m, IFLA_ADDRESS, mac, 6);
	read_it(&k, &m);
	assert_true(k.has_mac);
	assert_memory_equal(k.mac, mac, 6);
}

static void ends(void **state)
{
	struct route_kernel k = { .index = INDEX };
	struct made m;
	int zero = 0;

	(void)state;
	begin(&m, NLMSG_DONE, &zero, sizeof(zero));
	assert_int_equal(read_it(&k, &m), ROUTE_DONE);
	begin(&m, NLMSG_ERROR, &zero, sizeof(zero));
	assert_int_equal(read_it(&k, &m), ROUTE_ERROR);
	begin(&m, NLMSG_ERROR, &zero, sizeof(zero))->nlmsg_seq = SEQ + 1;
	assert_int_equal(read_it(&k, &m), ROUTE_MORE);
	begin(&m, NLMSG_DONE, &zero, sizeof(zero))->nlmsg_flags = NLM_F_DUMP_INTR;
	assert_int_equal(read_it(&k, &m), ROUTE_AGAIN);
	m.n -= 4;
	assert_int_equal(route_read(&k, m.b, m.n, SEQ), ROUTE_ERROR);
}

/* Whatever octets come, nothing beyond them is read (asan looks). */
static void noise(void **state)
{
	struct rtmsg r = route4();

	(void)state;
	srand(1);
	for (unsigned round = 0; round < 20000; round++) {
		struct route_kernel k = { .index = INDEX };
		struct made m;
		uint8_t *exact;

		begin(&m, (uint16_t)(16 + rand() % 12), &r, sizeof(r));
		attr_u32(&m, RTA_OIF, INDEX);
		attr_u32(&m, RTA_MULTIPATH, 0x00070010);
		attr_u32(&m, RTA_METRICS, 0x00020008);
		((struct nlmsghdr *)(void *)m.b)->nlmsg_len = (uint32_t)m.n;
		for (unsigned i = 0; i < 3; i++)
			m.b[(unsigned)rand() % m.n] = (uint8_t)rand();
		exact = malloc(m.n);
		assert_non_null(exact);
		memcpy(exact, m.b, m.n);
		route_read(&k, exact, m.n, SEQ);
		free(exact);
		route_clear(&k.routes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_default_route),
		cmocka_unit_test(its_mtu),
		cmocka_unit_test(the_hop_of_this_interface),
		cmocka_unit_test(others_are_passed_over),
		cmocka_unit_test(what_leads_elsewhere_is_passed_over),
		cmocka_unit_test(a_fixed_neighbour),
		cmocka_unit_test(what_is_news),
		cmocka_unit_test(an_address),
		cmocka_unit_test(addresses_of_ip6),
		cmocka_unit_test(the_interface),
		cmocka_unit_test(its_mac),
		cmocka_unit_test(ends),
		cmocka_unit_test(noise),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
