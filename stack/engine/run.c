/* SPDX-License-Identifier: BSD-3-Clause */
/* One round of a stack through all rooms: frames in, completions, timers, frames out. */
#include "conn/rc/rc.h"
#include "engine/engine.h"

static struct verbs *verbs_of(const struct stack *s)
{
	return &engine_of(s->domain)->verbs;
}

static uint64_t segments(const struct stack *s)
{
	return s->sched.stats.mpa_rx_fpdus + s->sched.stats.tcp_tx_segments;
}

static bool merges(const struct stack *s)
{
	return s->n_links && s->links[0]->flags & IO_TSO;
}

/* Has the program something to hear of since qp_completed was `since`? */
static bool has_completed(const struct stack *s, uint64_t since)
{
	return s->sched.stats.qp_completed != since;
}

/* A long message is several merged frames. To acknowledge the first takes a call of the kernel, in
 * which the next one waits: so that one, if it is there, is taken in before. */
static unsigned receive(struct stack *s, uint64_t completed)
{
	unsigned frames = stack_receive(s);

	if (frames && merges(s) && !has_completed(s, completed) && stack_pending(s, true))
		frames += stack_receive(s);
	return frames;
}

/* Where frames come and go merged, their segments count: sched judges by it how steadily a program
 * drives the stack, and few large frames looked like a program that seldom does.
 * An ACK waits for the program's answer if the program now gets something to answer, or if nothing
 * came since it did. */
static unsigned run(void *arg, bool comes_back)
{
	struct stack *s = arg;
	uint64_t before = segments(s), completed = s->sched.stats.qp_completed;
	unsigned frames = receive(s, completed);
	bool answer;

	stack_complete_acked(s);
	verbs_run(verbs_of(s), s);
	answer = comes_back && (!frames || has_completed(s, completed));
	stack_transmit(s, answer ? LLP_ACKS_URGENT : LLP_ACKS_ALL);
	return merges(s) ? frames + (unsigned)(segments(s) - before) : frames;
}

static void flush(void *arg)
{
	stack_flush(arg);
}

static void timers(void *arg, uint64_t now_us)
{
	struct stack *s = arg;

	stack_timers(s, now_us);
	rc_timers(s, now_us);
}

static bool pending(void *arg, bool links)
{
	return stack_pending(arg, links);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t next_timer_us(void *arg, uint64_t now_us)
{
	struct stack *s = arg;
	uint64_t at = earlier(stack_next_timer_us(s, now_us), rc_next_timer_us(s, now_us));

	return earlier(at, verbs_next_due_us(verbs_of(s), s));
}

static void sleep_in_llp(void *arg, uint64_t us)
{
	((struct stack *)arg)->llp->sleep(us);
}

static void rouse_llp(void *arg)
{
	((struct stack *)arg)->llp->rouse();
}

const struct sched_ops engine_sched_ops = {
	.run = run,
	.flush = flush,
	.timers = timers,
	.pending = pending,
	.next_timer_us = next_timer_us,
};

const struct sched_ops engine_sched_ops_sleeping = {
	.run = run,
	.flush = flush,
	.timers = timers,
	.pending = pending,
	.next_timer_us = next_timer_us,
	.sleep = sleep_in_llp,
	.rouse = rouse_llp,
};

/* ---- a stack that sleeps in its link --------------------------------------------------------- */

/* A post of the program may set a timer meanwhile, and does not wake who sleeps in a link. */
#define LINK_SLEEP_US 10000u

static struct io_link *link_of(const struct stack *s)
{
	return s->links[0];
}

static void sleep_in_link(void *arg, uint64_t us)
{
	link_of(arg)->ops->sleep(link_of(arg), us < LINK_SLEEP_US ? us : LINK_SLEEP_US);
}

static void rouse_link(void *arg)
{
	link_of(arg)->ops->rouse(link_of(arg));
}

const struct sched_ops engine_sched_ops_link_sleeps = {
	.run = run,
	.flush = flush,
	.timers = timers,
	.pending = pending,
	.next_timer_us = next_timer_us,
	.sleep = sleep_in_link,
	.rouse = rouse_link,
};

/* ---- a forked child's --------------------------------------------------------------------- */

static unsigned no_run(void *arg, bool comes_back)
{
	(void)arg;
	(void)comes_back;
	return 0;
}

static void no_flush(void *arg)
{
	(void)arg;
}

static void no_timers(void *arg, uint64_t now_us)
{
	(void)arg;
	(void)now_us;
}

static bool not_pending(void *arg, bool links)
{
	(void)arg;
	(void)links;
	return false;
}

static uint64_t never(void *arg, uint64_t now_us)
{
	(void)arg;
	(void)now_us;
	return UINT64_MAX;
}

const struct sched_ops engine_sched_ops_dead = {
	.run = no_run,
	.flush = no_flush,
	.timers = no_timers,
	.pending = not_pending,
	.next_timer_us = never,
};
