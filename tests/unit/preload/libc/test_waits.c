/* SPDX-License-Identifier: BSD-3-Clause */
/* The functions in which programs wait for completion events: they run the stack meanwhile
 * (doc/adr/0030), and are to the program what libc's are. */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <rdma/ib_user_verbs.h>

#include "channels.h"
#include "fake_waits.h"
#include "ways.h"

#define LONG_US 200000u /* a look that lasts */
#define SOME_MS 30
#define EVER_MS 4000 /* a test that waits so long has failed */

static struct fake_waits *fake;

/* ---- the ways to wait ---------------------------------------------------------------------- */

static int setup(void **state)
{
	static struct bed b;
	struct epoll_event ev = { .events = EPOLLIN };

	fake->able = true;
	fake->look_us = fake->elsewhere = 0;
	fake->how = UW_WAIT_SLEEP;
	fake->looks = fake->begins = fake->ends = fake->dones = fake->plains = 0;
	fake->unheard = 0;
	fake->longest_us = 0;
	b.ring = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	fake->fd = b.ring;
	fake->socket = -1;
	b.channel = new_channel();
	b.epoll = epoll_create1(EPOLL_CLOEXEC);
	assert_int_equal(epoll_ctl(b.epoll, EPOLL_CTL_ADD, b.channel, &ev), 0);
	*state = &b;
	return 0;
}

static int teardown(void **state)
{
	struct bed *b = *state;

	assert_int_equal(fake->begins, fake->ends);
	assert_int_equal(fake->plain, 0);
	close(b->channel);
	close(b->epoll);
	close(b->ring);
	return 0;
}

/* ---- another thread ------------------------------------------------------------------------ */

/* Does `what` to the bed once so many waits sleep (begins), or else looks. */
struct helper {
	struct bed *b;
	bool in_look;
	void (*what)(struct helper *h);
	pthread_t thread, waiter;
};

static void *help(void *arg)
{
	struct helper *h = arg;

	if (h->in_look) {
		while (!fake->looking || !fake->longest_us)
			sched_yield();
	} else {
		while (!fake->begins && !fake->plains)
			sched_yield();
	}
	usleep(10000);
	h->what(h);
	return NULL;
}

static void start(struct helper *h, struct bed *b, bool in_look, void (*what)(struct helper *))
{
	*h = (struct helper){ .b = b, .in_look = in_look, .what = what, .waiter = pthread_self() };
	assert_int_equal(pthread_create(&h->thread, NULL, help, h), 0);
}

static void posts(struct helper *h)
{
	post(h->b->channel);
}

/* The first sleep has ended, with no event of the program's. */
static void posts_after_two(struct helper *h)
{
	uint64_t end = now_ms() + EVER_MS;

	while (fake->begins < 2 && now_ms() < end)
		usleep(1000);
	post(h->b->channel);
}

static void rings(struct helper *h)
{
	uint64_t one = 1;

	assert_int_equal(write(h->b->ring, &one, sizeof(one)), sizeof(one));
	posts_after_two(h);
}

static void signals(struct helper *h)
{
	pthread_kill(h->waiter, SIGUSR1);
}

static void signals_then_posts(struct helper *h)
{
	pthread_kill(h->waiter, SIGUSR1);
	usleep(2000 * SOME_MS);
	post(h->b->channel);
}

static void cancels(struct helper *h)
{
	pthread_cancel(h->waiter);
}

/* ---- events -------------------------------------------------------------------------------- */

/* It came while the program polled its queues: nothing will end a look. */
static void an_event_that_is_there_costs_no_look(void **state)
{
	struct bed *b = *state;

	fake->look_us = LONG_US;
	post(b->channel);
	for (size_t i = 0; i < N_WAYS; i++) {
		assert_int_equal(ways[i].wait(b, EVER_MS), 1);
		assert_int_equal(fake->looks, 0);
	}
	take(b->channel);
	assert_int_equal(fake->looks, 0);
}

