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
	bool verbose; /* let DPDK speak on stderr */
};

/* Starts the EAL at the first call in a process. What is wrong is said in one line on stderr. */
UW_CHECK uw_status dpdk_link_open(const struct dpdk_config *cfg, const struct io_env *env,
				  struct io_link **out);

#endif
