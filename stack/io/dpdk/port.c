/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <net/if.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <rte_ethdev.h>

#include "io/addr.h"

#include "burst.h"
#include "eal.h"
#include "ethdev.h"
#include "kernel_if.h"
#include "port.h"
#include "say.h"

enum {
	MTU_MIN = 68,
	MTU_MAX = 16000,
	TX_FRAMES = 4096,
	RX_FRAMES = 4096,
	XDP_RX_FRAMES = 8192, /* of which the driver keeps 2,048 */
	XDP_ROOM = 3520,      /* a frame and all that goes with it share a page */
	VLAN_LEN = 4,
	PACKET_RING = 512,   /* frames in a packet socket's ring */
	PACKET_HEADER = 128, /* what the kernel puts before each of them, at most */
	PACKET_BLOCK = 1 << 16,
	LINK_WAIT_MS = 3000,
};

/* libbpf and libxdp, there if DPDK's XDP driver is: they talk on stderr unless told not to. */
typedef int (*print_fn)(int level, const char *fmt, va_list args);
print_fn libbpf_set_print(print_fn fn) __attribute__((weak));
print_fn libxdp_set_print(print_fn fn) __attribute__((weak));

struct port {
	struct io_link link; /* first: an io_link * is a port * */
	pid_t pid;
	struct frame_pools pools;
	uint16_t id;
	bool made;
	struct sender sender;
	_Atomic uint32_t awake; /* a doorbell that nobody rings */
};

static struct port *port_of(struct io_link *l)
{
	return (struct port *)l;
}

/* --- the ops under the stack lock --- */

static unsigned port_rx(struct io_link *l, struct io_frame **v, unsigned n)
{
	struct rte_mbuf *m[FRAME_BURST];
	unsigned got =
		rte_eth_rx_burst(port_of(l)->id, 0, m, (uint16_t)RTE_MIN(n, (unsigned)FRAME_BURST));

	for (unsigned i = 0; i < got; i++) {
		uint32_t len;

		v[i] = frame_from_mbuf(m[i], &len);
		l->stats.rx_bytes += len;
	}
	l->stats.rx_frames += got;
	return got;
}

static unsigned port_tx(struct io_link *l, struct io_frame **v, unsigned n)
{
	return burst_send(&port_of(l)->sender, v, n);
}

static struct io_frame *port_alloc(struct io_link *l)
{
	struct io_frame *f = frame_alloc(port_of(l)->pools.tx);

	l->stats.no_frame += !f;
	return f;
}

static struct io_frame *port_refer(struct io_link *l, const uint8_t *p, uint32_t n)
{
	struct io_frame *f = frame_refer(port_of(l)->pools.tx, p, n);

	l->stats.no_frame += !f;
	return f;
}

/* Drivers cannot be asked without receiving, and nobody rings: maybe, always. */
static bool port_pending(struct io_link *l)
{
	(void)l;
	return true;
}

/* --- close --- */

static int job_unplug(void *arg)
{
	return ethdev_unplug(((struct port *)arg)->id);
}

static void port_close(struct io_link *l)
{
	struct port *p = port_of(l);

	if (p->pid != getpid())
		return; /* a forked child: the port is its parent's */
	if (p->made)
		eal_run(job_unplug, p);
	frame_pools_close(&p->pools);
	free(p);
}

static const struct io_ops port_ops = {
	.name = "dpdk",
	.rx = port_rx,
	.tx = port_tx,
	.alloc = port_alloc,
	.free = frame_free,
	.refer = port_refer,
	.own = frame_own,
	.ref = frame_ref,
	.refs = frame_refs,
	.pending = port_pending,
	.close = port_close,
};

/* --- open --- */

struct port_spec {
	enum port_kind kind;
	const char *device;
	const char *bus;
	char name[ETHDEV_NAME_LEN];
	char args[512];
	unsigned room; /* of a buffer, behind the headroom */
	unsigned nrx;
	unsigned set_mtu; /* in the device; 0: it has it or needs none */
	enum dpdk_tso tso;
	const char *no_tso; /* out: what stands against it */
};

/* A packet socket's ring is cut into frames of a power of two, or they would straddle blocks. */
static void spec_packet(struct port_spec *s, unsigned mtu)
{
	unsigned frame = rte_align32pow2(mtu + FRAME_ETHER + VLAN_LEN + PACKET_HEADER);

	snprintf(s->args, sizeof(s->args), "iface=%s,qpairs=1,framesz=%u,blocksz=%u,framecnt=%u",
		 s->device, frame, RTE_MAX(frame, (unsigned)PACKET_BLOCK), PACKET_RING);
	s->room = frame; /* the driver insists */
}

