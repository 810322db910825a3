/* SPDX-License-Identifier: BSD-3-Clause */
/* What the environment says (uwarp-run sets it; doc/man lists the variables). */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "engine/transport.h"
#include "io/impair/options.h"
#include "io/io.h"
#include "io/rate.h"
#include "uwarp/uwarp.h"

static void defaults(struct uw_config *c)
{
	memset(c, 0, sizeof(*c));
	c->addr_fd = -1;
	c->stacks = 1;
	c->crc = UW_CRC_AUTO;
	c->mpa_rev = 2;
	c->p2p = true;
	c->ird = c->ord = 128;
	c->connect_ms = 5000;
	c->rnr_ms = 10000;
	c->keepalive_ms = 4000;
	c->silent_per_host = 2048;
	c->conns_per_host = 12288;
	c->dad_ms = 200;
	c->rc_wait_ms = 60000;
	c->stat = true;
}

static int bad(const char *name, const char *value, const char *want)
{
	uw_log("%s=%s: must be %s", name, value, want);
	return -EINVAL;
}

static int get_string(const char *name, char *out, size_t size)
{
	const char *v = getenv(name);

	if (!v)
		return 0;
	if (strlen(v) >= size)
		return bad(name, v, "shorter");
	strcpy(out, v);
	return 0;
}

struct number {
	const char *name;
	unsigned min, max;
	unsigned *out;
};

struct truth {
	const char *name;
	bool *out;
};

static int get_number(const struct number *n)
{
	const char *v = getenv(n->name);
	unsigned long x;
	char *end;

	if (!v || !*v)
		return 0;
	errno = 0;
	x = strtoul(v, &end, 10);
	if (!errno && !*end && x >= n->min && x <= n->max) {
		*n->out = (unsigned)x;
		return 0;
	}
	uw_log("%s=%s: must be a number from %u to %u", n->name, v, n->min, n->max);
	return -EINVAL;
}

static int get_bool(const char *name, bool *out)
{
	const char *v = getenv(name);

	if (!v || !*v)
		return 0;
	if (strcmp(v, "0") && strcmp(v, "1"))
		return bad(name, v, "0 or 1");
	*out = *v == '1';
	return 0;
}

static int get_identity(struct uw_config *c)
{
	const char *v = getenv("UWARP_IDENTITY");

	if (!v || !*v)
		return 0;
	if (strcmp(v, "iwarp") && strcmp(v, "roce") && strcmp(v, "ib"))
		return bad("UWARP_IDENTITY", v, "iwarp, roce or ib");
	c->infiniband = !strcmp(v, "ib");
	c->roce = c->infiniband || *v == 'r';
	return 0;
}

static int get_transport(struct uw_config *c)
{
	int err = get_string("UWARP_TRANSPORT", c->transport, sizeof(c->transport));
	const struct transport *t = err ? NULL : transport_find(c->transport);

	if (t && t->open_link && !c->link[0])
		strcpy(c->link, LINK_HOST);
	return err || t ? err : -EINVAL;
}

/* *out: which of the names it is. */
static int get_choice(const char *name, const char *const *names, const char *want, unsigned *out)
{
	const char *v = getenv(name);

	if (!v || !*v)
		return 0;
	for (unsigned i = 0; names[i]; i++) {
		if (strcmp(v, names[i]))
			continue;
		*out = i;
		return 0;
	}
	return bad(name, v, want);
}

static int get_threads(struct uw_config *c)
{
	static const char *const names[] = { [UW_THREADS_ADAPTIVE] = "adaptive",
					     [UW_THREADS_C1] = "c1",
					     [UW_THREADS_C2] = "c2",
					     [UW_THREADS_C3] = "c3",
					     NULL };
	unsigned i = c->threads;
	int err = get_choice("UWARP_THREADS", names, "c1, c2, c3 or adaptive", &i);

	c->threads = (enum uw_threads)i;
	return err;
}

static int get_tso(struct uw_config *c)
{
	static const char *const names[] = {
		[UW_TSO_AUTO] = "auto", [UW_TSO_ON] = "on", [UW_TSO_OFF] = "off", NULL
	};
	unsigned i = c->tso;
	int err = get_choice("UWARP_TSO", names, "on, off or auto", &i);

	c->tso = (enum uw_tso)i;
	return err;
}

static int get_congestion(struct uw_config *c)
{
	static const char *const names[] = {
		[UW_CC_CUBIC] = "cubic", [UW_CC_DCTCP] = "dctcp", [UW_CC_DELAY] = "delay", NULL
	};
	unsigned i = c->congestion;
	int err = get_choice("UWARP_CC", names, "cubic, dctcp or delay", &i);

	c->congestion = (enum uw_congestion)i;
	return err;
}

