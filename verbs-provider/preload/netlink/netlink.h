/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA netlink (rdma/rdma_netlink.h), by which libibverbs, librdmacm and rdma(8) find devices.
 *
 * A request about our device is answered here. A request about another device goes to the kernel.
 * A request for all devices goes to the kernel too, if the kernel has RDMA, and our device is added
 * to the answer.
 */
#ifndef UWARP_NETLINK_H
#define UWARP_NETLINK_H

/* socket(AF_NETLINK, type, NETLINK_RDMA). A descriptor or a negative errno. */
int netlink_open(int type);

/* Call fn() whenever netlink_open() is called. A later call replaces fn. */
void netlink_on_open(void (*fn)(void));

#endif
