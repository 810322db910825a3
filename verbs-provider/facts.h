/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The properties of the device. Programs ask in three ways: RDMA netlink, files in /sys, and verbs.
 * All three read this table, so that the answers agree.
 */
#ifndef UWARP_FACTS_H
#define UWARP_FACTS_H

#include <stdbool.h>
#include <stdint.h>

#include "uwarp/uwarp.h"

/* ---- names ---- */

#define UWARP_DEV_NAME "uwarp0"
/* Longest name that a device can have, as the kernel has it (IB_DEVICE_NAME_MAX), with its end. */
#define UWARP_DEV_NAME_MAX 64

/* The device's name: UWARP_NAME, where it is a name that a device can have, else UWARP_DEV_NAME. It
 * is read once, and lives as long as the process. */
const char *uwarp_device_name(void);

/* The number of the device and of its uverbs node. Kernels number devices from 0 to 1023, so no
 * kernel device and node has this number. */
#define UWARP_DEV_INDEX	  30071u
#define UWARP_UVERBS_NODE "uverbs30071"
#define UWARP_UCMA_NODE	  "rdma_cm"
#define UWARP_NODE_DIR	  "/dev/infiniband"

enum { UWARP_UVERBS_ABI = 1, UWARP_UCMA_ABI = 4 };
/* The device number of the uverbs node, which is an open /dev/null. */
enum { UWARP_NODE_MAJOR = 1, UWARP_NODE_MINOR = 3 };

/* The first octets of our GUIDs, an identifier that is assigned to nobody. The value is not 0,
 * since programs take 0 for a device that did not answer. */
#define UWARP_VENDOR_ID 0x027577u
/* There is no card: no part of a vendor's list, and no revision. */
#define UWARP_HCA_TYPE "uwarp"
#define UWARP_HW_VER   0u

/* The port's capability flags: a communication manager (IBV_PORT_CM_SUP). */
#define UWARP_PORT_CAPS (1u << 16)

/* = IBV_LINK_LAYER_... */
enum { UWARP_LINK_INFINIBAND = 1, UWARP_LINK_ETHERNET = 2 };

/* ---- the table ---- */

/* The identity RoCE adds entries, see uwarp_facts_of(). */
#define UWARP_GIDS_MAX (UW_GIDS_MAX + 3u)

struct uwarp_gid {
	bool present; /* false: the entry is empty */
	uint8_t raw[16];
};

struct uwarp_facts {
	bool roce;	      /* --identity roce or ib */
	uint64_t node_guid;   /* host order; the system image GUID is the same */
	uint8_t node_type;    /* enum ibv_node_type */
	const char *protocol; /* protocol name in RDMA netlink */
	char fw_ver[32];

	/* properties of port 1 */
	uint8_t link_layer;	   /* UWARP_LINK_... */
	uint8_t state, phys_state; /* values of the InfiniBand PortInfo: ACTIVE, LinkUp */
	uint8_t width, speed;	   /* enum ibv_port_width, one of the InfiniBand lane speeds */
	uint8_t active_mtu;	   /* enum ibv_mtu */
	uint16_t lid;
	bool grh_required; /* IBV_QPF_GRH_REQUIRED */
	unsigned n_pkeys;  /* number of P_Keys; each is 0xffff */
	uint8_t gid_type;  /* enum ib_uverbs_gid_type, the same for all entries */
	unsigned n_gids;   /* number of entries, including empty ones */
	struct uwarp_gid gid[UWARP_GIDS_MAX];
};

/*
 * GIDs: index 0 is the IPv4 address, the others follow in the engine's order. With the identity
 * RoCE, index 3 is the IPv4 address too: a real RoCE NIC usually has its IPv4 RoCEv2 GID at index
 * 3, and programs and scripts use that number by default. LID: with the identities iWARP and
 * InfiniBand the lower half of the IPv4 address, for programs that exchange LIDs but no GIDs; with
 * RoCE 0, and the GRH is required.
 */
void uwarp_facts_of(const struct uw_device_attr *attr, struct uwarp_facts *f);

/* The enum ibv_mtu of the largest InfiniBand MTU that is not above `octets`. */
uint8_t uwarp_mtu_code(uint32_t octets);

/* That of the port: what fits in a packet of RoCEv2, and so in a segment. */
uint8_t uwarp_active_mtu(const struct uw_device_attr *attr);

/* The meaning of width and speed: number of lanes, rate of a lane in 0.1 Gb/s, name of the speed.
 */
struct uwarp_rate {
	unsigned lanes, tenths;
	const char *name; /* such as "EDR" */
};
struct uwarp_rate uwarp_rate_of(const struct uwarp_facts *f);

#endif
