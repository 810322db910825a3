/* SPDX-License-Identifier: BSD-3-Clause */
#include "options.h"

#include <arpa/inet.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "io/addr.h"
#include "io/uwarpd/uwarpd.h"

enum {
	BAD_USAGE = 2,
	MTU_MIN = 576,
	MTU_MAX = 65280,
	PORTS_MAX = 60000,
	OPT_MAX_CLIENTS = 256,
	OPT_MAX_PER_USER,
	OPT_MAX_PORTS,
	OPT_ALLOW,
};

static const char usage[] =
	"usage: uwarpd --link LINK [options]\n"
	"       uwarpd --status [--path PATH]\n"
	"\n"
	"Owns a network port and lets many processes without rights use it, each its own TCP\n"
	"ports: uwarp-run --link uwarpd -- PROGRAM. See uwarpd(8).\n"
	"\n"
	"  --link LINK     the port: an interface's name, packet:IF, af_packet:IF, af_xdp:IF,\n"
	"                  pci:ADDR, DPDK devargs such as net_tap0,...; or none: clients reach\n"
	"                  each other alone\n"
	"  --ip A[/N]      an unused address of IPv4 for it; said again: unused ones of IPv6, too\n"
	"                  (default: the interface's own of both, shared with the kernel)\n"
	"  --mtu N         IP MTU in octets (default: the port's)\n"
	"  --path PATH     the socket (default: " UWARPD_SYSTEM_PATH ")\n"
	"  --mode OCTAL    permissions of the socket (default: 0666)\n"
	"  --user NAME     the user to become after the start, if root (default: nobody)\n"
	"  --allow UID,... the users that may join (default: all)\n"
	"  --max-clients N, --max-clients-per-user N, --max-ports N\n"
	"                  at most so many processes (128), of one user (64), and TCP ports of a\n"
	"                  process (4096)\n"
	"  --rate R        each process may send R bits per second, such as 10G (default: any)\n"
	"  --status        print what the running uwarpd counts, and exit\n"
	"  --verbose       say who joins and leaves\n"
	"  --help          print this and exit\n";

static int bad(const char *option, const char *value, const char *want)
{
	fprintf(stderr, "uwarpd: %s %s: must be %s (uwarpd --help tells more)\n", option, value,
		want);
	return BAD_USAGE;
}

static int get_number(const char *option, const char *text, unsigned max, unsigned *out)
{
	char *end, want[40];
	unsigned long n = strtoul(text, &end, 10);

	snprintf(want, sizeof(want), "a number from 1 to %u", max);
	if (*end || *text < '0' || *text > '9' || n < 1 || n > max)
		return bad(option, text, want);
	*out = (unsigned)n;
	return -1;
}

static int get_mtu(const char *text, struct options *o)
{
	int rc = get_number("--mtu", text, MTU_MAX, &o->mtu);

	return rc < 0 && o->mtu < MTU_MIN ? bad("--mtu", text, "at least 576") : rc;
}

static int take_ip4(struct in_addr in, unsigned bits, struct options *o)
{
	o->addr = in.s_addr;
	o->mask = htonl((uint32_t)(0xffffffffull << (32 - bits)));
	return -1;
}

/* The link-local address is the uwarpd's to choose. */
static bool take_ip6(const struct in6_addr *in, unsigned bits, struct options *o)
{
	struct uw_net n = { .bits = (uint8_t)bits };

	memcpy(n.ip.b, in, sizeof(n.ip.b));
	if (o->n_ip6 == OPTIONS_IP6_MAX || uw_ip_is_any(&n.ip) || uw_ip_is_loopback(&n.ip) ||
	    uw_ip_is_multicast(&n.ip) || uw_ip_is_v4(&n.ip) || uw_ip_is_link_local(&n.ip))
		return false;
	o->ip6[o->n_ip6++] = n;
	return true;
}

/* The length of a prefix behind the slash, which is taken off; 0: there is nonsense. */
static unsigned take_bits(char *text, unsigned max, unsigned usual)
{
	char *slash = strchr(text, '/'), *end;
	unsigned long bits;

	if (!slash)
		return usual;
	*slash = 0;
	bits = strtoul(slash + 1, &end, 10);
	return *end || slash[1] < '0' || slash[1] > '9' || bits > max ? 0 : (unsigned)bits;
}

static int get_ip(const char *text, struct options *o)
{
	static const char want[] = "an address of IPv4, or up to five of IPv6, of the form A or "
				   "A/N, such as 10.0.0.1/24 or fd00::1/64";
	char copy[INET6_ADDRSTRLEN + 4];
	bool six = strchr(text, ':');
	struct in6_addr in6;
	struct in_addr in;
	unsigned bits;

	if (strlen(text) >= sizeof(copy))
		return bad("--ip", text, want);
	strcpy(copy, text);
	bits = six ? take_bits(copy, 128, 64) : take_bits(copy, 32, 24);
	if (bits && six && inet_pton(AF_INET6, copy, &in6) == 1 && take_ip6(&in6, bits, o))
		return -1;
	if (bits && !six && inet_pton(AF_INET, copy, &in) == 1 && in.s_addr &&
	    ntohl(in.s_addr) >> 28 < 14)
		return take_ip4(in, bits, o);
	return bad("--ip", text, want);
}

