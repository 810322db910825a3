# SPDX-License-Identifier: BSD-3-Clause
"""uwarp-seq: the tickets are a permutation without gaps."""

from stagehands import check

SERVER = "{server}"


def whole(audit, tickets):
    check(audit["given"] == tickets, f"{audit['given']} tickets were given instead of {tickets}")
    check(audit["orphans"] == audit["adopted"], f"{audit['orphans']} tickets belong to nobody, {audit['adopted']} were adopted")
    check(audit["beyond"] == 0, "tickets that were never given have owners")


def permutation(play):
    """Three clients at once, each way, one ticket at a time and in batches."""
    server = play.serve("uwarp-seq serve -t 2")
    total = {"faa": 0, "rpc": 0}
    for mode, batch in (("faa", 1), ("faa", 7), ("rpc", 1), ("rpc", 7)):
        words = f"uwarp-seq take {SERVER} --mode {mode} --batch {batch} --verify -n 21000 --json --quiet"
        for client in [play.begin(words, f"client{n}") for n in (1, 2, 3)]:
            total[mode] += play.result(client)["tickets"]
    for mode, tickets in total.items():
        whole(play.ask(f"uwarp-seq audit {SERVER} --mode {mode}"), tickets)
    play.end(server)


def killed(play):
    """A client is killed in the middle: what it had been given and not claimed yet is found, and no more than that."""
    window, batch = 8, 4
    server = play.serve("uwarp-seq serve")
    for mode in ("faa", "rpc"):
        words = f"uwarp-seq take {SERVER} --mode {mode} --verify --batch {batch} -w {window} --json --quiet"
        victim = play.begin(f"{words} -s 30", "client1")
        victim.until_busy()
        other = play.begin(f"{words} -n 40K", "client2")
        victim.kill()
        victim.wait(5)
        play.result(other)
        audit = play.ask(f"uwarp-seq audit {SERVER} --mode {mode} --adopt", "client3")
        check(audit["orphans"] <= window * batch, f"{audit['orphans']} orphans, more than were under way")
        again = play.ask(f"uwarp-seq audit {SERVER} --mode {mode}", "client3")
        check(again["orphans"] == 0 and again["beyond"] == 0, "the adopted tickets are nobody's")
    play.end(server)


def sleeping(play):
    """Both ends wait for events."""
    server = play.serve("uwarp-seq serve --events")
    for mode in ("faa", "rpc"):
        got = play.ask(f"uwarp-seq take {SERVER} --mode {mode} --events --verify -n 3000 -w 4")
        whole(play.ask(f"uwarp-seq audit {SERVER} --mode {mode}"), got["tickets"])
    play.end(server)


def planted(play):
    """A server that gives tickets twice is found out."""
    server = play.serve("uwarp-seq serve --fault twice")
    play.ask(f"uwarp-seq take {SERVER} --mode rpc --verify -n 5000", rc=1)
    play.end(server)


CASES = {"permutation": permutation, "killed": killed, "sleeping": sleeping, "planted fault": planted}
