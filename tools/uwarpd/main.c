/* SPDX-License-Identifier: BSD-3-Clause */
/* uwarpd: one network port for many processes without rights (doc/adr/0031, uwarpd(8)). */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"
#include "listen.h"
#include "rights.h"
#include "sched/sched.h"
#include "server.h"

static volatile bool ended;

static void on_end(int sig)
{
	(void)sig;
	ended = true;
}

static void catch_signals(void)
{
	struct sigaction end = { .sa_handler = on_end }, ignore = { .sa_handler = SIG_IGN };

	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGPIPE, &ignore, NULL);
	sigaction(SIGHUP, &ignore, NULL);
}

/* Clients and ports have descriptors. */
static void raise_limits(void)
{
	struct rlimit r;

	if (getrlimit(RLIMIT_NOFILE, &r))
		return;
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
}

int main(int argc, char **argv)
{
	struct server *s = calloc(1, sizeof(*s));
	char addresses[STATUS_ADDRESSES];
	int rc = s ? options_parse(&s->o, argc, argv) : 1;

	if (rc < 0 && s->o.status)
		rc = status_ask(s->o.path);
	if (rc >= 0) {
		free(s);
		return rc;
	}
	catch_signals();
	raise_limits();
	sched_ask_for_short_slices();
	prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);
	rc = 1;
	if (server_open(s) && rights_drop(&s->o, s->uplink->needs_admin)) {
		status_addresses(s->uplink, addresses);
		uw_log("uwarpd: %s on %s, socket %s", addresses, s->o.link,
		       s->inherited ? "from systemd" : s->o.path);
		listen_notify("READY=1");
		rc = server_run(s, &ended) ? 0 : 1;
		listen_notify("STOPPING=1");
	}
	server_close(s);
	free(s);
	return rc;
}
