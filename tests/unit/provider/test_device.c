/* SPDX-License-Identifier: BSD-3-Clause */
/* Matching, device and port attributes, protection domains, memory regions. */
#include <endian.h>
#include <netinet/in.h>
#include <string.h>

#include "facts.h"
#include "fixture.h"

static void matches_by_name(void **state)
{
	struct verbs_sysfs_dev dev = { .ibdev_name = "mlx5_0" };

	(void)state;
	assert_false(uwarp_device_ops.match_device(&dev));
	strcpy(dev.ibdev_name, "uwarp12"); /* nor part of a name */
	assert_false(uwarp_device_ops.match_device(&dev));
	strcpy(dev.ibdev_name, uwarp_device_name());
	assert_true(uwarp_device_ops.match_device(&dev));
	/* libibverbs walks the table for devices that have a driver id */
	assert_non_null(uwarp_device_ops.match_table);
	assert_int_equal(uwarp_device_ops.match_table[0].kind, 0);
}

static void device_attributes(void **state)
{
	struct world *w = *state;
	struct ibv_device_attr_ex attr;

	memset(&attr, 0xee, sizeof(attr));
	assert_int_equal(ibv_query_device_ex(w->ctx, NULL, &attr), 0);
	assert_true(attr.orig_attr.node_guid == htobe64(0x0211223344556677));
	assert_true(attr.orig_attr.sys_image_guid == attr.orig_attr.node_guid);
	assert_string_equal(attr.orig_attr.fw_ver, "7.8.9");
	assert_int_equal(attr.orig_attr.vendor_id, 0x027577);
	assert_int_equal(attr.orig_attr.max_qp, 100);
	assert_int_equal(attr.orig_attr.max_qp_wr, 200);
	assert_int_equal(attr.orig_attr.max_sge, FAKE_MAX_SGE);
	assert_int_equal(attr.orig_attr.max_cq, 300);
	assert_int_equal(attr.orig_attr.max_cqe, FAKE_MAX);
	assert_int_equal(attr.orig_attr.max_mr, 400);
	assert_int_equal(attr.orig_attr.max_pd, 500);
	assert_int_equal(attr.orig_attr.max_srq, 600);
	assert_int_equal(attr.orig_attr.max_srq_wr, 700);
	assert_int_equal(attr.orig_attr.max_qp_rd_atom, 128);
	assert_int_equal(attr.orig_attr.max_qp_init_rd_atom, 128);
	assert_int_equal(attr.orig_attr.atomic_cap, IBV_ATOMIC_GLOB);
	assert_int_equal(attr.orig_attr.phys_port_cnt, 1);
	assert_int_equal(attr.phys_port_cnt_ex, 1);
	assert_int_equal(attr.pci_atomic_caps.fetch_add, IBV_PCI_ATOMIC_OPERATION_8_BYTE_SIZE_SUP);
	assert_int_equal(attr.pci_atomic_caps.swap, 0);
	assert_int_equal(attr.odp_caps.general_caps, IBV_ODP_SUPPORT | IBV_ODP_SUPPORT_IMPLICIT);
	assert_int_equal(attr.hca_core_clock, 1000000);
	assert_true(attr.completion_timestamp_mask == UINT64_MAX);
	assert_int_equal(attr.cq_mod_caps.max_cq_period, UINT16_MAX);
}

static void plain_query_stays_in_its_structure(void **state)
{
	struct world *w = *state;
	struct {
		struct ibv_device_attr attr;
		uint8_t after[64];
	} room;

	memset(&room, 0xee, sizeof(room));
	assert_int_equal(ibv_query_device(w->ctx, &room.attr), 0);
	assert_int_equal(room.attr.max_qp, 100);
	for (size_t i = 0; i < sizeof(room.after); i++)
		assert_int_equal(room.after[i], 0xee);
}

static void huge_limits_fit_an_int(void **state)
{
	struct world *w = *state;
	struct ibv_device_attr attr;

	fake.attr.max_mr = UINT32_MAX;
	fake.attr.max_qp = fake.attr.max_rd_atom = 1u << 17;
	assert_int_equal(ibv_query_device(w->ctx, &attr), 0);
	assert_int_equal(attr.max_mr, INT32_MAX);
	assert_int_equal(attr.max_res_rd_atom, INT32_MAX);
}

static void no_engine_is_an_error(void **state)
{
	struct world *w = *state;
	struct ibv_device_attr attr;
	struct ibv_port_attr port;

	fake_host.no_engine = true;
	assert_int_equal(ibv_query_device(w->ctx, &attr), ENODEV);
	assert_int_equal(ibv_query_port(w->ctx, 1, &port), ENODEV);
	errno = 0;
	assert_null(ibv_alloc_pd(w->ctx));
	assert_int_equal(errno, ENODEV);
	errno = 0;
	assert_null(ibv_create_cq(w->ctx, 1, NULL, NULL, 0));
	assert_int_equal(errno, ENODEV);
}

