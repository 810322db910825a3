# SPDX-License-Identifier: BSD-3-Clause
"""uwarp-kv: every answer against what was written and acknowledged."""

import os

from stagehands import check

RUN = "uwarp-kv run {server}"


def fresh(play, serve, words):
    """A run on a server of its own: the oracle knows nothing of what others wrote."""
    server = play.serve(serve)
    got = play.ask(f"{RUN} {words} --load --verify")
    check(got["wrong"] == 0, f"{words}: {got}")
    play.end(server)
    play.forget(server)
    return got


def mixes(play):
    """YCSB's mixes, each way of reading and writing, two threads, with deletes."""
    for mix, ways in (
        ("A", "--get reads --put send --deletes 8"), ("A", "--get rpc --put imm --deletes 8"), ("B", "--get hybrid --put staged"),
        ("C", "--get reads --dist uniform"), ("A", "--get reads --deletes 8 --cache 4Ki"), ("B", "--get hybrid --cache 100"), ("D", "--get reads"), ("D", "--get rpc"), ("F", "--get hybrid --deletes 8"),
    ):  # fmt: skip
        got = fresh(play, "uwarp-kv serve -t 2", f"--mix {mix} {ways} --keys 3000 --value 32-1500 -t 2 -n 30K")
        check(got["operations"] == 30000, f"{mix} {ways}: {got}")
        if "--cache 4Ki" in ways:
            check(0 < got["outdated"] < got["by_reads"], f"{mix} {ways}: what was kept was not used, or never out of date: {got}")
        if "reads" in ways:
            check(got["by_rpc"] <= got["by_reads"] / 100, f"{mix} {ways}: GETs went by calls")


def sizes(play):
    """Keys of 16 to 250 octets, values of 32 to 1 MiB."""
    for key, value, keys, ops, window in ((16, "32", 1000, 5000, 8), (250, "32-4000", 500, 5000, 8), (17, "4000-5000", 300, 3000, 8),
                                          (100, "32-1Mi", 40, 300, 4), (16, "1Mi", 10, 60, 2)):  # fmt: skip
        for get in ("reads", "rpc"):
            words = f"--mix A --key {key} --value {value} --keys {keys} -n {ops} -w {window} --get {get} --deletes 10"
            got = fresh(play, "uwarp-kv serve --memory 1Gi", words)
            check(got["no_memory"] == 0, f"{words}: {got}")


def together(play):
    """Three processes write keys of their own and read everybody's."""
    journal = os.path.join(play.folder, "journal")
    server = play.serve("uwarp-kv serve -t 2")
    shared = f"--journal {journal} --keys 999 --value 32-2000 --deletes 8 --verify --json --quiet"
    for n in range(3):
        play.ask(f"{RUN} {shared} --writer {n}/3 --load --mix C -n 10")
    clients = [play.begin(f"{RUN} {shared} --writer {n}/3 --mix A --get {get} -n 25K", f"client{n + 1}")
               for n, get in enumerate(("reads", "rpc", "hybrid"))]  # fmt: skip
    for client in clients:
        got = play.result(client)
        check(got["wrong"] == 0 and got["operations"] == 25000, str(got))
    play.ask_nothing(f"uwarp-kv check {{server}} {shared}")
    play.end(server)


def killed(play):
    """A client is killed in the middle of its writes, again and again; none that was acknowledged is lost."""
    journal = os.path.join(play.folder, "journal")
    server = play.serve("uwarp-kv serve")
    words = f"--journal {journal} --keys 500 --value 32-6000 --deletes 8 --verify --mix A --json --quiet"
    play.ask(f"{RUN} {words} --load -n 100")
    for put in ("send", "imm", "staged"):
        victim = play.begin(f"{RUN} {words} --put {put} -s 30")
        victim.until_busy()
        victim.kill()
        victim.wait(5)
        play.ask_nothing(f"uwarp-kv check {{server}} {words}", "client2")
        play.ask(f"{RUN} {words} -n 2000", "client2")
    play.end(server)


