/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "tree.h"

/* Going down to change something, pages that are too full or too empty are put right on the way:
 * then no change ever has to go up again. For readers the new state of a page is sealed before
 * the old way to its keys is: right page, left page, parent. */

static struct page *at(const struct tree *t, uint64_t number)
{
	return (struct page *)(t->base + number * t->page);
}

/* Items before `from` are as they were, and so is the level, or from is 0. */
static void seal(const struct tree *t, struct page *p, unsigned from)
{
	page_seal(p, t->page, from);
}

void tree_open(struct tree *t, void *memory, uint64_t pages, uint32_t page)
{
	memset(t, 0, sizeof(*t));
	t->base = memory;
	t->pages = pages;
	t->page = page;
	t->used = 1;
	pthread_rwlock_init(&t->lock, NULL);
	at(t, 0)->high = UINT64_MAX;
	seal(t, at(t, 0), 0);
}

void tree_close(struct tree *t)
{
	pthread_rwlock_destroy(&t->lock);
}

/* ---- pages ------------------------------------------------------------------------------- */

static uint64_t take_page(struct tree *t)
{
	uint64_t n = t->free;

	if (!n)
		return t->used++;
	t->free = at(t, n)->right;
	t->free_count--;
	return n;
}

static void give_page(struct tree *t, uint64_t n)
{
	struct page *p = at(t, n);

	p->level = PAGE_FREE;
	p->count = 0;
	p->right = t->free;
	seal(t, p, 0);
	t->free = n;
	t->free_count++;
}

static bool has_pages(const struct tree *t)
{
	return t->pages - t->used + t->free_count > PAGE_LEVELS;
}

static void copy_items(struct page *to, unsigned at, const struct page *from, unsigned first,
		       unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		*page_item(to, at + i) = *page_item(from, first + i);
}

static void insert_item(struct page *p, unsigned where, uint64_t key, uint64_t value)
{
	for (unsigned i = p->count; i > where; i--)
		*page_item(p, i) = *page_item(p, i - 1);
	*page_item(p, where) = (struct page_item){ key, value };
	p->count++;
}

static void remove_item(struct page *p, unsigned where)
{
	p->count--;
	copy_items(p, where, p, where + 1, p->count - where);
}

static struct page *child(const struct tree *t, const struct page *p, int i)
{
	return at(t, page_item(p, (unsigned)i)->value);
}

/* ---- full ones --------------------------------------------------------------------------- */

/* The upper half of p, from item *half on, goes into a new page. p itself is not sealed yet. */
static uint64_t cut(struct tree *t, struct page *p, unsigned *half)
{
	uint64_t n = take_page(t);
	struct page *r = at(t, n);

	*half = p->count / 2u;
	r->level = p->level;
	r->count = (uint16_t)(p->count - *half);
	copy_items(r, 0, p, *half, r->count);
	r->low = page_item(r, 0)->key;
	r->high = p->high;
	r->right = p->right;
	seal(t, r, 0);
	p->count = (uint16_t)*half;
	p->high = r->low - 1;
	p->right = n;
	t->splits++;
	return n;
}

static void split_child(struct tree *t, struct page *parent, int i)
{
	struct page *left = child(t, parent, i);
	unsigned half, where = (unsigned)i + 1;
	uint64_t n = cut(t, left, &half);

	seal(t, left, half);
	insert_item(parent, where, at(t, n)->low, n);
	seal(t, parent, where);
}

/* The root stays page 0: what it held goes into two pages below it. */
static void grow(struct tree *t)
{
	struct page *root = at(t, 0), *left;
	uint64_t n = take_page(t), right;
	unsigned half;

	left = at(t, n);
	left->level = root->level;
	left->count = root->count;
	copy_items(left, 0, root, 0, root->count);
	left->low = 0;
	left->high = UINT64_MAX;
	left->right = 0;
	right = cut(t, left, &half);
	seal(t, left, 0);
	root->level++;
	root->count = 2;
	*page_item(root, 0) = (struct page_item){ 0, n };
	*page_item(root, 1) = (struct page_item){ at(t, right)->low, right };
	seal(t, root, 0);
}

static bool is_full(const struct tree *t, const struct page *p)
{
	return p->count == page_capacity(t->page);
}

static int put(struct tree *t, uint64_t key, uint64_t value)
{
	struct page *p = at(t, 0);
	int i;

	if (is_full(t, p))
		grow(t);
	while (p->level) {
		i = page_find(p, key);
		if (is_full(t, child(t, p, i))) {
			split_child(t, p, i);
			i = page_find(p, key);
		}
		p = child(t, p, i);
	}
	i = page_find(p, key);
	if (i >= 0 && page_item(p, (unsigned)i)->key == key) {
		page_item(p, (unsigned)i)->value = value;
	} else {
		insert_item(p, (unsigned)++i, key, value);
		t->keys++;
	}
	seal(t, p, (unsigned)i);
	return 0;
}

