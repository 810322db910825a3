/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests in the order of their connects. A process with several stacks begins its connections on
 * all of them, and its peer may take them in on several, so neither side's threads keep an order.
 * Programs count on one: they pair the connections of both sides by the order in which they began
 * them (perftest -R -q). So a Request is sent when TCP has delivered the one before it to the same
 * listener (doc/adr/0054). A stack that is alone keeps the order by itself.
 *
 * All functions are called under the lock of c's stack.
 */
#ifndef UWARP_CONN_ORDER_H
#define UWARP_CONN_ORDER_H

#include "conn/conn.h"

/* The longest wait for the Request of one other connection, whose peer may be slow, or gone. */
#define ORDER_LIMIT_US 200000u

/* c is about to connect. */
void order_begin(struct conn *c);
/* TCP is up. False: another Request goes first. Then deadline_us is set, for the caller to arm. */
bool order_may_ask(struct conn *c);
/* The peer has c's Request, or never will. Any state, once or more often. */
void order_done(struct conn *c);
/* c waits, and deadline_us has come: the one that c waits for is the first no more. True: it is c's
 * turn. False: deadline_us is set again. */
bool order_overdue(struct conn *c);
/* A connection of this stack whose turn has come, and which waits no more; NULL: none. */
struct conn *order_take_turn(struct stack *s);

#endif
