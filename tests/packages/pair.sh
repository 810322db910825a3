#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# pair.sh [PROGRAM FLAGS]: a server and its client, each in its uwarp-run (BARE=1: as the environment says), which compare
# their data; rping by default.
set -u
run=uwarp-run; [ -z "${BARE:-}" ] || run=env
if [ $# = 0 ]; then
	server="rping -s -V -C 20" client="rping -c -a 127.0.0.1 -V -C 20"
else
	server="$1 $2" client="$1 $2 127.0.0.1"
fi
[ -n "${BARE:-}" ] || run="$run --"
$run $server &
server=$!
tries=0
until $run $client; do
	tries=$((tries + 1))
	kill -0 $server || exit 1
	[ $tries -lt 20 ] || { kill $server; exit 1; }
	sleep 0.3
done
wait $server
