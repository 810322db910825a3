/* SPDX-License-Identifier: BSD-3-Clause */
/* The engine and its objects. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "fake_engine.h"
#include "fake_ep.h"

struct fake fake;

void fake_reset(void)
{
	memset(&fake, 0, sizeof(fake));
	fake.attr = (struct uw_device_attr){
		.guid = 0x0211223344556677,
		.max_qp = 100,
		.max_qp_wr = 200,
		.max_sge = FAKE_MAX_SGE,
		.max_cq = 300,
		.max_cqe = FAKE_MAX,
		.max_mr = 400,
		.max_pd = 500,
		.max_srq = 600,
		.max_srq_wr = 700,
		.max_inline = FAKE_MAX_INLINE,
		.max_rd_atom = 128,
		.mtu = 1500,
		.mulpdu = 1444,
		.link_bps = 10000000000u,
		.n_gids = 2,
		.gid = { { [10] = 0xff, 0xff, 127, 9, 8, 7 }, { [0] = 0xfd, [12] = 127, 9, 8, 7 } },
		.fw_ver = "7.8.9",
	};
	fake.counters[0] = (struct fake_counter){ "payload_rx_bytes", 4096 };
	fake.counters[1] = (struct fake_counter){ "mpa_tx_fpdus", 7 };
	fake.room = FAKE_MAX;
	fake.full = -ENOMEM;
}

static int failing(void)
{
	int rc = fake.fail;

	if (fake.cancel_points)
		pthread_testcancel();
	fake.fail = 0;
	return rc;
}

/* Makes an object unless the test wants the call to fail. */
static int create(size_t size, void *out, void *newest)
{
	void *obj;
	int rc = failing();

	if (rc)
		return rc;
	obj = calloc(1, size);
	memcpy(out, &obj, sizeof(obj));
	if (newest)
		memcpy(newest, &obj, sizeof(obj));
	fake.live++;
	return 0;
}

static int destroy(void *obj)
{
	int rc = failing();

	if (rc)
		return rc;
	free(obj);
	fake.live--;
	return 0;
}

static int engine_open(const struct uw_config *cfg, struct uw_engine **out)
{
	struct uw_engine *e = malloc(sizeof(*e));

	(void)cfg;
	if (!e)
		return -ENOMEM;
	fake_engine_init(e);
	*out = e;
	return 0;
}

static bool engine_started(const struct uw_engine *e)
{
	return e->started;
}

static void engine_fork(struct uw_engine *e, enum uw_fork when)
{
	(void)e;
	(void)when;
}

static void engine_query(struct uw_engine *e, struct uw_device_attr *attr)
{
	(void)e;
	*attr = fake.attr;
}

static void engine_counters(struct uw_engine *e, uw_counter_fn *fn, void *arg)
{
	(void)e;
	for (size_t i = 0; i < FAKE_COUNTERS; i++)
		fn(arg, fake.counters[i].name, fake.counters[i].value);
}

static int pd_alloc(struct uw_engine *e, struct uw_pd **out)
{
	(void)e;
	return create(sizeof(**out), out, NULL);
}

static int pd_dealloc(struct uw_pd *pd)
{
	return destroy(pd);
}

static int mr_reg(struct uw_pd *pd, void *addr, size_t len, uint64_t iova, unsigned access,
		  struct uw_mr **out)
{
	int rc = create(sizeof(**out), out, &fake.mr);

	if (!rc)
		*fake.mr = (struct uw_mr){ pd, addr, len, iova, access };
	return rc;
}

static int mr_dereg(struct uw_mr *mr)
{
	return destroy(mr);
}

static uint32_t mr_stag(const struct uw_mr *mr)
{
	(void)mr;
	return 0xabcd0123;
}

static int mr_alloc_null(struct uw_pd *pd, struct uw_mr **out)
{
	return mr_reg(pd, NULL, SIZE_MAX, 0, UW_ACCESS_LOCAL_WRITE, out);
}

static int mr_change(struct uw_mr *mr, const struct uw_mr_change *c)
{
	int rc = failing();

	if (rc)
		return rc;
	if (c->pd)
		mr->pd = c->pd;
	if (c->move) {
		mr->addr = c->addr;
		mr->len = c->len;
		mr->iova = c->iova;
	}
	if (c->set_access)
		mr->access = c->access;
	return 0;
}

static int mw_alloc(struct uw_pd *pd, unsigned type, struct uw_mw **out)
{
	int rc = create(sizeof(**out), out, &fake.mw);

	if (!rc)
		*fake.mw = (struct uw_mw){ pd, type };
	return rc;
}

static int mw_dealloc(struct uw_mw *mw)
{
	return destroy(mw);
}

static uint32_t mw_rkey(const struct uw_mw *mw)
{
	(void)mw;
	return 0x77001200;
}

static int cq_create(struct uw_engine *e, const struct uw_cq_attr *attr, struct uw_cq **out)
{
	int rc = create(sizeof(**out), out, &fake.cq);

	(void)e;
	if (!rc)
		fake.cq->attr = *attr;
	return rc;
}