def memory(play):
    """Out of memory is an answer, and what is there stays right."""
    server = play.serve("uwarp-kv serve --memory 8Mi --buckets 256")
    got = play.ask(f"{RUN} --load --verify --keys 9000 --value 1000-3000 --mix A --deletes 4 -n 20K")
    check(got["no_memory"] > 0, "nothing ran out")
    said = f"{got['no_memory']} writes found no memory"
    check(said in play.programs[-1].err, f"it says '{play.programs[-1].err}'")
    check(got["hits"] > 0 and got["wrong"] == 0, str(got))
    play.end(server)


def sleeping(play):
    server = play.serve("uwarp-kv serve --events")
    for get in ("reads", "rpc"):
        play.ask(f"{RUN} --events --get {get} --load --verify --keys 500 --mix A -n 3000 -w 4")
    play.end(server)


def planted(play):
    """A client that does not check what it has read gets torn values; the oracle finds them."""
    server = play.serve("uwarp-kv serve")
    program = play.begin(f"{RUN} --fault believe --load --verify --keys 4 --value 1000-9000 --mix A --dist uniform -w 32 -n 300K")
    check(program.wait(60) == 1, "it did not find anything wrong")
    check("torn" in program.err or "is lost" in program.err or "was read where" in program.err, f"it says '{program.err}'")
    got = play.ask(f"{RUN} --load --verify --keys 4 --value 1000-9000 --mix A --dist uniform -w 32 -n 30K")
    check(got["wrong"] == 0 and got["torn"] > 0, f"with its checks: {got}")
    play.end(server)


def longer(play):
    """Values longer than a client has room for: it is told so, or gets those that a message holds; nothing is written beyond its room."""
    server = play.serve("uwarp-kv serve --events")
    long, short = "--keys 60 --key 24 --value 20000", "--keys 60 --key 24 --value 100"
    play.ask(f"{RUN} {long} --load -n 1")
    for get in ("reads", "rpc", "hybrid"):
        program = play.begin(f"{RUN} {short} --get {get} --mix C -n 3000 -w 16")
        got = program.wait(20)
        check(got == 1 and "has a longer value than --value says, which is 100" in program.err, f"{get}: exit code {got}, '{program.err.strip()}'")
    where = play.ask("uwarp-kv where {server} --keys 60 --key 24 --value 100", seconds=20)
    check(where["host"] == 60, f"the host has all keys: {where}")
    play.ask(f"{RUN} {long} --mix C -n 300")
    play.ask(f"{RUN} --keys 60 --key 24 --value 900 --load -n 1")
    got = play.ask(f"{RUN} {short} --get reads --mix C -n 300", rc=1)
    check(got["by_rpc"] and not got["by_reads"] and not got["torn"], f"a message holds them, and they are not of the length that was asked for: {got}")
    play.end(server)


def told(play):
    """A port at which nobody listens, and a result that cannot be written: the program says so and ends."""
    for serve, run in (("uwarp-kv serve", f"{RUN} --load --keys 50 -n 50"), ("uwarp-btree serve --keys 1K", "uwarp-btree run {server} --keys 1K -n 50")):
        server = play.serve(serve)
        for more, line in (("-p 7400 --wait 0.5", "does not accept a connection"), ("--csv /nonexistent/x.csv", "/nonexistent/x.csv")):
            program = play.begin(f"{run} {more} --quiet")
            got = program.wait(20)
            check(got == 1 and line in program.err, f"{more}: exit code {got}, '{program.err.strip()}'")
        play.end(server, quiet=False)
        play.forget(server)
    for words, rc, line in (("uwarp-kv serve --value-max 4097Mi", 64, "--value-max 4097Mi: up to 1048576"), ("uwarp-kv run {server} --keys 2000000000G", 2, "up to 2^40"),
                            ("uwarp-btree serve --pages 4503599627370497", 2, "--pages: up to 2^40"), ("uwarp-seq serve --entries 2305843009213693952", 64, "--entries: up to 2^40")):  # fmt: skip
        program = play.begin(words)
        got = program.wait(20)
        check(got == rc and line in program.err, f"{words}: exit code {got}, '{program.err.strip()}'")


CASES = {
    "mixes": mixes, "sizes": sizes, "together": together, "killed": killed, "memory": memory, "sleeping": sleeping,
    "planted fault": planted, "longer": longer, "told": told,
}  # fmt: skip
