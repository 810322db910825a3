/* SPDX-License-Identifier: BSD-3-Clause */
#include "roce/mad.h"

#include <assert.h>
#include <string.h>

#include "roce/headers.h"

/* IBA §13.4.2, §13.4.3 */
struct mad_wire {
	uint8_t base_version, mgmt_class, class_version, method;
	uint8_t status[2], class_specific[2];
	uint8_t tid[8];
	uint8_t attribute[2], reserved[2];
	uint8_t modifier[4];
};
static_assert(sizeof(struct mad_wire) == 24, "IBA §13.4.3");

enum { BASE_VERSION = 1, CLASS_CM = 7, CM_VERSION = 2, METHOD_SEND = 3 };
enum { ATTR_SIDR_REQ = 0x17, ATTR_SIDR_REP = 0x18 };

/* IBA §12.11.1, with what annex A11.2.2 makes of the private data's first octets. */
struct req_wire {
	struct mad_wire mad;
	uint8_t request_id[4];
	uint8_t pkey[2], reserved[2];
	uint8_t service[8];
	uint8_t version;    /* 4 bits major, 4 minor */
	uint8_t ip_version; /* upper 4 bits */
	uint8_t src_port[2];
	uint8_t src[16], dst[16]; /* IPv4 in the last four octets */
	uint8_t data[SIDR_REQ_DATA];
};
static_assert(sizeof(struct req_wire) == MAD_SIZE, "IBA §12.11.1");

/* IBA §12.11.2 */
struct rep_wire {
	struct mad_wire mad;
	uint8_t request_id[4];
	uint8_t status, info_length, vendor[2];
	uint8_t qpn[3], vendor2;
	uint8_t service[8];
	uint8_t qkey[4];
	uint8_t info[72];
	uint8_t data[SIDR_REP_DATA];
};
static_assert(sizeof(struct rep_wire) == MAD_SIZE, "IBA §12.11.2");

/* Annex A11.2.1: 40 bits of zero and the protocol's number with an octet in front, then the port.
 */
static void put_service(uint8_t *p, uint16_t space, uint16_t port)
{
	uw_put32(p, 0);
	uw_put16(p + 4, space);
	uw_put16(p + 6, port);
}

static void get_service(const uint8_t *p, uint16_t *space, uint16_t *port)
{
	*space = uw_be32(p) ? 0 : uw_be16(p + 4);
	*port = uw_be16(p + 6);
}

static void put_address(uint8_t out[16], const struct uw_ip *a)
{
	if (uw_ip_is_v4(a))
		memcpy(out + 12, a->b + 12, 4);
	else
		memcpy(out, a->b, 16);
}

static struct uw_ip address(const uint8_t in[16], bool v4)
{
	struct uw_ip a;
	uint32_t four;

	if (v4) {
		memcpy(&four, in + 12, sizeof(four));
		return uw_ip_v4(four);
	}
	memcpy(a.b, in, sizeof(a.b));
	return a;
}

/* ---- encode ------------------------------------------------------------------------------ */

static void encode_req(const struct sidr_req *r, uint8_t *out)
{
	struct req_wire w;

	memcpy(&w, out, sizeof(w));
	uw_put16(w.pkey, ROCE_PKEY);
	put_service(w.service, r->space, r->port);
	w.ip_version = (uint8_t)((uw_ip_is_v4(&r->dst) ? 4 : 6) << 4);
	uw_put16(w.src_port, r->src_port);
	put_address(w.src, &r->src);
	put_address(w.dst, &r->dst);
	memcpy(w.data, r->data, sizeof(w.data));
	memcpy(out, &w, sizeof(w));
}

static void encode_rep(const struct sidr_rep *r, uint8_t *out)
{
	struct rep_wire w;

	memcpy(&w, out, sizeof(w));
	w.status = r->status;
	roce_put24(w.qpn, r->qpn);
	put_service(w.service, r->space, r->port);
	uw_put32(w.qkey, r->qkey);
	memcpy(w.data, r->data, sizeof(w.data));
	memcpy(out, &w, sizeof(w));
}

void mad_encode(const struct mad *m, uint8_t out[MAD_SIZE])
{
	bool req = m->kind == MAD_SIDR_REQ;
	struct mad_wire h = { .base_version = BASE_VERSION,
			      .mgmt_class = CLASS_CM,
			      .class_version = CM_VERSION,
			      .method = METHOD_SEND };

	memset(out, 0, MAD_SIZE);
	uw_put64(h.tid, m->tid);
	uw_put16(h.attribute, req ? ATTR_SIDR_REQ : ATTR_SIDR_REP);
	memcpy(out, &h, sizeof(h));
	uw_put32(out + sizeof(h), m->request_id);
	if (req)
		encode_req(&m->req, out);
	else
		encode_rep(&m->rep, out);
}

/* ---- decode ------------------------------------------------------------------------------ */

static enum mad_kind kind_of(const struct mad_wire *h)
{
	if (h->base_version != BASE_VERSION || h->mgmt_class != CLASS_CM ||
	    h->class_version != CM_VERSION || h->method != METHOD_SEND)
		return MAD_OTHER;
	switch (uw_be16(h->attribute)) {
	case ATTR_SIDR_REQ:
		return MAD_SIDR_REQ;
	case ATTR_SIDR_REP:
		return MAD_SIDR_REP;
	default:
		return MAD_OTHER;
	}
}

static enum mad_kind decode_req(const uint8_t *in, struct sidr_req *r)
{
	struct req_wire w;
	unsigned version;

	memcpy(&w, in, sizeof(w));
	version = w.ip_version >> 4;
	/* annex A11.2.2: the format's major version is 0 */
	if (w.version >> 4 || (version != 4 && version != 6))
		return MAD_OTHER;
	get_service(w.service, &r->space, &r->port);
	r->src_port = uw_be16(w.src_port);
	r->src = address(w.src, version == 4);
	r->dst = address(w.dst, version == 4);
	/* ::ffff:a.b.c.d is none of IPv6's own */
	if (version == 6 && (uw_ip_is_v4(&r->src) || uw_ip_is_v4(&r->dst)))
		return MAD_OTHER;
	memcpy(r->data, w.data, sizeof(r->data));
	return MAD_SIDR_REQ;
}

static enum mad_kind decode_rep(const uint8_t *in, struct sidr_rep *r)
{
	struct rep_wire w;

	memcpy(&w, in, sizeof(w));
	r->status = w.status;
	r->qpn = roce_be24(w.qpn);
	r->qkey = uw_be32(w.qkey);
	get_service(w.service, &r->space, &r->port);
	memcpy(r->data, w.data, sizeof(r->data));
	return MAD_SIDR_REP;
}

enum mad_kind mad_decode(struct uw_rope in, struct mad *m)
{
	uint8_t octets[MAD_SIZE];
	struct mad_wire h;

	m->kind = MAD_OTHER;
	if (in.len != MAD_SIZE)
		return MAD_OTHER;
	uw_rope_copy(in, octets, MAD_SIZE);
	memcpy(&h, octets, sizeof(h));
	m->kind = kind_of(&h);
	m->tid = uw_be64(h.tid);
	m->request_id = uw_be32(octets + sizeof(h));
	if (m->kind == MAD_SIDR_REQ)
		m->kind = decode_req(octets, &m->req);
	else if (m->kind == MAD_SIDR_REP)
		m->kind = decode_rep(octets, &m->rep);
	return m->kind;
}
