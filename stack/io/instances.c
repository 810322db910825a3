/* SPDX-License-Identifier: BSD-3-Clause */
/* The instances of the raw transport: the same object linked several times, each with a name of its
 * own (stack/meson.build). */
#include "io/llp.h"

extern const struct llp_ops llp_raw_1, llp_raw_2, llp_raw_3, llp_raw_4, llp_raw_5, llp_raw_6,
	llp_raw_7;

static const struct llp_ops *const instances[LLP_RAW_INSTANCES] = {
	&llp_raw,   &llp_raw_1, &llp_raw_2, &llp_raw_3,
	&llp_raw_4, &llp_raw_5, &llp_raw_6, &llp_raw_7,
};

const struct llp_ops *llp_raw_instance(unsigned i)
{
	return i < LLP_RAW_INSTANCES ? instances[i] : NULL;
}