static void an_event_ends_a_look(void **state)
{
	struct bed *b = *state;
	struct helper h;

	for (size_t i = 0; i < N_WAYS; i++) {
		fake->how = UW_WAIT_AGAIN;
		fake->look_us = 100 * LONG_US;
		fake->longest_us = 0;
		start(&h, b, true, posts);
		assert_int_equal(ways[i].wait(b, EVER_MS), 1);
		pthread_join(h.thread, NULL);
		assert_int_equal(fake->dones, i + 1);
		take(b->channel);
	}
}

static void an_event_ends_a_sleep(void **state)
{
	struct bed *b = *state;
	struct helper h;

	for (size_t i = 0; i < N_WAYS; i++) {
		fake->begins = fake->ends = 0;
		start(&h, b, false, posts);
		assert_int_equal(ways[i].wait(b, EVER_MS), 1);
		pthread_join(h.thread, NULL);
		assert_int_equal(fake->begins, 1);
		take(b->channel);
	}
}

static void a_read_sleeps_until_there_is_one(void **state)
{
	struct bed *b = *state;
	struct helper h;

	start(&h, b, false, posts);
	take(b->channel);
	pthread_join(h.thread, NULL);
	assert_int_equal(fake->begins, 1);
}

/* Frames, no event: look again, and sleep again. The ring is out of the descriptor before the wait
 * ends: another thread may begin one then, whose ring this one would take. */
static void a_ring_wakes_for_a_look(void **state)
{
	struct bed *b = *state;
	unsigned looks;
	uint64_t left;
	struct helper h;

	start(&h, b, false, rings);
	assert_int_equal(by_poll(b, EVER_MS), 1);
	pthread_join(h.thread, NULL);
	looks = fake->looks;
	assert_in_range(looks, 2, 20);
	assert_int_equal(fake->begins, 2);
	assert_int_equal(fake->unheard, 0);
	assert_int_equal(read(b->ring, &left, sizeof(left)), -1);
	assert_int_equal(errno, EAGAIN);
}

static void where_another_thread_waits_it_is_plain(void **state)
{
	struct bed *b = *state;
	struct helper h;

	fake->how = UW_WAIT_PLAINLY;
	for (size_t i = 0; i < 2 * N_WAYS; i++) {
		fake->elsewhere = i >= N_WAYS; /* known from the start: a look is no use */
		fake->plains = fake->looks = 0;
		start(&h, b, false, posts);
		assert_int_equal(ways[i % N_WAYS].wait(b, EVER_MS), 1);
		pthread_join(h.thread, NULL);
		assert_int_equal(fake->plains, 1);
		assert_int_equal(!fake->looks, fake->elsewhere);
		take(b->channel);
	}
	assert_int_equal(fake->begins, 0);
}

static void without_an_able_stack_it_is_plain(void **state)
{
	struct bed *b = *state;

	fake->able = false;
	for (size_t i = 0; i < N_WAYS; i++)
		assert_int_equal(ways[i].wait(b, 1), 0);
	assert_int_equal(fake->begins, 0);
}

/* A program that reads until there is nothing: the flag is followed, in a duplicate too. */
static void nothing_to_read_is_told_at_once(void **state)
{
	struct bed *b = *state;
	struct ib_uverbs_comp_event_desc d;
	int on = 1, off = 0, copy = dup(b->channel);
	struct helper h;

	for (unsigned i = 0; i < 4; i++) {
		assert_int_equal(i & 1 ? ioctl(i & 2 ? copy : b->channel, FIONBIO, &on)
				       : fcntl(i & 2 ? copy : b->channel, F_SETFL, O_NONBLOCK),
				 0);
		assert_int_equal(read(b->channel, &d, sizeof(d)), -1);
		assert_int_equal(errno, EAGAIN);
		post(b->channel);
		post(b->channel);
		take(copy);
		assert_int_equal(syscall(SYS_read, copy, &d, sizeof(d)), sizeof(d)); /* not seen */
		assert_int_equal(read(copy, &d, sizeof(d)), -1);
		assert_int_equal(errno, EAGAIN);
		assert_int_equal(i & 1 ? ioctl(copy, FIONBIO, &off) : fcntl(copy, F_SETFL, 0), 0);
		fake->begins = fake->ends = 0;
		start(&h, b, false, posts);
		take(b->channel); /* it waits again */
		pthread_join(h.thread, NULL);
	}
	close(copy);
}

