/* SPDX-License-Identifier: BSD-3-Clause */
/* Prints the run directory, for run_dir.py. */
#include <stdio.h>
#include <stdlib.h>

#include "io/run_dir.h"

int main(void)
{
	char dir[256];

	if (!run_dir_find(getenv("UWARP_DIR"), dir, sizeof(dir)))
		return 1;
	puts(dir);
	return 0;
}
