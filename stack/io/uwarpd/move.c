/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames from and to the conduit. Under the stack lock. */
#include <string.h>
#include <sys/socket.h>

#include "io/fds.h"
#include "io/packet/segments.h"
#include "io/uwarpd/link.h"

#define BURST_OCTETS (256u << 10) /* then what came is used up before more is taken */
/* What the conduit needs for a frame beside its payload. */
#define PART_OCTETS (SEGMENT_HEADERS + CONDUIT_HEAD + CONDUIT_LINE)

/* ---- in ------------------------------------------------------------------------------------ */

/* What holds a frame of the wire does not keep 64 KiB. NULL: all are in use. */
static struct io_frame *frame_for(struct uwarpd_link *u, uint32_t len)
{
	bool small = len <= u->frames.small.room - FRAMES_HEADROOM;

	return frames_take(small ? &u->frames.small : &u->frames.large, &u->l);
}

/* False: nothing more can be taken now. */
static bool take(struct uwarpd_link *u, struct io_frame **out)
{
	struct conduit_meta meta;
	const uint8_t *at;
	uint32_t len;
	enum conduit_result r = conduit_look(&u->peer.conduit.in, &at, &len, &meta);

	if (r == CONDUIT_FAULT)
		session_fault(u);
	if (r != CONDUIT_OK)
		return false;
	*out = frame_for(u, len);
	if (!*out)
		return false;
	memcpy((*out)->data, at, len);
	(*out)->len = len;
	(*out)->marks = meta.sum ? IO_FRAME_SUM_GOOD : 0;
	conduit_step(&u->peer.conduit.in);
	return true;
}

static void note_cpu(struct uwarpd_link *u)
{
	uint32_t cpu = atomic_load_explicit(u->peer.bell + SWITCH_BELL_CPU, memory_order_relaxed);

	atomic_store_explicit(&u->mover_cpu, cpu, memory_order_relaxed);
}

/* What is left in the socket would end each sleep. The uwarpd counts first, and its octet may come
 * later. */
static void take_rings(struct uwarpd_link *u)
{
	uint32_t rings = atomic_load_explicit(u->bell + SWITCH_BELL_RINGS, memory_order_relaxed);
	uint8_t octets[64];
	ssize_t n;

	if (rings == u->rings)
		return;
	n = recv(u->wake[0], octets, sizeof(octets), MSG_DONTWAIT);
	u->rings += n > 0 ? (uint32_t)n : 0;
}

unsigned uwarpd_rx(struct io_link *l, struct io_frame **v, unsigned n)
{
	struct uwarpd_link *u = uwarpd_link_of(l);
	uint64_t octets = 0;
	unsigned got = 0;

	take_rings(u);
	if (!u->up)
		return 0;
	while (got < n && octets < BURST_OCTETS && take(u, &v[got]))
		octets += v[got++]->len;
	if (!got) {
		note_cpu(u);
		return 0;
	}
	conduit_tell(&u->peer.conduit.in);
	l->stats.rx_frames += got;
	l->stats.rx_bytes += octets;
	return got;
}

bool uwarpd_pending(struct io_link *l)
{
	struct uwarpd_link *u = uwarpd_link_of(l);

	return u->up && conduit_has(&u->peer.conduit.in);
}

/* ---- out ----------------------------------------------------------------------------------- */

static uint32_t octets_of(const struct io_frame *f)
{
	uint32_t n = 0;

	for (; f; f = f->next)
		n += f->len;
	return n;
}

static uint8_t *put(uint8_t *to, const struct io_frame *f, uint32_t skip)
{
	for (; f; f = f->next) {
		memcpy(to, f->data + skip, f->len - skip);
		to += f->len - skip;
		skip = 0;
	}
	return to;
}

static void count(struct uwarpd_link *u, struct io_frame **v, unsigned n, uint32_t octets)
{
	for (unsigned i = 0; i < n; i++)
		io_free_chain(v[i]);
	u->l.stats.tx_frames += n;
	u->l.stats.tx_bytes += octets;
}

static enum conduit_result send_single(struct uwarpd_link *u, struct io_frame **v)
{
	struct virtio_net_hdr vnet = { 0 };
	uint32_t len = octets_of(*v);
	struct conduit_meta meta;
	uint8_t *to;
	enum conduit_result r = conduit_room(&u->peer.conduit.out, len, &to);

	if (r != CONDUIT_OK)
		return r;
	if ((*v)->marks & IO_FRAME_SUM)
		segment_ask_sum(*v, &vnet);
	meta = (struct conduit_meta){ .sum = vnet.flags };
	put(to, *v, 0);
	conduit_put(&u->peer.conduit.out, len, &meta);
	count(u, v, 1, len);
	return CONDUIT_OK;
}

