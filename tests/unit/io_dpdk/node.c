/* SPDX-License-Identifier: BSD-3-Clause */
#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>

#include "node.h"

enum { ETHER = 14, HEADER = ETHER + 8, BURST = 32 };

uint64_t ms_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

void ms_sleep(unsigned ms)
{
	struct timespec t = { .tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000 };

	nanosleep(&t, NULL);
}

/* --- the board --- */

struct board *board_new(void)
{
	struct board *b =
		mmap(NULL, sizeof(*b), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(b != MAP_FAILED);
	strcpy(b->dir, "/tmp/uwarp-test.XXXXXX");
	assert_non_null(mkdtemp(b->dir));
	return b;
}

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *ftw)
{
	(void)s;
	(void)type;
	(void)ftw;
	return remove(path);
}

void board_free(struct board *b)
{
	nftw(b->dir, remove_one, 8, FTW_DEPTH | FTW_PHYS);
	munmap(b, sizeof(*b));
}

void board_step(struct board *b, int step)
{
	atomic_store(&b->step, step);
}

bool board_wait(struct board *b, int step)
{
	uint64_t end = ms_now() + WAIT_MS;

	while (atomic_load(&b->step) < step) {
		if (ms_now() > end)
			return false;
		ms_sleep(1);
	}
	return true;
}

static unsigned left;

static int count_one(const char *path, const struct stat *s, int type, struct FTW *ftw)
{
	(void)s;
	(void)ftw;
	if (type == FTW_D || type == FTW_DP)
		return 0;
	print_message("left: %s\n", path);
	left++;
	return 0;
}

unsigned files_left(const struct board *b)
{
	left = 0;
	nftw(b->dir, count_one, 8, FTW_PHYS);
	return left;
}

/* --- processes --- */

static void on_lock(void *arg)
{
	pthread_mutex_lock(&((struct node *)arg)->lock);
}

static void on_unlock(void *arg)
{
	pthread_mutex_unlock(&((struct node *)arg)->lock);
}

static void on_down(void *arg, uint32_t addr)
{
	struct node *n = arg;

	/* Only under the stack lock. */
	CHECK(pthread_mutex_trylock(&n->lock) == EBUSY);
	CHECK(n->downs < DOWN_MAX);
	n->down[n->downs] = addr;
	atomic_fetch_add(&n->downs, 1);
}

pid_t spawn(struct board *b, node_fn fn, int arg)
{
	fflush(NULL);
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid > 0)
		return pid;
	/* A crash is a crash, not a failed assertion of the parent's; and nobody is left behind. */
	static const int fatal[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS };
	for (unsigned i = 0; i < COUNT(fatal); i++)
		signal(fatal[i], SIG_DFL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	static struct node n = { .lock = PTHREAD_MUTEX_INITIALIZER };
	n.board = b;
	_exit(fn(&n, arg));
}

int reap(pid_t pid, unsigned ms)
{
	uint64_t end = ms_now() + ms;
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		if (ms_now() > end) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			return -1;
		}
		ms_sleep(2);
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

