/* SPDX-License-Identifier: BSD-3-Clause */
#include "spec.h"

#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rte_ether.h>

#include "kernel_if.h"
#include "io/log.h"

enum {
	MTU_MIN = 68,
	MTU_MAX = IO_MTU_PORT,
	TX_FRAMES = 4096,
	RX_FRAMES = 4096,
	XDP_RX_FRAMES = 8192, /* of which the driver keeps 2,048 */
	XDP_ROOM = 3520,      /* a frame and all that goes with it share a page */
	VLAN_LEN = 4,
	DRIVER_LEN = 16, /* virtio has a header of its own in front of a frame */
	VLAN_MAX = 4094,
	PACKET_RING = 512,   /* frames in a packet socket's ring */
	PACKET_HEADER = 128, /* what the kernel puts before each of them, at most */
	PACKET_BLOCK = 1 << 16,
};

/* libbpf and libxdp, there if DPDK's XDP driver is: they talk on stderr unless told not to. */
typedef int (*print_fn)(int level, const char *fmt, va_list args);
print_fn libbpf_set_print(print_fn fn) __attribute__((weak));
print_fn libxdp_set_print(print_fn fn) __attribute__((weak));

uw_status spec_say_queues(const char *link, unsigned has, unsigned asked)
{
	return log_error(UW_E_UNSUPPORTED, "link %s has %u queue%s and %u are asked for", link, has,
			 has == 1 ? "" : "s", asked);
}

/* A packet socket's ring is cut into frames of a power of two, or they would straddle blocks. */
static void spec_packet(struct port_spec *s, unsigned mtu)
{
	unsigned frame = rte_align32pow2(mtu + FRAME_ETHER + VLAN_LEN + PACKET_HEADER);

	snprintf(s->args, sizeof(s->args), "iface=%s,qpairs=%u,framesz=%u,blocksz=%u,framecnt=%u",
		 s->device, s->queues, frame, RTE_MAX(frame, (unsigned)PACKET_BLOCK), PACKET_RING);
	s->room = frame; /* the driver insists */
}

static uw_status spec_xdp(struct port_spec *s, const struct kernel_if *kernel,
			  const struct dpdk_config *cfg)
{
	if (s->queues > kernel->queues)
		return spec_say_queues(cfg->link, kernel->queues, s->queues);
	if (!cfg->verbose && libbpf_set_print)
		libbpf_set_print(NULL);
	if (!cfg->verbose && libxdp_set_print)
		libxdp_set_print(NULL);
	s->room = XDP_ROOM;
	s->nrx = XDP_RX_FRAMES;
	snprintf(s->args, sizeof(s->args), "iface=%s,start_queue=0,queue_count=%u,busy_budget=0",
		 s->device, s->queues);
	if (kernel->mtu + FRAME_ETHER + VLAN_LEN > s->room)
		return log_error(UW_E_INVAL,
				 "interface %s has an MTU of %u: an XDP socket takes up to "
				 "%u",
				 s->device, kernel->mtu, s->room - FRAME_ETHER - VLAN_LEN);
	return UW_OK;
}

static uw_status spec_kernel_if(struct port_spec *s, const struct dpdk_config *cfg)
{
	struct kernel_if kernel;
	uw_status st = kernel_if_read(s->device, &kernel);

	if (st)
		return st;
	if (!kernel.up)
		return log_error(UW_E_NO_LINK, "interface %s is down: bring it up first",
				 s->device);
	if (cfg->mtu > kernel.mtu)
		return log_error(UW_E_INVAL,
				 "interface %s has an MTU of %u: set it to %u, or ask for "
				 "no more than it has",
				 s->device, kernel.mtu, cfg->mtu);
	s->mtu = cfg->mtu ? cfg->mtu : RTE_MIN(kernel.mtu, (unsigned)MTU_MAX);
	s->scope = if_nametoindex(s->device);
	s->promiscuous = kernel.promiscuous;
	if (!cfg->addr && !cfg->n_ip6) {
		s->addr = kernel.addr;
		s->mask = kernel.mask;
	}
	if (s->kind == PORT_AF_PACKET) {
		spec_packet(s, RTE_MIN(kernel.mtu, (unsigned)MTU_MAX));
		return UW_OK;
	}
	return spec_xdp(s, &kernel, cfg);
}

