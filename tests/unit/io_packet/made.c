/* SPDX-License-Identifier: BSD-3-Clause */
#include "made.h"

#include <linux/if_packet.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/be.h"

static uint32_t sum(uint32_t s, const uint8_t *p, uint32_t n)
{
	for (uint32_t i = 0; i < n; i++)
		s += i % 2 ? p[i] : (uint32_t)p[i] << 8;
	while (s >> 16)
		s = (s & 0xffff) + (s >> 16);
	return s;
}

static unsigned put_ip4(const struct made *m, uint8_t *ip)
{
	memset(ip, 0, 20);
	ip[0] = 0x45;
	uw_put16(ip + 2, (uint16_t)(40 + m->payload));
	uw_put16(ip + 4, m->ip_id);
	uw_put16(ip + 6, 0x4000);
	ip[8] = 64;
	ip[9] = IPPROTO_TCP;
	uw_put32(ip + 12, 0x0a090001);
	uw_put32(ip + 16, 0x0a090002);
	uw_put16(ip + 10, (uint16_t)~sum(0, ip, 20));
	return 20;
}

static unsigned put_ip6(const struct made *m, uint8_t *ip)
{
	memset(ip, 0, 40);
	ip[0] = 0x60;
	uw_put16(ip + 4, (uint16_t)(20 + m->payload));
	ip[6] = IPPROTO_TCP;
	ip[7] = 64;
	uw_put16(ip + 8, 0xfd09);
	ip[23] = 1;
	uw_put16(ip + 24, 0xfd09);
	ip[39] = 2;
	return 40;
}

uint32_t made_octets(const struct made *m, uint8_t *h)
{
	uint8_t *ip = h + 14, *tcp;
	uint32_t pseudo = IPPROTO_TCP + 20 + m->payload;

	memcpy(h, m->dst_mac, 6);
	memcpy(h + 6, m->src_mac, 6);
	uw_put16(h + 12, m->ip6 ? 0x86dd : 0x0800);
	tcp = ip + (m->ip6 ? put_ip6(m, ip) : put_ip4(m, ip));
	memset(tcp, 0, 20);
	uw_put16(tcp, m->src_port);
	uw_put16(tcp + 2, m->dst_port);
	uw_put32(tcp + 4, m->seq);
	uw_put32(tcp + 8, m->ack);
	tcp[12] = 0x50;
	tcp[13] = m->flags;
	uw_put16(tcp + 14, 512);
	for (uint32_t i = 0; i < m->payload; i++)
		tcp[20 + i] = (uint8_t)((m->seq + i) * 31 >> 3);
	pseudo = m->ip6 ? sum(pseudo, ip + 8, 32) : sum(pseudo, ip + 12, 8);
	uw_put16(tcp + 16, (uint16_t)~sum(pseudo, tcp, 20 + m->payload));
	return (uint32_t)(tcp - h) + 20 + m->payload;
}

struct io_frame *made_frame(struct io_link *l, const struct made *m)
{
	struct io_frame *f = l->ops->alloc(l);

	assert_non_null(f);
	f->len = made_octets(m, f->data);
	return f;
}

bool made_run(const char *command)
{
	char line[512];

	snprintf(line, sizeof(line), "(%s) >/dev/null 2>&1", command);
	return system(line) == 0;
}

static bool put(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	bool ok = f && fputs(text, f) >= 0;

	return f && !fclose(f) && ok;
}

bool made_namespace(void)
{
	char map[32];
	unsigned uid = getuid();

	if (!unshare(CLONE_NEWNET))
		return made_run("ip link set lo up");
	if (unshare(CLONE_NEWUSER | CLONE_NEWNET))
		return false;
	snprintf(map, sizeof(map), "0 %u 1", uid);
	return put("/proc/self/uid_map", map) && made_run("ip link set lo up");
}

static bool accepts(int fd, int level, int option)
{
	int one = 1;
	bool ok = fd >= 0 && !setsockopt(fd, level, option, &one, sizeof(one));

	if (fd >= 0)
		close(fd);
	return ok;
}

bool made_socket_options(void)
{
	return accepts(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0), SOL_PACKET,
		       PACKET_VNET_HDR) &&
	       accepts(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), SOL_SOCKET, SO_LOCK_FILTER);
}

bool made_ready(void)
{
	if (!made_namespace() || !made_run("ip link add uw8 type veth && ip link del uw8")) {
		print_message("no network namespace with veth can be made here\n");
		return false;
	}
	if (!made_socket_options()) {
		print_message("the emulator does not know the socket options of the link\n");
		return false;
	}
	return true;
}
