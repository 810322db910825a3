/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libc/waits.h"
#include "loader/loader.h"
#include "rdma_cm.h"

struct cm cm = {
	.lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP, /* held for a moment at a time */
	.changed = PTHREAD_COND_INITIALIZER,
	.resolves = TAILQ_HEAD_INITIALIZER(cm.resolves),
	.first_free = 1,
};
_Thread_local volatile bool cm_locked_here;

/* The lowest free handle, as in the kernel: librdmacm indexes an array with them. 0: no memory. */
static uint32_t handle_take(void)
{
	uint32_t h = cm.first_free, room;
	struct cm_id **ids;

	while (h < cm.room && cm.ids[h])
		h++;
	if (h >= cm.room) {
		room = cm.room ? cm.room * 2 : 64;
		ids = realloc(cm.ids, room * sizeof(*ids));
		if (!ids)
			return 0;
		memset(ids + cm.room, 0, (room - cm.room) * sizeof(*ids));
		cm.ids = ids;
		cm.room = room;
	}
	cm.first_free = h + 1;
	return h;
}

static void handle_give(uint32_t h)
{
	cm.ids[h] = NULL;
	if (h < cm.first_free)
		cm.first_free = h;
}

struct cm_id *cm_id_new(struct cm_file *file, uint64_t uid, uint16_t ps, uint8_t qp_type)
{
	struct cm_id *id = calloc(1, sizeof(*id));

	if (!id)
		return NULL;
	id->handle = handle_take();
	if (!id->handle) {
		free(id);
		return NULL;
	}
	id->uid = uid;
	id->ps = ps;
	id->qp_type = qp_type;
	id->file = file;
	TAILQ_INIT(&id->events);
	TAILQ_INIT(&id->reserve);
	pthread_mutex_init(&id->cmd, NULL);
	LIST_INSERT_HEAD(&file->ids, id, link);
	cm.ids[id->handle] = id;
	return id;
}

static int find(const struct cm_file *file, uint32_t handle, struct cm_id **out)
{
	struct cm_id *id = handle < cm.room ? cm.ids[handle] : NULL;

	if (!id)
		return -ENOENT;
	if (id->file != file)
		return -EINVAL;
	*out = id;
	return 0;
}

int cm_id_get(struct cm_file *file, uint32_t handle, struct cm_id **out)
{
	int err;

	cm_lock();
	err = find(file, handle, out);
	if (!err)
		(*out)->refs++;
	cm_unlock();
	return err;
}

bool cm_id_is_of(const struct cm_file *file, uint32_t handle)
{
	struct cm_id *id;
	bool is;

	cm_lock();
	is = !find(file, handle, &id);
	cm_unlock();
	return is;
}

void cm_id_put(struct cm_id *id)
{
	cm_lock();
	id->refs--;
	pthread_cond_broadcast(&cm.changed);
	cm_unlock();
}

int cm_id_endpoint(struct cm_id *id)
{
	const struct uw_api *api;
	struct uw_engine *e;
	int err;

	if (id->ep)
		return 0;
	api = loader_api();
	e = loader_engine();
	if (!e)
		return -ENODEV;
	loader_starting();
	err = api->ep_create(e, cm_on_event, id, &id->ep);
	if (!err && cm_id_is_ud(id))
		err = api->ep_set_datagrams(id->ep);
	if (err && id->ep)
		api->ep_destroy(id->ep);
	if (err) {
		id->ep = NULL;
		return err;
	}
	id->api = api;
	if (id->tos)
		api->ep_set_tos(id->ep, id->tos);
	return 0;
}

/* An IPv6 program that speaks IPv4 sees that as ::ffff:a.b.c.d, and never two families at one id.
 */