static void another_read_does_not_block(void **state)
{
	struct bed *b = *state;
	char octet;
	int p[2];

	assert_int_equal(fcntl(b->channel, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(read(b->channel, &octet, 1), -1);
	assert_int_equal(errno, EAGAIN);
	assert_int_equal(pipe(p), 0);
	assert_int_equal(write(p[1], "x", 1), 1);
	assert_int_equal(read(p[0], &octet, 1), 1);
	assert_int_equal(fake->looks, 0);
	close(p[0]);
	close(p[1]);
}

/* ---- time ---------------------------------------------------------------------------------- */

static void it_lasts_as_long_as_it_may(void **state)
{
	struct bed *b = *state;

	for (size_t i = 0; i < 2 * N_WAYS; i++) {
		uint64_t since = now_ms();

		fake->look_us = i < N_WAYS ? 0 : LONG_US * 100; /* it sleeps, it looks */
		assert_int_equal(ways[i % N_WAYS].wait(b, SOME_MS), 0);
		assert_in_range(now_ms() - since, SOME_MS, EVER_MS / 2);
		assert_in_range(fake->longest_us, 0, SOME_MS * 1000);
	}
}

/* A program that only asks now and then runs the stack by that. */
static void no_time_is_one_round(void **state)
{
	struct bed *b = *state;

	fake->look_us = LONG_US;
	for (size_t i = 0; i < N_WAYS; i++) {
		fake->looks = 0;
		assert_int_equal(ways[i].wait(b, 0), 0);
		assert_int_equal(fake->looks, 1);
	}
	assert_int_equal(fake->longest_us, 0);
	assert_int_equal(fake->begins, 0);
}

static void wrong_times_are_refused(void **state)
{
	static const struct timespec wrong[] = { { -1, 0 }, { 0, -1 }, { 0, 1000000000 } };
	struct bed *b = *state;
	struct pollfd p = { .fd = b->channel, .events = POLLIN };
	struct epoll_event ev;

	for (size_t i = 0; i < 3; i++) {
		assert_int_equal(ppoll(&p, 1, &wrong[i], NULL), -1);
		assert_int_equal(errno, EINVAL);
		assert_int_equal(epoll_pwait2(b->epoll, &ev, 1, &wrong[i], NULL), -1);
		assert_int_equal(errno, EINVAL);
	}
	assert_int_equal(epoll_wait(b->epoll, &ev, 0, 1), -1);
	assert_int_equal(errno, EINVAL);
	post(b->channel);
	p = (struct pollfd){ .fd = b->channel, .events = POLLIN };
	assert_int_equal(ppoll(&p, 1, &(struct timespec){ .tv_sec = INT64_MAX }, NULL), 1);
}

/* ---- signals ------------------------------------------------------------------------------- */

static _Atomic unsigned handled;

static void handle(int sig)
{
	(void)sig;
	handled++;
}

static void install(int sig, int flags)
{
	struct sigaction a = { .sa_handler = handle, .sa_flags = flags };

	assert_int_equal(sigaction(sig, &a, NULL), 0);
}

/* poll() and the like are never restarted (signal(7)), also where a signal comes during a look. */
static void a_signal_ends_a_wait(void **state)
{
	struct bed *b = *state;
	struct helper h;
	sigset_t now;

	for (size_t i = 0; i < 2 * N_WAYS; i++) {
		uint64_t since = now_ms();
		bool look = i >= N_WAYS;

		install(SIGUSR1, i & 1 ? SA_RESTART : 0);
		fake->look_us = look ? LONG_US : 0;
		fake->how = look ? UW_WAIT_AGAIN : UW_WAIT_SLEEP;
		fake->begins = fake->ends = 0;
		fake->longest_us = 0;
		handled = 0;
		start(&h, b, look, signals);
		assert_int_equal(ways[i % N_WAYS].wait(b, EVER_MS), -1);
		assert_int_equal(errno, EINTR);
		assert_int_equal(handled, 1);
		assert_in_range(now_ms() - since, 0, EVER_MS / 2);
		pthread_join(h.thread, NULL);
	}
	assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &now), 0);
	assert_false(sigismember(&now, SIGUSR1));
	signal(SIGUSR1, SIG_DFL);
}

