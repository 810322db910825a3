/* SPDX-License-Identifier: BSD-3-Clause */
/* What a client says while it joins. The test is the process at the other end of its socket. */
#include "bed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/doorbell.h"
#include "io/shm.h"

struct joining {
	struct bed *b;
	struct client *c;
	struct mail_box box;
	int ours;    /* the client's end of its connection */
	int bell_fd; /* of its doorbell */
	_Atomic uint32_t *bell;
	struct switch_fds fds; /* that came with the last answer */
};

static int set_up(void **state)
{
	struct joining *j = calloc(1, sizeof(*j));
	void *bed;
	int p[2];

	assert_non_null(j);
	bed_up(&bed);
	j->b = bed;
	j->b->s.o.max_clients = j->b->s.o.max_per_user = 10;
	j->b->s.wait_fd = epoll_create1(EPOLL_CLOEXEC);
	j->b->s.bell_fd = doorbell_eventfd(); /* any descriptor */
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, p), 0);
	j->c = calloc(1, sizeof(*j->c));
	assert_non_null(j->c);
	*j->c = (struct client){
		.id = 3, .fd = p[0], .ring_fd = -1, .wake_fd = -1, .uid = getuid(), .pid = getpid()
	};
	j->b->s.client[3] = j->c;
	j->box = (struct mail_box){ .fd = p[0], .uid = getuid(), .pid = getpid(), .wake_fd = -1 };
	j->ours = p[1];
	j->bell = shm_make("doorbell", CONDUIT_PAGE, SHM_WRITABLE, &j->bell_fd);
	assert_non_null(j->bell);
	*state = j;
	return 0;
}

static int tear_down(void **state)
{
	struct joining *j = *state;
	void *bed = j->b;

	switch_fds_close(&j->fds);
	if (j->c)
		client_free(&j->b->s, j->c);
	mail_close(&j->box);
	close(j->ours);
	close(j->bell_fd);
	shm_unmap(j->bell, CONDUIT_PAGE);
	close(j->b->s.wait_fd);
	close(j->b->s.bell_fd);
	free(j);
	return bed_down(&bed);
}

static void read_one(struct joining *j)
{
	assert_true(mail_receive(&j->box));
	client_hear(&j->b->s, j->c, &j->box.mail);
	j->box.mail.memory = -1;
}

static void say_hello(struct joining *j, uint32_t flags, int wake)
{
	struct switch_msg m = switch_msg_of(SWITCH_HELLO);

	m.flags = flags;
	assert_int_equal(switch_send(j->ours, &m, (int[]){ j->bell_fd, wake }, wake < 0 ? 1 : 2),
			 0);
}

/* HELLO with this for a wake socket. What it is answered. */
static enum switch_msg_type hello(struct joining *j, uint32_t flags, int wake)
{
	struct switch_msg m;

	say_hello(j, flags, wake);
	read_one(j);
	assert_int_equal(switch_receive(j->ours, &m, &j->fds), 1);
	if (m.type == SWITCH_REFUSE) {
		assert_int_equal(m.why, SWITCH_NOT_YOURS);
		assert_int_equal(j->c->state, CLIENT_ENDED);
	}
	return m.type;
}

/* What it hears when the uwarpd has this many descriptors left. */
static enum switch_msg_why why_with(struct joining *j, unsigned left)
{
	struct rlimit was, few;
	struct switch_msg m;
	int next = dup(0); /* the first one that is free */

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &was), 0);
	few = was;
	few.rlim_cur = (rlim_t)next + left;
	close(next);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	read_one(j);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &was), 0);
	assert_int_equal(switch_receive(j->ours, &m, &j->fds), 1);
	assert_int_equal(m.type, SWITCH_REFUSE);
	return m.why;
}

/* It is not of another version. */
static void without_a_descriptor_left_it_says_so(void **state)
{
	struct joining *j = *state;

	say_hello(j, 0, j->ours);
	assert_int_equal(why_with(j, 0), SWITCH_NO_MEMORY);
}

