/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages of IGMP and MLD that come. This header is internal. */
#ifndef UWARP_IO_MEMBER_MESSAGE_H
#define UWARP_IO_MEMBER_MESSAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/ip.h"

enum member_kind {
	MEMBER_NONE, /* something else */
	MEMBER_QUERY,
	MEMBER_REPORT,
	MEMBER_OTHER, /* another message, or a bad one */
};

struct member_message {
	bool v4;
	bool general; /* a query for all groups */
	struct uw_ip group;
	uint64_t limit_us; /* a query: report within this time */
};

/* Read a frame of any content, n octets of its first buffer. */
enum member_kind member_message_read(const uint8_t *frame, size_t n, struct member_message *out);

#endif