static void a_signal_ends_a_read_that_does_not_restart(void **state)
{
	struct bed *b = *state;
	char octets[8];
	struct helper h;

	install(SIGUSR1, 0);
	handled = 0;
	start(&h, b, false, signals);
	assert_int_equal(read(b->channel, octets, sizeof(octets)), -1);
	assert_int_equal(errno, EINTR);
	pthread_join(h.thread, NULL);
	assert_int_equal(handled, 1);

	install(SIGUSR1, SA_RESTART);
	fake->begins = fake->ends = 0;
	start(&h, b, false, signals_then_posts);
	take(b->channel);
	pthread_join(h.thread, NULL);
	assert_int_equal(handled, 2);
	signal(SIGUSR1, SIG_DFL);
}

/* What ppoll() and pselect() are for: the signal is blocked outside, so it cannot come too early.
 */
static void a_mask_holds_during_the_wait_alone(void **state)
{
	struct bed *b = *state;
	struct pollfd p = { .fd = b->channel, .events = POLLIN };
	sigset_t one, none;
	struct epoll_event ev;
	fd_set in;

	install(SIGUSR1, 0);
	sigemptyset(&none);
	sigemptyset(&one);
	sigaddset(&one, SIGUSR1);
	pthread_sigmask(SIG_BLOCK, &one, NULL);
	fake->look_us = LONG_US;
	for (handled = 0; handled < 3;) {
		unsigned before = handled;

		pthread_kill(pthread_self(), SIGUSR1);
		assert_int_equal(handled, before);
		if (before == 0) {
			assert_int_equal(ppoll(&p, 1, NULL, &none), -1);
		} else if (before == 1) {
			assert_int_equal(epoll_pwait(b->epoll, &ev, 1, -1, &none), -1);
		} else {
			FD_ZERO(&in);
			FD_SET(b->channel, &in);
			assert_int_equal(pselect(b->channel + 1, &in, NULL, NULL, NULL, &none), -1);
		}
		assert_int_equal(errno, EINTR);
		assert_int_equal(handled, before + 1);
	}
	pthread_kill(pthread_self(), SIGUSR1); /* and one that the mask leaves blocked */
	assert_int_equal(ppoll(&p, 1, &(struct timespec){ .tv_nsec = 1000000 }, &one), 0);
	assert_int_equal(handled, 3);
	pthread_sigmask(SIG_UNBLOCK, &one, NULL);
	assert_int_equal(handled, 4);
	signal(SIGUSR1, SIG_DFL);
}

/* ---- cancellation -------------------------------------------------------------------------- */

static bool usr1_was_blocked;

static void note_mask(void *arg)
{
	sigset_t now;

	(void)arg;
	pthread_sigmask(SIG_BLOCK, NULL, &now);
	usr1_was_blocked = sigismember(&now, SIGUSR1);
}

struct cancelled {
	struct bed *b;
	size_t way;
};

