/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The uwarpd link: the port of a uwarpd on this machine, which many processes share. The link needs
 * no rights. Its address, MAC and MTU are those of the uwarpd; TCP ports are claimed from it
 * (IO_SHARED). doc/adr/0031.
 *
 * When the uwarpd ends, all connections of the link end (env.peer_down with address 0), and the
 * link connects again as soon as there is a new one with the same address.
 */
#ifndef UWARP_IO_UWARPD_UWARPD_H
#define UWARP_IO_UWARPD_UWARPD_H

#include "io/io.h"

#define UWARPD_SYSTEM_PATH "/run/uwarp/uwarpd.sock"
#define UWARPD_NAME	   "uwarpd.sock" /* in the run directory */

struct uwarpd_config {
	const char *path;    /* the socket; NULL: UWARPD_NAME in run_dir, else UWARPD_SYSTEM_PATH */
	const char *run_dir; /* may be NULL */
	uint32_t addr;	     /* network order; 0 or the address of the uwarpd */
	unsigned mtu;	     /* IP octets per frame; 0: the uwarpd's */
	bool no_tso;	     /* send every segment by itself */
	bool verbose;	     /* print to stderr what was chosen */
};

/* UW_E_NO_LINK: no uwarpd there, or it refuses us. UW_E_ADDR, UW_E_INVAL, UW_E_NOMEM; one line on
 * stderr names the cause. */
UW_CHECK uw_status uwarpd_link_open(const struct uwarpd_config *cfg, const struct io_env *env,
				    struct io_link **out);

/* The path in a link's name: "uwarpd:PATH"; "" for "uwarpd". NULL: another kind of link. */
const char *uwarpd_link_path(const char *link);

#endif