static void port_attributes(void **state)
{
	struct world *w = *state;
	struct ibv_port_attr port;

	assert_int_equal(w->ctx->device->transport_type, IBV_TRANSPORT_IWARP);
	assert_int_equal(ibv_query_port(w->ctx, 2, &port), EINVAL);
	assert_int_equal(ibv_query_port(w->ctx, 0, &port), EINVAL);
	assert_int_equal(ibv_query_port(w->ctx, 1, &port), 0);
	assert_int_equal(port.state, IBV_PORT_ACTIVE);
	assert_int_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(port.phys_state, 5);
	assert_int_equal(port.gid_tbl_len, 2);
	assert_int_equal(port.pkey_tbl_len, 0);
}

/* InfiniBand's port has a LID, and needs no GRH; RoCE's has none, and does. */
static void port_of_each_kind(void **state)
{
	static const struct {
		bool roce, infiniband;
		uint8_t link_layer;
		uint16_t lid;
		unsigned flags, gids;
	} rows[] = {
		{ false, false, IBV_LINK_LAYER_ETHERNET, 0x0506, 0, 2 },
		{ true, false, IBV_LINK_LAYER_ETHERNET, 0, IBV_QPF_GRH_REQUIRED, 4 },
		{ true, true, IBV_LINK_LAYER_INFINIBAND, 0x0506, 0, 2 },
	};
	struct world *w = *state;
	struct ibv_port_attr port;

	*(struct sockaddr_in *)&fake.attr.addr =
		(struct sockaddr_in){ .sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000506) };
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		fake.attr.roce = rows[i].roce;
		fake.attr.infiniband = rows[i].infiniband;
		assert_int_equal(ibv_query_port(w->ctx, 1, &port), 0);
		assert_int_equal(port.link_layer, rows[i].link_layer);
		assert_int_equal(port.lid, rows[i].lid);
		assert_int_equal(port.flags, rows[i].flags);
		assert_int_equal(port.pkey_tbl_len, rows[i].roce);
		assert_int_equal(port.gid_tbl_len, rows[i].gids);
	}
}

/* A LID stands for an address, and a uwarpd alone may know that: its client joins. */
static void a_lid_that_is_unknown_starts_the_link(void **state)
{
	const struct uw_engine *e = uwarp_provider_host()->engine();
	struct world *w = *state;
	struct ibv_port_attr port;

	fake.attr.addr_is_unknown = fake.attr.roce = true;
	assert_int_equal(ibv_query_port(w->ctx, 1, &port), 0);
	assert_false(e->started); /* it has none */
	fake.attr.infiniband = true;
	assert_int_equal(ibv_query_port(w->ctx, 1, &port), 0);
	assert_true(e->started);
}

/* As Linux's drivers have it: 80 octets of headers. */
static void port_mtu_is_what_fits_in_a_packet(void **state)
{
	static const struct {
		uint32_t mtu;
		enum ibv_mtu code;
	} rows[] = {
		{ 0, IBV_MTU_256 },	{ 591, IBV_MTU_256 },	{ 592, IBV_MTU_512 },
		{ 1103, IBV_MTU_512 },	{ 1104, IBV_MTU_1024 }, { 1500, IBV_MTU_1024 },
		{ 2128, IBV_MTU_2048 }, { 4175, IBV_MTU_2048 }, { 4176, IBV_MTU_4096 },
		{ 9000, IBV_MTU_4096 },
	};
	struct world *w = *state;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_port_attr port;

		fake.attr.mtu = rows[i].mtu;
		assert_int_equal(ibv_query_port(w->ctx, 1, &port), 0);
		assert_int_equal(port.active_mtu, rows[i].code);
	}
}

static void port_speed_is_not_faster_than_the_link(void **state)
{
	static const struct {
		uint64_t mbps;
		uint8_t width, speed;
		unsigned number; /* 100 Mb/s */
	} rows[] = {
		{ 0, 1, 1, 25 },	  { 1000, 1, 1, 25 },	    { 10000, 1, 8, 100 },
		{ 24999, 1, 8, 100 },	  { 25000, 1, 32, 250 },    { 40000, 2, 8, 400 },
		{ 50000, 1, 64, 500 },	  { 100000, 2, 32, 1000 },  { 200000, 2, 64, 2000 },
		{ 400000, 2, 128, 4000 }, { 800000, 2, 128, 4000 },
	};
	struct world *w = *state;
	uint64_t none;

	assert_int_equal(uwarp_query_port_speed(w->ctx, 2, &none), EINVAL);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct ibv_port_attr port;
		uint64_t speed;

		fake.attr.link_bps = rows[i].mbps * 1000000;
		assert_int_equal(ibv_query_port(w->ctx, 1, &port), 0);
		assert_int_equal(port.active_width, rows[i].width);
		assert_int_equal(port.active_speed, rows[i].speed);
		assert_int_equal(uwarp_query_port_speed(w->ctx, 1, &speed), 0);
		assert_int_equal(speed, rows[i].number);
	}
}

#define T(f) cmocka_unit_test_setup_teardown(f, world_up, world_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(matches_by_name),
		T(device_attributes),
		T(plain_query_stays_in_its_structure),
		T(huge_limits_fit_an_int),
		T(no_engine_is_an_error),
		T(port_attributes),
		T(port_of_each_kind),
		T(a_lid_that_is_unknown_starts_the_link),
		T(port_mtu_is_what_fits_in_a_packet),
		T(port_speed_is_not_faster_than_the_link),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
