/* SPDX-License-Identifier: BSD-3-Clause */
/* The configuration of lwIP 2.2.1 with its sequential API. Every other option is as for the raw API
 * (io/lwip), so that the two differ in the API alone. */
#ifndef UWARP_SEQ_LWIPOPTS_H
#define UWARP_SEQ_LWIPOPTS_H

#include "io/lwip/lwipopts.h"

/* lwIP runs its own thread and uses the core lock, as by default: an API call runs in the calling
 * thread under the lock. So does input of frames (doc/adr/0009). */
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

/* Allocate messages, netconns and segments with malloc: their number is not known, and each access
 * to a pool would take a lock. */
#undef MEMP_MEM_MALLOC
#define MEMP_MEM_MALLOC 1

#define TCPIP_THREAD_NAME	"uwarp-tcpip"
#define TCPIP_MBOX_SIZE		4096
#define DEFAULT_ACCEPTMBOX_SIZE 1024
/* Entries: enough for a full window of very small segments. Memory grows with use. */
#define DEFAULT_TCP_RECVMBOX_SIZE 65536

#endif
