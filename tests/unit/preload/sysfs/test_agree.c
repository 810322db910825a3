/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the device says of itself: files in /sys, RDMA netlink and verbs must agree. Run once for
 * each identity (UWARP_IDENTITY), and with another name than uwarp0 (UWARP_NAME).
 */
#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <net/if.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdbool.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>
#include <infiniband/verbs.h>
#include <linux/netlink.h>
#include <rdma/rdma_netlink.h>

static const char *name_wanted(void)
{
	const char *given = getenv("UWARP_NAME");

	return given ? given : "uwarp0";
}

/* The path of a file of the device. */
static const char *in_sys(char path[256], const char *name)
{
	snprintf(path, 256, "/sys/class/infiniband/%s/%s", name_wanted(), name);
	return path;
}

/* The file's text without the end of its line; "" if there is none. */
static const char *text(const char *name)
{
	static char buf[8][128];
	static unsigned at;
	char path[256], *to = buf[at++ % 8];
	FILE *f;

	f = fopen(in_sys(path, name), "re");
	if (!f || !fgets(to, sizeof(buf[0]), f))
		*to = '\0';
	to[strcspn(to, "\n")] = '\0';
	if (f)
		fclose(f);
	return to;
}

/* ---- netlink ---------------------------------------------------------------------------- */

struct answer {
	_Alignas(struct nlmsghdr) uint8_t buf[4096];
	size_t len;
};

static void ask(unsigned op, struct answer *a)
{
	struct sockaddr_nl self = { .nl_family = AF_NETLINK };
	struct {
		struct nlmsghdr hdr;
		struct nlattr attr;
		uint32_t index;
		struct nlattr attr2;
		uint32_t port;
	} req = { { .nlmsg_len = sizeof(req),
		    .nlmsg_type = (uint16_t)RDMA_NL_GET_TYPE(RDMA_NL_NLDEV, op),
		    .nlmsg_flags = NLM_F_REQUEST },
		  { .nla_len = 8, .nla_type = RDMA_NLDEV_ATTR_DEV_INDEX },
		  30071,
		  { .nla_len = 8, .nla_type = RDMA_NLDEV_ATTR_PORT_INDEX },
		  1 };
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_RDMA);
	ssize_t n;

	assert_int_equal(bind(fd, (struct sockaddr *)&self, sizeof(self)), 0);
	assert_int_equal(sendto(fd, &req, sizeof(req), 0, NULL, 0), sizeof(req));
	n = recv(fd, a->buf, sizeof(a->buf), MSG_DONTWAIT);
	assert_true(n > NLMSG_HDRLEN);
	a->len = (size_t)n;
	close(fd);
}

static const void *attr(const struct answer *a, unsigned type)
{
	struct nlattr at;

	for (size_t off = NLMSG_HDRLEN; off + sizeof(at) <= a->len; off += NLA_ALIGN(at.nla_len)) {
		memcpy(&at, a->buf + off, sizeof(at));
		if (at.nla_type == type)
			return a->buf + off + NLA_HDRLEN;
	}
	fail_msg("no attribute %u", type);
	return NULL;
}

static unsigned u8(const struct answer *a, unsigned type)
{
	return *(const uint8_t *)attr(a, type);
}

/* ---- the comparison --------------------------------------------------------------------- */

static struct ibv_context *ctx;

static int open_device(void **state)
{
	struct ibv_device **list = ibv_get_device_list(NULL);

	(void)state;
	if (!list || !list[0])
		return -1;
	ctx = ibv_open_device(list[0]);
	ibv_free_device_list(list);
	return ctx ? 0 : -1;
}

static int close_device(void **state)
{
	(void)state;
	return ibv_close_device(ctx);
}

static uint64_t guid_of(const char *s)
{
	unsigned g[4];

	assert_int_equal(sscanf(s, "%x:%x:%x:%x", &g[0], &g[1], &g[2], &g[3]), 4);
	return (uint64_t)g[0] << 48 | (uint64_t)g[1] << 32 | (uint64_t)g[2] << 16 | g[3];
}

static void the_device(void **state)
{
	struct ibv_device_attr v;
	struct answer nl;
	uint64_t guid;

	(void)state;
	ask(RDMA_NLDEV_CMD_GET, &nl);
	assert_int_equal(ibv_query_device(ctx, &v), 0);
	memcpy(&guid, attr(&nl, RDMA_NLDEV_ATTR_NODE_GUID), sizeof(guid));
	assert_true(guid == be64toh(v.node_guid));
	assert_true(guid == be64toh(ibv_get_device_guid(ctx->device)));
	assert_true(guid == guid_of(text("node_guid")));
	assert_true(guid == guid_of(text("sys_image_guid")));
	assert_string_equal(text("fw_ver"), v.fw_ver);
	assert_string_equal(attr(&nl, RDMA_NLDEV_ATTR_FW_VERSION), v.fw_ver);
	assert_string_equal(text("hca_type"), "uwarp");
	assert_string_not_equal(text("hw_rev"), "");
	assert_int_equal(strtoul(text("hw_rev"), NULL, 16), v.hw_ver);
	assert_int_equal(atoi(text("node_type")), ctx->device->node_type);
	assert_int_equal(u8(&nl, RDMA_NLDEV_ATTR_DEV_NODE_TYPE), ctx->device->node_type);
}

static unsigned files_in(const char *name)
{
	char path[256];
	struct dirent *e;
	unsigned n = 0;
	DIR *d;

	d = opendir(in_sys(path, name));
	while (d && (e = readdir(d)))
		n += e->d_name[0] != '.';
	if (d)
		closedir(d);
	return n;
}

