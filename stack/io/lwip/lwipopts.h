/* SPDX-License-Identifier: BSD-3-Clause */
/* How lwIP 2.2.1 is built here; reasons beside what is not obvious. */
#ifndef UWARP_LWIPOPTS_H
#define UWARP_LWIPOPTS_H

/* One thread at a time, under the stack lock: no OS layer. */
#define NO_SYS		     1
#define SYS_LIGHTWEIGHT_PROT 0
#define LWIP_NETCONN	     0
#define LWIP_SOCKET	     0
#define LWIP_TIMERS	     1

#define LWIP_IPV4		  1
#define LWIP_IPV6		  1
#define LWIP_ARP		  1
#define LWIP_ICMP		  1
#define LWIP_RAW		  0
#define LWIP_UDP		  0
#define LWIP_DHCP		  0
#define LWIP_IGMP		  0
#define LWIP_DNS		  0
#define IP_REASSEMBLY		  0
#define IP_FRAG			  0
#define ARP_TABLE_SIZE		  1024
#define LWIP_NETIF_HWADDRHINT	  1 /* a pcb remembers its neighbour's place: no search */
#define ETHARP_TRUST_IP_MAC	  0
#define LWIP_NETIF_LOOPBACK	  0 /* netif.c hands our own frames back itself */
#define LWIP_NETIF_TX_SINGLE_PBUF 0

/* What waits for a neighbour: the SYNs of a program that connects many QPs at once. One that is
 * dropped is repeated after LWIP_TCP_RTO_TIME. Of all together not so many that neighbours who
 * never answer would hold the frames of a link. */
#define ARP_QUEUEING	   1
#define ARP_QUEUE_LEN	   128
/* With --transport seq, whose memory is malloc's, each of the 1,024 neighbours may have its 128. */
#define MEMP_NUM_ARP_QUEUE 1024

/* IPv6 for hosts of the same link; the addresses are ours to choose. What else may come in (router
 * advertisements, redirects, multicast listeners, extension headers, fragments) does not get as far
 * as lwIP: netif.c. */
#define LWIP_IPV6_SCOPES		0 /* every pcb is bound to its interface */
#define LWIP_IPV6_NUM_ADDRESSES		6 /* = IO_IP6_MAX */
#define LWIP_IPV6_FORWARD		0
#define LWIP_IPV6_FRAG			0
#define LWIP_IPV6_REASS			0
#define LWIP_IPV6_MLD			0
#define LWIP_IPV6_AUTOCONFIG		0
#define LWIP_IPV6_ADDRESS_LIFETIMES	0
#define LWIP_IPV6_SEND_ROUTER_SOLICIT	0
#define LWIP_IPV6_DUP_DETECT_ATTEMPTS	0
#define LWIP_ICMP6			1
#define LWIP_ND6_ALLOW_RA_UPDATES	0
#define LWIP_ND6_QUEUEING		1
/* As with ARP, but one neighbour may have all; lwIP counts them in eight bits. */
#define MEMP_NUM_ND6_QUEUE		250
#define LWIP_ND6_NUM_NEIGHBORS		1024
#define LWIP_ND6_NUM_DESTINATIONS	1024
#define LWIP_ND6_TCP_REACHABILITY_HINTS 0 /* would search for every segment */

#define MEM_ALIGNMENT		 8
#define MEM_LIBC_MALLOC		 1
#define MEMP_MEM_MALLOC		 0
#define MEMP_NUM_TCP_PCB	 16384
#define MEMP_NUM_TCP_PCB_LISTEN	 1024
#define MEMP_NUM_TCP_SEG	 65535 /* a u16 inside lwIP */
#define MEMP_NUM_PBUF		 1024
#define PBUF_POOL_SIZE		 0
#define LWIP_SUPPORT_CUSTOM_PBUF 1

#define LWIP_TCP		   1
#define TCP_MSS			   65495 /* the port's MTU decides */
#define TCP_CALCULATE_EFF_SEND_MSS 1
#define LWIP_WND_SCALE		   1
#define TCP_RCV_SCALE		   7
#define TCP_WND			   (4 * 1024 * 1024)
#define TCP_SND_BUF		   (8 * 1024 * 1024)
#define TCP_SND_QUEUELEN	   32768
#define TCP_SNDLOWAT		   20000
#define TCP_SNDQUEUELOWAT	   16384
#define TCP_OVERSIZE		   0
#define TCP_QUEUE_OOSEQ		   1
#define TCP_OOSEQ_MAX_PBUFS	   2048 /* keeps a hostile peer from holding the frame pool */
#define LWIP_TCP_SACK_OUT	   1
#define LWIP_TCP_TIMESTAMPS	   0 /* FPDU alignment: every segment has the same EMSS */
#define LWIP_TCP_KEEPALIVE	   1
#define TCP_LISTEN_BACKLOG	   1
#define SO_REUSE		   1 /* a listener may come back while its old connections live */
#define TCP_WND_UPDATE_THRESHOLD   (TCP_WND / 4)
#define TCP_TMR_INTERVAL	   10 /* ms; lwIP counts RTO in ticks of twice that */
#define LWIP_TCP_RTO_TIME	   200
#define TCP_MSL			   2000
#define LWIP_TCP_PCB_NUM_EXT_ARGS  1 /* flow.c: whose it is, and that it is freed */
/* How often a SYN is repeated, with backoff: for three minutes. The user's own limit comes first.
 */
#define TCP_SYNMAXRTX 12

#define LWIP_CHECKSUM_CTRL_PER_NETIF 1
#define LWIP_STATS		     0
#define LWIP_DEBUG		     0

/* The sanity checks know only windows below 64 KiB. */
#define LWIP_DISABLE_TCP_SANITY_CHECKS 1

#define LWIP_HOOK_FILENAME "io/lwip/hooks.h"

#endif
