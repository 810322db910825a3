/* SPDX-License-Identifier: BSD-3-Clause */
/* Looking a key up by READs, a page for each level; for client.c alone. */
#ifndef BTREE_DESCEND_H
#define BTREE_DESCEND_H

#include "client.h"

int descend_begin(struct btree_client *c, unsigned slot);
/* The page has come. -EINPROGRESS: another one is being read; 0 and the value; -ENOENT. */
int descend_page(struct btree_client *c, unsigned slot, uint64_t *value);

#endif
