/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames as pbufs. The octets of a frame may lie in other memory than the frame, behind it or in
 * front of it: where the kernel maps memory is chance. */
#include "io/lwip/frame.h"

#include "uwtest.h"

enum { HEADROOM = 128, ROOM = 2048, PAYLOAD = 100, HEADERS = 54 };

/* Octets, a frame, octets. */
struct memory {
	uint8_t below[ROOM];
	struct io_frame f;
	uint8_t above[ROOM];
};

static void takes_headers(struct memory *m, uint8_t *buf)
{
	struct pbuf *p;

	m->f = (struct io_frame){
		.buf = buf, .room = ROOM, .data = buf + HEADROOM, .len = PAYLOAD
	};
	p = edge_wrap_tx(&m->f);
	assert_true(edge_is_tx(p));
	assert_ptr_equal(edge_frame(p), &m->f);
	assert_int_equal(pbuf_add_header(p, HEADERS), 0);
	assert_ptr_equal(p->payload, buf + HEADROOM - HEADERS);
	assert_int_equal(p->len, PAYLOAD + HEADERS);
	assert_int_equal(p->tot_len, PAYLOAD + HEADERS);
	assert_int_equal(pbuf_remove_header(p, HEADERS), 0);
	assert_ptr_equal(p->payload, buf + HEADROOM);
}

static void headers_fit_in_front_of_octets_anywhere(void **state)
{
	static struct memory m;

	(void)state;
	takes_headers(&m, m.above);
	takes_headers(&m, m.below);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(headers_fit_in_front_of_octets_anywhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
