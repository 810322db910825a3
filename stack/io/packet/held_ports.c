/* SPDX-License-Identifier: BSD-3-Clause */
#include "io/packet/held_ports.h"

#include <errno.h>
#include <linux/filter.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "io/fds.h"
#include "io/packet/interface.h"

#define LINGER_S 10 /* longer than TIME_WAIT (io/lwip/lwipopts.h) */

struct held_port {
	struct held_port *next;
	uint16_t port;	    /* network order */
	int fd[IO_IP6_MAX]; /* one for each address; -1: the interface has lost it */
	unsigned users;
	time_t free_since; /* with no users */
};

static time_t now_s(void)
{
	return (time_t)(uw_clock_ms() / 1000);
}

/* ---- the kernel's socket ------------------------------------------------------------------- */

static int attach_drop_all(int fd)
{
	struct sock_filter drop = { .code = BPF_RET | BPF_K, .k = 0 };
	struct sock_fprog all = { 1, &drop };
	int one = 1, rc = setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof(all));

	return rc ? rc : setsockopt(fd, SOL_SOCKET, SO_LOCK_FILTER, &one, sizeof(one));
}

struct name {
	struct sockaddr_storage a;
	socklen_t len;
};

static struct name name_of(const struct held_at *at, unsigned i, uint16_t port)
{
	struct name n = { .len = sizeof(struct sockaddr_in) };
	struct sockaddr_in *four = (void *)&n.a;
	struct sockaddr_in6 *six = (void *)&n.a;

	if (uw_ip_is_v4(&at->ip[i])) {
		four->sin_family = AF_INET;
		four->sin_port = port;
		four->sin_addr.s_addr = uw_ip_v4_be(&at->ip[i]);
		return n;
	}
	n.len = sizeof(*six);
	six->sin6_family = AF_INET6;
	six->sin6_port = port;
	memcpy(&six->sin6_addr, at->ip[i].b, sizeof(six->sin6_addr));
	six->sin6_scope_id = uw_ip_is_link_local(&at->ip[i]) ? at->scope : 0;
	return n;
}

/* A line of /proc/net/tcp: is it a socket at the port (network order)? If so, has it ended: nobody
 * has it, and all that it sent has come? */
static bool is_at(const char *line, uint16_t port, bool *ended)
{
	unsigned at, state;
	unsigned long inode;

	if (sscanf(line, " %*u: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x %*x:%*x %*x:%*x %*x %*u %*u %lu",
		   &at, &state, &inode) != 3 ||
	    at != ntohs(port))
		return false;
	*ended = state == TCP_TIME_WAIT || (state == TCP_FIN_WAIT2 && !inode);
	return true;
}

/* How many of the kernel's TCP sockets at the port have ended; all counts all of them. */
static unsigned count_ended(const char *table, uint16_t port, unsigned *all)
{
	FILE *f = fopen(table, "re");
	unsigned n = 0;
	char line[256];
	bool ended;

	while (f && fgets(line, sizeof(line), f)) {
		if (is_at(line, port, &ended)) {
			++*all;
			n += ended;
		}
	}
	if (f)
		fclose(f);
	else if (errno != ENOENT)
		++*all; /* nobody knows what is in it */
	return n;
}

/* Do only ended connections keep the port? A server that was stopped leaves them for a minute. */
static bool is_left(uint16_t port)
{
	unsigned all = 0, ended = count_ended("/proc/thread-self/net/tcp", port, &all);

	ended += count_ended("/proc/thread-self/net/tcp6", port, &all);
	return all && ended == all;
}

/* Without SO_REUSEADDR, with which the port of another program's live connections would be had,
 * too. Where only ended ones keep a port that the program named, it is had with that option, as
 * from the kernel. */
static int bind_deaf(int fd, const struct name *n, uint16_t port, bool named)
{
	int rc = bind(fd, (const void *)&n->a, n->len), one = 1;

	if (!rc || errno != EADDRINUSE || !named)
		return rc;
	if (is_left(port) && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)))
		return bind(fd, (const void *)&n->a, n->len);
	errno = EADDRINUSE;
	return -1;
}

/* A descriptor, or a negative errno. The filter comes first: nothing is ever answered. */
static int listen_deaf(const struct held_at *at, unsigned i, uint16_t port, bool named)
{
	struct name n = name_of(at, i, port);
	int fd = socket(n.a.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0), err;

	if (fd < 0 || fds_keep(fd) < 0)
		return -errno;
	if (!attach_drop_all(fd) && !bind_deaf(fd, &n, port, named) && !listen(fd, 0))
		return fd;
	err = errno;
	fds_close(fd);
	return -err;
}

