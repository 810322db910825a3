#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Compare verbs-provider/pabi.h with the driver.h of rdma-core source trees: those that tools/setup
# has fetched, or those that RDMA_CORE_SRC names (separated by spaces). With none there is nothing
# to compare: exit 77 (skipped).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
pabi_dir=$here/../../../verbs-provider
cache=${XDG_CACHE_HOME:-$HOME/.cache}/uwarp
: "${CC:=cc}"

if [ -z "${RDMA_CORE_SRC:-}" ]; then
	RDMA_CORE_SRC=$(ls -d "$cache"/rdma-core-*/CMakeLists.txt 2>/dev/null | xargs -r dirname)
fi
if [ -z "$RDMA_CORE_SRC" ]; then
	echo "skipped: no rdma-core source tree in $cache: run tools/setup test"
	exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check() {
	src=$1
	inc=$2
	version=$(sed -n 's/^set(PACKAGE_VERSION "\([0-9]*\)\..*/\1/p' "$src/CMakeLists.txt")
	abi=$(sed -n 's/^set(IBVERBS_PABI_VERSION "\([0-9]*\)").*/\1/p' "$src/CMakeLists.txt")
	if [ "$abi" -gt 65 ]; then
		echo "rdma-core $version: newer than what uwarp knows (provider ABI $abi)"
		return
	fi
	mkdir -p "$inc/kernel-abi" "$inc/infiniband"
	ln -s "$src/libibverbs"/*.h "$src/kernel-headers/rdma/ib_user_ioctl_verbs.h" "$inc/infiniband"
	ln -s "$src/kernel-headers/rdma" "$inc/rdma"
	ln -s "$src/ccan" "$inc/ccan"
	ln -s "$src/util" "$inc/util"
	: >"$inc/config.h"
	/usr/bin/python3 "$src/buildlib/make_abi_structs.py" "$src/kernel-headers/rdma/ib_user_verbs.h" \
		"$inc/kernel-abi/ib_user_verbs.h"
	$CC -std=gnu11 -D_GNU_SOURCE "-DIBVERBS_PABI_VERSION=$abi" -DVERBS_IOCTL_ONLY=0 \
		-DVERBS_WRITE_ONLY=0 -DRDMA_CORE="$version" -I"$inc" -I"$pabi_dir" \
		-o "$inc/check_pabi" "$here/check_pabi.c"
	"$inc/check_pabi"
	compared=$((compared + 1))
}

n=0 compared=0
for src in $RDMA_CORE_SRC; do
	n=$((n + 1))
	check "$src" "$work/$n"
done
[ "$compared" -gt 0 ] || exit 77
