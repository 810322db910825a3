#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# amid.sh FOLDER: a server that listens, and a program that has not opened its device yet, while the package is installed
# anew: says so by FOLDER/started, and goes on at FOLDER/installed. Whoever starts later talks to the server.
set -u
here=$1
uwarp-run -- rping -s -V -C 20 &
server=$!
uwarp-run -- python3 -c '
import os, runpy, sys, time
while not os.path.exists(sys.argv[2]):
    time.sleep(0.1)
runpy.run_path("/verbs_there.py", run_name="__main__")
' libibverbs.so.1 "$here/installed" &
late=$!
sleep 2
touch "$here/started"
until [ -e "$here/installed" ]; do sleep 0.1; done
uwarp-run -- rping -c -a 127.0.0.1 -V -C 20 || exit 1
wait $server || exit 1
wait $late
