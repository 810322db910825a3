/* SPDX-License-Identifier: BSD-3-Clause */
/* In place of the C library's strtod: as in a program whose locale has a decimal comma. Include it
 * in one file of a test. */
#ifndef UWARP_TESTS_DECIMAL_COMMA_H
#define UWARP_TESTS_DECIMAL_COMMA_H

#include <stdlib.h>

double strtod(const char *text, char **end)
{
	return (double)strtoull(text, end, 10);
}

#endif
