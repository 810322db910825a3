/* SPDX-License-Identifier: BSD-3-Clause */
/* The names under which programs find the device. */
#ifndef UWARP_FACTS_H
#define UWARP_FACTS_H

#define UWARP_DEV_NAME "uwarp0"
/* The number of the device and of its uverbs node. Kernels number theirs from 0 and stop at 1024,
 * so no real device and no real node has this one. */
#define UWARP_DEV_INDEX	  30071u
#define UWARP_UVERBS_NODE "uverbs30071"
#define UWARP_UCMA_NODE	  "rdma_cm"
#define UWARP_NODE_DIR	  "/dev/infiniband"

#endif
