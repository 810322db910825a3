/* SPDX-License-Identifier: BSD-3-Clause */
/* The table that libuwarp.so hands out. */
#include "uwarp/uwarp.h"

static const struct uw_api api = { .version = UW_API_VERSION,
#define UW_X(name) .name = uw_##name,
				   UW_API_LIST(UW_X)
#undef UW_X
};

__attribute__((visibility("default"))) const struct uw_api *uw_api_get(uint32_t version)
{
	return version == UW_API_VERSION ? &api : NULL;
}
