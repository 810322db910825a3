/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment: any values in any of uwarp's variables give a configuration whose fields are in
 * range and whose strings end, or -EINVAL and one line that names a variable. */
#include <errno.h>

#include "fuzz.h"
#include "say.h"
#include "uwarp/uwarp.h"

static const char *const names[] = {
	"UWARP_LINK",
	"UWARP_IP",
	"UWARP_DIR",
	"UWARP_ADDR_FD",
	"UWARP_MTU",
	"UWARP_MPA_REV",
	"UWARP_IRD",
	"UWARP_ORD",
	"UWARP_CRC",
	"UWARP_P2P",
	"UWARP_CONNECT_MS",
	"UWARP_VERBOSE",
	"UWARP_SPEAK_FIRST_MS",
	"UWARP_IP_AUTO",
	"UWARP_LINK_RATE",
	"UWARP_RNR_MS",
	"UWARP_KEEPALIVE_MS",
	"UWARP_SILENT_PER_HOST",
	"UWARP_CONNS_PER_HOST",
	"UWARP_DAD_MS",
	"UWARP_VLAN",
	"UWARP_RC_WAIT_MS",
	"UWARP_IDENTITY",
	"UWARP_THREADS",
	"UWARP_TSO",
	"UWARP_CC",
	"UWARP_ECN",
	"UWARP_IMPAIR",
	"UWARPD",
};

static void check(const struct uw_config *c)
{
	CHECK(memchr(c->link, 0, sizeof(c->link)) && memchr(c->ip, 0, sizeof(c->ip)));
	CHECK(memchr(c->run_dir, 0, sizeof(c->run_dir)));
	CHECK(!c->mtu || (c->mtu >= 576 && c->mtu <= 65521));
	CHECK(c->mpa_rev == 1 || c->mpa_rev == 2);
	CHECK(c->ird >= 1 && c->ird <= 0x3ffe && c->ord >= 1 && c->ord <= 0x3ffe);
	CHECK(c->connect_ms >= 10 && c->connect_ms <= 600000);
	CHECK(c->threads <= UW_THREADS_C3 && c->tso <= UW_TSO_OFF);
	CHECK(c->speak_first_ms <= 600000 && c->addr_fd >= -1);
}

/* An engine that is asked what it is, without a link. */
static void query(const struct uw_config *c)
{
	struct uw_device_attr a;
	struct uw_engine *e;

	CHECK(!uw_engine_open(c, &e));
	uw_engine_query(e, &a);
	CHECK(a.guid && a.mulpdu >= 128 && memchr(a.fw_ver, 0, sizeof(a.fw_ver)));
	uw_engine_close(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct feed f = { data, size };
	struct uw_config c;
	unsigned said;
	int err;

	for (unsigned i = 0; i < COUNT(names); i++)
		unsetenv(names[i]);
	while (f.n) {
		const char *name = names[feed_below(&f, COUNT(names))];
		const void *end = memchr(f.p, 0, f.n);
		size_t n = end ? (size_t)((const uint8_t *)end - f.p) + 1 : f.n;
		struct uw_span s = feed_span(&f, n);
		char *value = strndup((const char *)s.p, s.n);

		if (value)
			setenv(name, value, 1);
		free(value);
	}
	said = fuzz_said;
	memset(&c, 0xee, sizeof(c));
	err = uw_config_from_env(&c);
	CHECK(!err || err == -EINVAL);
	CHECK(fuzz_said - said == (err ? 1 : 0));
	if (!err) {
		check(&c);
		query(&c);
	}
	return 0;
}