static void with_half_of_those_that_it_needs_too(void **state)
{
	struct joining *j = *state;

	say_hello(j, 0, j->ours);
	assert_int_equal(why_with(j, 1), SWITCH_NO_MEMORY);
}

static unsigned descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* fs.epoll.max_user_watches, or the kernel's memory. */
static void one_that_cannot_be_watched_leaves_nothing(void **state)
{
	struct joining *j = *state;
	int watches = j->b->s.wait_fd;
	unsigned before = descriptors();
	struct switch_msg m;

	say_hello(j, 0, -1);
	j->b->s.wait_fd = -1;
	read_one(j);
	j->b->s.wait_fd = watches;
	assert_int_equal(switch_receive(j->ours, &m, &j->fds), 1);
	assert_int_equal(m.type, SWITCH_REFUSE);
	assert_int_equal(m.why, SWITCH_NO_MEMORY);
	client_free(&j->b->s, j->c);
	j->c = NULL;
	assert_int_equal(descriptors(), before);
}

static void and_so_at_the_end(void **state)
{
	struct joining *j = *state;
	struct switch_msg m = switch_msg_of(SWITCH_READY);

	assert_int_equal(hello(j, 0, -1), SWITCH_WELCOME);
	switch_fds_close(&j->fds);
	assert_int_equal(switch_send(j->ours, &m, &j->bell_fd, 1), 0);
	assert_int_equal(why_with(j, 0), SWITCH_NO_MEMORY);
}

static void a_pair_of_its_own_wakes_it(void **state)
{
	struct joining *j = *state;
	int p[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p), 0);
	assert_int_equal(hello(j, 0, p[1]), SWITCH_WELCOME);
	assert_true(j->c->wake_fd >= 0);
	assert_int_equal(j->c->state, CLIENT_TOLD);
	close(p[0]);
	close(p[1]);
}

/* What is written there goes out with our rights. The kernel knows no peer's process of it, as it
 * knows none of a client in another PID namespace. */
static void a_socket_of_the_network_does_not(void **state)
{
	struct joining *j = *state;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	j->box.pid = 0;
	j->box.uid = (uid_t)-1;
	assert_int_equal(hello(j, 0, fd), SWITCH_REFUSE);
	close(fd);
}

static void nor_what_is_no_socket(void **state)
{
	struct joining *j = *state;
	int fd = doorbell_eventfd();

	assert_true(fd >= 0);
	assert_int_equal(hello(j, 0, fd), SWITCH_REFUSE);
	close(fd);
}

/* It is this process that has made the pair, and not the client. */
static void nor_a_pair_of_another_process(void **state)
{
	struct joining *j = *state;
	int p[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p), 0);
	j->box.pid++;
	assert_int_equal(hello(j, 0, p[1]), SWITCH_REFUSE);
	close(p[0]);
	close(p[1]);
}

/* The program has called setuid() since, and a new uwarpd is there. */
static void one_that_it_made_as_another_user_does(void **state)
{
	struct joining *j = *state;
	int p[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, p), 0);
	j->box.uid++;
	assert_int_equal(hello(j, 0, p[1]), SWITCH_WELCOME);
	close(p[0]);
	close(p[1]);
}

/* A client of before IPv6 takes the next message for READY. */
static void addresses_are_told_to_who_asks(void **state)
{
	struct joining *j = *state;
	struct uplink *p = j->b->s.uplink;
	struct switch_msg m;

	p->n_ip6 = 2;
	memcpy(p->ip6[1].ip.b, our6, 16);
	p->ip6[1].bits = 64;
	assert_int_equal(hello(j, SWITCH_FLAG_IP6, -1), SWITCH_WELCOME);
	switch_fds_close(&j->fds);
	assert_int_equal(switch_receive(j->ours, &m, &j->fds), 1);
	assert_int_equal(switch_receive(j->ours, &m, &j->fds), 1);
	assert_int_equal(m.type, SWITCH_ADDRESS);
	assert_memory_equal(m.ip6, our6, 16);
	assert_int_equal(m.bits, 64);
	assert_int_equal(switch_receive(j->ours, &m, &j->fds), -EAGAIN);
}