static void the_port(void **state)
{
	static const unsigned lanes[] = { [1] = 1, [2] = 4 };
	const char *identity = getenv("UWARP_IDENTITY");
	bool infiniband = identity && !strcmp(identity, "ib");
	struct ibv_port_attr v;
	struct answer nl;
	double rate;
	unsigned x;
	__be16 pkey;

	(void)state;
	ask(RDMA_NLDEV_CMD_PORT_GET, &nl);
	assert_int_equal(ibv_query_port(ctx, 1, &v), 0);
	assert_int_equal(atoi(text("ports/1/state")), v.state);
	assert_int_equal(u8(&nl, RDMA_NLDEV_ATTR_PORT_STATE), v.state);
	assert_int_equal(atoi(text("ports/1/phys_state")), v.phys_state);
	assert_int_equal(u8(&nl, RDMA_NLDEV_ATTR_PORT_PHYS_STATE), v.phys_state);
	assert_string_equal(text("ports/1/link_layer"), infiniband ? "InfiniBand" : "Ethernet");
	assert_int_equal(v.link_layer,
			 infiniband ? IBV_LINK_LAYER_INFINIBAND : IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(strtoul(text("ports/1/lid"), NULL, 16), v.lid);
	assert_int_equal(strtoul(text("ports/1/cap_mask"), NULL, 16), v.port_cap_flags);
	assert_int_equal(files_in("ports/1/gids"), v.gid_tbl_len);
	assert_int_equal(files_in("ports/1/pkeys"), v.pkey_tbl_len);
	if (v.pkey_tbl_len) {
		assert_int_equal(ibv_query_pkey(ctx, 1, 0, &pkey), 0);
		assert_int_equal(strtoul(text("ports/1/pkeys/0"), NULL, 16), be16toh(pkey));
	}
	assert_int_equal(sscanf(text("ports/1/rate"), "%lf Gb/sec (%uX", &rate, &x), 2);
	assert_int_equal(x, lanes[v.active_width]);
	assert_int_equal((int)rate, 10); /* as the fake engine's link */
}

static void gid_text(const union ibv_gid *g, char out[40])
{
	for (int i = 0; i < 16; i += 2)
		out += sprintf(out, "%s%02x%02x", i ? ":" : "", g->raw[i], g->raw[i + 1]);
}

static void gid(int i)
{
	static const char *const types[] = { "IB/RoCE v1", "IB/RoCE v1", "RoCE v2" };
	struct ibv_gid_entry e = { 0 };
	union ibv_gid g;
	struct answer nl;
	char file[64], want[40], ifname[IF_NAMESIZE];
	int empty = ibv_query_gid_ex(ctx, 1, (uint32_t)i, &e, 0);

	assert_int_equal(ibv_query_gid(ctx, 1, i, &g), 0);
	gid_text(&g, want);
	snprintf(file, sizeof(file), "ports/1/gids/%d", i);
	assert_string_equal(text(file), want);
	snprintf(file, sizeof(file), "ports/1/gid_attrs/types/%d", i);
	if (empty) {
		assert_string_equal(text(file), "");
		return;
	}
	assert_memory_equal(&e.gid, &g, sizeof(g));
	assert_string_equal(text(file), types[e.gid_type]);
	assert_non_null(if_indextoname(e.ndev_ifindex, ifname));
	snprintf(file, sizeof(file), "ports/1/gid_attrs/ndevs/%d", i);
	assert_string_equal(text(file), ifname);
	ask(RDMA_NLDEV_CMD_PORT_GET, &nl);
	assert_string_equal(attr(&nl, RDMA_NLDEV_ATTR_NDEV_NAME), ifname);
}

static void the_gids(void **state)
{
	struct ibv_gid_entry table[16];
	struct ibv_port_attr v;
	ssize_t n = ibv_query_gid_table(ctx, table, 16, 0);
	int full = 0;

	(void)state;
	assert_int_equal(ibv_query_port(ctx, 1, &v), 0);
	for (int i = 0; i < v.gid_tbl_len; i++) {
		struct ibv_gid_entry e;

		gid(i);
		full += !ibv_query_gid_ex(ctx, 1, (uint32_t)i, &e, 0);
	}
	assert_int_equal(n, full);
}

/* rdma-core's own tests find a device's addresses by this folder. */
static void the_interface(void **state)
{
	char path[256], name[64] = "device/net/", ifname[IF_NAMESIZE];
	struct ibv_gid_entry e;

	(void)state;
	assert_int_equal(ibv_query_gid_ex(ctx, 1, 0, &e, 0), 0);
	strcat(name, if_indextoname(e.ndev_ifindex, ifname));
	assert_int_equal(access(in_sys(path, name), F_OK), 0);
}

static void the_name(void **state)
{
	const char *const folders[] = {
		"/sys/class/infiniband", "/sys/class/infiniband_verbs/uverbs30071/device/infiniband"
	};
	struct answer nl;

	(void)state;
	ask(RDMA_NLDEV_CMD_GET, &nl);
	assert_string_equal(attr(&nl, RDMA_NLDEV_ATTR_DEV_NAME), name_wanted());
	assert_string_equal(ibv_get_device_name(ctx->device), name_wanted());
	assert_string_equal(text("node_desc"), name_wanted());
	for (int i = 0; i < 2; i++) {
		DIR *d = opendir(folders[i]);
		struct dirent *e;
		unsigned n = 0;

		while (d && (e = readdir(d)))
			n += !strcmp(e->d_name, name_wanted()) || e->d_name[0] == '.';
		assert_int_equal(n, 3);
		closedir(d);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_device), cmocka_unit_test(the_port),
		cmocka_unit_test(the_gids),   cmocka_unit_test(the_interface),
		cmocka_unit_test(the_name),
	};

	return cmocka_run_group_tests(tests, open_device, close_device);
}
