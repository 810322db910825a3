# SPDX-License-Identifier: BSD-3-Clause
"""Every program over a network that loses, reorders and delays."""

import subprocess

from stagehands import check

import impairment
from harness import UWARP_RUN, Skipped

NETWORK = "drop=1%,reorder=2%,delay=50us"
BAD = ["--impair", f"{NETWORK},seed=11", "--verbose"]


def impaired(play):
    """What comes before the address in both programs' options."""
    known = subprocess.run([UWARP_RUN, "--help"], capture_output=True, text=True).stdout
    if "--impair" not in known:
        raise Skipped("uwarp-run has no --impair")
    play.extra = BAD


def end(play, server):
    """And every program had that network."""
    play.end(server)
    missing = impairment.missing(NETWORK, [p.err for p in play.programs])
    check(not missing, missing)


def seq(play):
    impaired(play)
    server = play.serve("uwarp-seq serve")
    for mode in ("faa", "rpc"):
        got = play.ask(f"uwarp-seq take {{server}} --mode {mode} --verify -n 2000")
        audit = play.ask(f"uwarp-seq audit {{server}} --mode {mode}")
        check(audit["given"] == got["tickets"] and audit["orphans"] == 0, f"{got['tickets']} tickets, {audit}")
    end(play, server)


def kv(play):
    impaired(play)
    server = play.serve("uwarp-kv serve")
    got = play.ask("uwarp-kv run {server} --load --verify --mix A --deletes 8 --value 32-9000 --keys 300 --get hybrid -n 3000")
    check(got["wrong"] == 0, str(got))
    end(play, server)


def btree(play):
    impaired(play)
    for by in ("reads", "mail"):
        server = play.serve("uwarp-btree serve --page 1024 --keys 2000 --mail")
        got = play.ask(f"uwarp-btree run {{server}} --keys 2000 --by {by} --mix A --deletes 4 --scans 10 --verify -n 3000")
        check(got["wrong"] == 0, str(got))
        end(play, server)
        play.forget(server)


def rate(play):
    impaired(play)
    server = play.serve("uwarp-rate serve")
    for op in ("write", "read", "send", "faa"):
        play.ask(f"uwarp-rate run {{server}} --op {op} --post-list 8 --verify -n 4000")
    end(play, server)


CASES = {"sequencer": seq, "key-value store": kv, "tree": btree, "rate": rate}
