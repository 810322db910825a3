/* SPDX-License-Identifier: BSD-3-Clause */
#include <limits.h>
#include <linux/futex.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include "base/clock.h"

#include "fake.h"

#include "io/rendezvous/registry.h"
#include "io/shm.h"

int fake_connect(struct board *b)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(un.sun_path, sizeof(un.sun_path), "%s/ctl/127.0.0.2", b->dir);
	CHECK(fd >= 0 && connect(fd, (struct sockaddr *)&un, sizeof(un)) == 0);
	return fd;
}

static struct msg message(const struct fake *k, enum msg_type type)
{
	return (struct msg){ .magic = MSG_MAGIC,
			     .version = MSG_VERSION,
			     .type = (uint8_t)type,
			     .addr = k->addr,
			     .pid = (uint32_t)getpid(),
			     .instance = k->addr,
			     .mtu = FAKE_MTU };
}

bool fake_call(struct fake *k, struct board *b, uint32_t addr, unsigned *why)
{
	static _Atomic uint32_t *own_bell;
	static int bell_fd;
	struct msg_fds fds;
	struct msg m;

	*k = (struct fake){ .addr = addr, .fd = fake_connect(b), .lent_fd = -1 };
	if (!own_bell)
		own_bell = bell_make(&bell_fd);
	CHECK(own_bell);
	m = message(k, MSG_HELLO);
	CHECK(msg_send(k->fd, &m, bell_fd, -1) == 0);
	int rc = msg_await(k->fd, uw_clock_ms() + WAIT_MS, &m, &fds);
	*why = rc == 1 && m.type == MSG_REFUSE ? m.why : 0;
	if (rc != 1 || m.type != MSG_WELCOME) {
		close(k->fd);
		return false;
	}
	k->shape = (struct ring_shape){ .frame_max = FAKE_MTU + 14, .queues = 1 };
	k->bell = bell_map(msg_fds_take(&fds, 0));
	CHECK(k->bell && ring_view_map(&k->theirs, &k->shape, msg_fds_take(&fds, 1)) == UW_OK);
	CHECK(ring_region_make(&k->ours, &k->shape) == UW_OK);
	return true;
}

bool fake_ready(struct fake *k, int region_fd)
{
	struct msg m = message(k, MSG_READY);
	struct msg_fds fds;

	m.lends = k->lends;
	CHECK(msg_send(k->fd, &m, region_fd, k->lent_fd) == 0);
	int rc = msg_await(k->fd, uw_clock_ms() + WAIT_MS, &m, &fds);
	k->why = rc == 1 && m.type == MSG_REFUSE ? m.why : 0;
	return rc == 1 && m.type == MSG_READY;
}

void fake_join(struct fake *k, struct board *b, uint32_t addr)
{
	uint64_t end = uw_clock_ms() + WAIT_MS;
	unsigned why = 0;
	bool up;

	/* Until it has noticed that this instance hung up, it takes the call for one that crossed
	 * its own. A process calls again then. */
	while (!(up = fake_call(k, b, addr, &why)) && why == MSG_CROSSED && uw_clock_ms() < end)
		usleep(1000);
	k->lends = FAKE_LENDS;
	shm_unmap(shm_make("lent", FAKE_LENDS, SHM_READ_ONLY, &k->lent_fd), FAKE_LENDS);
	CHECK(up && fake_ready(k, k->ours.fd));
	close(k->lent_fd);
	close(k->ours.fd);
	k->ours.fd = -1;
	k->writer = ring_writer_of(&k->shape, &k->ours, &k->theirs, 0);
	k->reader = ring_reader_of(&k->shape, &k->ours, &k->theirs, 0);
}

void fake_leave(struct fake *k)
{
	close(k->fd);
	ring_region_free(&k->ours);
	ring_view_unmap(&k->theirs);
	bell_unmap(k->bell);
}

struct ring_slot *fake_slot(struct fake *k, unsigned i)
{
	return (struct ring_slot *)(void *)(k->writer.slots +
					    (size_t)(i & k->writer.mask) * k->writer.stride);
}

void fake_ring(struct fake *k)
{
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_exchange(k->bell, IO_RUNG) == IO_ASLEEP)
		syscall(SYS_futex, k->bell, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool fake_hung_up(struct fake *k, unsigned ms)
{
	struct msg_fds fds;
	struct msg m;

	return msg_await(k->fd, uw_clock_ms() + ms, &m, &fds) == 0;
}
