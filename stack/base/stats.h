/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counters for every layer boundary. Each stack has one struct, written under the stack lock only,
 * so the counters are plain integers. Names have the form layer_direction_what; doc/ describes
 * each.
 */
#ifndef UWARP_BASE_STATS_H
#define UWARP_BASE_STATS_H

#include <stdint.h>

/* clang-format off */
#define UW_STATS_LIST(X) \
	X(ip_rx_unwanted) \
	X(ip_rx_fragments) \
	X(tcp_rx_bytes) \
	X(tcp_tx_segments) \
	X(tcp_tx_bytes) \
	X(tcp_syn_dropped) \
	X(tcp_tx_copied) \
	X(tcp_tx_again) \
	X(tcp_tx_probes) \
	X(tcp_timeouts) \
	X(tcp_assertions) \
	X(tcp_syn_recycled) \
	X(tcp_rx_blind) \
	X(tcp_rx_old) \
	X(tcp_path_shorter) \
	X(tcp_black_holes) \
	X(tcp_tx_cut) \
	X(tcp_stalled) \
	X(icmp_rx_refused) \
	X(ip_conflicts) \
	X(member_rx) \
	X(member_tx) \
	X(tcp_rx_copied_out) \
	X(tcp_rx_no_memory) \
	X(mpa_rx_fpdus) \
	X(mpa_rx_straddling) \
	X(mpa_rx_crc_errors) \
	X(mpa_tx_fpdus) \
	X(ddp_rx_tagged) \
	X(ddp_rx_untagged) \
	X(ddp_rx_errors) \
	X(ddp_tx_tagged) \
	X(ddp_tx_untagged) \
	X(rdmap_rx_messages) \
	X(rdmap_tx_messages) \
	X(rdmap_rx_terminates) \
	X(rdmap_tx_terminates) \
	X(payload_rx_bytes) \
	X(payload_tx_bytes) \
	X(qp_completed) \
	X(qp_flushed) \
	X(cq_overflows) \
	X(roce_tx_packets) \
	X(roce_rx_packets) \
	X(roce_rx_bad) \
	X(roce_rx_icrc_errors) \
	X(roce_rx_no_qp) \
	X(roce_rx_bad_qkey) \
	X(roce_rx_no_receive) \
	X(roce_rx_too_long) \
	X(roce_rx_lost) \
	X(roce_rx_refused) \
	X(sidr_rx_requests) \
	X(sidr_rx_stale) \
	X(sidr_rx_unknown) \
	X(sidr_rx_dropped) \
	X(rc_asked) \
	X(rc_told) \
	X(rc_failed) \
	X(rnr_waits) \
	X(rnr_timeouts) \
	X(cm_requests) \
	X(cm_established) \
	X(cm_failed) \
	X(cm_not_taken) \
	X(cm_closed) \
	X(cm_end_waited) \
	X(conn_bad_state) \
	X(conn_silent_dropped) \
	X(conn_stalled) \
	X(conn_silent_refused) \
	X(conn_host_refused) \
	X(post_inline) \
	X(post_ring) \
	X(post_held) \
	X(drive_app) \
	X(drive_rx) \
	X(rx_sleeps) \
	X(app_sleeps) \
	X(drive_wait) \
	X(wait_sleeps) \
	X(take_overs) \
	X(rx_moves) \
	X(lock_looks) \
	X(lock_waits)
/* clang-format on */

struct uw_stats {
#define UW_STAT(name) uint64_t name;
	UW_STATS_LIST(UW_STAT)
#undef UW_STAT
};

#endif
