/* SPDX-License-Identifier: BSD-3-Clause */
/* What the files of this folder share: TCP connections of the kernel's. */
#ifndef UWARP_SOCKET_SOCK_H
#define UWARP_SOCKET_SOCK_H

#include <sys/socket.h>

#include "io/llp.h"
#include "io/socket/host.h"

/* More than an FPDU, or two segments of the largest kind. */
#define SOCK_BUF (256u * 1024)

/* Octets off to len wait: to be used up, or to be sent. */
struct sock_buf {
	struct sock_buf *next; /* sock.spare */
	size_t off, len;
	uint8_t data[SOCK_BUF];
};

/* A descriptor as epoll knows it. */
struct sock_watch {
	int fd;
	uint32_t events; /* asked for */
	bool added;
	bool listens;
};

enum conn_state {
	CONN_CONNECTING,
	CONN_OPEN,
	CONN_LEAVING, /* the user closed it: what is queued goes out, and then the peer's FIN comes
		       */
	CONN_DEAD,    /* freed at the end of the round: events may still name it */
};

struct llp_conn {
	struct sock_watch w;	       /* first */
	struct llp_conn *next, **link; /* sock.conns, sock.leaving, sock.dead */
	enum conn_state state;
	void *ctx;
	int error;	  /* of connecting or sending: told from within poll() */
	uint32_t emss;	  /* ... */
	size_t emss_left; /* octets until it is asked for again */
	struct sock_buf *in, *out;
	bool building; /* tx_begin without its commit */
	bool paused;
	bool full;		/* the kernel takes no more for now */
	bool fin_came;		/* the peer's */
	bool fin_due, fin_sent; /* ours, behind what is queued */
	uint64_t leave_us;	/* CONN_LEAVING: not beyond that */
	struct llp_addrs addrs;
};

struct llp_listener {
	struct sock_watch w; /* first */
	struct llp_listener *next, **link;
	struct io_link *l;
	void *ctx;
	uint64_t again_us; /* no descriptor was left: accept nothing before that */
};

/* The instance; llp.h has one per process. */
struct sock {
	struct llp_config cfg;
	int epoll, bell; /* bell: rings who sleeps */
	struct llp_conn *conns, *leaving, *dead;
	struct llp_listener *listeners, *unheard; /* unheard: freed at the end of the round */
	struct sock_buf *spare;
	unsigned n_spare;
	uint64_t young_us; /* until then a connection is new, and its user's timers short */
};
extern struct sock sock;

static inline uint64_t sock_now_us(void)
{
	return sock.cfg.now_us(sock.cfg.arg);
}

/* addr.c */
socklen_t sock_addr_make(const struct uw_ip *ip, uint16_t port, struct sockaddr_storage *out);
void sock_addr_read(const struct sockaddr_storage *from, struct uw_ip *ip, uint16_t *port);
bool sock_is_own_net(const struct uw_ip *ip); /* of 127.0.0.0/8, or ::1 */

/* poll.c */
/* False: errno says why. */
bool sock_watch(struct sock_watch *w, uint32_t events);
struct sock_buf *sock_buf_get(void);
void sock_buf_put(struct sock_buf **b);
void sock_init(const struct llp_config *cfg);
void sock_add_link(struct io_link *l);
void sock_remove_link(struct io_link *l);
unsigned sock_poll(void);
void sock_sleep(uint64_t us);
void sock_rouse(void);
void sock_timers(void);
uint64_t sock_next_timer_us(void);

/* conn.c */
struct llp_conn *sock_conn_new(int fd, void *ctx);
/* It is up: ask the kernel for what can be known of it. */
void sock_conn_opened(struct llp_conn *c);
/* It is gone, and its user has been told or knows. */
void sock_conn_kill(struct llp_conn *c);
/* It is gone, and its user hears of it. */
void sock_conn_lost(struct llp_conn *c, int error);
void sock_conn_event(struct llp_conn *c, uint32_t events);
/* After its time has come, or both FINs. */
void sock_conn_leave(struct llp_conn *c);
uw_status sock_connect(struct io_link *l, const struct llp_addrs *a, void *ctx,
		       struct llp_conn **out) UW_CHECK;
void sock_close(struct llp_conn *c);
void sock_shutdown(struct llp_conn *c);
void sock_abort(struct llp_conn *c);
unsigned sock_lingering(void);
struct llp_addrs sock_addrs(const struct llp_conn *c);
void sock_set_tos(struct llp_conn *c, uint8_t tos);

/* listen.c */
/* A socket of that family with what all have; -1: errno says why. */
int sock_new(int family, const struct io_link *l);
void sock_mark(int fd, uint8_t tos);
uw_status sock_status(int error);
uw_status sock_listen(struct io_link *l, const struct llp_place *at, int backlog, void *ctx,
		      struct llp_listener **out) UW_CHECK;
void sock_unlisten(struct llp_listener *ls);
bool sock_port_free(uint16_t port);
void sock_accept(struct llp_listener *ls);

/* stream.c */
void sock_receive(struct llp_conn *c);
void sock_pause(struct llp_conn *c);
void sock_resume(struct llp_conn *c);
uint8_t *sock_tx_begin(struct llp_conn *c, size_t *room);
void sock_tx_commit(struct llp_conn *c, size_t n);
void sock_tx_flush(struct llp_conn *c);

#endif
