/* SPDX-License-Identifier: BSD-3-Clause */
/* The command table and its dispatcher, commands that send nothing to the peer, and the node. */
#include "rdma_cm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "libc/raw.h"
#include "loader/loader.h"

/* ---- small things ----------------------------------------------------------------------- */

socklen_t cm_addr_len(const void *addr)
{
	switch (((const struct sockaddr *)addr)->sa_family) {
	case AF_INET:
		return sizeof(struct sockaddr_in);
	case AF_INET6:
		return sizeof(struct sockaddr_in6);
	default:
		return 0;
	}
}

bool cm_addr_is_any(const void *addr)
{
	const struct sockaddr_in *in = addr;
	const struct sockaddr_in6 *in6 = addr;

	if (in->sin_family == AF_INET)
		return in->sin_addr.s_addr == htonl(INADDR_ANY);
	return in->sin_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&in6->sin6_addr);
}

int cm_answer(const struct cm_call *c, uint64_t to, const void *resp, size_t len, size_t least)
{
	if (c->out < least)
		return -ENOSPC;
	if (!to)
		return -EFAULT;
	memcpy((void *)(uintptr_t)to, resp, len < c->out ? len : c->out);
	return 0;
}

bool cm_addr_is_loopback(const void *addr)
{
	const struct sockaddr_in *in = addr;
	const struct sockaddr_in6 *in6 = addr;

	if (in->sin_family == AF_INET)
		return in->sin_addr.s_addr == htonl(INADDR_LOOPBACK);
	return in->sin_family == AF_INET6 && IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
}

enum cm_state cm_id_state(const struct cm_id *id)
{
	enum cm_state state;

	cm_lock();
	state = id->state;
	cm_unlock();
	return state;
}

void cm_id_set_state(struct cm_id *id, enum cm_state state)
{
	cm_lock();
	id->state = state;
	cm_unlock();
}

/* ---- commands without a protocol side --------------------------------------------------- */

static int qp_type_of(const struct rdma_ucm_create_id *cmd)
{
	switch (cmd->ps) {
	case RDMA_PS_TCP:
		return CM_QPT_RC;
	case RDMA_PS_UDP:
	case RDMA_PS_IPOIB:
		return CM_QPT_UD;
	case RDMA_PS_IB:
		return cmd->qp_type;
	default:
		return -EINVAL;
	}
}

static int create_id(const struct cm_call *c)
{
	const struct rdma_ucm_create_id *cmd = c->in;
	struct rdma_ucm_create_id_resp resp;
	int qp_type = qp_type_of(cmd);
	struct cm_id *id;

	if (c->out < sizeof(resp))
		return -ENOSPC;
	if (qp_type < 0)
		return qp_type;
	if (!cmd->response)
		return -EFAULT;
	cm_lock();
	id = c->file->closed ? NULL : cm_id_new(c->file, cmd->uid, cmd->ps, (uint8_t)qp_type);
	if (id)
		resp.id = id->handle;
	cm_unlock();
	return id ? cm_answer(c, cmd->response, &resp, sizeof(resp), sizeof(resp)) : -ENOMEM;
}

static int destroy_id(const struct cm_call *c)
{
	const struct rdma_ucm_destroy_id *cmd = c->in;
	struct rdma_ucm_destroy_id_resp resp;
	int err;

	if (c->out < sizeof(resp))
		return -ENOSPC;
	err = cm_id_destroy(c->file, cmd->id, &resp.events_reported);
	return err ? err : cm_answer(c, cmd->response, &resp, sizeof(resp), sizeof(resp));
}

static int set_reuseaddr(struct cm_id *id, const void *value)
{
	int on;

	memcpy(&on, value, sizeof(on));
	if (on && cm_id_state(id) != CM_IDLE)
		return -EINVAL;
	id->shares_port = on;
	return 0;
}

static int set_afonly(struct cm_id *id, const void *value)
{
	const enum cm_state state = cm_id_state(id);
	int on;

	if (state != CM_IDLE && state != CM_BOUND)
		return -EINVAL;
	memcpy(&on, value, sizeof(on));
	id->only6 = on;
	return id->ep ? id->api->ep_only6(id->ep, on) : 0;
}