static uw_status spec_kernel_if(struct port_spec *s, struct port *p, const struct dpdk_config *cfg)
{
	struct kernel_if kernel;
	uw_status st = kernel_if_read(s->device, &kernel);

	if (st)
		return st;
	if (!kernel.up)
		return say(UW_E_NO_LINK, "interface %s is down: bring it up first", s->device);
	if (cfg->mtu > kernel.mtu)
		return say(UW_E_INVAL,
			   "interface %s has an MTU of %u: set it to %u, or ask for "
			   "no more than it has",
			   s->device, kernel.mtu, cfg->mtu);
	p->link.mtu = cfg->mtu ? cfg->mtu : RTE_MIN(kernel.mtu, (unsigned)MTU_MAX);
	p->link.scope = if_nametoindex(s->device);
	if (!cfg->addr && !cfg->n_ip6) {
		p->link.addr = kernel.addr;
		p->link.mask = kernel.mask;
	}
	if (s->kind == PORT_AF_PACKET) {
		spec_packet(s, RTE_MIN(kernel.mtu, (unsigned)MTU_MAX));
		return UW_OK;
	}
	if (!cfg->verbose && libbpf_set_print)
		libbpf_set_print(NULL);
	if (!cfg->verbose && libxdp_set_print)
		libxdp_set_print(NULL);
	s->room = XDP_ROOM;
	s->nrx = XDP_RX_FRAMES;
	snprintf(s->args, sizeof(s->args), "iface=%s,start_queue=0,queue_count=1,busy_budget=0",
		 s->device);
	if (kernel.mtu + FRAME_ETHER + VLAN_LEN > s->room)
		return say(UW_E_INVAL,
			   "interface %s has an MTU of %u: an XDP socket takes up to "
			   "%u",
			   s->device, kernel.mtu, s->room - FRAME_ETHER - VLAN_LEN);
	return UW_OK;
}

static void spec_device(struct port_spec *s, struct port *p, const struct dpdk_config *cfg)
{
	const char *comma = strchr(s->device, ',');
	int name = comma ? (int)(comma - s->device) : (int)strlen(s->device);

	snprintf(s->name, sizeof(s->name), "%.*s", name, s->device);
	snprintf(s->args, sizeof(s->args), "%s", comma ? comma + 1 : "");
	p->link.mtu = cfg->mtu ? cfg->mtu : RTE_ETHER_MTU;
	s->room = RTE_ALIGN_CEIL(p->link.mtu + FRAME_ETHER + VLAN_LEN, RTE_CACHE_LINE_SIZE);
	s->room = RTE_MAX(s->room, 2048U); /* what drivers take for granted */
	s->bus = s->kind == PORT_PCI ? "pci" : "vdev";
	s->set_mtu = s->kind == PORT_PCI ? p->link.mtu : 0;
}

static uw_status spec_fill(struct port_spec *s, struct port *p, const struct dpdk_config *cfg)
{
	static unsigned serial;

	if (cfg->mtu && (cfg->mtu < MTU_MIN || cfg->mtu > MTU_MAX))
		return say(UW_E_INVAL, "an MTU of %u does not fit the link: choose %d to %d",
			   cfg->mtu, MTU_MIN, MTU_MAX);
	if (!*s->device || strlen(s->device) > sizeof(s->args) / 2)
		return say(UW_E_INVAL, "link %s names no device", cfg->link);
	s->nrx = RX_FRAMES;
	if (s->kind == PORT_PCI || s->kind == PORT_DEVARGS) {
		spec_device(s, p, cfg);
		return UW_OK;
	}
	s->bus = "vdev";
	snprintf(s->name, sizeof(s->name), "net_%s%u",
		 s->kind == PORT_AF_PACKET ? "af_packet" : "af_xdp", serial++);
	return spec_kernel_if(s, p, cfg);
}

struct port_job {
	struct port *p;
	struct port_spec *spec;
};

static void fill_sender(struct port *p, struct port_spec *spec, const struct rte_eth_dev_info *info)
{
	struct sender *s = &p->sender;
	uint16_t mtu = 0;

	*s = (struct sender){ .port = p->id,
			      .chains = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS,
			      .frame_max = p->link.mtu + FRAME_ETHER,
			      .mp = p->pools.tx,
			      .stats = &p->link.stats };
	rte_eth_dev_get_mtu(p->id, &mtu);
	spec->no_tso = tso_read(&s->tso, info, mtu, s->frame_max);
	s->tso.mp = p->pools.tx;
	s->tso.on = !spec->no_tso &&
		    (spec->tso == DPDK_TSO_ON || (spec->tso == DPDK_TSO_AUTO && !tso_uncut(info)));
	if (s->tso.on)
		p->link.flags |= IO_TSO;
}

