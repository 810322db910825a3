/* SPDX-License-Identifier: BSD-3-Clause */
/* The uverbs node, completion channels, and what the provider gets from the shim. */
#include "rdma_cm/abi.h"

#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/mman.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include "host.h"

static int node(void)
{
	int fd = open("/dev/infiniband/uverbs30071", O_RDWR | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static const struct uwarp_host *host(void)
{
	__typeof__(uwarp_host) *get;

	*(void **)&get = dlsym(RTLD_DEFAULT, "uwarp_host");
	assert_non_null(get);
	assert_null(get(UWARP_HOST_VERSION + 1));
	return get(UWARP_HOST_VERSION);
}

/* ---- GIDs ------------------------------------------------------------------------------- */

#define ATTRS_MAX 4

struct request {
	union {
		struct ib_uverbs_ioctl_hdr hdr;
		uint8_t room[sizeof(struct ib_uverbs_ioctl_hdr) +
			     ATTRS_MAX * sizeof(struct ib_uverbs_attr)];
	};
};

static void add(struct request *r, unsigned id, unsigned len, uint64_t data)
{
	struct ib_uverbs_attr *a = &r->hdr.attrs[r->hdr.num_attrs++];

	*a = (struct ib_uverbs_attr){ .attr_id = (uint16_t)id, .len = (uint16_t)len, .data = data };
	r->hdr.length = (uint16_t)(sizeof(r->hdr) + r->hdr.num_attrs * sizeof(*a));
}

static struct request method(unsigned id)
{
	return (struct request){ .hdr = { .object_id = UVERBS_OBJECT_DEVICE,
					  .method_id = (uint16_t)id } };
}

static int ask(int fd, struct request *r)
{
	return ioctl(fd, RDMA_VERBS_IOCTL, &r->hdr) ? -errno : 0;
}

static int gid_entry(int fd, unsigned port, unsigned index, struct ib_uverbs_gid_entry *e)
{
	struct request r = method(UVERBS_METHOD_QUERY_GID_ENTRY);

	add(&r, UVERBS_ATTR_QUERY_GID_ENTRY_PORT, 0, port);
	add(&r, UVERBS_ATTR_QUERY_GID_ENTRY_GID_INDEX, 0, index);
	add(&r, UVERBS_ATTR_QUERY_GID_ENTRY_FLAGS, 4, 0);
	add(&r, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, sizeof(*e), (uintptr_t)e);
	return ask(fd, &r);
}

/* As RoCEv2 makes them of the addresses, 127.7.0.1 and fd00::127.7.0.1. */
static void check_gid(const struct ib_uverbs_gid_entry *e, unsigned index)
{
	uint64_t words[2];

	memcpy(words, e->gid, sizeof(words));
	assert_int_equal(be64toh(words[0]), index ? 0xfd00000000000000 : 0);
	assert_int_equal(be64toh(words[1]), index ? 0x000000007f070001 : 0x0000ffff7f070001);
	assert_int_equal(e->port_num, 1);
	assert_int_equal(e->gid_index, index);
}

static void each_gid(void **state)
{
	struct ib_uverbs_gid_entry e;
	int fd = node();

	(void)state;
	memset(&e, 0xa5, sizeof(e));
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(gid_entry(fd, 1, i, &e), 0);
		check_gid(&e, i);
	}
	assert_int_equal(gid_entry(fd, 1, 2, &e), -EINVAL);
	assert_int_equal(gid_entry(fd, 1, UINT32_MAX, &e), -EINVAL);
	assert_int_equal(gid_entry(fd, 2, 0, &e), -EINVAL);
	close(fd);
}

static int gid_table(int fd, void *entries, size_t entry, size_t room, uint64_t *n)
{
	struct request r = method(UVERBS_METHOD_QUERY_GID_TABLE);

	add(&r, UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, 0, entry);
	add(&r, UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 4, 0);
	add(&r, UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, (unsigned)(entry * room),
	    (uintptr_t)entries);
	add(&r, UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, sizeof(*n), (uintptr_t)n);
	return ask(fd, &r);
}

static void all_gids(void **state)
{
	struct {
		struct ib_uverbs_gid_entry e;
		uint8_t newer[8];
	} larger[2];
	struct ib_uverbs_gid_entry e[3];
	uint64_t n = 99;
	int fd = node();

	(void)state;
	memset(e, 0xa5, sizeof(e));
	assert_int_equal(gid_table(fd, e, sizeof(e[0]), 3, &n), 0);
	assert_int_equal(n, 2);
	check_gid(&e[0], 0);
	check_gid(&e[1], 1);
	assert_int_equal(e[2].port_num, 0xa5a5a5a5); /* not touched */
	memset(larger, 0xa5, sizeof(larger));
	assert_int_equal(gid_table(fd, larger, sizeof(larger[0]), 2, &n), 0);
	check_gid(&larger[0].e, 0);
	check_gid(&larger[1].e, 1);
	assert_int_equal(larger[0].newer[0], 0); /* a field we do not know reads as zero */
	assert_int_equal(gid_table(fd, e, sizeof(e[0]), 1, &n), -EINVAL); /* no room for all */
	assert_int_equal(gid_table(fd, e, 0, 3, &n), -EINVAL);
	assert_int_equal(gid_table(fd, e, sizeof(e[0]), 0, &n), -EINVAL);
	close(fd);
}

static void other_methods(void **state)
{
	struct request r = method(UVERBS_METHOD_INVOKE_WRITE);
	struct ib_uverbs_gid_entry e;
	int fd = node(), fl = 1;

	(void)state;
	add(&r, UVERBS_ATTR_WRITE_CMD, 0, 3);
	assert_int_equal(ask(fd, &r), -EPROTONOSUPPORT); /* libibverbs then uses write() */
	r.hdr.length++;
	assert_int_equal(ask(fd, &r), -EINVAL);
	assert_int_equal(ioctl(fd, FIONBIO, &fl), -1);
	assert_int_equal(errno, ENOTTY);
	assert_int_equal(ioctl(0x7fff, RDMA_VERBS_IOCTL, &r.hdr), -1);
	assert_int_equal(errno, EBADF);
	r = method(UVERBS_METHOD_QUERY_GID_ENTRY);
	add(&r, UVERBS_ATTR_QUERY_GID_ENTRY_RESP_ENTRY, sizeof(e), (uintptr_t)&e);
	assert_int_equal(ask(fd, &r), -EINVAL);
	close(fd);
}

/* ---- completion channels ---------------------------------------------------------------- */

static int create(int fd, unsigned command, unsigned out_words, size_t len, int *channel)
{
	struct ib_uverbs_create_comp_channel_resp resp = { .fd = ~0u };
	struct {
		struct ib_uverbs_cmd_hdr hdr;
		struct ib_uverbs_create_comp_channel cmd;
	} in = { .hdr = { .command = command } };

	in.hdr.in_words = (uint16_t)(len / 4);
	in.hdr.out_words = (uint16_t)out_words;
	in.cmd.response = (uintptr_t)&resp;
	if (write(fd, &in, len) < 0)
		return -errno;
	*channel = (int)resp.fd;
	return 0;
}

static int new_channel(void)
{
	int fd = node(), channel = -1;

	assert_int_equal(create(fd, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, 1, 16, &channel), 0);
	assert_true(channel >= 0);
	close(fd);
	return channel;
}

static void creating(void **state)
{
	const unsigned cmd = IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL;
	int fd = node(), c = -1;

	(void)state;
	assert_int_equal(create(fd, cmd, 1, 8, &c), -EINVAL);
	assert_int_equal(create(fd, cmd, 1, 4, &c), -EINVAL);
	assert_int_equal(create(fd, cmd, 0, 16, &c), -ENOSPC);
	assert_int_equal(create(fd, IB_USER_VERBS_CMD_CREATE_CQ, 1, 16, &c), -EOPNOTSUPP);
	assert_int_equal(create(fd, cmd, 1, 16, &c), 0);
	assert_int_equal(fcntl(c, F_GETFD), FD_CLOEXEC);
	close(c);
	close(fd);
}

static bool readable(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

static int post_to(struct channel *c, uint64_t cq)
{
	struct ib_uverbs_comp_event_desc d = { .cq_handle = cq };

	return host()->channel_post(c, &d, sizeof(d));
}

static int post(int channel, uint64_t cq)
{
	struct channel *c = host()->channel_hold(channel);
	int err = c ? post_to(c, cq) : -EBADF;

	if (c)
		host()->channel_let_go(c);
	return err;
}

static int drop(int channel, uint64_t cq)
{
	struct channel *c = host()->channel_hold(channel);
	int n = host()->channel_drop(c, cq);

	host()->channel_let_go(c);
	return n;
}

static uint64_t next(int channel)
{
	struct ib_uverbs_comp_event_desc d;

	assert_int_equal(read(channel, &d, sizeof(d)), sizeof(d)); /* as ibv_get_cq_event() */
	return d.cq_handle;
}

static void posting(void **state)
{
	int c = new_channel(), other = new_channel();

	(void)state;
	assert_false(readable(c));
	for (uint64_t i = 1; i <= 3; i++)
		assert_int_equal(post(c, i), 0);
	assert_true(readable(c));
	assert_false(readable(other));
	for (uint64_t i = 1; i <= 3; i++)
		assert_int_equal(next(c), i);
	assert_false(readable(c));
	close(c);
	assert_int_equal(post(c, 1), -EBADF);
	assert_int_equal(post(other, 1), 0);
	assert_int_equal(post(1, 1), -EBADF);
	assert_int_equal(post(-1, 1), -EBADF);
	close(other);
}

static void dropping(void **state)
{
	static const uint64_t posted[] = { 1, 2, 1, 3, 1, 2 };
	int c = new_channel();

	(void)state;
	for (size_t i = 0; i < 6; i++)
		assert_int_equal(post(c, posted[i]), 0);
	assert_int_equal(drop(c, 1), 3);
	assert_int_equal(drop(c, 1), 0);
	assert_int_equal(next(c), 2);
	assert_int_equal(next(c), 3);
	assert_int_equal(next(c), 2);
	assert_false(readable(c));
	close(c);
}

/* More than a socket holds: posts never block and nothing is lost. */
static void flooding(void **state)
{
	const uint64_t many = 70000;
	int c = new_channel();

	(void)state;
	for (uint64_t i = 0; i < many; i++)
		assert_int_equal(post(c, i % 7), 0);
	assert_int_equal(drop(c, 3), many / 7);
	for (uint64_t i = 0; i < many; i++)
		if (i % 7 != 3)
			assert_int_equal(next(c), i % 7);
	assert_false(readable(c));
	assert_int_equal(post(c, 7), 0);
	assert_int_equal(next(c), 7);
	close(c);
}

/* The helper that still had something to deliver finds that there is nobody. */
static void closed_while_full(void **state)
{
	int c = new_channel();
	struct channel *held = host()->channel_hold(c);

	(void)state;
	for (int i = 0; i < 100000; i++)
		assert_int_equal(post_to(held, 1), 0);
	close(c);
	assert_int_equal(post_to(held, 1), -EBADF);
	host()->channel_let_go(held);
}

/* The program may give it another number, and the old one to a channel that it makes later. */
static void a_held_one_under_another_number(void **state)
{
	int c = new_channel(), copy = fcntl(c, F_DUPFD_CLOEXEC, 100), other;
	struct channel *held = host()->channel_hold(c);

	(void)state;
	close(c);
	other = new_channel();
	assert_int_equal(other, c);
	assert_int_equal(post_to(held, 1), 0);
	assert_int_equal(post_to(held, 2), 0);
	assert_false(readable(other));
	assert_int_equal(next(copy), 1);
	assert_int_equal(host()->channel_drop(held, 2), 1);
	assert_false(readable(copy));
	close(copy);
	host()->channel_let_go(held);
	close(other);
}

/* A number that only the kernel knows of: a duplicate by a raw call, one that came over a socket
 * (SCM_RIGHTS), a fixed file of io_uring. The channel is open as long as the file is, and a CQ's
 * events go there. */
static void a_held_one_under_a_number_unseen(void **state)
{
	int c = new_channel(), copy = (int)syscall(SYS_dup, c);
	struct channel *held = host()->channel_hold(c);
	struct pollfd p = { .fd = copy, .events = POLLIN };

	(void)state;
	assert_int_equal(post_to(held, 1), 0);
	close(c);
	assert_int_equal(post_to(held, 2), 0);
	assert_int_equal(next(copy), 1);
	assert_int_equal(next(copy), 2);
	assert_int_equal(poll(&p, 1, 0), 0); /* nor is it at an end */
	assert_int_equal(post_to(held, 3), 0);
	assert_int_equal(host()->channel_drop(held, 3), 1);
	assert_int_equal(poll(&p, 1, 0), 0);
	host()->channel_let_go(held);
	assert_int_equal(poll(&p, 1, 0), 1); /* and our end of it is closed with the last CQ */
	assert_int_equal(p.revents, POLLHUP);
	close(copy);
}

#if !defined(__SANITIZE_THREAD__) /* which knows no child of a process with threads */
/* A forked child has files of its own, also where the number is not the first one. */
static void a_held_one_in_a_child(void **state)
{
	int c = new_channel(), copy = fcntl(c, F_DUPFD_CLOEXEC, 100), status;
	struct channel *held = host()->channel_hold(c);
	pid_t child;

	(void)state;
	close(c);
	child = fork();
	if (!child)
		_exit(!post_to(held, 1) && next(copy) == 1 && !post_to(held, 2) ? 0 : 1);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_false(readable(copy));
	host()->channel_let_go(held);
	close(copy);
}

/* What is known by a number unseen alone is the parent's, with what is in it. */
static void a_held_one_unseen_in_a_child(void **state)
{
	int c = new_channel(), copy = (int)syscall(SYS_dup, c), status;
	struct channel *held = host()->channel_hold(c);
	pid_t child;

	(void)state;
	close(c);
	for (uint64_t i = 1; i <= 3; i++)
		assert_int_equal(post_to(held, i), 0);
	child = fork();
	if (!child) {
		bool none = !host()->channel_drop(held, 2) && post_to(held, 4) == -EBADF;

		host()->channel_let_go(held);
		_exit(none ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	for (uint64_t i = 1; i <= 3; i++)
		assert_true(readable(copy) && next(copy) == i);
	assert_false(readable(copy));
	host()->channel_let_go(held);
	close(copy);
}
#endif

/* Event loops that ask for writability too must not be woken by it all the time. */
static void a_channel_is_never_writable(void **state)
{
	int c = new_channel();
	struct pollfd p = { .fd = c, .events = POLLIN | POLLOUT };

	(void)state;
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(post(c, 1), 0);
	assert_int_equal(poll(&p, 1, 0), 1);
	assert_int_equal(p.revents, POLLIN);
	assert_int_equal(next(c), 1);
	close(c);
}

/* A program may close descriptors that it does not know, and open others under their numbers. */
static void our_end_is_taken_away(void **state)
{
	int c = new_channel(), file = memfd_create("file", 0);
	struct pollfd p = { .fd = c, .events = POLLIN };
	struct ib_uverbs_comp_event_desc d;
	struct stat st;

	(void)state;
	for (int fd = 200; fd < 230; fd++)
		assert_int_equal(syscall(SYS_dup3, file, fd, O_CLOEXEC), fd);
	assert_int_equal(post(c, 7), 0);
	assert_int_equal(next(c), 7);
	assert_int_equal(fstat(file, &st), 0);
	assert_int_equal(st.st_size, 0); /* and nothing went into the file */
	for (int fd = 200; fd < 230; fd++)
		syscall(SYS_close, fd);
	close(file);
	assert_int_equal(fcntl(c, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(read(c, &d, sizeof(d)), -1); /* it has no end, and opens ours again */
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(poll(&p, 1, 0), 0);
	assert_int_equal(post(c, 8), 0);
	assert_int_equal(next(c), 8);
	close(c);
}

static int free_number(void)
{
	int fd = dup(0);

	close(fd);
	return fd;
}

/* There is no descriptor left for an end that reads as well: the program's end is looked at instead
 * before anything is written. */
static void an_end_that_only_writes(void **state)
{
	int fd = node(), c = -1, first = free_number(), hole = dup(0);
	struct channel *held;
	struct rlimit all, few;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &all), 0);
	few = all;
	few.rlim_cur = (rlim_t)free_number() + 1;
	assert_true(hole == first && free_number() > hole);
	close(hole);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(create(fd, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, 1, 16, &c), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &all), 0);
	held = host()->channel_hold(c);
	assert_int_equal(post_to(held, 7), 0);
	assert_int_equal(next(c), 7);
	assert_int_equal(syscall(SYS_close, c), 0);
	assert_int_equal(post_to(held, 1), -EBADF); /* and no SIGPIPE */
	assert_int_equal(host()->channel_drop(held, 1), 0);
	host()->channel_let_go(held);
	close(fd);
}

/* What nobody takes out is not kept for ever, nor a helper at work with it. */
static void closed_unseen_and_full(void **state)
{
	int c = new_channel(), rc = 0;
	struct channel *held = host()->channel_hold(c);

	(void)state;
	assert_int_equal(syscall(SYS_close, c), 0);
	for (int i = 0; i < 70000 && !rc; i++)
		rc = post_to(held, 1);
	assert_int_equal(rc, -EBADF);
	host()->channel_let_go(held);
}

/* A channel that closefrom() took: nothing reaches the file with its number. */
static void channel_number_reused(void **state)
{
	int c = new_channel(), pair[2];
	struct channel *held = host()->channel_hold(c);
	char text[8];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
	assert_int_equal(syscall(SYS_close, c), 0);
	assert_int_equal(post_to(held, 1), 0); /* and no SIGPIPE */
	assert_int_equal(syscall(SYS_dup, pair[0]), c);
	assert_int_equal(post_to(held, 1), 0);
	assert_int_equal(post_to(held, 2), 0);
	assert_false(readable(pair[1]));
	assert_int_equal(host()->channel_drop(held, 1), 2); /* a CQ's end waits for no such event */
	host()->channel_let_go(held);
	assert_null(host()->channel_hold(c)); /* it is another file */
	assert_int_equal(send(pair[1], "text", 4, 0), 4);
	assert_true(readable(c));
	assert_int_equal(read(c, text, sizeof(text)), 4); /* the file's own */
	close(c);
	close(pair[0]);
	close(pair[1]);
}

static void nothing(int sig)
{
	(void)sig;
}

/* ... and a socket with that number may have a time of its own to read. */
static void a_sockets_time_to_read_holds(void **state)
{
	const struct sigaction end = { .sa_handler = nothing };
	struct timeval soon = { .tv_usec = 1000 };
	int c = new_channel(), pair[2];
	char octet;

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_int_equal(setsockopt(pair[0], SOL_SOCKET, SO_RCVTIMEO, &soon, sizeof(soon)), 0);
	assert_int_equal(syscall(SYS_dup3, pair[0], c, 0), c);
	assert_int_equal(sigaction(SIGALRM, &end, NULL), 0);
	alarm(5); /* would end it otherwise */
	assert_int_equal(read(c, &octet, 1), -1);
	assert_int_equal(errno, EAGAIN);
	alarm(0);
	close(c);
	close(pair[0]);
	close(pair[1]);
}

static void the_engine(void **state)
{
	struct uw_device_attr attr;

	(void)state;
	assert_non_null(host()->api());
	assert_ptr_equal(host()->api(), host()->api());
	assert_non_null(host()->engine());
	assert_ptr_equal(host()->engine(), host()->engine());
	host()->api()->engine_query(host()->engine(), &attr);
	assert_int_equal(attr.guid, ENGINE_GUID);
}

/* An address that the link may still exchange for a free one is no name to tell others. */
static void a_gid_is_final(void **state)
{
	struct ib_uverbs_gid_entry e;
	int fd = node();

	(void)state;
	assert_int_equal(gid_entry(fd, 1, 0, &e), 0);
	assert_false(host()->api()->engine_started(host()->engine()));
	setenv("UWARP_IP_AUTO", "1", 1);
	assert_int_equal(gid_entry(fd, 1, 0, &e), 0);
	unsetenv("UWARP_IP_AUTO");
	check_gid(&e, 0);
	assert_true(host()->api()->engine_started(host()->engine()));
	close(fd);
}

/* Programs that cannot open the device say no more than that. */
static void want_of_a_descriptor_is_said_once(void **state)
{
	static const char line[] = "uwarp: no file descriptor is left of the 0 that this process "
				   "may have: raise the limit (ulimit -n)\n";
	struct rlimit before, none;
	char said[512];
	ssize_t n;
	int end[2], was = dup(STDERR_FILENO);

	(void)state;
	assert_int_equal(pipe2(end, O_NONBLOCK | O_CLOEXEC), 0);
	getrlimit(RLIMIT_NOFILE, &before);
	none = (struct rlimit){ 0, before.rlim_max };
	dup2(end[1], STDERR_FILENO);
	setrlimit(RLIMIT_NOFILE, &none);
	for (unsigned i = 0; i < 2; i++) {
		int fd = open("/dev/infiniband/uverbs30071", O_RDWR | O_CLOEXEC), err = errno;

		assert_int_equal(fd, -1);
		assert_int_equal(err, EMFILE);
	}
	setrlimit(RLIMIT_NOFILE, &before);
	dup2(was, STDERR_FILENO);
	n = read(end[0], said, sizeof(said));
	assert_int_equal(n, strlen(line));
	assert_memory_equal(said, line, strlen(line));
	close(was);
	close(end[0]);
	close(end[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_gid),
		cmocka_unit_test(all_gids),
		cmocka_unit_test(other_methods),
		cmocka_unit_test(creating),
		cmocka_unit_test(want_of_a_descriptor_is_said_once),
		cmocka_unit_test(posting),
		cmocka_unit_test(dropping),
		cmocka_unit_test(flooding),
		cmocka_unit_test(closed_while_full),
		cmocka_unit_test(a_held_one_under_another_number),
		cmocka_unit_test(a_held_one_under_a_number_unseen),
#if !defined(__SANITIZE_THREAD__)
		cmocka_unit_test(a_held_one_in_a_child),
		cmocka_unit_test(a_held_one_unseen_in_a_child),
#endif
		cmocka_unit_test(a_channel_is_never_writable),
		cmocka_unit_test(our_end_is_taken_away),
		cmocka_unit_test(channel_number_reused),
		cmocka_unit_test(a_sockets_time_to_read_holds),
		cmocka_unit_test(an_end_that_only_writes),
		cmocka_unit_test(closed_unseen_and_full),
		cmocka_unit_test(the_engine),
		cmocka_unit_test(a_gid_is_final),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
