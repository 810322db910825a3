/* SPDX-License-Identifier: BSD-3-Clause */
/* Completion channels as libibverbs makes them, and their events. */
#ifndef UWARP_TEST_CHANNELS_H
#define UWARP_TEST_CHANNELS_H

#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "host.h"
#include "rdma_cm/abi.h"

static const struct uwarp_host *host(void)
{
	__typeof__(uwarp_host) *get;

	*(void **)&get = dlsym(RTLD_DEFAULT, "uwarp_host");
	assert_non_null(get);
	return get(UWARP_HOST_VERSION);
}

static int new_channel(void)
{
	struct ib_uverbs_create_comp_channel_resp resp = { .fd = ~0u };
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_create_comp_channel cmd;
	} in = { .hdr = { .command = IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL,
			  .in_words = sizeof(in) / 4,
			  .out_words = 1 },
		 .cmd = { .response = (uintptr_t)&resp } };
	int fd = open("/dev/infiniband/uverbs30071", O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, &in, sizeof(in)), sizeof(in));
	close(fd);
	return (int)resp.fd;
}

static inline void post_of(int channel, uint64_t cq)
{
	struct ib_uverbs_comp_event_desc d = { .cq_handle = cq };
	struct channel *c = host()->channel_hold(channel);

	assert_non_null(c);
	assert_int_equal(host()->channel_post(c, &d, sizeof(d)), 0);
	host()->channel_let_go(c);
}

static inline void post(int channel)
{
	post_of(channel, 1);
}

static inline void take(int channel)
{
	struct ib_uverbs_comp_event_desc d;

	assert_int_equal(read(channel, &d, sizeof(d)), sizeof(d));
}

#endif
