/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Opens the links whose frames are DPDK's mbufs. Including this header needs no header of DPDK. A
 * link is named by a string:
 *
 *   "memif"           all processes of this user on this machine (io/memif)
 *   "af_packet:IF"    a kernel interface, through a packet socket (io/port)
 *   "af_xdp:IF"       a kernel interface, through an XDP socket (io/port)
 *   "pci:ADDR"        a PCI device bound to vfio-pci or to a uio driver (io/port)
 *   "net_...,ARGS"    any other virtual device of DPDK, by its devargs (io/port)
 */
#ifndef UWARP_IO_DPDK_H
#define UWARP_IO_DPDK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "io/io.h"

/* TCP segmentation offload (io/port/tso.h). */
enum dpdk_tso {
	DPDK_TSO_AUTO, /* use TSO if the port supports TSO */
	DPDK_TSO_ON,   /* fail if the port does not support TSO */
	DPDK_TSO_OFF,
};

struct dpdk_config {
	const char *link;
	/* IPv4 address, network order. addr 0: memif takes the first free 127.0.0.x; a kernel
	 * interface's own address is used unless n_ip6 is above 0. */
	uint32_t addr, mask;
	/* n_ip6 IPv6 addresses, beside those that io_set_ip6 makes. */
	const struct uw_net *ip6;
	unsigned n_ip6;
	/* octets of an IP packet; 0: the kernel interface's, memif's 9000, else 1500 or the most
	 * that the device takes if that is less */
	unsigned mtu;
	unsigned vlan; /* a port: tag of all frames, 1 to 4094; 0: none, or "vlan=N" of the link */
	const char *run_dir; /* memif: see struct registry_config */
	int addr_fd;	     /* memif: see struct registry_config */
	bool addr_auto;	     /* memif: see struct registry_config */
	enum dpdk_tso tso;
	bool verbose;	 /* let DPDK write to stderr */
	unsigned queues; /* for dpdk_links_open: number of links; 0: one */
};

/* The first call in a process starts DPDK (eal.h). An error is explained in one line on stderr. */
UW_CHECK uw_status dpdk_link_open(const struct dpdk_config *cfg, const struct io_env *env,
				  struct io_link **out);

enum { DPDK_QUEUES_MAX = 16 };

/*
 * Open cfg->queues links on one port, one for each stack of the process. out[i] uses RX queue i and
 * TX queue i, and is called under the lock of envs[i]. All have the same addresses, MAC and MTU.
 *
 * - A frame of one link may be freed, or sent on another link, under the lock of any of them.
 * - The port sends all frames of a connection to one queue if it can be told so. It chooses which.
 * - Each link is closed for itself, in any order. The port is closed with the last of them; all
 *   frames must be free by then.
 * - UW_E_UNSUPPORTED: the port has fewer queues.
 *
 * memif: if a peer has c stacks, c below cfg->queues, out[i] sends to the peer's queue i % c, and
 * only out[0] to out[c - 1] receive from it. When a peer leaves, env.peer_down is called for each
 * open link under its lock, after all links have received what the peer sent.
 */
UW_CHECK uw_status dpdk_links_open(const struct dpdk_config *cfg, const struct io_env *envs,
				   struct io_link **out);

#endif
