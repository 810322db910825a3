/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/route/options.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>

#define TEXT_MAX 512

static bool read_ip(const char *text, struct uw_ip *out)
{
	struct in_addr four;

	if (inet_pton(AF_INET, text, &four) == 1) {
		*out = uw_ip_v4(four.s_addr);
		return true;
	}
	return inet_pton(AF_INET6, text, out->b) == 1 && !uw_ip_is_v4(out);
}

static bool read_gateway(const char *text, struct uw_ip *out)
{
	return read_ip(text, out) && !uw_ip_is_any(out) && !uw_ip_is_loopback(out) &&
	       (uw_ip_is_v4(out) ? out->b[12] < 224 : out->b[0] != 0xff);
}

static bool read_bits(const char *text, unsigned most, unsigned *out)
{
	unsigned long bits;
	char *end;

	if (*text < '0' || *text > '9')
		return false;
	bits = strtoul(text, &end, 10);
	*out = (unsigned)bits;
	return !*end && bits <= most;
}

/* One "GATEWAY": the default route of its version of IP. */
static bool read_default(char *text, struct route *r)
{
	*r = (struct route){ 0 };
	if (!read_gateway(text, &r->via))
		return false;
	if (uw_ip_is_v4(&r->via)) {
		r->net.ip = uw_ip_v4(0);
		r->net.bits = UW_IP_V4_BITS;
	}
	return true;
}

static bool read_route(char *text, struct route *r)
{
	char *slash = strchr(text, '/'), *is = strchr(text, '=');
	unsigned bits;
	bool four;

	*r = (struct route){ 0 };
	if (!slash || !is || is < slash)
		return false;
	*slash = *is = 0;
	if (!read_ip(text, &r->net.ip) || !read_gateway(is + 1, &r->via))
		return false;
	four = uw_ip_is_v4(&r->net.ip);
	if (!read_bits(slash + 1, four ? 32 : 128, &bits) || four != uw_ip_is_v4(&r->via))
		return false;
	r->net.bits = (uint8_t)(bits + (four ? UW_IP_V4_BITS : 0));
	return true;
}

static bool read_all(const char *text, struct route_table *t, bool (*one)(char *, struct route *),
		     char *bad, unsigned n)
{
	char buf[TEXT_MAX], *rest = buf, *part;
	struct route r;

	if (!*text)
		return true;
	snprintf(buf, sizeof(buf), "%s", text);
	while ((part = strsep(&rest, ","))) {
		snprintf(bad, n, "%s", part);
		if (!one(part, &r))
			return false;
		route_add(t, &r);
	}
	return true;
}

bool route_parse_gateways(const char *text, struct route_table *t, char *bad, unsigned n)
{
	return read_all(text, t, read_default, bad, n);
}

bool route_parse_list(const char *text, struct route_table *t, char *bad, unsigned n)
{
	return read_all(text, t, read_route, bad, n);
}

const char *route_ip_text(const struct uw_ip *ip, char out[ROUTE_TEXT])
{
	if (uw_ip_is_v4(ip))
		return inet_ntop(AF_INET, ip->b + 12, out, ROUTE_TEXT);
	return inet_ntop(AF_INET6, ip->b, out, ROUTE_TEXT);
}