int tree_put(struct tree *t, uint64_t key, uint64_t value)
{
	int err;

	pthread_rwlock_wrlock(&t->lock);
	err = has_pages(t) ? put(t, key, value) : -ENOMEM;
	pthread_rwlock_unlock(&t->lock);
	return err;
}

/* ---- empty ones -------------------------------------------------------------------------- */

/* Child i takes in the one to its right. */
static void merge(struct tree *t, struct page *parent, int i)
{
	uint64_t n = page_item(parent, (unsigned)i + 1)->value;
	struct page *left = child(t, parent, i), *right = at(t, n);
	unsigned before = left->count;

	copy_items(left, before, right, 0, right->count);
	left->count = (uint16_t)(left->count + right->count);
	left->high = right->high;
	left->right = right->right;
	seal(t, left, before);
	remove_item(parent, (unsigned)i + 1);
	seal(t, parent, (unsigned)i + 1);
	give_page(t, n);
	t->merges++;
}

static bool fit(const struct tree *t, const struct page *parent, int i)
{
	unsigned both = 0;

	if (i < 0 || i + 1 >= parent->count)
		return false;
	both = child(t, parent, i)->count + child(t, parent, i + 1)->count;
	return both <= page_capacity(t->page) * 3 / 4;
}

/* A child that is less than a quarter full is merged with a neighbour, if both fit into one. */
static void fill_child(struct tree *t, struct page *parent, int i)
{
	if (child(t, parent, i)->count >= page_capacity(t->page) / 4)
		return;
	if (fit(t, parent, i))
		merge(t, parent, i);
	else if (fit(t, parent, i - 1))
		merge(t, parent, i - 1);
}

/* A root with one child becomes that child. */
static void shrink(struct tree *t)
{
	struct page *root = at(t, 0), *only;
	uint64_t n;

	while (root->level && root->count == 1) {
		n = page_item(root, 0)->value;
		only = at(t, n);
		root->level = only->level;
		root->count = only->count;
		copy_items(root, 0, only, 0, only->count);
		seal(t, root, 0);
		give_page(t, n);
	}
}

static int remove_key(struct tree *t, uint64_t key)
{
	struct page *p = at(t, 0);
	int i;

	while (p->level) {
		fill_child(t, p, page_find(p, key));
		p = child(t, p, page_find(p, key));
	}
	i = page_find(p, key);
	if (i < 0 || page_item(p, (unsigned)i)->key != key)
		return -ENOENT;
	remove_item(p, (unsigned)i);
	seal(t, p, (unsigned)i);
	t->keys--;
	return 0;
}

int tree_delete(struct tree *t, uint64_t key)
{
	int err;

	pthread_rwlock_wrlock(&t->lock);
	err = remove_key(t, key);
	shrink(t);
	pthread_rwlock_unlock(&t->lock);
	return err;
}

/* ---- reading ----------------------------------------------------------------------------- */

static const struct page *leaf_of(const struct tree *t, uint64_t key)
{
	const struct page *p = at(t, 0);

	while (p->level)
		p = child(t, p, page_find(p, key));
	return p;
}

int tree_get(struct tree *t, uint64_t key, uint64_t *value)
{
	const struct page *p;
	int i, err = -ENOENT;

	pthread_rwlock_rdlock(&t->lock);
	p = leaf_of(t, key);
	i = page_find(p, key);
	if (i >= 0 && page_item(p, (unsigned)i)->key == key) {
		*value = page_item(p, (unsigned)i)->value;
		err = 0;
	}
	pthread_rwlock_unlock(&t->lock);
	return err;
}

unsigned tree_scan(struct tree *t, uint64_t from, uint64_t to, struct page_item *out, unsigned most)
{
	const struct page *p;
	unsigned n = 0, i;
	int found;

	pthread_rwlock_rdlock(&t->lock);
	p = leaf_of(t, from);
	found = page_find(p, from);
	i = found < 0 ? 0 : (unsigned)found + (page_item(p, (unsigned)found)->key < from);
	while (n < most) {
		for (; i < p->count && n < most && page_item(p, i)->key <= to; i++)
			out[n++] = *page_item(p, i);
		if (i < p->count || !p->right)
			break;
		p = at(t, p->right);
		i = 0;
	}
	pthread_rwlock_unlock(&t->lock);
	return n;
}

unsigned tree_levels(struct tree *t)
{
	unsigned n;

	pthread_rwlock_rdlock(&t->lock);
	n = at(t, 0)->level + 1u;
	pthread_rwlock_unlock(&t->lock);
	return n;
}
