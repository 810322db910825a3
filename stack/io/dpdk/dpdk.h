/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The links that DPDK carries. Nothing of DPDK shows here: its headers stay in this folder.
 *
 *   "memif"           every process of this user on this machine, joined pair by pair
 *   "af_packet:IF"    a kernel interface through a packet socket
 *   "af_xdp:IF"       a kernel interface through an XDP socket
 *   "pci:ADDR"        a port bound to vfio
 *   "net_...,ARGS"    any other virtual device, as DPDK spells it
 */
#ifndef UWARP_IO_DPDK_H
#define UWARP_IO_DPDK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"
#include "io/io.h"

/* Whether segments go merged to a port that cuts them (tso.h). */
enum dpdk_tso {
	DPDK_TSO_AUTO, /* where the port does */
	DPDK_TSO_ON,   /* else the link does not open */
	DPDK_TSO_OFF,
};

struct dpdk_config {
	const char *link;
	/* Network order. 0: memif takes the first free 127.0.0.x, an interface its own address
	 * unless there is one of IPv6. */
	uint32_t addr, mask;
	const struct uw_net *ip6; /* n_ip6 more, beside those that io_set_ip6 makes */
	unsigned n_ip6;
	unsigned mtu;	     /* IP octets per frame, 0: the link's own */
	const char *run_dir; /* memif: where processes meet; made if missing, mode 0700 */
	/* memif: an open descriptor of run_dir/ctl/ADDR.lock on which whoever started us holds an
	 * flock, so that nobody took the address in between; -1: none. It stays the caller's. */
	int addr_fd;
	bool addr_auto; /* memif: nobody asked for addr, so if it is in use take another */
	enum dpdk_tso tso;
	bool verbose;	 /* let DPDK speak on stderr */
	unsigned queues; /* of dpdk_links_open; 0: one */
};

/* Starts the EAL at the first call in a process. What is wrong is said in one line on stderr. */
UW_CHECK uw_status dpdk_link_open(const struct dpdk_config *cfg, const struct io_env *env,
				  struct io_link **out);

enum { DPDK_QUEUES_MAX = 16 };

/*
 * cfg->queues links at once, of as many RX and TX queues of one port: out[i] receives and sends on
 * queues i, with the lock and all else of envs[i]. Addresses, MAC and MTU are the same for all.
 * Each is used under its own stack's lock, by several threads at once. A frame of one may be freed,
 * and sent on another, under any of these locks. Frames of a connection come on one queue if the
 * port can be told so; which one is its own affair. Each link is closed for itself, in any order;
 * the port goes with the last, before which every frame is free again. A port that has not so many
 * queues: UW_E_UNSUPPORTED.
 *
 * memif: out[i] has queue i of every peer that has as many. Of a peer that has fewer, c, those from
 * out[c] on receive nothing and send what its queue i % c takes in. peer_down comes to each link
 * that is open, under its lock, once all of them have given out what the peer sent.
 */
UW_CHECK uw_status dpdk_links_open(const struct dpdk_config *cfg, const struct io_env *envs,
				   struct io_link **out);

#endif
