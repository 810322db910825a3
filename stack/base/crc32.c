/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/crc32.h"

#include <isa-l/crc.h>

#include "base/wide.h"

uint32_t uw_crc32_add(uint32_t crc, const void *p, size_t n)
{
	if (!n)
		return crc;
	crc = crc32_gzip_refl(crc, p, n);
	uw_leave_wide_registers();
	return crc;
}
