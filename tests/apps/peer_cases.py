# SPDX-License-Identifier: BSD-3-Clause
"""uwarp-tcp-peer, with which uwarp-bench apps compares: its own calls, and memcached where there is one."""

import os
import shutil

from stagehands import check
from harness import Skipped, listens

PORT = 21000 + os.getpid() % 10000


def talk(play, protocol, more=""):
    words = [play.app("uwarp-tcp-peer"), "run", "127.0.0.1", "-p", str(PORT), "--protocol", protocol, "--json", "--quiet", *more.split()]
    return play.result(play.start_plain("client1", words))


def calls(play):
    """Tickets and look-ups over the loopback; keys that the tree has are found."""
    server = play.start_plain("server", [play.app("uwarp-tcp-peer"), "serve", "--bind", "127.0.0.1", "-p", str(PORT), "--events", "--keys", "2000"])
    listens(PORT)(server)
    for protocol, more in (("seq", "-t 2"), ("btree", "--mix A --keys 2000 -w 32"), ("btree", "--mix C --keys 2000 --events -w 1")):
        got = talk(play, protocol, f"{more} -n 3000")
        check(got["operations"] == 3000, str(got))
    server.stop()


def memcached(play):
    program = shutil.which("memcached")
    if not program:
        raise Skipped("memcached is not installed")
    user = ["-u", "root"] if os.getuid() == 0 else []
    server = play.start_plain("server", [program, *user, "-l", "127.0.0.1", "-p", str(PORT), "-U", "0", "-t", "1"])
    listens(PORT)(server)
    got = talk(play, "memcached", "--load --keys 500 --value 3000 --mix A -n 3000 -w 4")
    check(got["operations"] == 3500, str(got))
    server.stop()


CASES = {"calls": calls, "memcached": memcached}