int held_ports_deafen_udp(const struct held_at *at, unsigned i, uint16_t port)
{
	struct name n = name_of(at, i, port);
	int fd = socket(n.a.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0), one = 1, err;

	if (fd < 0 || fds_keep(fd) < 0)
		return -errno;
	if (!attach_drop_all(fd) && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) &&
	    !bind(fd, (const void *)&n.a, n.len))
		return fd;
	err = errno;
	fds_close(fd);
	return -err;
}

/* ---- the list ------------------------------------------------------------------------------ */

static void set_bit(_Atomic uint64_t *bits, uint16_t port, bool on)
{
	unsigned at = ntohs(port);
	uint64_t bit = (uint64_t)1 << (at % 64);

	if (on)
		atomic_fetch_or_explicit(&bits[at / 64], bit, memory_order_relaxed);
	else
		atomic_fetch_and_explicit(&bits[at / 64], ~bit, memory_order_relaxed);
}

static struct held_port *find(const struct held_ports *p, uint16_t port)
{
	struct held_port *h = p->list;

	while (h && h->port != port)
		h = h->next;
	return h;
}

/* Of the first n addresses. */
static void close_some(struct held_port *h, unsigned n)
{
	while (h && n)
		fds_close(h->fd[--n]);
	free(h);
}

static void tell_of(const struct held_ports *p, uint16_t port, bool on)
{
	if (p->held)
		p->held(p->arg, port, on);
}

static void drop(struct held_ports *p, struct held_port **at)
{
	struct held_port *h = *at;

	tell_of(p, h->port, false);
	*at = h->next;
	p->n--;
	set_bit(p->bits, h->port, false);
	close_some(h, p->at.n);
}

/* True: some were given back. */
static bool give_back_old(struct held_ports *p)
{
	time_t now = now_s();
	unsigned before = p->n;

	for (struct held_port **at = &p->list; *at;) {
		if (!(*at)->users && now - (*at)->free_since > LINGER_S)
			drop(p, at);
		else
			at = &(*at)->next;
	}
	return p->n != before;
}

uw_status held_ports_status(int err)
{
	switch (err) {
	case -EADDRINUSE:
		return UW_E_ADDR_IN_USE;
	case -EADDRNOTAVAIL:
		return UW_E_ADDR;
	case -EACCES:
	case -EPERM:
		return UW_E_PERM;
	case -EMFILE:
	case -ENFILE:
		return UW_E_NO_FDS;
	default:
		return UW_E_NOMEM;
	}
}

/* At the first *n addresses it listens then. 0 or a negative errno. */
static int listen_at_all(const struct held_at *at, struct held_port *h, bool named, unsigned *n)
{
	for (*n = 0; *n < at->n; ++*n) {
		int fd = listen_deaf(at, *n, h->port, named);

		/* one of several that the interface has lost: engine/routes.c says so */
		if (fd == -EADDRNOTAVAIL && at->n > 1)
			fd = -1;
		else if (fd < 0)
			return fd;
		h->fd[*n] = fd;
	}
	return 0;
}

/* To the program it is an event that carries EMFILE, which few programs print. */
static void say_no_descriptor(struct held_ports *p, uint16_t port, int err)
{
	uint64_t now_us = (uint64_t)now_s() * 1000000;

	if ((err == -EMFILE || err == -ENFILE) && said_may(&p->said, 0, (uint64_t)-err, now_us))
		uw_log("no file descriptor is left to hold TCP port %u with%s: %s", ntohs(port),
		       err == -EMFILE ? " (ulimit -n)" : "", strerror(-err));
}

static uw_status hold(struct held_ports *p, uint16_t port, bool named, struct held_port **out)
{
	struct held_port *h = calloc(1, sizeof(*h));
	unsigned n;
	int err;

	if (!h)
		return UW_E_NOMEM;
	h->port = port;
	err = listen_at_all(&p->at, h, named, &n);
	if (err) {
		close_some(h, n);
		say_no_descriptor(p, port, err);
		return held_ports_status(err);
	}
	h->next = p->list;
	p->list = h;
	p->n++;
	set_bit(p->bits, port, true);
	tell_of(p, port, true);
	*out = h;
	return UW_OK;
}

static void tell(struct held_ports *p, bool changed)
{
	if (changed && p->changed)
		p->changed(p->arg);
}