static int cq_resize(struct uw_cq *cq, uint32_t depth)
{
	int rc = failing();

	if (!rc)
		cq->attr.depth = depth;
	return rc;
}

static int cq_destroy(struct uw_cq *cq)
{
	return destroy(cq);
}

static int cq_poll(struct uw_cq *cq, int n, struct uw_wc *wc)
{
	int got = 0, rc = failing();

	if (rc)
		return rc;
	while (got < n && cq->head != cq->tail)
		wc[got++] = cq->ring[cq->head++ % FAKE_MAX];
	return got;
}

static int cq_poll_stamped(struct uw_cq *cq, struct uw_wc *wc, uint64_t *stamp_ns)
{
	*stamp_ns = 1000 + cq->head;
	return cq_poll(cq, 1, wc);
}

static int cq_moderate(struct uw_cq *cq, uint16_t count, uint16_t us)
{
	cq->mod_count = count;
	cq->mod_us = us;
	return failing();
}

static int cq_arm(struct uw_cq *cq, bool solicited_only)
{
	cq->armed = true;
	cq->solicited_only = solicited_only;
	return failing();
}

void fake_complete(struct uw_cq *cq, const struct uw_wc *wc)
{
	cq->ring[cq->tail++ % FAKE_MAX] = *wc;
	if (!cq->armed)
		return;
	cq->armed = false;
	cq->attr.notify(cq->attr.ctx);
}

static int srq_create(struct uw_pd *pd, struct uw_srq_attr *attr, struct uw_srq **out)
{
	int rc = create(sizeof(**out), out, &fake.srq);

	(void)pd;
	if (!rc)
		fake.srq->attr = *attr;
	return rc;
}

static int srq_destroy(struct uw_srq *srq)
{
	return destroy(srq);
}

static int srq_set_limit(struct uw_srq *srq, uint32_t limit)
{
	srq->limit = limit;
	return failing();
}

static int srq_resize(struct uw_srq *srq, uint32_t *max_wr)
{
	(void)srq;
	*max_wr += 1; /* more than was wanted */
	return failing();
}

static uint32_t srq_limit(const struct uw_srq *srq)
{
	return srq->limit;
}

/* Grants two requests and one SGE more than asked, so that a provider that ignores it is seen. */
static int qp_create(struct uw_pd *pd, struct uw_qp_attr *attr, struct uw_qp **out)
{
	static uint32_t num = 77;
	int rc = create(sizeof(**out), out, &fake.qp);

	(void)pd;
	if (rc)
		return rc;
	fake.qp->attr = *attr;
	fake.qp->num = __atomic_fetch_add(&num, 1, __ATOMIC_RELAXED);
	attr->max_send_wr += 2;
	attr->max_recv_wr += 2;
	attr->max_send_sge += 1;
	attr->max_recv_sge += 1;
	attr->max_inline = FAKE_MAX_INLINE;
	return 0;
}

static int qp_destroy(struct uw_qp *qp)
{
	return destroy(qp);
}

static uint32_t qp_num(const struct uw_qp *qp)
{
	return qp->num;
}

static enum uw_qp_state qp_state(const struct uw_qp *qp)
{
	return qp->state;
}

static struct uw_depths qp_depths(const struct uw_qp *qp)
{
	return qp->depths;
}

static int qp_modify(struct uw_qp *qp, enum uw_qp_state to)
{
	int rc = failing();

	if (!rc)
		qp->state = to;
	return rc;
}

static int qp_set_path(struct uw_qp *qp, const struct uw_path *path)
{
	qp->path = *path;
	return failing();
}

static int qp_name_peer(struct uw_qp *qp, const struct uw_peer *peer)
{
	int rc = failing();

	if (rc)
		return rc;
	qp->peer = *(const struct sockaddr_in6 *)peer->addr;
	qp->from =
		peer->from ? *(const struct sockaddr_in6 *)peer->from : (struct sockaddr_in6){ 0 };
	qp->peer_qpn = peer->qpn;
	qp->peer_ird = peer->ird;
	qp->peer_tos = peer->tos;
	qp->peer_mtu = peer->path_mtu;
	qp->peer_psn = peer->rq_psn;
	qp->state = UW_QPS_RTR;
	return 0;
}

static int qp_set_datagrams(struct uw_qp *qp, const struct uw_datagrams *d)
{
	qp->datagrams = *d;
	return failing();
}

static int qp_group(struct uw_qp *qp, const struct sockaddr *group, bool in)
{
	qp->group = in ? *(const struct sockaddr_in6 *)group : (struct sockaddr_in6){ 0 };
	return failing();
}

static int ah_make(struct uw_pd *pd, const struct uw_ah_attr *a, struct uw_ah *out)
{
	(void)pd;
	fake.ah_to = *(const struct sockaddr_in6 *)a->addr;
	fake.ah_from = a->from ? *(const struct sockaddr_in6 *)a->from : (struct sockaddr_in6){ 0 };
	fake.ah_tos = a->tos;
	fake.ah_hops = a->hops;
	*out = (struct uw_ah){ .how = 0x0500000000000000u, .dst = { 6, 7 } };
	return failing();
}

