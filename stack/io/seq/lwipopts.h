/* SPDX-License-Identifier: BSD-3-Clause */
/* lwIP 2.2.1 once more, with its sequential API. All that is not named here is as the raw API has
 * it, so that the two differ in the API alone. */
#ifndef UWARP_SEQ_LWIPOPTS_H
#define UWARP_SEQ_LWIPOPTS_H

#include "io/lwip/lwipopts.h"

/* A thread of its own, and the core lock, as lwIP has it by default: a call runs in the thread that
 * makes it. So does what comes in (doc/adr/0009). */
#undef NO_SYS
#define NO_SYS 0
#undef SYS_LIGHTWEIGHT_PROT
#define SYS_LIGHTWEIGHT_PROT 1
#undef LWIP_NETCONN
#define LWIP_NETCONN		1
#define LWIP_TCPIP_CORE_LOCKING 1
#ifndef LWIP_TCPIP_CORE_LOCKING_INPUT
#define LWIP_TCPIP_CORE_LOCKING_INPUT 1
#endif
#define LWIP_COMPAT_MUTEX	 0
#define LWIP_MARK_TCPIP_THREAD() seq_mark_thread()

#define LWIP_NETCONN_SEM_PER_THREAD   1
#define LWIP_NETCONN_THREAD_SEM_GET() seq_thread_sem()
#define LWIP_NETCONN_THREAD_SEM_ALLOC()
#define LWIP_NETCONN_THREAD_SEM_FREE()

/* Messages, netconns and segments as many as come: a pool costs its lock for each. */
#undef MEMP_MEM_MALLOC
#define MEMP_MEM_MALLOC 1

#define TCPIP_THREAD_NAME	"uwarp-tcpip"
#define TCPIP_MBOX_SIZE		4096
#define DEFAULT_ACCEPTMBOX_SIZE 1024
#define DEFAULT_TCP_RECVMBOX_SIZE                                                                  \
	65536 /* the window's octets in crumbs; it grows as it is filled */

#endif
