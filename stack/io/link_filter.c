/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/link_filter.h"

static struct io_frame *over_alloc(struct io_link *l)
{
	return link_filter_under(l)->ops->alloc(link_filter_under(l));
}

static bool over_has_room(struct io_link *l, const struct uw_ip *to, unsigned n)
{
	return link_filter_under(l)->ops->has_room(link_filter_under(l), to, n);
}

static void frame_free(struct io_frame *f)
{
	f->link->ops->free(f);
}

static void frame_ref(struct io_frame *f)
{
	f->link->ops->ref(f);
}

static unsigned frame_refs(const struct io_frame *f)
{
	return f->link->ops->refs(f);
}

static uw_status over_resolve(struct io_link *l, struct uw_ip *to, uint16_t port,
			      unsigned timeout_ms)
{
	return link_filter_under(l)->ops->resolve(link_filter_under(l), to, port, timeout_ms);
}

static bool over_reaches(struct io_link *l, const struct uw_ip *to)
{
	return link_filter_under(l)->ops->reaches(link_filter_under(l), to);
}

static uw_status over_claim(struct io_link *l, uint16_t port, unsigned versions)
{
	return link_filter_under(l)->ops->claim_port(link_filter_under(l), port, versions);
}

static void over_release(struct io_link *l, uint16_t port, unsigned versions)
{
	link_filter_under(l)->ops->release_port(link_filter_under(l), port, versions);
}

static uw_status over_claim_packets(struct io_link *l, uint32_t qpn)
{
	return link_filter_under(l)->ops->claim_packets(link_filter_under(l), qpn);
}

static void over_release_packets(struct io_link *l, uint32_t qpn)
{
	link_filter_under(l)->ops->release_packets(link_filter_under(l), qpn);
}

static uw_status over_group(struct io_link *l, const struct uw_ip *group, bool in)
{
	return link_filter_under(l)->ops->group(link_filter_under(l), group, in);
}

static bool over_is_ours(struct io_link *l, uint16_t port, enum io_versions version)
{
	return link_filter_under(l)->ops->is_ours(link_filter_under(l), port, version);
}

static void over_tidy(struct io_link *l)
{
	link_filter_under(l)->ops->tidy(link_filter_under(l));
}

static uint64_t over_due_ns(struct io_link *l)
{
	return link_filter_under(l)->ops->due_ns(link_filter_under(l));
}

struct io_ops link_filter_ops(const struct io_ops *under)
{
	return (struct io_ops){
		.name = under->name,
		.has_room = under->has_room ? over_has_room : NULL,
		.alloc = over_alloc,
		.free = frame_free,
		.ref = frame_ref,
		.refs = frame_refs,
		.due_ns = under->due_ns ? over_due_ns : NULL,
		.resolve = under->resolve ? over_resolve : NULL,
		.reaches = under->reaches ? over_reaches : NULL,
		.claim_port = under->claim_port ? over_claim : NULL,
		.claim_packets = under->claim_packets ? over_claim_packets : NULL,
		.release_packets = under->release_packets ? over_release_packets : NULL,
		.release_port = under->release_port ? over_release : NULL,
		.group = under->group ? over_group : NULL,
		.is_ours = under->is_ours ? over_is_ours : NULL,
		.tidy = under->tidy ? over_tidy : NULL,
	};
}

void link_filter_wake(struct link_filter *f)
{
	const struct io_ring own = { .word = f->under->doorbell, .fd = -1 };
	uint32_t was;

	if (!own.word || !f->l.env.wake)
		return;
	atomic_thread_fence(memory_order_seq_cst);
	was = doorbell_swap(own.word);
	if (was)
		f->l.env.wake(f->l.env.arg, &own, was);
}
