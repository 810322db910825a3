/* SPDX-License-Identifier: BSD-3-Clause */
/* What is said on stderr about QPs whose peer was named. */
#include "base/log.h"
#include "conn/rc/rc.h"

/* Thousands of QPs may name one host: the first says what is wrong with it, the counter how many
 * others there are. */
static void log_rc(const struct rc *rc, const char *what)
{
	struct stack *s = rc_stack(rc);
	char addr[CONN_ADDR_TEXT];

	s->sched.stats.rc_failed++;
	if (!said_may(&s->domain->said, uw_ip_hash(&rc->peer.addr), (uintptr_t)what,
		      stack_now_us(s)))
		return;
	conn_print_addr(&rc->peer.addr, addr);
	uw_log("QP %u has no connection to QP %u at %s: %s", rc->self.qpn, rc->peer.qpn, addr,
	       what);
}

static const char *rc_advice(const struct rc *rc)
{
	if (!rc_connects(&rc->self, &rc->peer))
		return "it did not connect: is it a uwarp process, and has it named this QP (GID, "
		       "QP number) in ibv_modify_qp? Other iWARP devices need rdma_cm";
	switch (rc->last) {
	case UW_E_REFUSED:
		return "nothing there answers for QPs without rdma_cm: is it a uwarp process that "
		       "got as far as ibv_modify_qp(RTR)? Other iWARP devices need rdma_cm";
	case UW_E_REJECTED:
		return "that QP never got as far as RTR: has its program called ibv_modify_qp?";
	default:
		return conn_advice(rc_stack(rc), rc->last);
	}
}

void rc_log_no_peer(const struct rc *rc)
{
	log_rc(rc, rc_advice(rc));
}

void rc_log_refused(const struct rc *rc, enum rc_refusal why)
{
	switch (why) {
	case RC_NO_SUCH_QP:
	case RC_ELSEWHERE:
		log_rc(rc, "there is no such QP: check the QP number and the GID");
		break;
	case RC_OTHER_PEER:
		log_rc(rc, "it names another peer in ibv_modify_qp: check the QP numbers and the "
			   "GIDs on both sides");
		break;
	default:
		log_rc(rc, "the two sides do not agree on their addresses: check the GIDs");
		break;
	}
}