static int qp_set_access(struct uw_qp *qp, unsigned access)
{
	qp->access = access;
	return failing();
}

static void keep_send(struct fake_send *to, const struct uw_send_wr *wr)
{
	to->wr = *wr;
	for (uint32_t i = 0; i < wr->num_sge && i < FAKE_MAX_SGE; i++)
		to->sge[i] = wr->sg_list[i];
	if ((wr->flags & UW_SEND_INLINE) && wr->num_sge)
		memcpy(to->octets, (const void *)(uintptr_t)to->sge[0].addr, to->sge[0].length);
}

static int post_send(struct uw_qp *qp, const struct uw_send_wr *wr, unsigned n, unsigned *done)
{
	(void)qp;
	fake.call_n[fake.doorbells++] = n;
	for (*done = 0; *done < n; ++*done) {
		if (!fake.room)
			return fake.full;
		fake.room--;
		keep_send(&fake.sent[fake.nsent++], &wr[*done]);
	}
	return 0;
}

static int post_send_all(struct uw_qp *qp, const struct uw_send_wr *wr, unsigned n)
{
	unsigned done;

	if (fake.room < n) {
		fake.call_n[fake.doorbells++] = n;
		return fake.full;
	}
	return post_send(qp, wr, n, &done);
}

static int take_recv(const struct uw_recv_wr *wr, unsigned n, unsigned *done)
{
	fake.call_n[fake.doorbells++] = n;
	for (*done = 0; *done < n; ++*done) {
		if (!fake.room)
			return fake.full;
		fake.room--;
		fake.recvd[fake.nrecvd++] = wr[*done];
	}
	return 0;
}

static int post_recv(struct uw_qp *qp, const struct uw_recv_wr *wr, unsigned n, unsigned *done)
{
	(void)qp;
	return take_recv(wr, n, done);
}

static int srq_post_recv(struct uw_srq *srq, const struct uw_recv_wr *wr, unsigned n,
			 unsigned *done)
{
	(void)srq;
	return take_recv(wr, n, done);
}

static bool wait_look(struct uw_engine *e, struct uw_wait *w, uint64_t limit_us)
{
	(void)e;
	(void)w;
	(void)limit_us;
	return false;
}

static const struct uw_api the_api = {
	.version = UW_API_VERSION,
	.engine_open = engine_open,
	.engine_start = fake_engine_start,
	.engine_started = engine_started,
	.engine_end = fake_engine_end,
	.engine_fork = engine_fork,
	.wait_look = wait_look,
	.engine_query = engine_query,
	.engine_counters = engine_counters,
	.pd_alloc = pd_alloc,
	.pd_dealloc = pd_dealloc,
	.mr_reg = mr_reg,
	.mr_dereg = mr_dereg,
	.mr_stag = mr_stag,
	.mr_alloc_null = mr_alloc_null,
	.mr_change = mr_change,
	.mw_alloc = mw_alloc,
	.mw_dealloc = mw_dealloc,
	.mw_rkey = mw_rkey,
	.cq_create = cq_create,
	.cq_poll_stamped = cq_poll_stamped,
	.cq_moderate = cq_moderate,
	.post_send_all = post_send_all,
	.cq_resize = cq_resize,
	.cq_destroy = cq_destroy,
	.cq_poll = cq_poll,
	.cq_arm = cq_arm,
	.srq_create = srq_create,
	.srq_destroy = srq_destroy,
	.srq_set_limit = srq_set_limit,
	.srq_resize = srq_resize,
	.srq_limit = srq_limit,
	.srq_post_recv = srq_post_recv,
	.qp_create = qp_create,
	.qp_destroy = qp_destroy,
	.qp_num = qp_num,
	.qp_state = qp_state,
	.qp_depths = qp_depths,
	.qp_modify = qp_modify,
	.qp_name_peer = qp_name_peer,
	.qp_set_path = qp_set_path,
	.qp_set_datagrams = qp_set_datagrams,
	.ah_make = ah_make,
	.qp_group = qp_group,
	.qp_set_access = qp_set_access,
	.post_send = post_send,
	.post_recv = post_recv,
	.ep_create = fake_ep_create,
	.ep_set_ctx = fake_ep_set_ctx,
	.ep_share_port = fake_ep_share_port,
	.ep_only6 = fake_ep_only6,
	.ep_set_tos = fake_ep_set_tos,
	.ep_set_datagrams = fake_ep_set_datagrams,
	.ep_bind = fake_ep_bind,
	.ep_resolve = fake_ep_resolve,
	.ep_listen = fake_ep_listen,
	.ep_connect = fake_ep_connect,
	.ep_accept = fake_ep_accept,
	.ep_reject = fake_ep_reject,
	.ep_disconnect = fake_ep_disconnect,
	.ep_destroy = fake_ep_destroy,
	.ep_local_addr = fake_ep_local_addr,
	.ep_peer_addr = fake_ep_peer_addr,
	.ep_peer_gid = fake_ep_peer_gid,
	.later = fake_later,
};

const struct uw_api *fake_api(void)
{
	return &the_api;
}
