/* SPDX-License-Identifier: BSD-3-Clause */
/* The rdma_cm kernel ABI by hand, for tests that look at it more closely than librdmacm does. */
#ifndef UWARP_TEST_ABI_H
#define UWARP_TEST_ABI_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <sys/types.h>

#include <cmocka.h>
#include <rdma/rdma_user_cm.h>

enum { EV_ADDR_RESOLVED, EV_ADDR_ERROR, EV_ROUTE_RESOLVED };
enum {
	EV_REQUEST = 4,
	EV_CONNECT_RESPONSE,
	EV_CONNECT_ERROR,
	EV_UNREACHABLE,
	EV_REJECTED,
	EV_ESTABLISHED
};
enum { EV_DISCONNECTED = 10 };

#define ENGINE_ADDR 0x7f070001u
#define ENGINE_GUID 0x0275fffe7f070001u

/* The node, as rdma_create_event_channel() opens it. */
int cm_node(void);

/* One command; 0 or a negative errno. */
int cm_cmd(int fd, unsigned cmd, const void *in, size_t in_len, size_t out_len);
#define CM_CMD(fd, name, in) cm_cmd(fd, RDMA_USER_CM_CMD_##name, &(in), sizeof(in), 0)

/* An id; every one has a uid of its own, above 1000. */
uint32_t cm_create(int fd, unsigned ps);
int cm_destroy(int fd, uint32_t id, uint32_t *reported);
struct sockaddr_in6 cm_addr(uint32_t a, uint16_t port);
int cm_bind(int fd, uint32_t id, uint32_t a, uint16_t port);
int cm_listen(int fd, uint32_t id, int backlog);
int cm_resolve(int fd, uint32_t id, uint32_t a, uint16_t port, unsigned timeout_ms);
int cm_route(int fd, uint32_t id);
int cm_query(int fd, uint32_t id, struct rdma_ucm_query_route_resp *r);
int cm_connect(int fd, uint32_t id, uint32_t qpn, const char *data, unsigned ird, unsigned ord);
int cm_accept(int fd, uint32_t id, uint64_t uid, uint32_t qpn, const char *data);
/* rdma_establish(). */
int cm_establish(int fd, uint32_t id);
int cm_reject(int fd, uint32_t id, const char *data);
int cm_disconnect(int fd, uint32_t id);
int cm_event(int fd, struct rdma_ucm_event_resp *r);

/* Is there an event within ms? */
bool cm_readable(int fd, int ms);
/* The next event must be this one; it must come soon. */
struct rdma_ucm_event_resp cm_expect(int fd, unsigned event, int status);
void cm_expect_none(int fd, int ms);
/* Wait until the thread that has stored its number there sleeps. */
void cm_until_asleep(const _Atomic int *tid);

/* An id that is resolved to 127.0.0.1:port and has its route; its two events are fetched. */
uint32_t cm_routed(int fd, uint16_t port);
/* A listener on port. */
uint32_t cm_listener(int fd, uint16_t port, int backlog);

#endif
