/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

#include <rte_ethdev.h>

#include "io/addr.h"

#include "burst.h"
#include "io/dpdk/eal.h"
#include "csum.h"
#include "ethdev.h"
#include "kernel_if.h"
#include "port.h"
#include "io/fds.h"
#include "io/log.h"
#include "offloads.h"
#include "spec.h"
#include "vlan.h"
#include "io/dpdk/wrap.h"

enum { LINK_WAIT_MS = 3000 };

#define BPS_UNKNOWN UINT64_C(10000000000)

/* One queue each way, as a link; used under its own stack's lock. Its frames come from pools of its
 * own, which any thread may give them back to. */
struct queue {
	struct io_link link; /* first: an io_link * is a queue * */
	struct port *port;
	uint16_t id, no; /* of the port, and in it */
	struct frame_pools pools;
	struct sender sender;
	_Atomic uint32_t awake; /* a doorbell that nobody rings */
} __rte_cache_aligned;

struct port {
	pid_t pid;
	uint16_t id;
	bool made;
	int lock_fd; /* of a PCI device: nobody else opens it; -1: none */
	int hear_fd; /* a kernel interface receives all frames as long as it is open; -1: none */
	unsigned n;
	atomic_uint open; /* links that are not closed yet */
	struct queue queue[];
};

static struct queue *queue_of(struct io_link *l)
{
	return (struct queue *)l;
}

/* --- the ops under the stack lock --- */

static unsigned port_rx(struct io_link *l, struct io_frame **v, unsigned n)
{
	struct rte_mbuf *m[FRAME_BURST];
	const struct queue *q = queue_of(l);
	unsigned got =
		rte_eth_rx_burst(q->id, q->no, m, (uint16_t)RTE_MIN(n, (unsigned)FRAME_BURST));

	if (q->sender.vlan)
		got = vlan_keep(q->sender.vlan, m, got, &l->stats.rx_drops);
	for (unsigned i = 0; i < got; i++) {
		uint32_t len;

		v[i] = frame_from_mbuf(m[i], &len);
		if (l->flags & IO_RX_CSUM && csum_is_good(m[i])) {
			v[i]->marks = IO_FRAME_SUM_GOOD;
			l->stats.rx_sums++;
		}
		l->stats.rx_bytes += len;
	}
	l->stats.rx_frames += got;
	return got;
}

static unsigned port_tx(struct io_link *l, struct io_frame **v, unsigned n)
{
	struct sender *s = &queue_of(l)->sender;
	unsigned sent = burst_send(s, v, n);

	if (!s->tso.on)
		l->flags &= ~(unsigned)IO_TSO;
	return sent;
}

