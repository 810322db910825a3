/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line of uwarpd. */
#ifndef UWARPD_OPTIONS_H
#define UWARPD_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "io/switch/classify.h"

/* IPv6: beside the link-local address. */
enum { OPTIONS_ALLOW_MAX = 64, OPTIONS_IP6_MAX = SWITCH_IP6_MAX - 1 };

struct options {
	const char *link;    /* "none": no port, clients reach each other alone */
	const char *path;    /* of the socket */
	uint32_t addr, mask; /* IPv4, network order; 0: the interface's own */
	struct uw_net ip6[OPTIONS_IP6_MAX];
	unsigned n_ip6;
	unsigned mtu;	  /* 0: the port's */
	unsigned mode;	  /* permissions of the socket */
	const char *user; /* to become, if root */
	bool user_given;
	bool socket_given;		/* --path or --mode */
	uid_t allow[OPTIONS_ALLOW_MAX]; /* users that may join; allows 0: all */
	unsigned allows;
	unsigned max_clients, max_per_user, max_ports;
	double rate; /* bits per second that a client may send; 0: any */
	bool status; /* ask the uwarpd at path, and print what it says */
	bool verbose;
};

/* Returns -1 to go on, else the exit code: after --help, or after one line on stderr. */
int options_parse(struct options *o, int argc, char **argv);

#endif