static int set_tos(struct cm_id *id, const void *value)
{
	id->tos = *(const uint8_t *)value;
	if (id->ep)
		id->api->ep_set_tos(id->ep, id->tos);
	return 0;
}

/* TCP has its own timers: it is kept for the program's queries (query.c). */
static int set_ack_timeout(struct cm_id *id, const void *value)
{
	id->ack_timeout = *(const uint8_t *)value;
	id->has_ack_timeout = true;
	return 0;
}

/* An option of an id, by name: its length, and whether QPs of a kind have it. */
static const struct id_option {
	uint32_t name, len;
	bool rc_only;
	int (*set)(struct cm_id *id, const void *value);
} id_options[] = {
	{ RDMA_OPTION_ID_TOS, sizeof(uint8_t), false, set_tos },
	{ RDMA_OPTION_ID_REUSEADDR, sizeof(int), false, set_reuseaddr },
	{ RDMA_OPTION_ID_AFONLY, sizeof(int), false, set_afonly },
	{ RDMA_OPTION_ID_ACK_TIMEOUT, sizeof(uint8_t), true, set_ack_timeout },
};

static int set_option(const struct cm_call *c)
{
	const struct rdma_ucm_set_option *cmd = c->in;

	if (cmd->level == RDMA_OPTION_IB && cmd->optname == RDMA_OPTION_IB_PATH)
		return -EINVAL; /* an iWARP device has no path records */
	if (cmd->level != RDMA_OPTION_ID)
		return -ENOSYS;
	for (size_t i = 0; i < sizeof(id_options) / sizeof(id_options[0]); i++) {
		const struct id_option *o = &id_options[i];

		if (o->name != cmd->optname)
			continue;
		if (o->len != cmd->optlen || (o->rc_only && c->id->qp_type != CM_QPT_RC))
			return -EINVAL;
		if (!cmd->optval)
			return -EFAULT;
		return o->set(c->id, (const void *)(uintptr_t)cmd->optval);
	}
	return -ENOSYS;
}

/* Only InfiniBand needs to be told of COMM_EST and the like. */
static int notify(const struct cm_call *c)
{
	return c->id->has_dev ? 0 : -EINVAL;
}

static void move(struct cm_id *id, struct cm_file *to)
{
	struct cm_events moved = TAILQ_HEAD_INITIALIZER(moved);
	struct cm_file *from = id->file;

	cm_events_take(id, &moved);
	LIST_REMOVE(id, link);
	id->file = to;
	LIST_INSERT_HEAD(&to->ids, id, link);
	cm_events_put_back(&moved);
	cm_file_signal(from);
	cm_file_signal(to);
}

static int migrate_id(const struct cm_call *c)
{
	const struct rdma_ucm_migrate_id *cmd = c->in;
	struct cm_file *from = cm_file_get((int)cmd->fd);
	struct rdma_ucm_migrate_resp resp;
	struct cm_id *id;
	int err;

	if (!from)
		return -ENOENT;
	err = cm_id_get(from, cmd->id, &id);
	if (!err) {
		cm_lock();
		if (id->file == from && !c->file->closed && !id->dying) {
			if (from != c->file)
				move(id, c->file);
			resp.events_reported = id->events_reported;
		} else {
			err = -EINVAL;
		}
		cm_unlock();
		cm_id_put(id);
	}
	fd_obj_put(&from->obj);
	return err ? err : cm_answer(c, cmd->response, &resp, sizeof(resp), sizeof(resp));
}

/* ---- the table -------------------------------------------------------------------------- */

#define NO_ID UINT16_MAX

/* Newer programs append fields (ECE); what is missing reads as zeros. */
#define ROW(cmd, least, id_at, fn)                                                                 \
	{                                                                                          \
		sizeof(struct cmd), least, id_at, fn                                               \
	}
#define ALL(cmd)	sizeof(struct cmd)
#define BEFORE_ECE(cmd) offsetof(struct cmd, ece)
#define ID(cmd)		offsetof(struct cmd, id)