static struct io_frame *port_alloc(struct io_link *l)
{
	struct io_frame *f = frame_alloc(queue_of(l)->pools.tx);

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

static void port_end(struct port *p)
{
	if (p->made)
		eal_run(job_unplug, p);
	for (unsigned i = 0; i < p->n; i++)
		frame_pools_close(&p->queue[i].pools);
	fds_close(p->lock_fd);
	fds_close(p->hear_fd);
	free(p);
}

static void port_close(struct io_link *l)
{
	struct port *p = queue_of(l)->port;

	if (p->pid != getpid())
		return; /* a forked child: the port is its parent's */
	/* Releases what this link's threads did, and acquires it all if it is the last. */
	if (atomic_fetch_sub_explicit(&p->open, 1, memory_order_acq_rel) == 1)
		port_end(p);
}

static const struct io_ops port_ops = {
	.name = "dpdk",
	.rx = port_rx,
	.tx = port_tx,
	.alloc = port_alloc,
	.free = frame_free,
	.ref = frame_ref,
	.refs = frame_refs,
	.pending = port_pending,
	.close = port_close,
};

/* --- open --- */

struct port_job {
	struct port *p;
	struct port_spec *spec;
	enum dpdk_tso tso;
	bool csum; /* ask for checksums; drivers without a card would do them in software */
	const char *no_tso; /* out: what stands against it */
	bool no_driver;	    /* out: none that is linked knows the device */
	bool no_vlan;	    /* out: the port does not do VLAN tags */
	unsigned has;	    /* out: queues of the port */
	bool deaf;	    /* out: it may keep frames to groups from us */
	unsigned mtu_max;   /* out: of the port, if less than the link wants */
	char uses[192];	    /* out: offloads_text */
};

static void fill_sender(struct queue *q, struct port_job *j, const struct rte_eth_dev_info *info)
{
	struct sender *s = &q->sender;
	uint16_t mtu = 0;

	*s = (struct sender){ .port = q->id,
			      .queue = q->no,
			      .chains = info->tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS,
			      .vlan = (uint16_t)j->spec->vlan,
			      .frame_max = q->link.mtu + FRAME_ETHER,
			      .mp = q->pools.tx,
			      .stats = &q->link.stats };
	rte_eth_dev_get_mtu(q->id, &mtu);
	j->no_tso = tso_read(&s->tso, info, mtu, s->frame_max);
	s->tso.mp = q->pools.tx;
	s->tso.on = !j->no_tso &&
		    (j->tso == DPDK_TSO_ON || (j->tso == DPDK_TSO_AUTO && !tso_uncut(info)));
	q->link.flags |= IO_NEIGHBOURS;
	if (s->tso.on)
		q->link.flags |= IO_TSO;
	if (j->csum && csum_rx_offloads(info))
		q->link.flags |= IO_RX_CSUM;
	if (j->csum && csum_tx_offloads(info))
		q->link.flags |= IO_TX_CSUM;
}

static int plug(struct port_job *j)
{
	struct ethdev_plug plug = { .bus = j->spec->bus,
				    .name = j->spec->name,
				    .args = j->spec->args };
	int rc;

	wrap_packet_sockets(j->p->n);
	rc = ethdev_plug(&plug);
	j->no_driver = rc == -ENOTSUP;
	if (rc < 0)
		return rc;
	j->p->id = plug.port;
	j->p->made = true;
	return 0;
}

static bool of_kernel(const struct port_spec *s)
{
	return s->kind == PORT_AF_PACKET || s->kind == PORT_AF_XDP;
}

/* The drivers set the kernel's flag, which would stay, and clear it as they start. So it is set
 * again if it was, and what we need comes from kernel_if_hear_all. */
static void restore_flag(const struct port_job *j)
{
	if (j->spec->promiscuous)
		rte_eth_promiscuous_enable(j->p->id);
}

/* IPv6 asks for neighbours in frames to groups (RFC 4861 §7.2.1), so these must come. What else
 * comes with them and is not for us is dropped above. */
static void hear_groups(struct port_job *j)
{
	int rc = rte_eth_promiscuous_enable(j->p->id);

	if (rc < 0)
		rc = rte_eth_allmulticast_enable(j->p->id);
	/* A virtual device whose driver knows neither keeps nothing back. */
	j->deaf = rc < 0 && !(rc == -ENOTSUP && j->spec->kind == PORT_DEVARGS);
}

static int start(struct port_job *j, const struct rte_eth_dev_info *info)
{
	struct port *p = j->p;
	struct rte_mempool *rx[DPDK_QUEUES_MAX];
	struct ethdev_setup setup = { .rx = rx,
				      .queues = p->n,
				      .tso = j->tso != DPDK_TSO_OFF,
				      .vlan = j->spec->vlan,
				      .csum = j->csum };
	int rc;

	j->has = RTE_MIN(info->max_rx_queues, info->max_tx_queues);
	j->no_vlan = j->spec->vlan && !vlan_offered(info);
	if (j->has < p->n || j->no_vlan)
		return -ENOTSUP;
	if (!spec_fit_mtu(j->spec, ethdev_mtu_max(info))) {
		j->mtu_max = ethdev_mtu_max(info);
		return -ERANGE;
	}
	setup.mtu = j->spec->set_mtu;
	for (unsigned i = 0; i < p->n; i++)
		rx[i] = p->queue[i].pools.rx;
	rc = ethdev_start(p->id, &setup);
	if (rc < 0)
		return rc;
	if (of_kernel(j->spec))
		restore_flag(j);
	else
		hear_groups(j);
	return 0;
}

static void describe(struct port_job *j, const struct rte_eth_dev_info *info)
{
	const struct io_link *l = &j->p->queue[0].link;
	const struct offloads_used u = { .rx_csum = l->flags & IO_RX_CSUM,
					 .tx_csum = l->flags & IO_TX_CSUM,
					 .tso = l->flags & IO_TSO,
					 .segments = j->p->queue[0].sender.chains,
					 .rss = j->p->n > 1 && ethdev_rss(info),
					 .vlan = j->spec->vlan,
					 .mtu = l->mtu,
					 .queues = j->p->n };

	offloads_text(j->uses, sizeof(j->uses), info, &u);
}

static int job_plug(void *arg)
{
	struct port_job *j = arg;
	struct port *p = j->p;
	struct rte_ether_addr mac;
	struct rte_eth_dev_info info;
	int rc = plug(j);

	if (rc == 0)
		rc = rte_eth_dev_info_get(p->id, &info);
	if (rc == 0)
		rc = start(j, &info);
	if (rc == 0)
		rc = rte_eth_macaddr_get(p->id, &mac);
	for (unsigned i = 0; rc == 0 && i < p->n; i++) {
		struct queue *q = &p->queue[i];

		memcpy(q->link.mac, mac.addr_bytes, sizeof(q->link.mac));
		q->id = p->id;
		q->link.mtu = j->spec->mtu;
		fill_sender(q, j, &info);
	}
	if (rc == 0)
		describe(j, &info);
	return rc;
}

/* Hardware takes a while to agree with its switch. */
static void wait_link(struct port *p, const char *device)
{
	struct timespec ms10 = { .tv_nsec = 10000000 };
	struct rte_eth_link state = { 0 };
	uint64_t bps = BPS_UNKNOWN;

	for (unsigned ms = 0; ms < LINK_WAIT_MS && !state.link_status; ms += 10) {
		if (ms)
			nanosleep(&ms10, NULL);
		if (rte_eth_link_get_nowait(p->id, &state))
			break;
	}
	if (!state.link_status)
		log_error(UW_OK, "link %s is down: going on in the hope that it comes up", device);
	if (state.link_speed && state.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
		bps = (uint64_t)state.link_speed * 1000000;
	for (unsigned i = 0; i < p->n; i++)
		p->queue[i].link.bps = bps;
}

static uw_status open_pools(struct port *p, const struct port_spec *s, bool verbose)
{
	struct eal_need need = { .bytes = p->n * frame_pools_bytes(s->nrx, s->ntx, s->room),
				 .pci = s->kind == PORT_PCI,
				 .physical = s->kind == PORT_PCI && pci_dev_physical(&s->pci),
				 .device = s->device,
				 .verbose = verbose };
	uw_status st = eal_start(&need);

	for (unsigned i = 0; !st && i < p->n; i++) {
		struct queue *q = &p->queue[i];

		q->pools.nrx = s->nrx;
		q->pools.ntx = s->ntx;
		st = frame_pools_open(&q->pools, &q->link, s->room);
	}
	return st;
}

/* Its driver is one that hands it to a process (pci_dev_check). */
static uw_status complain_pci(const struct port_spec *s, int rc, bool no_driver)
{
	const struct pci_dev *d = &s->pci;
	char why[256];

	eal_said(why, sizeof(why));
	if (no_driver)
		return log_error(
			UW_E_NO_LINK,
			"no driver for PCI device %s (%04x:%04x) is built in. There are: %s",
			d->addr, d->vendor, d->device, UWARP_DPDK_DRIVERS);
	if (rc == -EPERM || rc == -EACCES || rc == -EBUSY)
		return log_error(UW_E_PERM,
				 "cannot open PCI device %s (%s): another process has it, or this "
				 "user may not open it: end the one, or run as root%s%s",
				 d->addr, strerror(-rc), why[0] ? ". DPDK says: " : "", why);
	return log_error(UW_E_NO_LINK, "cannot open PCI device %s: %s", d->addr,
			 why[0] ? why : strerror(-rc));
}

static uw_status complain(const struct port_job *j, int rc, const char *link)
{
	const struct port_spec *s = j->spec;
	char why[256];

	if (rc == -ENOTSUP && j->has && j->has < j->p->n)
		return spec_say_queues(link, j->has, j->p->n);
	if (j->mtu_max)
		return log_error(UW_E_INVAL, "an MTU of %u does not fit link %s: it takes up to %u",
				 s->mtu, link, j->mtu_max);
	if (j->no_vlan)
		return log_error(UW_E_UNSUPPORTED,
				 "no VLAN on link %s: its driver does not insert and strip tags",
				 link);
	if (s->kind == PORT_PCI)
		return complain_pci(s, rc, j->no_driver);
	eal_said(why, sizeof(why));
	if (strstr(why, "failed to parse device")) /* what DPDK says of a driver that it has not */
		return log_error(UW_E_NO_LINK,
				 "no driver of DPDK for link %s is built in. There are (with net_ "
				 "before): %s",
				 link, UWARP_DPDK_DRIVERS);
	return log_error(rc == -EPERM || rc == -EACCES ? UW_E_PERM : UW_E_NO_LINK,
			 "cannot open link %s: %s", link, why[0] ? why : strerror(-rc));
}

static uw_status open_device(struct port *p, struct port_spec *s, const struct dpdk_config *cfg)
{
	struct port_job job = { .p = p, .spec = s, .tso = cfg->tso, .csum = s->kind == PORT_PCI };
	int rc;

	eal_forget();
	rc = eal_run(job_plug, &job);
	if (rc < 0)
		return complain(&job, rc, cfg->link);
	if (cfg->tso == DPDK_TSO_ON && job.no_tso)
		return log_error(UW_E_UNSUPPORTED, "no TSO on link %s: %s", cfg->link, job.no_tso);
	if (cfg->verbose)
		log_error(UW_OK, "link %s: %s", cfg->link, job.uses);
	if (of_kernel(s)) {
		p->hear_fd = kernel_if_hear_all(s->scope);
		job.deaf = p->hear_fd < 0;
	}
	if (job.deaf)
		log_error(UW_OK,
			  "link %s lets through neither all frames nor all to groups: IPv6 and "
			  "multicast may not work",
			  cfg->link);
	wait_link(p, s->device);
	return UW_OK;
}

static void fill_link(struct queue *q, const struct port_spec *s, const struct dpdk_config *cfg,
		      const struct io_env *env)
{
	q->link = (struct io_link){ .ops = &port_ops,
				    .env = *env,
				    .addr = s->addr ? s->addr : cfg->addr,
				    .mask = s->addr ? s->mask : cfg->mask,
				    .mtu = s->mtu,
				    .scope = s->scope,
				    .headroom = FRAME_HEADROOM,
				    .doorbell = &q->awake };
	io_set_ip6(&q->link, cfg->ip6, cfg->n_ip6);
}

static struct port *port_new(unsigned n)
{
	size_t size = sizeof(struct port) + n * sizeof(struct queue);
	struct port *p = aligned_alloc(RTE_CACHE_LINE_SIZE, size);

	if (!p)
		return NULL;
	memset(p, 0, size);
	p->pid = getpid();
	p->lock_fd = p->hear_fd = -1;
	p->n = n;
	for (unsigned i = 0; i < n; i++) {
		p->queue[i].port = p;
		p->queue[i].no = (uint16_t)i;
	}
	return p;
}

static uw_status lock_device(struct port *p, const struct port_spec *s)
{
	if (s->kind != PORT_PCI)
		return UW_OK;
	p->lock_fd = pci_dev_lock(PCI_DEV_ROOT, &s->pci);
	if (p->lock_fd != -EBUSY)
		return UW_OK;
	p->lock_fd = -1;
	return log_error(UW_E_NO_LINK,
			 "PCI device %s is in use by another process: end that one, name "
			 "another device, or let uwarpd share it (uwarpd --link pci:%s)",
			 s->pci.addr, s->pci.addr);
}

uw_status port_open(enum port_kind kind, const char *device, const struct dpdk_config *cfg,
		    const struct io_env *envs, struct io_link **out)
{
	struct port_spec spec = { .kind = kind,
				  .device = device,
				  .queues = RTE_MAX(cfg->queues, 1U) };
	uw_status st = spec_fill(&spec, cfg);
	struct port *p;

	if (st)
		return st;
	if (!cfg->addr && !spec.addr && !cfg->n_ip6)
		return log_error(UW_E_INVAL, "link %s has no address: give it one", cfg->link);
	p = port_new(spec.queues);
	if (!p)
		return UW_E_NOMEM;
	for (unsigned i = 0; i < p->n; i++)
		fill_link(&p->queue[i], &spec, cfg, &envs[i]);
	st = lock_device(p, &spec);
	if (!st)
		st = open_pools(p, &spec, cfg->verbose);
	if (!st)
		st = open_device(p, &spec, cfg);
	if (st) {
		port_end(p);
		return st;
	}
	atomic_init(&p->open, p->n);
	for (unsigned i = 0; i < p->n; i++)
		out[i] = &p->queue[i].link;
	return UW_OK;
}