void stop(pid_t pid)
{
	char path[64], state = 0;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	kill(pid, SIGSTOP);
	for (uint64_t end = ms_now() + WAIT_MS; state != 'T' && ms_now() < end; ms_sleep(1)) {
		FILE *f = fopen(path, "re");

		if (!f || fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
			state = 0;
		if (f)
			fclose(f);
	}
}

void capture_stderr(void (*fn)(void *arg), void *arg, char *out, size_t size)
{
	int old = dup(2), file = memfd_create("stderr", MFD_CLOEXEC);

	dup2(file, 2);
	fn(arg);
	dup2(old, 2);
	close(old);
	ssize_t n = pread(file, out, size - 1, 0);
	out[n > 0 ? n : 0] = '\0';
	close(file);
}

bool run(const char *command)
{
	return system(command) == 0;
}

bool own_namespace(void)
{
	if (geteuid() == 0)
		return unshare(CLONE_NEWNET) == 0;
	return unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0;
}

/* --- a node --- */

uint32_t host(unsigned h)
{
	return htonl(0x7f000000u + h);
}

uw_status node_open(struct node *n, unsigned h, unsigned mtu)
{
	struct dpdk_config cfg = { .link = "memif",
				   .addr = h ? host(h) : 0,
				   .mask = htonl(0xff000000),
				   .mtu = mtu,
				   .run_dir = n->board->dir,
				   .addr_fd = -1 };

	return node_open_with(n, &cfg);
}

uw_status node_open_with(struct node *n, const struct dpdk_config *cfg)
{
	struct io_env env = {
		.arg = n, .lock = on_lock, .unlock = on_unlock, .peer_down = on_down
	};

	uw_status st = dpdk_link_open(cfg, &env, &n->l);
	if (st == UW_OK)
		n->addr = n->l->addr;
	return st;
}

void node_open_ok(struct node *n, unsigned h)
{
	CHECK(node_open(n, h, 0) == UW_OK);
	CHECK(n->l->addr == host(h));
}

void node_close(struct node *n)
{
	uint64_t start = ms_now();

	if (n->early) {
		on_lock(n);
		n->l->ops->free(n->early);
		on_unlock(n);
		n->early = NULL;
	}
	n->l->ops->close(n->l);
	CHECK(ms_now() - start < 5000);
	n->l = NULL;
}

uw_status node_way(struct node *n, uint32_t *addr, uint16_t port, unsigned timeout_ms)
{
	struct uw_ip to = uw_ip_v4(*addr);
	uw_status st = n->l->ops->resolve(n->l, &to, port, timeout_ms);

	CHECK(uw_ip_is_v4(&to));
	*addr = uw_ip_v4_be(&to);
	return st;
}

uw_status node_resolve(struct node *n, unsigned h)
{
	uint32_t addr = host(h);
	uw_status st = node_way(n, &addr, 0, WAIT_MS / 2);

	CHECK(st || addr == host(h));
	return st;
}

/* --- frames --- */

static uint8_t pattern(unsigned seed, unsigned i)
{
	return (uint8_t)(seed * 31 + i * 7 + (i >> 8));
}

static void mac_of_peer(const struct node *n, unsigned h, uint8_t mac[6])
{
	if (n->by_mac)
		memcpy(mac, n->peer_mac, 6);
	else
		io_mac_of(host(h), mac);
}

/* Octet i of a frame: addresses, EtherType, then seed and length, then the pattern. */
static void build(struct node *n, unsigned to, uint8_t *p, unsigned len, unsigned seed)
{
	mac_of_peer(n, to, p);
	memcpy(p + 6, n->l->mac, 6);
	p[12] = 0x88;
	p[13] = 0xb5;
	memcpy(p + ETHER, &seed, 4);
	memcpy(p + ETHER + 4, &len, 4);
	for (unsigned i = HEADER; i < len; i++)
		p[i] = pattern(seed, i);
}

static void release(struct node *n, struct io_frame *f)
{
	while (f) {
		struct io_frame *next = f->next;

		n->l->ops->free(f);
		f = next;
	}
}

static struct io_frame *chain(struct node *n, const uint8_t *p, unsigned len, unsigned parts)
{
	struct io_frame *head = NULL, **at = &head;
	unsigned used = 0;

	for (unsigned i = 0; i < parts; i++) {
		struct io_frame *f = n->l->ops->alloc(n->l);
		/* The header stays in one piece. */
		unsigned part = i == 0 && parts > 1 ? HEADER + (len - HEADER) / parts : len / parts;

		part = i + 1 == parts || part > len - used ? len - used : part;
		used += part;
		if (!f)
			break;
		CHECK(f->data == f->buf + n->l->headroom && f->len == 0 && f->next == NULL);
		CHECK(f->link == n->l && f->room >= n->l->headroom + n->l->mtu + ETHER);
		CHECK(n->l->ops->refs(f) == 1);
		memcpy(f->data, p, part);
		f->len = part;
		p += part;
		*at = f;
		at = &f->next;
	}
	return head;
}

bool node_send(struct node *n, unsigned to, unsigned len, unsigned seed, unsigned parts)
{
	static uint8_t octets[1 << 16];

	CHECK(len >= HEADER && len <= sizeof(octets));
	build(n, to, octets, len, seed);
	on_lock(n);
	struct io_frame *f = chain(n, octets, len, parts);
	unsigned sent = f ? n->l->ops->tx(n->l, &f, 1) : 0;
	if (!sent)
		release(n, f);
	on_unlock(n);
	return sent == 1;
}

static int check(struct node *n, struct io_frame *f)
{
	static uint8_t octets[1 << 16];
	unsigned len = 0, seed, said;

	for (struct io_frame *p = f; p; p = p->next) {
		CHECK(len + p->len <= sizeof(octets));
		CHECK(p->link == n->l && n->l->ops->refs(p) == 1);
		CHECK(p->data >= p->buf && p->data + p->len <= p->buf + p->room);
		memcpy(octets + len, p->data, p->len);
		len += p->len;
	}
	CHECK(len >= HEADER);
	memcpy(&seed, octets + ETHER, 4);
	memcpy(&said, octets + ETHER + 4, 4);
	CHECK(said == len);
	CHECK(memcmp(octets, n->l->mac, 6) == 0);
	for (unsigned i = HEADER; i < len; i++)
		CHECK(octets[i] == pattern(seed, i));
	return (int)seed;
}

static struct io_frame *next_frame(struct node *n)
{
	struct io_frame *f = n->early;

	n->early = NULL;
	while (!f && n->l->ops->rx(n->l, &f, 1) == 1) {
		if (f->data[12] == 0x88 && f->data[13] == 0xb5)
			break;
		release(n, f); /* a kernel at the other end has things to say, too */
		f = NULL;
	}
	return f;
}

int node_receive(struct node *n, unsigned from, unsigned ms)
{
	uint64_t end = ms_now() + ms;
	uint8_t mac[6];
	int seed = -1;

	mac_of_peer(n, from, mac);
	do {
		on_lock(n);
		struct io_frame *f = next_frame(n);
		if (f && memcmp(f->data + 6, mac, 6) == 0) {
			seed = check(n, f);
			release(n, f);
			f = NULL;
		}
		n->early = f;
		on_unlock(n);
		if (seed < 0 && !f)
			sched_yield();
	} while (seed < 0 && !n->early && ms_now() < end);
	return seed;
}

unsigned fds_open(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned n = 0;

	CHECK(d);
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

bool node_wait_down(struct node *n, unsigned h, unsigned ms)
{
	uint64_t end = ms_now() + ms;

	while (ms_now() < end) {
		for (unsigned i = 0; i < atomic_load(&n->downs); i++)
			if (n->down[i] == host(h))
				return true;
		ms_sleep(1);
	}
	return false;
}
