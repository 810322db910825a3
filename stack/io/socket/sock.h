/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the files of this folder, the transport over kernel sockets. */
#ifndef UWARP_SOCKET_SOCK_H
#define UWARP_SOCKET_SOCK_H

#include <sys/socket.h>

#include "io/llp.h"
#include "io/socket/host.h"

/* More than an FPDU, and room for two of the largest segments. */
#define SOCK_BUF (256u * 1024)

/* A buffer. Octets off to len are still to be used up (receive) or to be sent. */
struct sock_buf {
	struct sock_buf *next; /* next in sock.spare */
	size_t off, len;
	uint8_t data[SOCK_BUF];
};

/* A descriptor registered with epoll. */
struct sock_watch {
	int fd;
	uint32_t events; /* events that epoll is asked for */
	bool added;
	bool listens;
};

enum sock_conn_state {
	SOCK_CONN_CONNECTING,
	SOCK_CONN_OPEN,
	/* the user closed the connection; queued octets and the FIN go out, then we wait for the
	   peer's FIN */
	SOCK_CONN_LEAVING,
	/* freed at the end of the round, since events of the round may still name the connection */
	SOCK_CONN_DEAD,
};

struct llp_conn {
	struct sock_watch w;	       /* first: a sock_watch * is an llp_conn * */
	struct llp_conn *next, **link; /* list: sock.conns, sock.leaving or sock.dead */
	enum sock_conn_state state;
	void *ctx;
	int error;	  /* errno of connect or send; reported to the user from within poll() */
	uint32_t emss;	  /* the EMSS, from TCP_MAXSEG */
	size_t emss_left; /* octets to send until TCP_MAXSEG is read again */
	struct sock_buf *in, *out;
	bool building; /* tx_begin was called, tx_commit not yet */
	bool paused;
	bool full;		/* the kernel took no more octets; wait for EPOLLOUT */
	bool fin_came;		/* the peer's FIN came */
	bool fin_due, fin_sent; /* our FIN is to be sent after the queued octets; is sent */
	uint64_t leave_us;	/* SOCK_CONN_LEAVING: sock_conn_overdue() at this time */
	uint64_t look_us;	/* SOCK_CONN_LEAVING: look at `held` again at this time */
	int held; /* SOCK_CONN_LEAVING: octets that the peer had not acknowledged at the last look
		   */
	struct llp_addrs addrs;
};

struct llp_listener {
	struct sock_watch w; /* first */
	struct llp_listener *next, **link;
	struct io_link *l;
	void *ctx;
	/* accept() had no descriptor left: accept nothing before this time; 0: accept */
	uint64_t again_us;
};

/* The state of the transport, one per process (llp.h). */
struct sock {
	struct llp_config cfg;
	int epoll, bell; /* bell: an eventfd that ends sock_sleep */
	struct llp_conn *conns, *leaving, *dead;
	/* unheard: closed listeners, freed at the end of the round */
	struct llp_listener *listeners, *unheard;
	struct sock_buf *spare;
	unsigned n_spare;
	uint64_t young_us; /* until then timers run more often, since a connection is new */
};
extern struct sock sock;

static inline uint64_t sock_now_us(void)
{
	return sock.cfg.now_us(sock.cfg.arg);
}

/* addr.c */
socklen_t sock_addr_make(const struct uw_ip *ip, uint16_t port, struct sockaddr_storage *out);
void sock_addr_read(const struct sockaddr_storage *from, struct uw_ip *ip, uint16_t *port);
bool sock_is_own_net(const struct uw_ip *ip); /* is ip in 127.0.0.0/8, or ::1? */

/* poll.c */
/* Ask epoll for these events of w. False: errno says why not. */
bool sock_watch(struct sock_watch *w, uint32_t events);
struct sock_buf *sock_buf_get(void);
void sock_buf_put(struct sock_buf **b);
uw_status sock_init(const struct llp_config *cfg) UW_CHECK;
void sock_add_link(struct io_link *l);
void sock_remove_link(struct io_link *l);
unsigned sock_poll(void);
void sock_sleep(uint64_t us);
void sock_rouse(void);
void sock_timers(void);
uint64_t sock_next_timer_us(void);

/* conn.c */
struct llp_conn *sock_conn_new(int fd, void *ctx);
/* The connection is up: set the state and read the addresses from the kernel. */
void sock_conn_opened(struct llp_conn *c);
/* Close the socket; the user is not called. */
void sock_conn_kill(struct llp_conn *c);
/* The connection failed: close the socket and call closed(). */
void sock_conn_lost(struct llp_conn *c, int error);
void sock_conn_event(struct llp_conn *c, uint32_t events);
/* In SOCK_CONN_LEAVING: close the socket if both FINs are through or an error came, else wait. */
void sock_conn_leave(struct llp_conn *c);
/* In SOCK_CONN_LEAVING, octets or the FIN went out: wait for the peer from now on. */
void sock_conn_went(struct llp_conn *c);
/* In SOCK_CONN_LEAVING: has the peer taken something meanwhile? Then wait for it from now on. */
void sock_conn_look(struct llp_conn *c, uint64_t now_us);
/* In SOCK_CONN_LEAVING: end it now, with an RST unless the FIN is out. */
void sock_conn_overdue(struct llp_conn *c);
uw_status sock_connect(struct io_link *l, const struct llp_addrs *a, void *ctx,
		       struct llp_conn **out) UW_CHECK;
void sock_close(struct llp_conn *c);
void sock_shutdown(struct llp_conn *c);
void sock_abort(struct llp_conn *c);
unsigned sock_lingering(void);
struct llp_addrs sock_addrs(const struct llp_conn *c);
/* info.c */
void sock_info(const struct llp_conn *c, struct llp_info *out);
void sock_set_tos(struct llp_conn *c, uint8_t tos);

/* listen.c */
/* A socket with the options that all have; -1: errno says why. */
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