static const struct command {
	uint16_t size, least; /* of the command, and what old programs send of it */
	uint16_t id_at;	      /* where it names its id */
	cm_cmd_fn *fn;	      /* NULL: the kernel has none either */
} commands[] = {
	[RDMA_USER_CM_CMD_CREATE_ID] =
		ROW(rdma_ucm_create_id, ALL(rdma_ucm_create_id), NO_ID, create_id),
	[RDMA_USER_CM_CMD_DESTROY_ID] =
		ROW(rdma_ucm_destroy_id, ALL(rdma_ucm_destroy_id), NO_ID, destroy_id),
	[RDMA_USER_CM_CMD_BIND_IP] =
		ROW(rdma_ucm_bind_ip, ALL(rdma_ucm_bind_ip), ID(rdma_ucm_bind_ip), cm_cmd_bind_ip),
	[RDMA_USER_CM_CMD_RESOLVE_IP] = ROW(rdma_ucm_resolve_ip, ALL(rdma_ucm_resolve_ip),
					    ID(rdma_ucm_resolve_ip), cm_cmd_resolve_ip),
	[RDMA_USER_CM_CMD_RESOLVE_ROUTE] = ROW(rdma_ucm_resolve_route, ALL(rdma_ucm_resolve_route),
					       ID(rdma_ucm_resolve_route), cm_cmd_resolve_route),
	[RDMA_USER_CM_CMD_QUERY_ROUTE] =
		ROW(rdma_ucm_query, ALL(rdma_ucm_query), ID(rdma_ucm_query), cm_cmd_query_route),
	[RDMA_USER_CM_CMD_CONNECT] = ROW(rdma_ucm_connect, BEFORE_ECE(rdma_ucm_connect),
					 ID(rdma_ucm_connect), cm_cmd_connect),
	[RDMA_USER_CM_CMD_LISTEN] =
		ROW(rdma_ucm_listen, ALL(rdma_ucm_listen), ID(rdma_ucm_listen), cm_cmd_listen),
	[RDMA_USER_CM_CMD_ACCEPT] = ROW(rdma_ucm_accept, BEFORE_ECE(rdma_ucm_accept),
					ID(rdma_ucm_accept), cm_cmd_accept),
	[RDMA_USER_CM_CMD_REJECT] =
		ROW(rdma_ucm_reject, ALL(rdma_ucm_reject), ID(rdma_ucm_reject), cm_cmd_reject),
	[RDMA_USER_CM_CMD_DISCONNECT] = ROW(rdma_ucm_disconnect, ALL(rdma_ucm_disconnect),
					    ID(rdma_ucm_disconnect), cm_cmd_disconnect),
	[RDMA_USER_CM_CMD_INIT_QP_ATTR] = ROW(rdma_ucm_init_qp_attr, ALL(rdma_ucm_init_qp_attr),
					      ID(rdma_ucm_init_qp_attr), cm_cmd_init_qp_attr),
	[RDMA_USER_CM_CMD_GET_EVENT] =
		ROW(rdma_ucm_get_event, ALL(rdma_ucm_get_event), NO_ID, cm_cmd_get_event),
	[RDMA_USER_CM_CMD_SET_OPTION] = ROW(rdma_ucm_set_option, ALL(rdma_ucm_set_option),
					    ID(rdma_ucm_set_option), set_option),
	[RDMA_USER_CM_CMD_NOTIFY] =
		ROW(rdma_ucm_notify, ALL(rdma_ucm_notify), ID(rdma_ucm_notify), notify),
	[RDMA_USER_CM_CMD_JOIN_IP_MCAST] = ROW(rdma_ucm_join_ip_mcast, ALL(rdma_ucm_join_ip_mcast),
					       ID(rdma_ucm_join_ip_mcast), cm_cmd_join_ip),
	[RDMA_USER_CM_CMD_LEAVE_MCAST] =
		ROW(rdma_ucm_destroy_id, ALL(rdma_ucm_destroy_id), NO_ID, cm_cmd_leave),
	[RDMA_USER_CM_CMD_MIGRATE_ID] =
		ROW(rdma_ucm_migrate_id, ALL(rdma_ucm_migrate_id), NO_ID, migrate_id),
	[RDMA_USER_CM_CMD_QUERY] =
		ROW(rdma_ucm_query, ALL(rdma_ucm_query), ID(rdma_ucm_query), cm_cmd_query),
	[RDMA_USER_CM_CMD_BIND] =
		ROW(rdma_ucm_bind, ALL(rdma_ucm_bind), ID(rdma_ucm_bind), cm_cmd_bind),
	[RDMA_USER_CM_CMD_RESOLVE_ADDR] = ROW(rdma_ucm_resolve_addr, ALL(rdma_ucm_resolve_addr),
					      ID(rdma_ucm_resolve_addr), cm_cmd_resolve_addr),
	[RDMA_USER_CM_CMD_JOIN_MCAST] = ROW(rdma_ucm_join_mcast, ALL(rdma_ucm_join_mcast),
					    ID(rdma_ucm_join_mcast), cm_cmd_join),
	[CM_CMD_WRITE_EVENT] =
		ROW(cm_write_event, ALL(cm_write_event), ID(cm_write_event), cm_cmd_write_event),
};