static void *wait_for_ever(void *arg)
{
	struct cancelled *c = arg;

	pthread_cleanup_push(note_mask, NULL);
	if (c->way < N_WAYS)
		ways[c->way].wait(c->b, -1);
	else
		take(c->b->channel);
	pthread_cleanup_pop(0);
	return NULL;
}

/* They are cancellation points, asleep, looking and plain: what the wait announced is taken back
 * (teardown). */
static void a_cancelled_thread_waits_no_longer(void **state)
{
	struct cancelled c = { .b = *state };

#ifdef __SANITIZE_ADDRESS__
	skip(); /* the sanitizer fails its own check while the thread's stack is unwound */
#endif

	for (unsigned how = 0; how < 3; how++) {
		for (c.way = 0; c.way <= N_WAYS; c.way++) {
			struct helper h = { .b = c.b, .in_look = how == 1 };
			void *result;

			fake->how = how == 2   ? UW_WAIT_PLAINLY
				    : how == 1 ? UW_WAIT_AGAIN
					       : UW_WAIT_SLEEP;
			fake->look_us = h.in_look ? LONG_US : 0;
			fake->begins = fake->ends = fake->plains = 0;
			fake->longest_us = 0;
			assert_int_equal(pthread_create(&h.waiter, NULL, wait_for_ever, &c), 0);
			h.what = cancels;
			help(&h);
			pthread_join(h.waiter, &result);
			assert_ptr_equal(result, PTHREAD_CANCELED);
			assert_false(usr1_was_blocked);
			assert_int_equal(fake->begins, fake->ends);
			assert_int_equal(fake->plain, 0);
		}
	}
}

/* ---- descriptors --------------------------------------------------------------------------- */

