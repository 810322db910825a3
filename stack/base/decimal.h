/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers of options. */
#ifndef UWARP_BASE_DECIMAL_H
#define UWARP_BASE_DECIMAL_H

#include <locale.h>
#include <stdlib.h>

/* As strtod, with a decimal point whatever the program's locale has. */
static inline double uw_decimal(const char *text, char **end)
{
	locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	double x = c ? strtod_l(text, end, c) : strtod(text, end);

	if (c)
		freelocale(c);
	return x;
}

#endif