union any_command {
	struct rdma_ucm_accept accept;
	struct rdma_ucm_connect connect;
	struct rdma_ucm_reject reject;
	struct rdma_ucm_resolve_addr resolve_addr;
	struct rdma_ucm_join_mcast join_mcast;
	uint8_t octets[512];
};

/* The kernel's ids outlive a fork, as after daemon(3), so the program expects no error. Once in a
 * process: it does not change. */
static int lost_by_fork(void)
{
	static _Atomic pid_t said_in;
	pid_t pid = getpid();

	if (atomic_exchange(&said_in, pid) != pid)
		uw_log("process %d was forked, and what its parent has bound, resolved or "
		       "connected with rdma_cm stayed with the parent (EIO): call fork() or "
		       "daemon() before rdma_bind_addr() and rdma_resolve_addr()",
		       (int)pid);
	return -EIO;
}

static int run(const struct command *row, struct cm_call *c)
{
	uint32_t handle;
	int err;

	if (row->id_at == NO_ID)
		return row->fn(c);
	memcpy(&handle, (const uint8_t *)c->in + row->id_at, sizeof(handle));
	err = cm_id_get(c->file, handle, &c->id);
	if (err)
		return err;
	pthread_mutex_lock(&c->id->cmd);
	err = c->id->lost ? lost_by_fork() : row->fn(c);
	pthread_mutex_unlock(&c->id->cmd);
	cm_id_put(c->id);
	return err;
}

/* The row of the command in buf, and its header. A negative errno. */
static int parse(const void *buf, size_t len, struct rdma_ucm_cmd_hdr *hdr,
		 const struct command **row)
{
	if (len < sizeof(*hdr))
		return -EINVAL;
	memcpy(hdr, buf, sizeof(*hdr));
	if (hdr->cmd >= sizeof(commands) / sizeof(commands[0]) || hdr->in > len - sizeof(*hdr))
		return -EINVAL;
	*row = &commands[hdr->cmd];
	if (!(*row)->fn)
		return -ENOSYS;
	return hdr->in < (*row)->least ? -EINVAL : 0;
}

/* DESTROY_ID names one too, but waits for the commands that use it. */
static uint16_t id_named_at(unsigned cmd)
{
	return cmd == RDMA_USER_CM_CMD_DESTROY_ID ? offsetof(struct rdma_ucm_destroy_id, id)
						  : commands[cmd].id_at;
}

/* A whole command and nothing else, for an id of this file: what a program writes to another file
 * that got the number of a channel does not look like that. */
static bool file_is_meant(struct fd_obj *o, const void *buf, size_t len)
{
	struct rdma_ucm_cmd_hdr hdr;
	const struct command *row;
	uint16_t id_at;
	uint32_t handle;

	if (parse(buf, len, &hdr, &row) || sizeof(hdr) + hdr.in != len || hdr.in > row->size)
		return false;
	id_at = id_named_at(hdr.cmd);
	if (id_at == NO_ID)
		return hdr.cmd == RDMA_USER_CM_CMD_GET_EVENT &&
		       hdr.out == sizeof(struct rdma_ucm_event_resp);
	memcpy(&handle, (const uint8_t *)buf + sizeof(hdr) + id_at, sizeof(handle));
	return cm_id_is_of((struct cm_file *)o, handle);
}

