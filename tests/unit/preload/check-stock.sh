#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# ibv_devices, ibv_devinfo and rdma(8), as far as they are installed, must name uwarp0.
set -eu
tools=0
say() {
	command -v "$1" >/dev/null || return 0
	tools=$((tools + 1))
	"$@" >stock.out 2>&1 || { cat stock.out; echo "$* failed"; exit 1; }
	grep -q "$want" stock.out || { cat stock.out; echo "$* does not say: $want"; exit 1; }
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
want='uwarp0 .*0275fffe7f070001' say ibv_devices
want='node_guid:[[:space:]]*0275:fffe:7f07:0001' say ibv_devinfo -d uwarp0
want='uwarp0: node_type rnic' say rdma dev
want='uwarp0/1 state ACTIVE' say rdma link
test $tools -gt 0 || exit 77
