/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/lwip/frame.h"

#include "lwip/netif.h"

static void free_buffer(struct pbuf *p)
{
	edge_frame_done(edge_frame(p));
}

/* A function of its own only to tell the two kinds apart. */
static void free_tx_buffer(struct pbuf *p)
{
	free_buffer(p);
}

static struct pbuf *wrap(struct io_frame *f, pbuf_free_custom_fn done, u8_t type)
{
	struct pbuf_custom *pc = edge_pbuf(f);
	struct pbuf *p = &pc->pbuf;

	p->next = NULL;
	p->payload = f->data;
	p->tot_len = p->len = (u16_t)f->len;
	p->type_internal = type;
	p->flags = PBUF_FLAG_IS_CUSTOM;
	p->ref = 1;
	p->if_idx = NETIF_NO_INDEX;
	pc->custom_free_function = done;
	return p;
}

struct pbuf *edge_wrap_rx(struct io_frame *f)
{
	struct pbuf *head = NULL, **link = &head;
	u16_t total = 0;

	for (struct io_frame *b = f; b; b = b->next)
		total = (u16_t)(total + b->len);
	while (f) {
		struct io_frame *next = f->next;
		struct pbuf *p = wrap(f, free_buffer, (u8_t)PBUF_REF);

		f->next = NULL;
		p->tot_len = total;
		total = (u16_t)(total - p->len);
		*link = p;
		link = &p->next;
		f = next;
	}
	return head;
}

struct pbuf *edge_wrap_tx(struct io_frame *f)
{
	/* PBUF_RAM: the headers go in front of the payload, in the same buffer. */
	return wrap(f, free_tx_buffer, (u8_t)PBUF_RAM);
}

bool edge_is_tx(const struct pbuf *p)
{
	return !p->next && (p->flags & PBUF_FLAG_IS_CUSTOM) &&
	       ((const struct pbuf_custom *)p)->custom_free_function == free_tx_buffer;
}