/* When the process ends, the engine is closed first, and other threads may still send commands.
 * These fail. But making an id needs no engine, and some programs do not check its result (Ceph's
 * messenger): with the kernel's device it works until the process is gone. */
static bool works_without_engine(unsigned cmd)
{
	return cmd == RDMA_USER_CM_CMD_CREATE_ID;
}

static ssize_t file_write(struct fd_obj *o, int fd, const void *buf, size_t len)
{
	struct cm_call c = { .file = (struct cm_file *)o, .fd = fd };
	struct rdma_ucm_cmd_hdr hdr;
	const struct command *row;
	union any_command in;
	int err = parse(buf, len, &hdr, &row);

	if (err)
		return err;
	if (loader_ended() && !works_without_engine(hdr.cmd))
		return -ENODEV;
	memset(&in, 0, sizeof(in));
	memcpy(&in, (const uint8_t *)buf + sizeof(hdr), hdr.in < row->size ? hdr.in : row->size);
	c.in = &in;
	c.out = hdr.out;
	err = run(row, &c);
	return err ? err : (ssize_t)len;
}

/* ---- the node --------------------------------------------------------------------------- */

/* The handle of an id that nobody is destroying yet; 0: none. */
static uint32_t next_handle(struct cm_file *file)
{
	uint32_t handle = 0;
	struct cm_id *id;

	cm_lock();
	file->closed = true;
	LIST_FOREACH(id, &file->ids, link)
	if (!id->dying)
		handle = id->handle;
	cm_unlock();
	return handle;
}

static void file_closing(struct fd_obj *o)
{
	cm_file_linger((struct cm_file *)o);
}

static void file_closed(struct fd_obj *o)
{
	struct cm_file *file = (struct cm_file *)o;
	uint32_t handle, ignored;

	while ((handle = next_handle(file)))
		cm_id_destroy(file, handle, &ignored);
}

static void file_free(struct fd_obj *o)
{
	free(o);
}

static void file_forked(struct fd_obj *o)
{
	struct cm_file *file = (struct cm_file *)o;

	file->signalled = file->signalling = false; /* the pipe is new */
	/* the threads that looked or waited are the parent's */
	file->looking = file->waiting = 0;
	file->ended_tid = 0;
	cm_file_signal(file);
}

static const struct fd_class file_class = {
	.is_meant = file_is_meant,
	.write = file_write,
	.closing = file_closing,
	.closed = file_closed,
	.free = file_free,
	.forked = file_forked,
	.is_cdev = true,
	.is_pipe = true,
};

struct cm_file *cm_file_get(int fd)
{
	struct fd_obj *o = fdtab_get(fd);

	if (o && o->cls != &file_class) {
		fd_obj_put(o);
		return NULL;
	}
	return (struct cm_file *)o;
}

/* Without the stack there is no device to manage connections of. */
int cm_open(int flags)
{
	struct cm_file *file;
	int fd, err;

	if (!loader_engine())
		return -ENODEV;
	file = calloc(1, sizeof(*file));
	if (!file)
		return -ENOMEM;
	fd_obj_init(&file->obj, &file_class);
	fd = fd_obj_pipe(&file->obj);
	if (fd < 0) {
		free(file);
		return fd;
	}
	raw_fcntl(fd, F_SETFL, flags & O_NONBLOCK);
	raw_fcntl(fd, F_SETFD, flags & O_CLOEXEC ? FD_CLOEXEC : 0);
	TAILQ_INIT(&file->events);
	LIST_INIT(&file->ids);
	err = fdtab_add(fd, &file->obj);
	if (err) {
		raw_close(fd);
		raw_close(file->obj.wfd);
	}
	fd_obj_put(&file->obj);
	return err ? err : fd;
}