static void others_hear_of_ip4_alone(void **state)
{
	struct joining *j = *state;
	struct switch_msg m;

	j->b->s.uplink->n_ip6 = 2;
	assert_int_equal(hello(j, 0, -1), SWITCH_WELCOME);
	switch_fds_close(&j->fds);
	assert_int_equal(switch_receive(j->ours, &m, &j->fds), -EAGAIN);
}

/* Watches are counted against a limit of the user, and who has left could wake us for ever. */
static void who_has_left_wakes_nobody(void **state)
{
	struct joining *j = *state;
	struct epoll_event e;

	assert_int_equal(hello(j, 0, -1), SWITCH_WELCOME);
	assert_int_equal(eventfd_write(j->fds.fd[1], 1), 0);
	assert_int_equal(epoll_wait(j->b->s.wait_fd, &e, 1, 0), 1);
	client_free(&j->b->s, j->c);
	j->c = NULL;
	assert_int_equal(eventfd_write(j->fds.fd[1], 1), 0);
	assert_int_equal(epoll_wait(j->b->s.wait_fd, &e, 1, 0), 0);
}

static int sealed(off_t size, off_t more, int seals)
{
	int fd = memfd_create("bell", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, size), 0);
	if (more)
		assert_int_equal(fallocate(fd, FALLOC_FL_KEEP_SIZE, size, more), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

/* Whoever lets go of it last frees all of its pages, and frames wait for that. */
static void memory_is_no_larger_than_it_should_be(void **state)
{
	struct joining *j = *state;
	const int both = F_SEAL_SHRINK | F_SEAL_GROW;
	const struct {
		off_t size, more;
		int seals;
	} bad[] = { { CONDUIT_PAGE - 1, 0, both },
		    { CONDUIT_PAGE + 1, 0, both },
		    { CONDUIT_PAGE, 0, F_SEAL_SHRINK },
		    { CONDUIT_PAGE, 0, F_SEAL_GROW },
		    { CONDUIT_PAGE, 8 << 20, both } };
	struct switch_msg m = switch_msg_of(SWITCH_HELLO);

	for (unsigned i = 0; i < COUNT(bad); i++) {
		int fd = sealed(bad[i].size, bad[i].more, bad[i].seals);

		assert_int_equal(switch_send(j->ours, &m, &fd, 1), 0);
		close(fd);
		assert_true(mail_receive(&j->box));
		assert_true(j->box.mail.alien);
		assert_int_equal(j->box.mail.memory, -1);
	}
	close(j->bell_fd);
	j->bell_fd = sealed(CONDUIT_PAGE, 0, both);
	assert_int_equal(hello(j, 0, -1), SWITCH_WELCOME);
}

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, set_up, tear_down)

static const struct CMUnitTest tests[] = {
	TEST(a_pair_of_its_own_wakes_it),
	TEST(a_socket_of_the_network_does_not),
	TEST(nor_what_is_no_socket),
	TEST(nor_a_pair_of_another_process),
	TEST(one_that_it_made_as_another_user_does),
	TEST(addresses_are_told_to_who_asks),
	TEST(others_hear_of_ip4_alone),
	TEST(who_has_left_wakes_nobody),
	TEST(memory_is_no_larger_than_it_should_be),
	TEST(without_a_descriptor_left_it_says_so),
	TEST(with_half_of_those_that_it_needs_too),
	TEST(and_so_at_the_end),
	TEST(one_that_cannot_be_watched_leaves_nothing),
};

UWTEST_MAIN(tests)
