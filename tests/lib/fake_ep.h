/* SPDX-License-Identifier: BSD-3-Clause */
/* The endpoints' functions, for the table in fake_engine.c. */
#ifndef UWARP_TEST_FAKE_EP_H
#define UWARP_TEST_FAKE_EP_H

#include "fake_engine.h"

int fake_engine_start(struct uw_engine *e);
void fake_engine_end(struct uw_engine *e);

__typeof__(uw_ep_create) fake_ep_create;
__typeof__(uw_ep_set_ctx) fake_ep_set_ctx;
__typeof__(uw_ep_share_port) fake_ep_share_port;
__typeof__(uw_ep_only6) fake_ep_only6;
__typeof__(uw_ep_set_tos) fake_ep_set_tos;
__typeof__(uw_ep_set_datagrams) fake_ep_set_datagrams;
__typeof__(uw_ep_bind) fake_ep_bind;
__typeof__(uw_ep_resolve) fake_ep_resolve;
__typeof__(uw_ep_listen) fake_ep_listen;
__typeof__(uw_ep_connect) fake_ep_connect;
__typeof__(uw_ep_accept) fake_ep_accept;
__typeof__(uw_ep_reject) fake_ep_reject;
__typeof__(uw_ep_disconnect) fake_ep_disconnect;
__typeof__(uw_ep_destroy) fake_ep_destroy;
__typeof__(uw_ep_local_addr) fake_ep_local_addr;
__typeof__(uw_ep_peer_addr) fake_ep_peer_addr;
__typeof__(uw_ep_peer_gid) fake_ep_peer_gid;
__typeof__(uw_later) fake_later;

#endif