static void closed_ones_are_told(void **state)
{
	struct bed *b = *state;
	struct pollfd p = { .fd = b->channel, .events = POLLIN };
	char octet;

	assert_int_equal(syscall(SYS_close, b->channel), 0); /* behind our back */
	assert_int_equal(poll(&p, 1, -1), 1);
	assert_int_equal(p.revents, POLLNVAL);
	assert_int_equal(read(b->channel, &octet, 1), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(by_select(b, -1), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(syscall(SYS_close, b->epoll), 0);
	assert_int_equal(by_epoll_wait(b, -1), -1);
	assert_int_equal(errno, EBADF);
	assert_int_equal(by_epoll_pwait2(b, -1), -1);
	assert_int_equal(errno, EBADF);
}

/* A vfork()ed child runs on the parent's memory, but what it closes are descriptors of its own. */
static void what_a_vforked_child_closes_is_its_own(void **state)
{
	struct bed *b = *state;
	pid_t pid = vfork();

	if (!pid) {
		close(b->channel);
		close(b->epoll);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(by_poll(b, 0), 0);
	assert_int_equal(by_epoll_wait(b, 0), 0);
	assert_int_equal(fake->looks, 2);
}

/* A file that has the number of a channel that was closed behind our back is read as any other. */
static void another_file_under_its_number_is_read(void **state)
{
	struct bed *b = *state;
	char octets[16];
	int p[2];

	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(fcntl(b->channel, F_SETFL, i ? O_NONBLOCK : 0), 0);
		assert_int_equal(pipe(p), 0);
		assert_int_equal(write(p[1], "0123456789", 10), 10);
		assert_int_equal(syscall(SYS_dup3, p[0], b->channel, 0), b->channel);
		assert_int_equal(read(b->channel, octets, sizeof(octets)), 10);
		close(b->channel);
		close(p[0]);
		close(p[1]);
		b->channel = new_channel();
	}
}

/* The program closes descriptors that it does not know, and opens a file under the number. */
static void what_is_not_ours_is_not_read(void **state)
{
	struct bed *b = *state;
	char octets[16];
	int p[2];

	assert_int_equal(pipe(p), 0);
	assert_int_equal(write(p[1], "0123456789", 10), 10);
	assert_int_equal(dup2(p[0], b->ring), b->ring);
	for (size_t i = 0; i < N_WAYS; i++)
		assert_int_equal(ways[i].wait(b, 2), 0);
	assert_in_range(fake->begins, 0, 3); /* and does not end one sleep after the other */
	assert_int_equal(read(p[0], octets, sizeof(octets)), 10);
	close(p[0]);
	close(p[1]);
}

/* The stack takes it, out of its ring. */
static void what_came_to_the_links_socket_is_left_there(void **state)
{
	struct bed *b = *state;
	struct helper h;
	char octet;
	int p[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM, 0, p), 0);
	assert_int_equal(write(p[1], "x", 1), 1);
	fake->socket = p[0];
	start(&h, b, false, posts_after_two);
	assert_int_equal(by_poll(b, EVER_MS), 1);
	pthread_join(h.thread, NULL);
	assert_true(fake->begins > 1); /* each sleep ends at once */
	assert_int_equal(read(p[0], &octet, 1), 1);
	close(p[0]);
	close(p[1]);
}

/* An interface that went down: it would end one sleep after the other. */
static void an_error_of_the_links_socket_ends_one_sleep(void **state)
{
	const struct sockaddr_in nobody = { AF_INET, htons(1), { htonl(INADDR_LOOPBACK) }, { 0 } };
	struct pollfd p = { .fd = socket(AF_INET, SOCK_DGRAM, 0) };

	assert_int_equal(connect(p.fd, (const struct sockaddr *)&nobody, sizeof(nobody)), 0);
	assert_int_equal(write(p.fd, "x", 1), 1);
	assert_int_equal(poll(&p, 1, EVER_MS), 1); /* it is refused */
	fake->socket = p.fd;
	do /* the time may be over before it sleeps */
		assert_int_equal(by_poll(*state, SOME_MS), 0);
	while (!fake->begins);
	assert_in_range(fake->begins, 1, 3);
	assert_int_equal(poll(&p, 1, 0), 0);
	close(p.fd);
}

static void many_descriptors_are_a_plain_wait(void **state)
{
	struct bed *b = *state;
	struct pollfd p[100];

	for (unsigned i = 0; i < 100; i++)
		p[i] = (struct pollfd){ .fd = -1 };
	p[99] = (struct pollfd){ .fd = b->channel, .events = POLLIN };
	assert_int_equal(poll(p, 100, 2), 0);
	post(b->channel);
	assert_int_equal(poll(p, 100, -1), 1);
	assert_int_equal(p[99].revents, POLLIN);
	assert_int_equal(fake->begins, 0);
}

/* select() takes three sets, and counts a descriptor in each of them. */
static void select_tells_each_set(void **state)
{
	struct bed *b = *state;
	int p[2], top;
	fd_set in, out, except;

	assert_int_equal(pipe(p), 0);
	top = (p[1] > b->channel ? p[1] : b->channel) + 1;
	for (unsigned i = 0; i < 2; i++) {
		FD_ZERO(&in);
		FD_ZERO(&out);
		FD_ZERO(&except);
		FD_SET(b->channel, &in);
		FD_SET(p[0], &in);
		FD_SET(p[1], &out);
		FD_SET(p[0], &except);
		assert_int_equal(select(top, &in, &out, &except, NULL), (int)i + 1);
		assert_true(!FD_ISSET(p[0], &in) && FD_ISSET(p[1], &out) &&
			    !FD_ISSET(p[0], &except));
		assert_int_equal(!!FD_ISSET(b->channel, &in), i);
		post(b->channel);
	}
	close(p[0]);
	close(p[1]);
}

/* Linux writes what is left. */
static void select_tells_what_time_is_left(void **state)
{
	struct bed *b = *state;
	struct timeval t = { .tv_sec = 100 };
	fd_set in;

	FD_ZERO(&in);
	FD_SET(b->channel, &in);
	post(b->channel);
	assert_int_equal(select(b->channel + 1, &in, NULL, NULL, &t), 1);
	assert_in_range(t.tv_sec * 1000 + t.tv_usec / 1000, 90000, 100000);
	take(b->channel);
}

static _Atomic bool taken_enough;

static void *take_first(void *arg)
{
	struct bed *b = arg;
	struct ib_uverbs_comp_event_desc d;

	while (!taken_enough) {
		post(b->channel);
		assert_int_equal(syscall(SYS_read, b->channel, &d, sizeof(d)), sizeof(d));
	}
	return NULL;
}

/* Another thread takes the event between poll() and epoll: the time is not over by that. */
static void an_event_that_another_takes_does_not_end_it(void **state)
{
	struct bed *b = *state;
	uint64_t end = now_ms() + 10 * SOME_MS;
	pthread_t other;

	taken_enough = false;
	assert_int_equal(pthread_create(&other, NULL, take_first, b), 0);
	while (now_ms() < end) {
		uint64_t since = now_ms();

		if (!by_epoll_wait(b, SOME_MS))
			assert_true(now_ms() - since >= SOME_MS - 1);
	}
	taken_enough = true;
	pthread_join(other, NULL);
}

/* ---- fork ---------------------------------------------------------------------------------- */

#if !defined(__SANITIZE_THREAD__) /* which knows no child of a process with threads */
static void forks(struct helper *h)
{
	pid_t child = fork();
	int status;

	if (!child) {
		/* Its stack stayed with the parent: it waits without, and no engine is made. */
		unsigned begins = fake->begins;
		int ok = !by_poll(h->b, 1) && !by_epoll_wait(h->b, 1) && !by_select(h->b, 1) &&
			 fake->begins == begins;

		_exit(ok ? 0 : 1);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	post(h->b->channel);
}

static void a_child_waits_by_itself(void **state)
{
	struct bed *b = *state;
	struct helper h;

	start(&h, b, false, forks);
	assert_int_equal(by_epoll_wait(b, EVER_MS), 1);
	pthread_join(h.thread, NULL);
	assert_int_equal(fake->begins, 1);
}
#endif

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_event_that_is_there_costs_no_look),
		TEST(an_event_ends_a_look),
		TEST(an_event_ends_a_sleep),
		TEST(a_read_sleeps_until_there_is_one),
		TEST(a_ring_wakes_for_a_look),
		TEST(where_another_thread_waits_it_is_plain),
		TEST(without_an_able_stack_it_is_plain),
		TEST(nothing_to_read_is_told_at_once),
		TEST(another_read_does_not_block),
		TEST(it_lasts_as_long_as_it_may),
		TEST(no_time_is_one_round),
		TEST(wrong_times_are_refused),
		TEST(a_signal_ends_a_wait),
		TEST(a_signal_ends_a_read_that_does_not_restart),
		TEST(a_mask_holds_during_the_wait_alone),
		TEST(a_cancelled_thread_waits_no_longer),
		TEST(closed_ones_are_told),
		TEST(what_came_to_the_links_socket_is_left_there),
		TEST(an_error_of_the_links_socket_ends_one_sleep),
		TEST(many_descriptors_are_a_plain_wait),
		TEST(select_tells_each_set),
		TEST(select_tells_what_time_is_left),
		TEST(an_event_that_another_takes_does_not_end_it),
#if !defined(__SANITIZE_THREAD__)
		TEST(a_child_waits_by_itself),
#endif
		TEST(what_a_vforked_child_closes_is_its_own),
		TEST(another_file_under_its_number_is_read),
		TEST(what_is_not_ours_is_not_read), /* last: it ends such waits for good */
	};

	if (host()->api()->engine_start(host()->engine()))
		return 1;
	fake = dlsym(dlopen(getenv("UWARP_LIB"), RTLD_NOW | RTLD_NOLOAD), FAKE_WAITS_NAME);
	return fake ? cmocka_run_group_tests(tests, NULL, NULL) : 1;
}
