/* SPDX-License-Identifier: BSD-3-Clause */
/* What --status prints: one line for the uwarpd, one for each client. */
#include <arpa/inet.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "io/log.h"
#include "server.h"

enum { LINE = 1024, ANSWER_MS = 2000 };

static void add_drops(char *line, const struct switch_counts *c)
{
	for (unsigned i = SWITCH_WHY_none + 1; i < SWITCH_WHY_COUNT; i++) {
		size_t used = strlen(line);

		if (c->by[i])
			snprintf(line + used, LINE - used, " %s %" PRIu64, switch_why(i), c->by[i]);
	}
}

/* What a reader that is too slow does not get, it does not get. False: it is long to wake, too. */
static bool tell(int fd, const char *line)
{
	struct wake_cost cost = { .suspect = true };
	struct wake_cost_time since = wake_cost_begin(&cost);

	send(fd, line, strlen(line), MSG_DONTWAIT | MSG_NOSIGNAL);
	return !wake_cost_end(&cost, since);
}

void status_addresses(const struct uplink *p, char out[STATUS_ADDRESSES])
{
	int n = p->addr ? snprintf(out, STATUS_ADDRESSES, "%s", log_addr(p->addr)) : 0;

	for (unsigned i = 0; i < p->n_ip6; i++) {
		char text[INET6_ADDRSTRLEN];

		inet_ntop(AF_INET6, p->ip6[i].ip.b, text, sizeof(text));
		n += snprintf(out + n, (size_t)(STATUS_ADDRESSES - n), "%s%s", n ? "," : "", text);
	}
}

void status_tell(const struct server *s, int fd)
{
	char line[LINE], addresses[STATUS_ADDRESSES];
	bool more;

	status_addresses(s->uplink, addresses);
	snprintf(line, LINE,
		 "uwarpd %s on %s: joined %" PRIu64 " refused %" PRIu64 " ended %" PRIu64
		 " faults %" PRIu64 " received %" PRIu64 " answered %" PRIu64 " lost %" PRIu64
		 " missed %" PRIu64 "; dropped:",
		 addresses, s->o.link, s->joined, s->refused, s->ended, s->faults, s->rx_frames,
		 s->answered, s->uplink->lost, s->uplink->missed);
	add_drops(line, &s->drops);
	more = tell(fd, line);
	for (unsigned i = 0; i < s->n && more; i++) {
		const struct client *c = s->active[i];

		if (c->state != CLIENT_UP)
			continue;
		snprintf(line, LINE,
			 "client %d uid %u ports %u qps %u sent %" PRIu64 " frames %" PRIu64
			 " octets, received %" PRIu64 " frames %" PRIu64 " octets; dropped:",
			 (int)c->pid, (unsigned)c->uid, c->ports, c->n_qps, c->tx_frames,
			 c->tx_octets, c->rx_frames, c->rx_octets);
		add_drops(line, &c->drops);
		more = tell(fd, line);
	}
}

int status_ask(const char *path)
{
	struct switch_msg ask = switch_msg_of(SWITCH_STATUS);
	int fd = switch_connect(path), rc;
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char line[LINE + 1];
	ssize_t got = 0;

	if (fd < 0) {
		uw_log("no uwarpd at %s (%s)", path, strerror(-fd));
		return 1;
	}
	rc = switch_send(fd, &ask, NULL, 0) ? 1 : 0;
	while (!rc && poll(&p, 1, ANSWER_MS) == 1 && (got = recv(fd, line, LINE, 0)) > 0)
		printf("%.*s\n", (int)got, line);
	close(fd);
	return rc;
}
