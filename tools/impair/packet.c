/* SPDX-License-Identifier: BSD-3-Clause */
#include "packet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define QUEUE	 (8 << 20)
#define VLAN_LEN 4u
#define MACS	 12u

struct packet {
	int fd;
	bool said_long, said_sums;
	char name[IFNAMSIZ];
	uint8_t room[VLAN_LEN + PACKET_MAX];
};

static struct packet *failed(struct packet *p, const char *what)
{
	fprintf(stderr, "uwarp-impair: %s: %s: %s%s\n", p->name, what, strerror(errno),
		errno == EPERM ? "; be root, or run inside unshare -Urn" : "");
	packet_close(p);
	return NULL;
}

/* Only what comes in, all of it, and what the kernel knows about each frame. */
static bool set_options(int fd, int index)
{
	const struct packet_mreq all = { .mr_ifindex = index, .mr_type = PACKET_MR_PROMISC };
	const int on = 1, queue = QUEUE;

	if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &queue, sizeof(queue)))
		(void)!setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &queue, sizeof(queue));
	return !setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &on, sizeof(on)) &&
	       !setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &on, sizeof(on)) &&
	       !setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof(all));
}

struct packet *packet_open(const char *interface)
{
	struct packet *p = calloc(1, sizeof(*p));
	struct sockaddr_ll to = { .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL) };

	if (!p)
		return NULL;
	p->fd = -1;
	snprintf(p->name, sizeof(p->name), "%s", interface);
	to.sll_ifindex = (int)if_nametoindex(interface);
	if (!to.sll_ifindex)
		return failed(p, "no such interface");
	p->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (p->fd < 0)
		return failed(p, "no packet socket");
	if (!set_options(p->fd, to.sll_ifindex))
		return failed(p, "packet socket");
	if (bind(p->fd, (struct sockaddr *)&to, sizeof(to)))
		return failed(p, "bind");
	return p;
}

void packet_close(struct packet *p)
{
	if (p->fd >= 0)
		close(p->fd);
	free(p);
}

int packet_fd(const struct packet *p)
{
	return p->fd;
}

const char *packet_name(const struct packet *p)
{
	return p->name;
}

static struct tpacket_auxdata aux_of(struct msghdr *m)
{
	struct tpacket_auxdata aux = { 0 };

	for (struct cmsghdr *c = CMSG_FIRSTHDR(m); c; c = CMSG_NXTHDR(m, c)) {
		if (c->cmsg_level == SOL_PACKET && c->cmsg_type == PACKET_AUXDATA)
			memcpy(&aux, CMSG_DATA(c), sizeof(aux));
	}
	return aux;
}

/* The kernel took the VLAN tag out (IEEE 802.1Q): back in. */
static uint8_t *with_tag(struct packet *p, const struct tpacket_auxdata *aux, uint32_t *len)
{
	uint8_t *frame = p->room + VLAN_LEN;
	uint16_t tag[2] = { htons(ETHERTYPE_VLAN), htons(aux->tp_vlan_tci) };

	if (!(aux->tp_status & TP_STATUS_VLAN_VALID))
		return frame;
	if (aux->tp_status & TP_STATUS_VLAN_TPID_VALID)
		tag[0] = htons(aux->tp_vlan_tpid);
	memmove(p->room, frame, MACS);
	memcpy(p->room + MACS, tag, sizeof(tag));
	*len += VLAN_LEN;
	return p->room;
}

static void say_offloads(const struct packet *p, const char *what, bool *said)
{
	if (*said)
		return;
	*said = true;
	fprintf(stderr,
		"uwarp-impair: %s: frames come in %s, and are lost: whoever sends leaves that to "
		"its interface; there: ethtool -K INTERFACE tx off tso off gso off\n",
		p->name, what);
}

static bool complete(struct packet *p, const struct tpacket_auxdata *aux, size_t got)
{
	if (got > PACKET_MAX) {
		say_offloads(p, "uncut", &p->said_long);
		return false;
	}
	if (aux->tp_status & TP_STATUS_CSUMNOTREADY) {
		say_offloads(p, "without checksums", &p->said_sums);
		return false;
	}
	return got >= sizeof(struct ether_header);
}

const uint8_t *packet_receive(struct packet *p, uint32_t *len)
{
	uint8_t control[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	struct iovec v = { p->room + VLAN_LEN, PACKET_MAX };

	for (;;) {
		struct msghdr m = { .msg_iov = &v,
				    .msg_iovlen = 1,
				    .msg_control = control,
				    .msg_controllen = sizeof(control) };
		ssize_t got = recvmsg(p->fd, &m, MSG_TRUNC);
		struct tpacket_auxdata aux;

		if (got < 0)
			return NULL;
		aux = aux_of(&m);
		if (!complete(p, &aux, (size_t)got))
			continue;
		*len = (uint32_t)got;
		return with_tag(p, &aux, len);
	}
}

enum packet_sent packet_send(struct packet *p, const uint8_t *frame, uint32_t len)
{
	if (send(p->fd, frame, len, 0) >= 0)
		return PACKET_SENT;
	return errno == EAGAIN || errno == ENOBUFS ? PACKET_FULL : PACKET_REFUSED;
}
