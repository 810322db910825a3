/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "hot.h"
#include "mover.h"
#include "peer.h"
#include "log.h"

#define ASKED_MAX    256u
#define IDLE_US	     1000u
#define BALANCE_EACH 50u /* idle rounds */

struct mover {
	struct store *store;
	struct peer peer;
	pthread_t thread;
	_Atomic bool stop, alone; /* alone: the SoC is gone */
	uint8_t *value;		  /* of the key that moves */
	pthread_mutex_t lock;	  /* guards what follows */
	struct hot hot;
	struct {
		struct kv_key key;
		bool out;
	} asked[ASKED_MAX];
	unsigned first, count;
	uint64_t moved_out, moved_in, lost;
};

static struct span span_of(const struct kv_key *k)
{
	return (struct span){ k->octets, k->length };
}

/* ---- one key ----------------------------------------------------------------------------- */

/* Frozen here, a copy there, ours no more, theirs. -ECONNRESET: the SoC is gone; -ECANCELED: the
 * key stays as it is, for the SoC may have taken it or not. */
static int move_out(struct mover *m, const struct kv_key *k)
{
	struct span key = span_of(k), value = { m->value, KV_VALUE_MAX };
	struct kv_entry e;
	int err = store_change(m->store, key, KV_HERE, KV_FROZEN);

	if (err)
		return err;
	err = store_peek(m->store, key, &value, &e);
	if (!err)
		err = peer_call(&m->peer, KV_ADOPT, k, value);
	if (err == -ECANCELED)
		return err;
	if (err) {
		store_change(m->store, key, KV_FROZEN, KV_HERE);
		return err;
	}
	if (store_set(m->store, key, (struct span){ NULL, 0 }, KV_MOVED))
		store_change(m->store, key, KV_FROZEN,
			     KV_MOVED); /* no memory for a smaller record */
	m->moved_out++;
	return peer_call(&m->peer, KV_COMMIT, k, (struct span){ NULL, 0 });
}

static int move_in(struct mover *m, const struct kv_key *k)
{
	struct span key = span_of(k), value = { m->value, KV_VALUE_MAX }, none = { NULL, 0 };
	int err = peer_take(&m->peer, k, &value);

	if (err)
		return err;
	err = store_set(m->store, key, value, KV_PENDING);
	if (err) {
		peer_call(&m->peer, KV_KEEP, k, none);
		return err;
	}
	err = peer_call(&m->peer, KV_DROP, k, none);
	if (err == -ECANCELED)
		return err;
	m->moved_in++;
	/* whatever became of the SoC, the value is here */
	if (value.p)
		store_change(m->store, key, KV_PENDING, KV_HERE);
	else
		store_forget(m->store, key);
	return err;
}

static void lose(struct mover *m)
{
	m->alone = true;
	m->lost = store_settle(m->store);
	log_line("the SoC is gone, and %lu keys with it", m->lost);
	peer_hang_up(&m->peer); /* if it lives after all, it hears that it is alone, too */
}

static void move(struct mover *m, const struct kv_key *k, bool out)
{
	int err = out ? move_out(m, k) : move_in(m, k);

	if (!err) {
		pthread_mutex_lock(&m->lock);
		hot_moved(&m->hot, k, out);
		pthread_mutex_unlock(&m->lock);
	}
	if (err == -ECONNRESET)
		lose(m);
}

/* ---- which ------------------------------------------------------------------------------- */

static bool next_asked(struct mover *m, struct kv_key *key, bool *out)
{
	bool is = false;

	pthread_mutex_lock(&m->lock);
	if (m->count) {
		*key = m->asked[m->first].key;
		*out = m->asked[m->first].out;
		m->first = (m->first + 1) % ASKED_MAX;
		m->count--;
		is = true;
	}
	pthread_mutex_unlock(&m->lock);
	return is;
}

static bool next_hot(struct mover *m, struct kv_key *key, bool *out)
{
	bool is;

	pthread_mutex_lock(&m->lock);
	is = hot_next(&m->hot, key, out);
	pthread_mutex_unlock(&m->lock);
	return is;
}

static void *work(void *arg)
{
	struct mover *m = arg;
	struct kv_key key;
	bool out;

	for (unsigned round = 0; !m->stop && !m->alone; round++) {
		while (!m->stop && !m->alone &&
		       (next_asked(m, &key, &out) || next_hot(m, &key, &out)))
			move(m, &key, out);
		if (!m->stop && !m->alone && peer_is_gone(&m->peer))
			lose(m);
		if (round % BALANCE_EACH == 0) {
			pthread_mutex_lock(&m->lock);
			hot_balance(&m->hot);
			pthread_mutex_unlock(&m->lock);
		}
		usleep(IDLE_US);
	}
	return NULL;
}

/* ---- from other threads ------------------------------------------------------------------ */

int mover_hear(struct mover *m, struct span counts)
{
	struct kv_hot h; /* they may lie anywhere */

	if (counts.n % sizeof(h))
		return -EINVAL;
	pthread_mutex_lock(&m->lock);
	for (uint32_t at = 0; at < counts.n; at += sizeof(h)) {
		memcpy(&h, (const uint8_t *)counts.p + at, sizeof(h));
		if (h.length >= KV_KEY_MIN && h.length <= KV_KEY_MAX)
			hot_hear(&m->hot, &h);
	}
	pthread_mutex_unlock(&m->lock);
	return 0;
}

int mover_ask(struct mover *m, struct span key, bool out)
{
	int err = m->alone ? -ENODATA : 0;

	if (key.n < KV_KEY_MIN || key.n > KV_KEY_MAX)
		return -EINVAL;
	pthread_mutex_lock(&m->lock);
	if (!err && m->count == ASKED_MAX)
		err = -EAGAIN;
	if (!err) {
		unsigned at = (m->first + m->count++) % ASKED_MAX;

		m->asked[at].out = out;
		m->asked[at].key.length = (uint8_t)key.n;
		memcpy(m->asked[at].key.octets, key.p, key.n);
	}
	pthread_mutex_unlock(&m->lock);
	return err;
}

/* ---- life -------------------------------------------------------------------------------- */

int mover_open(struct mover **made, const struct kv_options *o, struct store *store)
{
	struct mover *m = calloc(1, sizeof(*m));
	int err;

	if (!m)
		return -ENOMEM;
	*made = m;
	m->store = store;
	m->stop = true; /* there is no thread */
	pthread_mutex_init(&m->lock, NULL);
	m->value = malloc(KV_VALUE_MAX);
	err = m->value ? hot_open(&m->hot, (unsigned)o->hot) : -ENOMEM;
	if (!err)
		err = peer_open(&m->peer, o, &m->stop);
	if (err)
		return err;
	m->stop = false;
	if (pthread_create(&m->thread, NULL, work, m)) {
		m->stop = true;
		return log_errno("no thread");
	}
	return 0;
}

void mover_stop(struct mover *m)
{
	if (m->stop)
		return;
	m->stop = true;
	pthread_join(m->thread, NULL);
}

void mover_report(const struct mover *m, struct report *r)
{
	report_count(r, "moved_out", m->moved_out);
	report_count(r, "moved_in", m->moved_in);
	report_count(r, "lost", m->lost);
}

void mover_close(struct mover *m)
{
	peer_close(&m->peer);
	hot_close(&m->hot);
	pthread_mutex_destroy(&m->lock);
	free(m->value);
	free(m);
}