/* Take "vlan=N" out of the driver's arguments; false: N is none. */
static bool take_vlan(struct port_spec *s)
{
	static const char key[] = "vlan=";
	char *at = s->args, *end;

	while (at && strncmp(at, key, sizeof(key) - 1)) {
		at = strchr(at, ',');
		at += at != NULL;
	}
	if (!at)
		return true;
	unsigned long id = strtoul(at + sizeof(key) - 1, &end, 10);
	s->vlan = (unsigned)id;
	if (end == at + sizeof(key) - 1 || (*end && *end != ',') || !id || id > VLAN_MAX)
		return false;
	if (*end)
		end++;
	else if (at > s->args)
		at--;
	memmove(at, end, strlen(end) + 1);
	return true;
}

static uw_status spec_pci(struct port_spec *s, const struct dpdk_config *cfg)
{
	if (!take_vlan(s))
		return log_error(UW_E_INVAL, "link %s: a VLAN is vlan=1 to vlan=%d", cfg->link,
				 VLAN_MAX);
	uw_status st = pci_dev_check(PCI_DEV_ROOT, s->name, &s->pci);

	snprintf(s->name, sizeof(s->name), "%s",
		 s->pci.addr); /* with its domain, as DPDK wants it */
	return st;
}

static void spec_device(struct port_spec *s, const struct dpdk_config *cfg)
{
	const char *comma = strchr(s->device, ',');
	int name = comma ? (int)(comma - s->device) : (int)strlen(s->device);

	snprintf(s->name, sizeof(s->name), "%.*s", name, s->device);
	snprintf(s->args, sizeof(s->args), "%s", comma ? comma + 1 : "");
	s->mtu_asked = cfg->mtu;
	s->mtu = s->mtu_asked ? cfg->mtu : RTE_ETHER_MTU;
	s->room = RTE_ALIGN_CEIL(s->mtu + FRAME_ETHER + VLAN_LEN + DRIVER_LEN, RTE_CACHE_LINE_SIZE);
	s->room = RTE_MAX(s->room, 2048U); /* what drivers take for granted */
	s->bus = s->kind == PORT_PCI ? "pci" : "vdev";
	s->set_mtu = s->kind == PORT_PCI ? s->mtu : 0;
}

bool spec_fit_mtu(struct port_spec *s, unsigned most)
{
	if (s->mtu <= most || (s->kind != PORT_PCI && s->kind != PORT_DEVARGS))
		return true;
	if (s->mtu_asked)
		return false;
	s->mtu = most;
	s->set_mtu = RTE_MIN(s->set_mtu, most);
	return true;
}

uw_status spec_fill(struct port_spec *s, const struct dpdk_config *cfg)
{
	static unsigned serial;

	if (cfg->mtu && (cfg->mtu < MTU_MIN || cfg->mtu > MTU_MAX))
		return log_error(UW_E_INVAL, "an MTU of %u does not fit the link: choose %d to %d",
				 cfg->mtu, MTU_MIN, MTU_MAX);
	s->vlan = cfg->vlan;
	if (!*s->device || strlen(s->device) > sizeof(s->args) / 2)
		return log_error(UW_E_INVAL, "link %s names no device", cfg->link);
	/* Several queues share what comes. */
	s->nrx = s->queues > 1 ? RX_FRAMES / 2 : RX_FRAMES;
	s->ntx = s->queues > 1 ? TX_FRAMES / 2 : TX_FRAMES;
	if (s->kind == PORT_PCI || s->kind == PORT_DEVARGS) {
		spec_device(s, cfg);
		return s->kind == PORT_PCI ? spec_pci(s, cfg) : UW_OK;
	}
	s->bus = "vdev";
	snprintf(s->name, sizeof(s->name), "net_%s%u",
		 s->kind == PORT_AF_PACKET ? "af_packet" : "af_xdp", serial++);
	return spec_kernel_if(s, cfg);
}