uw_status held_ports_claim(struct held_ports *p, uint16_t port, bool named)
{
	struct held_port *h;
	uw_status st = UW_OK;
	bool changed;

	pthread_mutex_lock(p->lock);
	changed = give_back_old(p);
	h = find(p, port);
	if (!h) {
		st = hold(p, port, named, &h);
		changed |= !st;
	}
	if (!st)
		h->users++;
	tell(p, changed);
	pthread_mutex_unlock(p->lock);
	return st;
}

void held_ports_release(struct held_ports *p, uint16_t port)
{
	struct held_port *h;

	pthread_mutex_lock(p->lock);
	h = find(p, port);
	if (h && h->users && !--h->users)
		h->free_since = now_s();
	tell(p, give_back_old(p));
	pthread_mutex_unlock(p->lock);
}

/* A program may have ended, and what it had be nobody's, where a SYN has to be refused at once. The
 * answer before stays until the next one: whoever cannot ask must not take the segments of its
 * connection to another program for its own, and answer them with RST. */
static void ask_anew(struct held_ports *p)
{
	for (unsigned i = 0; i < sizeof(p->asked) / sizeof(p->asked[0]); i++) {
		if (atomic_load_explicit(&p->asked[i], memory_order_relaxed))
			atomic_store_explicit(&p->asked[i], 0, memory_order_relaxed);
	}
}

void held_ports_tidy(struct held_ports *p)
{
	ask_anew(p);
	pthread_mutex_lock(p->lock);
	tell(p, give_back_old(p));
	pthread_mutex_unlock(p->lock);
}

void held_ports_forget(struct held_ports *p, uint16_t port)
{
	struct held_port **at;

	pthread_mutex_lock(p->lock);
	at = &p->list;
	while (*at && (*at)->port != port)
		at = &(*at)->next;
	if (*at) {
		drop(p, at);
		tell(p, true);
	}
	pthread_mutex_unlock(p->lock);
}

/* ---- whose a port is ------------------------------------------------------------------------ */

/* UNKNOWN: no descriptor is to be had, or the interface has lost the address. */
enum found { UNKNOWN, NOBODY, ANOTHER };

static enum found look_at(const struct held_at *at, unsigned i, uint16_t port)
{
	struct name n = name_of(at, i, port);
	int fd = socket(n.a.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	enum found found = NOBODY;

	if (fd < 0)
		return UNKNOWN;
	if (bind(fd, (const void *)&n.a, n.len))
		found = errno == EADDRINUSE ? ANOTHER : UNKNOWN;
	close(fd);
	return found;
}

/* At all addresses. */
static enum found look(const struct held_at *at, uint16_t port)
{
	enum found found = UNKNOWN;

	for (unsigned i = 0; i < at->n && found != ANOTHER; i++) {
		enum found here = look_at(at, i, port);

		found = here > found ? here : found;
	}
	return found;
}

bool held_ports_is_ours(struct held_ports *p, uint16_t port)
{
	bool others = held_ports_bit(p->others, port);
	enum found found;

	if (held_ports_has(p, port))
		return true;
	if (others && held_ports_bit(p->asked, port))
		return false;
	found = look(&p->at, port);
	if (found != UNKNOWN)
		others = found == ANOTHER;
	set_bit(p->others, port, others);
	set_bit(p->asked, port, others);
	return !others;
}

unsigned held_ports_list(const struct held_ports *p, uint16_t *out, unsigned max)
{
	unsigned n = 0;

	for (const struct held_port *h = p->list; h && n < max; h = h->next)
		out[n++] = h->port;
	return p->n;
}

/* ---- life ---------------------------------------------------------------------------------- */

/* Port 0 is any that is free. */
static uw_status try_one(const struct held_at *at)
{
	int fd = listen_deaf(at, 0, 0, false);

	if (fd >= 0) {
		fds_close(fd);
		return UW_OK;
	}
	if (fd == -EPERM || fd == -EACCES) {
		uw_log("no right to share an address with the kernel (CAP_NET_ADMIN): give an "
		       "unused address (--ip), be root, or let root start the program "
		       "by: " INTERFACE_GRANT);
		return UW_E_PERM;
	}
	uw_log("no TCP port can be held on the kernel's address: %s", strerror(-fd));
	return UW_E_ADDR;
}

uw_status held_ports_open(struct held_ports *p, const struct held_at *at, pthread_mutex_t *lock)
{
	memset(p, 0, sizeof(*p));
	p->at = *at;
	p->lock = lock;
	return try_one(at);
}

void held_ports_close(struct held_ports *p)
{
	while (p->list)
		drop(p, &p->list);
}