/* n >= 2 segments as one frame. */
static enum conduit_result send_run(struct uwarpd_link *u, struct io_frame **v, unsigned n)
{
	struct virtio_net_hdr vnet;
	uint8_t head[SEGMENT_HEADERS], *to;
	uint32_t headers = segments_head(v, n, head, &vnet), len = headers;
	struct conduit_meta meta = { .gso_size = vnet.gso_size, .sum = true };
	enum conduit_result r;

	for (unsigned i = 0; i < n; i++)
		len += octets_of(v[i]) - headers;
	r = conduit_room(&u->peer.conduit.out, len, &to);
	if (r != CONDUIT_OK)
		return r;
	memcpy(to, head, headers);
	to += headers;
	for (unsigned i = 0; i < n; i++)
		to = put(to, v[i], headers);
	conduit_put(&u->peer.conduit.out, len, &meta);
	u->l.stats.tx_merged += n;
	u->l.stats.tx_chains++;
	count(u, v, n, len);
	return CONDUIT_OK;
}

static enum conduit_result send_part(struct uwarpd_link *u, const struct io_frame *f, unsigned i,
				     unsigned n)
{
	struct virtio_net_hdr vnet = { 0 };
	struct uw_span payload = { 0 };
	uint8_t head[SEGMENT_HEADERS], *to;
	uint32_t headers = segment_part(f, i, n, head, &vnet, &payload);
	uint32_t len = headers + (uint32_t)payload.n;
	struct conduit_meta meta = { .gso_size = vnet.gso_size, .sum = true };
	enum conduit_result r = conduit_room(&u->peer.conduit.out, len, &to);

	if (r != CONDUIT_OK)
		return r;
	memcpy(to, head, headers);
	memcpy(to + headers, payload.p, payload.n);
	conduit_put(&u->peer.conduit.out, len, &meta);
	u->l.stats.tx_chains += n > 1;
	return CONDUIT_OK;
}

/* A long segment of n pieces: as one frame, or as few as the uwarpd's limit of segments lets it be.
 * All or nothing of it goes: what is left would be a loss. */
static enum conduit_result send_long(struct uwarpd_link *u, struct io_frame **v, unsigned n)
{
	const uint32_t len = (*v)->len, more = (n - 1) / SEGMENTS_MAX;
	uint8_t *unused;
	enum conduit_result r =
		conduit_room(&u->peer.conduit.out, len + more * PART_OCTETS, &unused);

	for (unsigned i = 0; i < n && r == CONDUIT_OK; i += SEGMENTS_MAX)
		r = send_part(u, *v, i, n - i < SEGMENTS_MAX ? n - i : SEGMENTS_MAX);
	if (r != CONDUIT_OK)
		return r;
	io_free_chain(*v);
	u->l.stats.tx_merged += n;
	u->l.stats.tx_frames += n;
	u->l.stats.tx_bytes += len;
	return CONDUIT_OK;
}

/* The fence pairs with the one between the sleeper's store of an odd number and its look at the
 * conduits: either it sees our frames or we see that it sleeps. */
static void ring(struct uwarpd_link *u)
{
	uint32_t bell;

	atomic_thread_fence(memory_order_seq_cst);
	bell = atomic_load_explicit(u->peer.bell, memory_order_relaxed);
	if (!(bell & 1) || bell == u->peer.rung)
		return;
	u->peer.rung = bell;
	u->l.stats.rings++;
	fds_ring(u->peer.ring_fd);
}

/* As a wire that nobody listens to. */
static unsigned lose(struct uwarpd_link *u, struct io_frame **v, unsigned n)
{
	for (unsigned i = 0; i < n; i++) {
		u->l.stats.tx_drops += segment_pieces(v[i]);
		io_free_chain(v[i]);
	}
	return n;
}

/* The first of the n frames, and those that can be merged with it. *gone: how many went. */
static enum conduit_result send_some(struct uwarpd_link *u, struct io_frame **v, unsigned n,
				     unsigned *gone)
{
	unsigned pieces = segment_pieces(*v), run;

	*gone = 1;
	if (pieces > 1)
		return send_long(u, v, pieces);
	run = u->l.flags & IO_TSO ? segments_run(v, n) : 1;
	*gone = run;
	return run > 1 ? send_run(u, v, run) : send_single(u, v);
}

unsigned uwarpd_tx(struct io_link *l, struct io_frame **v, unsigned n)
{
	struct uwarpd_link *u = uwarpd_link_of(l);
	unsigned sent = 0;

	while (u->up && sent < n) {
		unsigned gone;
		enum conduit_result r = send_some(u, v + sent, n - sent, &gone);

		if (r == CONDUIT_FAULT)
			session_fault(u);
		if (r != CONDUIT_OK)
			break;
		sent += gone;
	}
	if (!u->up)
		return sent + lose(u, v + sent, n - sent);
	if (sent)
		ring(u);
	l->stats.tx_full += sent < n;
	return sent;
}
