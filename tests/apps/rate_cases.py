# SPDX-License-Identifier: BSD-3-Clause
"""uwarp-rate: what was written, read, sent and counted is where it belongs, whatever the options are."""

from stagehands import check

RUN = "uwarp-rate run {server}"


def options(play):
    """Every operation, with lists, inlining, several QPs and threads, odd sizes; verified."""
    server = play.serve("uwarp-rate serve -t 2")
    for op, more in (
        ("write", "--size 3,64,100 --post-list 1,32"), ("write", "--inline 64 --post-list 4 --qps 3 -t 2"),
        ("write", "--size 64Ki -w 16"), ("read", "--size 1,64,5000 --post-list 1,16"), ("read", "--qps 3 -t 2 -w 32 --signal 1"),
        ("send", "--size 5,64,4096 --post-list 1,32"), ("send", "--inline 64 --qps 3 -t 2"), ("faa", "--post-list 1,8 -t 2"), ("cas", "--qps 2"),
    ):  # fmt: skip
        got = play.ask(f"{RUN} --op {op} {more} --verify -n 6000")
        check(got["operations"] >= 5500, f"{op} {more}: only {got['operations']} of 6000 were done")
        check(op not in ("faa", "cas") or got["size"] == 8, f"an atomic of {got['size']} octets")
    play.end(server)


def sleeping(play):
    server = play.serve("uwarp-rate serve --events")
    for op in ("write", "read", "send", "faa"):
        play.ask(f"{RUN} --op {op} --events --verify -n 2000 -w 8")
    play.end(server)


def planted(play):
    """Operations that are left out are missed."""
    server = play.serve("uwarp-rate serve")
    for op in ("write", "read", "send", "faa"):
        play.result(play.begin(f"{RUN} --op {op} --verify -n 5000 --fault lose --json --quiet"), 30, 1, printed=False)
    play.end(server)


def limits(play):
    """Wrong use is told in one line."""
    server = play.serve("uwarp-rate serve")
    for words, rc, line in (
        ("--op send --size 4097 -n 1", 1, "the server was told to receive at most 4096 octets"),
        ("--post-list 65", 2, "--post-list: from 1 to 64"), ("--post-list 8 -w 4", 2, "--window: at least the length"),
        ("--qps 0", 2, "--qps and --signal: at least 1"), ("-p 65536", 64, "--port 65536: no port"), ("-p x", 64, "--port x: no port"), ("-s inf", 64, "--seconds inf: not a number from 0 to 1e+09"),
        ("--wait 2e10", 64, "--wait 2e10: not a number"), ("-n 20000000000Gi", 64, "--ops 20000000000Gi: too large"),
        ("--seed 18446744073709551616", 64, "--seed 18446744073709551616: too large"), ("--inline 4Gi", 64, "--inline 4Gi: up to 4294967295"),
    ):  # fmt: skip
        program = play.begin(f"{RUN} {words}")
        got = program.wait(20)
        check(got == rc and line in program.err, f"{words}: exit code {got}, '{program.err.strip()}'")
    play.end(server)


CASES = {"options": options, "sleeping": sleeping, "planted fault": planted, "limits": limits}
