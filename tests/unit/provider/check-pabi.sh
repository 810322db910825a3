#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Compare verbs-provider/pabi.h with the driver.h of rdma-core source trees.
# RDMA_CORE_SRC names one or more of them (separated by spaces), e.g. what "apt-get source
# rdma-core" unpacks. Without it there is nothing to compare: exit 77 (skipped).
set -eu

here=$(cd "$(dirname "$0")" && pwd)
pabi_dir=$here/../../../verbs-provider
: "${CC:=cc}"

if [ -z "${RDMA_CORE_SRC:-}" ]; then
	echo "skipped: RDMA_CORE_SRC does not name an rdma-core source tree"
	exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

check() {
	src=$1
	inc=$2
	version=$(sed -n 's/^set(PACKAGE_VERSION "\([0-9]*\)\..*/\1/p' "$src/CMakeLists.txt")
	if ! grep -q '^set(IBVERBS_PABI_VERSION "34")' "$src/CMakeLists.txt"; then
		echo "rdma-core $version has another provider ABI than 34: $src"
		return 1
	fi
	mkdir -p "$inc/kernel-abi"
	ln -s "$src/libibverbs" "$inc/infiniband"
	ln -s "$src/kernel-headers/rdma" "$inc/rdma"
	ln -s "$src/ccan" "$inc/ccan"
	ln -s "$src/util" "$inc/util"
	: >"$inc/config.h"
	python3 "$src/buildlib/make_abi_structs.py" "$src/kernel-headers/rdma/ib_user_verbs.h" \
		"$inc/kernel-abi/ib_user_verbs.h"
	$CC -std=gnu11 -D_GNU_SOURCE -DIBVERBS_PABI_VERSION=34 -DVERBS_IOCTL_ONLY=0 \
		-DVERBS_WRITE_ONLY=0 -DRDMA_CORE="$version" -I"$inc" -I"$pabi_dir" \
		-o "$inc/check_pabi" "$here/check_pabi.c"
	"$inc/check_pabi"
}

n=0
for src in $RDMA_CORE_SRC; do
	n=$((n + 1))
	check "$src" "$work/$n"
done