void cm_id_local_addr(struct cm_id *id, sa_family_t family, struct sockaddr_storage *a)
{
	struct sockaddr_in6 mapped = { .sin6_family = AF_INET6 };
	const struct sockaddr_in *in = (struct sockaddr_in *)a;

	id->api->ep_local_addr(id->ep, a);
	if (family != AF_INET6 || a->ss_family != AF_INET)
		return;
	mapped.sin6_port = in->sin_port;
	mapped.sin6_addr.s6_addr[10] = mapped.sin6_addr.s6_addr[11] = 0xff;
	memcpy(&mapped.sin6_addr.s6_addr[12], &in->sin_addr, sizeof(in->sin_addr));
	memset(a, 0, sizeof(*a));
	memcpy(a, &mapped, sizeof(mapped));
}

void cm_id_under_way(struct cm_id *id, bool on)
{
	if (id->under_way == on)
		return;
	id->under_way = on;
	/* relaxed: a hint to threads that yield */
	atomic_fetch_add_explicit(&waits_under_way, on ? 1u : -1u, memory_order_relaxed);
}

static void endpoint_drop(struct cm_id *id)
{
	static const struct uw_cm_param nothing;

	if (!id->ep)
		return;
	if (id->unanswered)
		id->api->ep_reject(id->ep, &nothing);
	id->api->ep_destroy(id->ep);
	id->ep = NULL;
	cm_spare_drop(id);
}

/* Take it off its file, with its events. The caller holds cm.lock. */
static void unlink_id(struct cm_id *id, struct cm_events *rest)
{
	cm_events_take(id, rest);
	cm_mcs_free(id);
	cm_file_signal(id->file);
	LIST_REMOVE(id, link);
}

static void free_events(struct cm_events *list)
{
	struct cm_event *e;

	while ((e = TAILQ_FIRST(list))) {
		TAILQ_REMOVE(list, e, link);
		free(e);
	}
}

void cm_id_free(struct cm_id *id)
{
	endpoint_drop(id);
	free_events(&id->reserve);
	pthread_mutex_destroy(&id->cmd);
	free(id);
}

int cm_id_destroy(struct cm_file *file, uint32_t handle, uint32_t *events_reported)
{
	struct cm_events rest = TAILQ_HEAD_INITIALIZER(rest);
	struct cm_id *id;
	int err;

	cm_lock();
	err = find(file, handle, &id);
	if (err) {
		cm_unlock();
		return err;
	}
	id->dying = true;
	handle_give(handle);
	pthread_cond_broadcast(&cm.changed);
	while (id->refs)
		pthread_cond_wait(&cm.changed, &cm.lock);
	if (!id->resolving) {
		cm_unlock();
		endpoint_drop(id); /* no callback runs after it */
		cm_lock();
	}
	cm_id_under_way(id, false);
	unlink_id(id, &rest);
	*events_reported = id->events_reported;
	/* From here on it is resolve.c's if that still uses it. */
	id->orphaned = id->resolving;
	if (id->orphaned)
		id = NULL;
	cm_unlock();

	cm_events_discard(&rest);
	if (id)
		cm_id_free(id);
	return 0;
}

/* ---- fork ------------------------------------------------------------------------------- */

void cm_fork_free_lock(void)
{
	pthread_mutex_init(&cm.lock, NULL);
	cm_locked_here = false;
}

void cm_fork_prepare(void)
{
	cm_lock();
}

void cm_fork_parent(void)
{
	cm_unlock();
}

/* What the parent had connected, bound or queued stays the parent's. Its ids remain here as empty
 * shells: every command on one but DESTROY_ID fails. */
static void id_lose(struct cm_id *id)
{
	struct cm_events rest = TAILQ_HEAD_INITIALIZER(rest);

	cm_events_take(id, &rest);
	free_events(&rest);
	id->lost = true;
	cm_id_under_way(id, false);
	id->ep = NULL;
	id->spare = NULL;
}

void cm_fork_child(bool lost)
{
	/* Only the forking thread came along: nobody else holds an id or waits. */
	pthread_cond_init(&cm.changed, NULL);
	TAILQ_INIT(&cm.resolves);
	for (uint32_t h = 0; h < cm.room; h++) {
		struct cm_id *id = cm.ids[h];

		if (!id)
			continue;
		id->refs = 0;
		id->resolving = false;
		pthread_mutex_init(&id->cmd, NULL);
		if (lost)
			id_lose(id);
	}
	cm_unlock();
}
