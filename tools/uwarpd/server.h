/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The uwarpd: its port, its clients, and what it knows of them. One thread does everything but to
 * read and to close what strangers send.
 *
 *   server.c     the socket, clients that come and go, the loop
 *   conns.c      connections, with a thread each
 *   mail.c       what comes over one
 *   client.c     one client: its messages
 *   ports.c      which client has which TCP port
 *   qps.c        which client has which QP
 *   forward.c    frames between conduits and the port
 *   status.c     what --status prints
 */
#ifndef UWARPD_SERVER_H
#define UWARPD_SERVER_H

#include <sys/types.h>

#include "io/switch/classify.h"
#include "io/switch/conduit.h"
#include "io/switch/msg.h"
#include "conns.h"
#include "left.h"
#include "options.h"
#include "wake_cost.h"
#include "uplink.h"

enum {
	HELLO_US = 2000000,	 /* to join */
	HEARD_US = HELLO_US / 4, /* whoever comes is heard after that, at the latest */
};

enum client_state {
	CLIENT_NEW,   /* has connected, and we have not heard it yet */
	CLIENT_TOLD,  /* has our WELCOME */
	CLIENT_UP,    /* its frames are forwarded */
	CLIENT_ENDED, /* to be freed */
};

/* A QP that a client has, of datagrams or of RC without rdma_cm. */
struct held_qp {
	uint32_t qpn;
	uint64_t until_us; /* it was released, and is kept so long; 0: it is in use */
};

struct client {
	uint16_t id; /* in struct switch_table */
	enum client_state state;
	struct conn *conn; /* which reads and closes all of these: */
	int fd;		   /* to answer */
	int wake_fd;	   /* the socket by which we wake it where it polls; -1: none */
	uid_t uid;
	pid_t pid;
	uint64_t deadline_us; /* NEW, TOLD: when it must be up */
	struct conduit conduit;
	_Atomic uint32_t *bell;	    /* its doorbell */
	int ring_fd;		    /* the eventfd by which it wakes us */
	bool touched;		    /* frames were put into its conduit since it was last woken */
	struct wake_cost wake_cost; /* of waking it */
	bool blocked;	     /* the port had no room for its next frame, and can be waited on */
	unsigned messages;   /* that it may still send in this tick */
	unsigned ports;	     /* that it has, those in linger included */
	struct held_qp *qps; /* in no order; room for qps_room */
	unsigned n_qps, qps_room;
	double may_send;				     /* octets, if there is a rate */
	uint64_t tx_frames, tx_octets, rx_frames, rx_octets; /* from the client, to it */
	struct switch_counts drops; /* of what it sent; room: of what came */
};

/* A port that its client has released, and keeps for a while; or has left when it ended, and which
 * is yet to be given back. In a list, the one whose turn comes first in front. */
struct lingering {
	uint64_t until_us; /* 0: it is in use, or free */
	uint32_t next, prev;
};

/* How many ports a user has of the uplink, those that are yet to be given back included. */
struct user_ports {
	uid_t uid;
	unsigned n; /* 0: the entry is free */
};

enum { PORTS = 65536 };
/* Of all QP numbers, so many in each: they are random, and each that was left has a piece. */
enum { LEFT_PIECE = 128, LEFT_PIECES = SWITCH_QPN_END / LEFT_PIECE };
struct left_piece {
	uint32_t until_s; /* of the last of them */
	struct left of[LEFT_PIECE];
};
/* How many QPs a user has left lately. */
struct left_sum {
	uid_t uid;
	unsigned n;
	uint32_t until_s; /* then it is counted anew */
};
enum { LEFT_USERS = 64 };
/* A user whose client was long to wake when it ended. */
struct left_cost {
	uid_t uid;
	uint64_t alone_us; /* its next ones are left alone until then, or for HEARD_US */
	uint64_t until_us; /* and are suspect until then */
};

