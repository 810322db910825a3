/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * RDMA netlink, the way libibverbs and librdmacm find devices. Requests are answered for our
 * device; those about others go to the kernel, if it has RDMA at all, and its answers come back
 * with ours added.
 */
#ifndef UWARP_NETLINK_H
#define UWARP_NETLINK_H

/* socket(AF_NETLINK, type, NETLINK_RDMA): a descriptor or a negative errno. */
int nl_open(int type);

#endif
