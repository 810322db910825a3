/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an oracle needs to know. Each key has one writer, who numbers its writes; the journal has
 * the last one that was tried and the last one that was acknowledged. So anybody who reads a key
 * knows what may be there: a write that is not older than what had been acknowledged before he
 * asked, and not younger than what had been tried when he was answered.
 *
 * In a file it survives the process, and other processes of the machine share it.
 */
#ifndef APPS_JOURNAL_H
#define APPS_JOURNAL_H

#include <stdint.h>

struct journal_line {
	_Atomic uint32_t tried, acked;
};

/* Lines of 0 for so many keys, or those of the file; path NULL: in memory. 0 or a negative errno.
 */
int journal_map(struct journal_line **line, const char *path, uint64_t keys);
void journal_unmap(struct journal_line *line, uint64_t keys);

#endif
