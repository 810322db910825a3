/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What comes over a control connection. Whoever has the socket may send any descriptor, and closing
 * one may block for hours: a TCP socket that lingers (SO_LINGER), a file of FUSE. So does the
 * kernel in our name, with those that came with what we have not read. Therefore all of this
 * happens in the connection's own thread (conns.h), and no descriptor goes on but memory of ours.
 */
#ifndef UWARPD_MAIL_H
#define UWARPD_MAIL_H

#include <sys/types.h>

#include "io/switch/msg.h"

struct mail {
	struct switch_msg m;
	bool ended;  /* the connection has, or it was no message; nothing else is valid */
	bool lost;   /* a descriptor could not come: we have none left */
	bool alien;  /* one that came is not what it should be */
	int memory;  /* sealed memory, a page or a region: whoever reads the mail owns it; -1: none
		      */
	int wake_fd; /* HELLO: the wake socket, which stays the connection's; -1: none */
};

/* One end of a connection, as its thread has it. */
struct mail_box {
	int fd;
	uid_t uid;
	pid_t pid;
	int wake_fd; /* -1: none came */
	struct mail mail;
};

/* Read the next message to b->mail. False: there is none yet. */
bool mail_receive(struct mail_box *b);
/* Close everything. May block. */
void mail_close(struct mail_box *b);

#endif