static int get_crc(struct uw_config *c)
{
	static const char *const names[] = {
		[UW_CRC_OFF] = "0", [UW_CRC_ON] = "1", [UW_CRC_AUTO] = "auto", NULL
	};
	unsigned i = c->crc;
	int err = get_choice("UWARP_CRC", names, "0, 1 or auto", &i);

	c->crc = (enum uw_crc)i;
	return err;
}

static int get_choices(struct uw_config *c)
{
	int err = get_threads(c);

	if (!err)
		err = get_tso(c);
	if (!err)
		err = get_crc(c);
	return err ? err : get_congestion(c);
}

static int get_strings(struct uw_config *c)
{
	int err = get_string("UWARP_LINK", c->link, sizeof(c->link));

	if (!err)
		err = get_string("UWARP_IP", c->ip, sizeof(c->ip));
	if (!err)
		err = get_string("UWARP_GATEWAY", c->gateway, sizeof(c->gateway));
	if (!err)
		err = get_string("UWARP_ROUTES", c->routes, sizeof(c->routes));
	if (!err)
		err = get_string("UWARP_DIR", c->run_dir, sizeof(c->run_dir));
	if (!err)
		err = get_string("UWARP_RECORD", c->record, sizeof(c->record));
	if (!err)
		err = get_string("UWARP_PCAP", c->pcap, sizeof(c->pcap));
	if (!err)
		err = get_string("UWARPD", c->uwarpd, sizeof(c->uwarpd));
	return err;
}

static int get_rate(struct uw_config *c)
{
	const char *v = getenv("UWARP_LINK_RATE");

	if (!v || !*v || rate_parse(v, &c->rate_bps))
		return 0;
	return bad("UWARP_LINK_RATE", v, "bits per second from 1M to 1000G, such as 10G");
}

static int get_impair(struct uw_config *c)
{
	int err = get_string("UWARP_IMPAIR", c->impair, sizeof(c->impair));
	struct impair_options o;
	char why[256];

	if (err || !impair_parse(c->impair, &o, why, sizeof(why)))
		return err;
	uw_log("UWARP_IMPAIR: %s", why);
	return -EINVAL;
}

static int get_addr_fd(struct uw_config *c)
{
	unsigned fd = UINT_MAX;
	const struct number n = { "UWARP_ADDR_FD", 0, INT_MAX, &fd };
	int err = get_number(&n);

	if (fd <= INT_MAX)
		c->addr_fd = (int)fd;
	return err;
}

int uw_config_from_env(struct uw_config *c)
{
	const struct number numbers[] = {
		{ "UWARP_MTU", IO_MTU_LEAST, IO_MTU_MAX, &c->mtu },
		{ "UWARP_VLAN", 0, 4094, &c->vlan },
		{ "UWARP_MPA_REV", 1, 2, &c->mpa_rev },
		{ "UWARP_STACKS", 1, UW_STACKS_MAX, &c->stacks },
		{ "UWARP_IRD", 1, 0x3ffe, &c->ird },
		{ "UWARP_ORD", 1, 0x3ffe, &c->ord },
		{ "UWARP_CONNECT_MS", 10, 600000, &c->connect_ms },
		{ "UWARP_RNR_MS", 0, 3600000, &c->rnr_ms },
		{ "UWARP_SPEAK_FIRST_MS", 0, 600000, &c->speak_first_ms },
		{ "UWARP_KEEPALIVE_MS", 0, 86400000, &c->keepalive_ms },
		{ "UWARP_SILENT_PER_HOST", 0, 1000000, &c->silent_per_host },
		{ "UWARP_CONNS_PER_HOST", 0, 1000000, &c->conns_per_host },
		{ "UWARP_DAD_MS", 0, 60000, &c->dad_ms },
		{ "UWARP_RC_WAIT_MS", 10, 86400000, &c->rc_wait_ms },
	};
	const struct truth truths[] = {
		{ "UWARP_IP_AUTO", &c->ip_auto },
		{ "UWARP_ECN", &c->ecn },
		{ "UWARP_P2P", &c->p2p },
		{ "UWARP_MARKERS", &c->markers },
		{ "UWARP_STAT", &c->stat },
		{ "UWARP_VERBOSE", &c->verbose },
		{ "UWARP_TIMESTAMPS", &c->timestamps },
	};
	int err;

	defaults(c);
	err = get_strings(c);
	if (!err)
		err = get_addr_fd(c);
	if (!err)
		err = get_identity(c);
	if (!err)
		err = get_transport(c);
	if (!err)
		err = get_choices(c);
	if (!err)
		err = get_rate(c);
	if (!err)
		err = get_impair(c);
	for (unsigned i = 0; !err && i < sizeof(numbers) / sizeof(numbers[0]); i++)
		err = get_number(&numbers[i]);
	for (unsigned i = 0; !err && i < sizeof(truths) / sizeof(truths[0]); i++)
		err = get_bool(truths[i].name, truths[i].out);
	return err;
}