struct server {
	struct options o;
	struct uplink *uplink;
	struct switch_table table;
	struct client *client[SWITCH_CLIENTS_MAX + 1]; /* by id; [0] is unused */
	struct client *active[SWITCH_CLIENTS_MAX];     /* all of them, in no order */
	unsigned n, turn; /* turn: the first one to be served in the next round */
	int listen_fd;
	bool inherited; /* listen_fd came from systemd */
	int wait_fd;	/* epoll: everything that ends a sleep */
	bool port_gone; /* the uplink's */
	struct conns *conns;
	int stir_fd;	/* written to when connections have something for us */
	bool muted;	/* a client sends messages too fast: it is heard in the next tick */
	unsigned heard; /* whose message is heard first */
	bool behind;	/* not all were heard yet */
	bool late;	/* a client is not woken yet (wake_cost.h) */
	int bell_fd;
	_Atomic uint32_t *bell; /* page with our doorbell */
	uint64_t now_us, tick_us, ends_us, began_us;
	uint64_t looked_us;   /* when it last looked at connections between rounds */
	uint64_t no_yield_us; /* until then it sleeps instead of spinning */
	unsigned take;	      /* frames of the port that the next round takes */
	/* By port, and those of IPv6 behind. 0 is no port: its entry is the list's two ends. */
	struct lingering linger[2 * PORTS];
	unsigned linger_n; /* on the list */
	struct user_ports user[SWITCH_CLIENTS_MAX];
	uid_t port_of[2 * PORTS]; /* as linger: whom a port is counted for */
	unsigned user_ports;	  /* of a user, at most: others need some, too */
	uint64_t gave_us;	  /* when ports were last given back */
	struct left left_ports[PORTS], left_ports6[PORTS]; /* by port: who left it */
	struct left_piece *left_qps[LEFT_PIECES];	   /* by QP number; NULL: nobody left any */
	struct left_sum left_sums[LEFT_USERS];
	struct left_cost left_costs[LEFT_USERS];
	unsigned left_at; /* the piece to look at next */
	unsigned lingering_qps;
	uint64_t joined, refused, ended, faults, sleeps;
	struct switch_counts drops; /* of what came in at the port */
	uint64_t rx_frames, answered;
	uint8_t whole[CONDUIT_FRAME_MAX]; /* a frame that waited in the port */
};

/* server.c. False: one line on stderr says why. */
bool server_open(struct server *s);
/* Until *ended is set. False: one line on stderr says why it does not run, or not any more. */
bool server_run(struct server *s, const volatile bool *ended);
void server_close(struct server *s);

/* client.c */
/* A message, or the end of its connection. */
void client_hear(struct server *s, struct client *c, const struct mail *m);
/* A client leaves, or comes: one that joins again and again is as long to wake as it was. Others of
 * its user are heard all the same, before they give up. */
void client_leaves_cost(struct server *s, const struct client *c);
void client_takes_cost(struct server *s, struct client *c);
/* We have woken it, since when the time of `since` is over: count what it cost. */
void client_woken(struct server *s, struct client *c, struct wake_cost_time since);
/* It is to be hung up on. */
void client_refuse(struct server *s, struct client *c, enum switch_msg_why why);
void client_hang_up(struct server *s, struct client *c);
/* Free it and all that belongs to it. What is in its conduit is forwarded first. */
void client_free(struct server *s, struct client *c);

/* ports.c */
/* A port of each version of IP is one by itself. */
enum switch_msg_why ports_claim(struct server *s, struct client *c, uint16_t port_be,
				enum io_versions v);
void ports_release(struct server *s, struct client *c, uint16_t port_be, enum io_versions v);
/* They are nobody's at once: the connections are dead, and whoever holds the address resets their
 * peers as soon as ports_tick has given the ports back. Only the client's user may claim them
 * meanwhile (left.h): a server that comes again has its port at once, and its TCP resets what it
 * does not know. */
void ports_release_all(struct server *s, struct client *c);
/* Give back those whose time is over: a few at a time. */
void ports_tick(struct server *s);

/* qps.c */
/* QP number qpn is c's from now on. SWITCH_CM_QP may be that of others, too. */
enum switch_msg_why qps_claim(struct server *s, struct client *c, uint32_t qpn);
void qps_release(struct server *s, struct client *c, uint32_t qpn);
void qps_release_all(struct server *s, struct client *c);
/* Do packets to QPs reach clients, questions for RC QPs among them? The port is asked for them. */
bool qps_are_asked_for(struct server *s);
/* Free what is known of QPs that were left. */
void qps_close(struct server *s);
/* Give back those whose time is over. */
void qps_tick(struct server *s);

/* forward.c */
/* One round: some frames of each client, some of the port. Returns how many. */
unsigned forward_round(struct server *s);
/* The last frames of a client; wakes those whose they are. */
void forward_rest(struct server *s, struct client *c);
/* Every tick: wake those that could not be woken before. */
void forward_wake_late(struct server *s);
/* Is there anything to forward now, as far as one can see without a system call? */
bool forward_pending(const struct server *s);
/* Does any frame wait for room in the port? */
bool forward_blocked(const struct server *s);
/* Does every client sleep, so that none needs this CPU? */
bool forward_all_asleep(const struct server *s);
/* Some client has frames that it may not send yet. */
bool forward_throttled(const struct server *s);
/* Every tick: each client may send so much more. */
void forward_refill(struct server *s, double seconds);

/* status.c */
/* All addresses of the port, with commas between them. */
enum { STATUS_ADDRESSES = 320 };
void status_addresses(const struct uplink *p, char out[STATUS_ADDRESSES]);
void status_tell(const struct server *s, int fd);
/* The other end: ask, and print. Returns the exit code. */
int status_ask(const char *path);

#endif
