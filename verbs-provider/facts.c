/* SPDX-License-Identifier: BSD-3-Clause */
#include "facts.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { NODE_CA = 1, NODE_RNIC = 4 };			    /* = enum ibv_node_type */
enum { PORT_ACTIVE = 4, PHYS_LINK_UP = 5 };		    /* InfiniBand PortInfo */
enum { GID_TYPE_IB = 0, GID_TYPE_ROCE_V2 = 2 };		    /* = enum ib_uverbs_gid_type */
enum { WIDTH_1X = 1, WIDTH_4X = 2 };			    /* InfiniBand PortInfo */
enum { SDR = 1, FDR10 = 8, EDR = 32, HDR = 64, NDR = 128 }; /* InfiniBand PortInfo */
enum { MTU_256 = 1, MTU_4096 = 5 };			    /* = enum ibv_mtu */

#define ROCE_IP4_INDEX 3u
/* What an IP packet of RoCEv2 needs besides its payload, at most, as Linux's drivers have it. */
#define ROCE_HEADERS 80u

static struct {
	pthread_once_t once;
	char text[UWARP_DEV_NAME_MAX];
} name = { .once = PTHREAD_ONCE_INIT, .text = UWARP_DEV_NAME };

/* It becomes part of paths in /sys. */
static bool is_name(const char *s)
{
	static const char known[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.";

	return *s && *s != '.' && strlen(s) < UWARP_DEV_NAME_MAX && !s[strspn(s, known)];
}

static void read_name(void)
{
	const char *given = secure_getenv("UWARP_NAME");

	if (given && is_name(given))
		strcpy(name.text, given);
}

const char *uwarp_device_name(void)
{
	pthread_once(&name.once, read_name);
	return name.text;
}

/* The usual speeds of Ethernet, as InfiniBand has them. */
static const struct {
	uint64_t gbps;
	uint8_t width, speed;
} speeds[] = {
	{ 400, WIDTH_4X, NDR },	 { 200, WIDTH_4X, HDR },  { 100, WIDTH_4X, EDR },
	{ 50, WIDTH_1X, HDR },	 { 40, WIDTH_4X, FDR10 }, { 25, WIDTH_1X, EDR },
	{ 10, WIDTH_1X, FDR10 }, { 0, WIDTH_1X, SDR },
};

/* The largest that is not faster than the link. */
static void fill_speed(uint64_t bps, struct uwarp_facts *f)
{
	size_t i = 0;

	while (bps < speeds[i].gbps * 1000000000u)
		i++;
	f->width = speeds[i].width;
	f->speed = speeds[i].speed;
}

struct uwarp_rate uwarp_rate_of(const struct uwarp_facts *f)
{
	struct uwarp_rate r = { .lanes = f->width == WIDTH_4X ? 4 : 1 };

	switch (f->speed) {
	case NDR:
		r.tenths = 1000;
		r.name = "NDR";
		break;
	case HDR:
		r.tenths = 500;
		r.name = "HDR";
		break;
	case EDR:
		r.tenths = 250;
		r.name = "EDR";
		break;
	case FDR10:
		r.tenths = 100;
		r.name = "FDR10";
		break;
	default:
		r.tenths = 25;
		r.name = "SDR";
	}
	return r;
}

uint8_t uwarp_mtu_code(uint32_t octets)
{
	uint8_t code = MTU_256;

	while (code < MTU_4096 && octets >= (256u << code))
		code++;
	return code;
}

uint8_t uwarp_active_mtu(const struct uw_device_attr *attr)
{
	return uwarp_mtu_code(attr->mtu > ROCE_HEADERS ? attr->mtu - ROCE_HEADERS : 0);
}

static uint16_t lid_of(const struct uw_device_attr *attr)
{
	const struct sockaddr_in *sin = (const struct sockaddr_in *)&attr->addr;

	return sin->sin_family == AF_INET ? (uint16_t)ntohl(sin->sin_addr.s_addr) : 0;
}

static void set_gid(struct uwarp_facts *f, unsigned at, const uint8_t gid[16])
{
	f->gid[at].present = true;
	memcpy(f->gid[at].raw, gid, 16);
	if (f->n_gids <= at)
		f->n_gids = at + 1;
}

static bool is_ip4(const uint8_t gid[16])
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };

	return !memcmp(gid, mapped, sizeof(mapped));
}

static void fill_gids(const struct uw_device_attr *attr, struct uwarp_facts *f)
{
	bool twice = attr->roce && !attr->infiniband && attr->n_gids && is_ip4(attr->gid[0]);

	for (unsigned i = 0; i < attr->n_gids; i++)
		set_gid(f, i + (twice && i >= ROCE_IP4_INDEX), attr->gid[i]);
	if (twice)
		set_gid(f, ROCE_IP4_INDEX, attr->gid[0]);
}

void uwarp_facts_of(const struct uw_device_attr *attr, struct uwarp_facts *f)
{
	const bool ethernet = attr->roce && !attr->infiniband; /* as RoCE has it */

	*f = (struct uwarp_facts){
		.roce = attr->roce,
		.node_guid = attr->guid,
		.node_type = attr->roce ? NODE_CA : NODE_RNIC,
		.protocol = ethernet	 ? "roce"
			    : attr->roce ? "ib"
					 : "iw",
		.link_layer = attr->infiniband ? UWARP_LINK_INFINIBAND : UWARP_LINK_ETHERNET,
		.state =
			PORT_ACTIVE, /* before the link is up, too: else programs refuse to start */
		.phys_state = PHYS_LINK_UP,
		.active_mtu = uwarp_active_mtu(attr),
		.lid = ethernet ? 0 : lid_of(attr),
		.grh_required = ethernet,
		.n_pkeys = attr->roce, /* iWARP has no P_Keys */
		.gid_type = ethernet ? GID_TYPE_ROCE_V2 : GID_TYPE_IB,
	};
	memcpy(f->fw_ver, attr->fw_ver, sizeof(f->fw_ver) - 1);
	fill_speed(attr->link_bps, f);
	fill_gids(attr, f);
}
