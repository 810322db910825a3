/* SPDX-License-Identifier: BSD-3-Clause */
/* Routes that the user names: UWARP_GATEWAY and UWARP_ROUTES. */
#ifndef UWARP_IO_ROUTE_OPTIONS_H
#define UWARP_IO_ROUTE_OPTIONS_H

#include "io/route/table.h"

/* Add default routes, by "GATEWAY" of IPv4, IPv6 or both, separated by a comma. False: the text is
 * not of that form; *bad is the part that is wrong, at most n - 1 octets. */
bool route_parse_gateways(const char *text, struct route_table *t, char *bad, unsigned n);
/* Add routes "NET/BITS=GATEWAY", separated by commas. */
bool route_parse_list(const char *text, struct route_table *t, char *bad, unsigned n);

#define ROUTE_TEXT 48

/* Write an address as text to `out`, which it returns. */
const char *route_ip_text(const struct uw_ip *ip, char out[ROUTE_TEXT]);

#endif