static int get_rate(const char *text, struct options *o)
{
	char *end;
	double r = strtod(text, &end);

	r *= *end == 'K' ? 1e3 : *end == 'M' ? 1e6 : *end == 'G' ? 1e9 : 1;
	if (*end && strchr("KMG", *end))
		end++;
	if (*end || !(r >= 1e5 && r <= 1e12))
		return bad("--rate", text, "bits per second from 100K to 1000G, such as 10G");
	o->rate = r;
	return -1;
}

static int get_mode(const char *text, struct options *o)
{
	char *end;
	unsigned long mode = strtoul(text, &end, 8);

	if (*end || !*text || mode > 0777)
		return bad("--mode", text, "permissions in octal, such as 0660");
	o->mode = (unsigned)mode;
	o->socket_given = true;
	return -1;
}

static int get_allow(const char *text, struct options *o)
{
	const char *at = text;
	char *end;

	do {
		unsigned long uid = strtoul(at, &end, 10);

		if (end == at || (*end && *end != ',') || o->allows == OPTIONS_ALLOW_MAX)
			return bad("--allow", text, "up to 64 numbers of users with commas");
		o->allow[o->allows++] = (uid_t)uid;
		at = end + 1;
	} while (*end);
	return -1;
}

static int take_text(struct options *o, int c, const char *value)
{
	switch (c) {
	case 'l':
		o->link = value;
		return -1;
	case 'p':
		o->path = value;
		o->socket_given = true;
		return -1;
	case 'u':
		o->user = value;
		o->user_given = true;
		return -1;
	case 's':
		o->status = true;
		return -1;
	case 'v':
		o->verbose = true;
		return -1;
	case 'h':
		fputs(usage, stdout);
		return 0;
	default:
		fprintf(stderr, "uwarpd: uwarpd --help tells the options\n");
		return BAD_USAGE;
	}
}

static int take(struct options *o, int c, const char *value)
{
	switch (c) {
	case 'i':
		return get_ip(value, o);
	case 'm':
		return get_mtu(value, o);
	case 'M':
		return get_mode(value, o);
	case 'r':
		return get_rate(value, o);
	case OPT_ALLOW:
		return get_allow(value, o);
	case OPT_MAX_CLIENTS:
		return get_number("--max-clients", value, SWITCH_CLIENTS_MAX, &o->max_clients);
	case OPT_MAX_PER_USER:
		return get_number("--max-clients-per-user", value, SWITCH_CLIENTS_MAX,
				  &o->max_per_user);
	case OPT_MAX_PORTS:
		return get_number("--max-ports", value, PORTS_MAX, &o->max_ports);
	default:
		return take_text(o, c, value);
	}
}

/* All addresses are the uwarpd's own, or none is. */
static int check_ip6(const struct options *o)
{
	if (!o->n_ip6 || (o->addr && (!o->mtu || o->mtu >= IO_IP6_MIN_MTU)))
		return -1;
	fprintf(stderr,
		"uwarpd: --ip of IPv6 goes with an unused one of IPv4 (--ip A/N) and an MTU of at "
		"least %u (uwarpd --help)\n",
		IO_IP6_MIN_MTU);
	return BAD_USAGE;
}

static int check(const struct options *o, char **rest)
{
	if (*rest) {
		fprintf(stderr, "uwarpd: %s: no such argument (uwarpd --help tells more)\n", *rest);
		return BAD_USAGE;
	}
	if (!o->link && !o->status) {
		fprintf(stderr,
			"uwarpd: no port given: --link IF, or --link none (uwarpd --help)\n");
		return BAD_USAGE;
	}
	if (!o->status && !strcmp(o->link, "none") && !o->addr)
		return bad("--link", o->link, "given together with --ip A/N");
	return o->status ? -1 : check_ip6(o);
}

int options_parse(struct options *o, int argc, char **argv)
{
	static const struct option list[] = {
		{ "link", 1, NULL, 'l' },
		{ "ip", 1, NULL, 'i' },
		{ "mtu", 1, NULL, 'm' },
		{ "path", 1, NULL, 'p' },
		{ "mode", 1, NULL, 'M' },
		{ "user", 1, NULL, 'u' },
		{ "allow", 1, NULL, OPT_ALLOW },
		{ "max-clients", 1, NULL, OPT_MAX_CLIENTS },
		{ "max-clients-per-user", 1, NULL, OPT_MAX_PER_USER },
		{ "max-ports", 1, NULL, OPT_MAX_PORTS },
		{ "rate", 1, NULL, 'r' },
		{ "status", 0, NULL, 's' },
		{ "verbose", 0, NULL, 'v' },
		{ "help", 0, NULL, 'h' },
		{ 0 },
	};
	int c, rc = -1;

	*o = (struct options){ .path = UWARPD_SYSTEM_PATH,
			       .mode = 0666,
			       .user = "nobody",
			       .max_clients = 128,
			       .max_per_user = 64,
			       .max_ports = 4096 };
	while (rc < 0 && (c = getopt_long(argc, argv, "", list, NULL)) != -1)
		rc = take(o, c, optarg);
	return rc < 0 ? check(o, argv + optind) : rc;
}
