/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include "clock.h"
#include "peer.h"
#include "log.h"

#define RETRY_EACH 20000u /* us */
#define BACKLOG	   128

static struct addrinfo *lookup(const char *host, const char *port, int flags)
{
	struct addrinfo hints = { .ai_flags = flags, .ai_socktype = SOCK_STREAM }, *found = NULL;

	if (getaddrinfo(host, port, &hints, &found))
		log_line("no address for %s port %s", host ? host : "any host", port);
	return found;
}

static int try(const struct addrinfo *a)
{
	int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

	if (fd < 0 || connect(fd, a->ai_addr, a->ai_addrlen)) {
		if (fd >= 0)
			close(fd);
		return -1;
	}
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	return fd;
}

int peer_connect(const struct server_name *to)
{
	uint64_t end = clock_ns() + (uint64_t)(to->patience * 1e9);
	struct addrinfo *a = lookup(to->host, to->port, 0);
	int fd;

	if (!a)
		return -EHOSTUNREACH;
	while ((fd = try(a)) < 0 && clock_ns() < end)
		usleep(RETRY_EACH);
	freeaddrinfo(a);
	return fd < 0 ? log_errno("%s does not listen on port %s", to->host, to->port) : fd;
}

int peer_listen(const struct options *o)
{
	struct addrinfo *a = lookup(o->bind, o->server.port, AI_PASSIVE);
	int fd, on = 1, err;

	if (!a)
		return -EHOSTUNREACH;
	fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on)); /* accepted ones inherit it */
	err = fd < 0 || bind(fd, a->ai_addr, a->ai_addrlen) || listen(fd, BACKLOG);
	freeaddrinfo(a);
	return err ? log_errno("cannot listen on port %s", o->server.port) : fd;
}
