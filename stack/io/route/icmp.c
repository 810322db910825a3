/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/route/icmp.h"

#include "base/be.h"
#include "base/sum.h"

enum { ETHER = 14, IP4_LEN = 20, IP6_LEN = 40, ICMP_LEN = 8, TCP_PART = 8 };
enum { PROTO_ICMP = 1, PROTO_TCP = 6, PROTO_ICMP6 = 58 };
enum { UNREACHABLE_4 = 3, UNREACHABLE_6 = 1, TOO_BIG_6 = 2, CODES_4 = 16 };

static bool sum_is_good(uint32_t sum)
{
	return uw_sum_fold(sum) == 0xffff;
}

/* The ports and the sequence number are in the first eight octets. */
static void read_tcp(const uint8_t *tcp, struct icmp_error *out)
{
	memcpy(&out->lport, tcp, 2);
	memcpy(&out->rport, tcp + 2, 2);
	out->seq = uw_be32(tcp + 4);
}

/* ---- IPv4 ---------------------------------------------------------------------------------- */

static enum icmp_kind kind4(unsigned code)
{
	/* RFC 1122 §4.2.3.9 and §3.2.2.1; 13: RFC 1812 §5.2.7.1 */
	static const enum icmp_kind kinds[CODES_4] = {
		ICMP_SOFT, ICMP_SOFT, ICMP_REFUSED, ICMP_REFUSED, ICMP_TOO_BIG, ICMP_SOFT,
		ICMP_SOFT, ICMP_SOFT, ICMP_SOFT,    ICMP_HARD,	  ICMP_HARD,	ICMP_SOFT,
		ICMP_SOFT, ICMP_HARD, ICMP_SOFT,    ICMP_SOFT
	};

	return code < CODES_4 ? kinds[code] : ICMP_OTHER;
}

static bool read_inner4(const uint8_t *ip, size_t n, struct icmp_error *out)
{
	size_t hl = (size_t)(ip[0] & 15) * 4;
	uint32_t addr;

	if (ip[0] >> 4 != 4 || hl < IP4_LEN || n < hl + TCP_PART || ip[9] != PROTO_TCP ||
	    uw_be16(ip + 6) & 0x1fff)
		return false;
	memcpy(&addr, ip + 12, 4);
	out->local = uw_ip_v4(addr);
	memcpy(&addr, ip + 16, 4);
	out->remote = uw_ip_v4(addr);
	out->length = uw_be16(ip + 2);
	read_tcp(ip + hl, out);
	return true;
}

static bool read4(const uint8_t *ip, size_t n, struct icmp_error *out)
{
	size_t hl = (size_t)(ip[0] & 15) * 4, total;
	const uint8_t *icmp = ip + hl;

	if (n < IP4_LEN || ip[9] != PROTO_ICMP || ip[0] >> 4 != 4 || hl < IP4_LEN)
		return false;
	total = uw_be16(ip + 2);
	if (total > n || total < hl + ICMP_LEN + IP4_LEN || icmp[0] != UNREACHABLE_4)
		return false;
	out->kind = kind4(icmp[1]);
	out->mtu = uw_be16(icmp + 6);
	if (!read_inner4(icmp + ICMP_LEN, total - hl - ICMP_LEN, out))
		out->kind = ICMP_OTHER;
	if (!sum_is_good(uw_sum_add(0, icmp, total - hl)))
		out->kind = ICMP_BAD;
	return true;
}

/* ---- IPv6 ---------------------------------------------------------------------------------- */

/* RFC 5461 §2.2, RFC 4443 §3.1: 0 no route, 1 prohibited, 2 beyond scope, 3 address, 4 port, 5
 * policy, 6 reject. */
static enum icmp_kind kind6(unsigned type, unsigned code)
{
	if (type == TOO_BIG_6)
		return ICMP_TOO_BIG;
	if (code == 4)
		return ICMP_REFUSED;
	return code == 1 || code == 5 || code == 6 ? ICMP_HARD : ICMP_SOFT;
}

static bool read_inner6(const uint8_t *ip, size_t n, struct icmp_error *out)
{
	if (n < IP6_LEN + TCP_PART || ip[0] >> 4 != 6 || ip[6] != PROTO_TCP)
		return false;
	memcpy(out->local.b, ip + 8, 16);
	memcpy(out->remote.b, ip + 24, 16);
	out->length = IP6_LEN + uw_be16(ip + 4);
	read_tcp(ip + IP6_LEN, out);
	return true;
}

static bool read6(const uint8_t *ip, size_t n, struct icmp_error *out)
{
	const uint8_t *icmp = ip + IP6_LEN;
	size_t body;

	if (n < IP6_LEN + ICMP_LEN || ip[0] >> 4 != 6 || ip[6] != PROTO_ICMP6)
		return false;
	body = uw_be16(ip + 4);
	if (body > n - IP6_LEN || body < ICMP_LEN ||
	    (icmp[0] != UNREACHABLE_6 && icmp[0] != TOO_BIG_6))
		return false;
	out->kind = kind6(icmp[0], icmp[1]);
	out->mtu = uw_be32(icmp + 4);
	if (!read_inner6(icmp + ICMP_LEN, body - ICMP_LEN, out))
		out->kind = ICMP_OTHER;
	/* RFC 4443 §2.3: with a pseudo-header */
	if (!sum_is_good(
		    uw_sum_add(uw_sum_add((uint32_t)body + PROTO_ICMP6, ip + 8, 32), icmp, body)))
		out->kind = ICMP_BAD;
	return true;
}

bool icmp_read(const uint8_t *frame, size_t n, struct icmp_error *out)
{
	*out = (struct icmp_error){ 0 };
	if (n < ETHER + IP4_LEN)
		return false;
	if (uw_be16(frame + 12) == 0x0800)
		return read4(frame + ETHER, n - ETHER, out);
	return uw_be16(frame + 12) == 0x86dd && read6(frame + ETHER, n - ETHER, out);
}