static int job_plug(void *arg)
{
	struct port_job *j = arg;
	struct port *p = j->p;
	struct ethdev_plug plug = { .bus = j->spec->bus,
				    .name = j->spec->name,
				    .args = j->spec->args };
	struct rte_ether_addr mac;
	struct rte_eth_dev_info info;
	int rc = ethdev_plug(&plug);

	if (rc < 0)
		return rc;
	p->id = plug.port;
	p->made = true;
	rc = ethdev_configure(p->id, &p->pools, j->spec->set_mtu, j->spec->tso != DPDK_TSO_OFF);
	if (rc < 0)
		return rc;
	rc = rte_eth_dev_start(p->id);
	if (rc < 0)
		return rc;
	rte_eth_promiscuous_enable(p->id); /* a comfort: what is not for us is dropped above */
	rc = rte_eth_macaddr_get(p->id, &mac);
	if (rc < 0)
		return rc;
	memcpy(p->link.mac, mac.addr_bytes, sizeof(p->link.mac));
	rc = rte_eth_dev_info_get(p->id, &info);
	if (rc == 0)
		fill_sender(p, j->spec, &info);
	return rc;
}

/* Hardware takes a while to agree with its switch. */
static void wait_link(struct port *p, const char *device)
{
	struct timespec ms10 = { .tv_nsec = 10000000 };
	struct rte_eth_link state = { 0 };

	for (unsigned ms = 0; ms < LINK_WAIT_MS && !state.link_status; ms += 10) {
		if (ms)
			nanosleep(&ms10, NULL);
		if (rte_eth_link_get_nowait(p->id, &state))
			break;
	}
	if (!state.link_status)
		say(UW_OK, "link %s is down: going on in the hope that it comes up", device);
	if (state.link_speed && state.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
		p->link.bps = (uint64_t)state.link_speed * 1000000;
}

static uw_status open_parts(struct port *p, struct port_spec *s, const struct dpdk_config *cfg)
{
	struct port_job job = { .p = p, .spec = s };
	char why[256];

	uw_status st = spec_fill(s, p, cfg);
	if (st)
		return st;
	if (!p->link.addr && !cfg->n_ip6)
		return say(UW_E_INVAL, "link %s has no address: give it one", cfg->link);
	io_set_ip6(&p->link, cfg->ip6, cfg->n_ip6);
	p->pools.nrx = s->nrx;
	p->pools.ntx = TX_FRAMES;
	struct eal_need need = { .bytes = frame_pools_bytes(s->nrx, TX_FRAMES, s->room),
				 .pci = s->kind == PORT_PCI,
				 .verbose = cfg->verbose };
	st = eal_start(&need);
	if (st)
		return st;
	st = frame_pools_open(&p->pools, &p->link, s->room);
	if (st)
		return st;
	eal_forget();
	int rc = eal_run(job_plug, &job);
	if (rc < 0) {
		eal_said(why, sizeof(why));
		return say(rc == -EPERM || rc == -EACCES ? UW_E_PERM : UW_E_NO_LINK,
			   "cannot open link %s: %s", cfg->link, why[0] ? why : strerror(-rc));
	}
	if (s->tso == DPDK_TSO_ON && s->no_tso)
		return say(UW_E_UNSUPPORTED, "no TSO on link %s: %s", cfg->link, s->no_tso);
	/* A card would need to have the program's memory mapped; this driver copies. */
	if (s->kind == PORT_AF_PACKET && p->sender.chains)
		p->link.flags |= IO_REFERS;
	wait_link(p, s->device);
	return UW_OK;
}

uw_status port_open(enum port_kind kind, const char *device, const struct dpdk_config *cfg,
		    const struct io_env *env, struct io_link **out)
{
	struct port_spec spec = { .kind = kind, .device = device, .tso = cfg->tso };
	struct port *p = calloc(1, sizeof(*p));

	if (!p)
		return UW_E_NOMEM;
	p->pid = getpid();
	p->link = (struct io_link){ .ops = &port_ops,
				    .env = *env,
				    .addr = cfg->addr,
				    .mask = cfg->mask,
				    .headroom = FRAME_HEADROOM,
				    .bps = UINT64_C(10000000000),
				    .doorbell = &p->awake };
	uw_status st = open_parts(p, &spec, cfg);
	if (st) {
		port_close(&p->link);
		return st;
	}
	*out = &p->link;
	return UW_OK;
}
