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

static void seal(struct page *p)
{
	p->version++;
	p->check = page_check(p);
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
	seal(at(t, 0));
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
	seal(p);
	t->free = n;
	t->free_count++;
}

static bool has_pages(const struct tree *t)
{
	return t->pages - t->used + t->free_count > PAGE_LEVELS;
}

static void insert_item(struct page *p, int where, uint64_t key, uint64_t value)
{
	memmove(&p->item[where + 1], &p->item[where],
		(size_t)(p->count - where) * sizeof(p->item[0]));
	p->item[where] = (struct page_item){ key, value };
	p->count++;
}

static void remove_item(struct page *p, int where)
{
	p->count--;
	memmove(&p->item[where], &p->item[where + 1],
		(size_t)(p->count - where) * sizeof(p->item[0]));
}

/* ---- full ones --------------------------------------------------------------------------- */

/* The upper half of p goes into a new page. p itself is not sealed yet. */
static uint64_t cut(struct tree *t, struct page *p)
{
	uint64_t n = take_page(t);
	struct page *r = at(t, n);
	unsigned half = p->count / 2u;

	r->level = p->level;
	r->count = (uint16_t)(p->count - half);
	memcpy(r->item, &p->item[half], r->count * sizeof(r->item[0]));
	r->low = r->item[0].key;
	r->high = p->high;
	r->right = p->right;
	seal(r);
	p->count = (uint16_t)half;
	p->high = r->low - 1;
	p->right = n;
	t->splits++;
	return n;
}

static void split_child(struct tree *t, struct page *parent, int i)
{
	struct page *left = at(t, parent->item[i].value);
	uint64_t n = cut(t, left);

	seal(left);
	insert_item(parent, i + 1, at(t, n)->low, n);
	seal(parent);
}

/* The root stays page 0: what it held goes into two pages below it. */
static void grow(struct tree *t)
{
	struct page *root = at(t, 0), *left;
	uint64_t n = take_page(t), right;

	left = at(t, n);
	left->level = root->level;
	left->count = root->count;
	memcpy(left->item, root->item, root->count * sizeof(root->item[0]));
	left->low = 0;
	left->high = UINT64_MAX;
	left->right = 0;
	right = cut(t, left);
	seal(left);
	root->level++;
	root->count = 2;
	root->item[0] = (struct page_item){ 0, n };
	root->item[1] = (struct page_item){ at(t, right)->low, right };
	seal(root);
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
		if (is_full(t, at(t, p->item[i].value))) {
			split_child(t, p, i);
			i = page_find(p, key);
		}
		p = at(t, p->item[i].value);
	}
	i = page_find(p, key);
	if (i >= 0 && p->item[i].key == key) {
		p->item[i].value = value;
	} else {
		insert_item(p, i + 1, key, value);
		t->keys++;
	}
	seal(p);
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
	uint64_t n = parent->item[i + 1].value;
	struct page *left = at(t, parent->item[i].value), *right = at(t, n);

	memcpy(&left->item[left->count], right->item, right->count * sizeof(right->item[0]));
	left->count = (uint16_t)(left->count + right->count);
	left->high = right->high;
	left->right = right->right;
	seal(left);
	remove_item(parent, i + 1);
	seal(parent);
	give_page(t, n);
	t->merges++;
}

static bool fit(const struct tree *t, const struct page *parent, int i)
{
	unsigned both = 0;

	if (i < 0 || i + 1 >= parent->count)
		return false;
	both = at(t, parent->item[i].value)->count + at(t, parent->item[i + 1].value)->count;
	return both <= page_capacity(t->page) * 3 / 4;
}

/* A child that is less than a quarter full is merged with a neighbour, if both fit into one. */
static void fill_child(struct tree *t, struct page *parent, int i)
{
	if (at(t, parent->item[i].value)->count >= page_capacity(t->page) / 4)
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
		n = root->item[0].value;
		only = at(t, n);
		root->level = only->level;
		root->count = only->count;
		memcpy(root->item, only->item, only->count * sizeof(only->item[0]));
		seal(root);
		give_page(t, n);
	}
}

static int remove_key(struct tree *t, uint64_t key)
{
	struct page *p = at(t, 0);
	int i;

	while (p->level) {
		fill_child(t, p, page_find(p, key));
		p = at(t, p->item[page_find(p, key)].value);
	}
	i = page_find(p, key);
	if (i < 0 || p->item[i].key != key)
		return -ENOENT;
	remove_item(p, i);
	seal(p);
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
		p = at(t, p->item[page_find(p, key)].value);
	return p;
}

int tree_get(struct tree *t, uint64_t key, uint64_t *value)
{
	const struct page *p;
	int i, err = -ENOENT;

	pthread_rwlock_rdlock(&t->lock);
	p = leaf_of(t, key);
	i = page_find(p, key);
	if (i >= 0 && p->item[i].key == key) {
		*value = p->item[i].value;
		err = 0;
	}
	pthread_rwlock_unlock(&t->lock);
	return err;
}

unsigned tree_scan(struct tree *t, uint64_t from, uint64_t to, struct page_item *out, unsigned most)
{
	const struct page *p;
	unsigned n = 0;
	int i;

	pthread_rwlock_rdlock(&t->lock);
	p = leaf_of(t, from);
	i = page_find(p, from);
	i += i < 0 || p->item[i].key < from;
	while (n < most) {
		for (; i < p->count && n < most && p->item[i].key <= to; i++)
			out[n++] = p->item[i];
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
