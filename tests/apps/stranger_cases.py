# SPDX-License-Identifier: BSD-3-Clause
"""Who is not what the other side expects: other programs, and a client that keeps to nothing."""

import os

from stagehands import check

SERVERS = {"uwarp-kv": "--memory 64Mi", "uwarp-btree": "--keys 5K --mail", "uwarp-seq": "", "uwarp-rate": ""}
CLIENTS = {
    "uwarp-kv": "run {server} --load --keys 500 --verify --mix A -n 2000",
    "uwarp-btree": "run {server} --keys 5K --by reads -n 2000",
    "uwarp-seq": "take {server} -n 2000",
    "uwarp-rate": "run {server} --op write -n 2000",
}


def serve(play, name):
    return play.serve(f"{name} serve --events {SERVERS[name]}")


def others(play):
    """A client hears what listens there instead of its server, and does not ask again until its patience is over."""
    for name in SERVERS:
        server = serve(play, name)
        for client in SERVERS:
            if client == name:
                continue
            stranger = play.begin(f"{client} {CLIENTS[client]}")
            check(stranger.wait(20) == 1, f"{client} at {name} ends with {stranger.popen.returncode}")
            check(f"is {name}, and not {client}" in stranger.err, f"{client} says '{stranger.err}'")
            play.forget(stranger)
        play.end(server, quiet=False)
        play.forget(server)


def refused(play):
    """A server says why it refuses a client of its own."""
    server = play.serve("uwarp-kv serve --events --value-max 4096")
    client = play.begin("uwarp-kv run {server} --value 5000 -n 1")
    check(client.wait(20) == 1, "it is served")
    check("refuses: Message too long" in client.err, f"it says '{client.err}'")
    play.end(server, quiet=False)


def not_ours(play):
    """rping's server takes anybody; its clients' hello is nobody's."""
    rping = play.start("server", "rping -s -a {server} -p 7471")
    client = play.begin("uwarp-seq take {server} -n 1")
    check(client.wait(20) == 1, "it takes rping for a sequencer")
    check("is not uwarp-seq" in client.err, f"it says '{client.err}'")
    rping.stop()
    play.forget(client)
    play.forget(rping)
    server = serve(play, "uwarp-seq")
    check(play.start("client1", "rping -c -a {server} -p 7471 -C 1").wait(20) != 0, "rping is served")
    play.end(server, quiet=False)


def hostile(play):
    """Nonsense in mailboxes, stages and messages: the server lives, and others get right answers."""
    program = os.path.join(play.build, "tests", "apps", "hostile")
    for name in SERVERS:
        server = serve(play, name)
        for seed in (1, 2):
            bad = play.start("client1", f"{program} {name} {{server}} {seed}")
            check(bad.wait(60) == 0, f"hostile to {name}, seed {seed}, ends with {bad.popen.returncode}")
            check(server.poll() is None, f"{name} has not survived seed {seed}")
            play.forget(bad)
        play.ask(f"{name} {CLIENTS[name]}", "client2")
        play.end(server, quiet=False)
        play.forget(server)


def nodes(play):
    """The same to the nodes of a cluster and to a front, while another client moves keys and judges what it reads."""
    program = os.path.join(play.build, "tests", "apps", "hostile")
    soc = play.serve("uwarp-kv serve --bind {soc} --events --as-soc --memory 64Mi", "soc")
    check(play.start("client1", f"{program} uwarp-kv {{soc}} 3").wait(60) == 0, "hostile to a SoC that has no host")
    host = play.serve("uwarp-kv serve --events --soc {soc} --hot 100 --memory 64Mi")
    client = play.begin("uwarp-kv run {server} --soc {soc} --hot 100 --load --keys 500 --verify --mix A --deletes 8 -s 4 --json --quiet", "client2")
    for node in ("server", "soc"):
        check(play.start("client1", f"{program} uwarp-kv {{{node}}} 1").wait(60) == 0, f"hostile to the {node}")
        pretender = play.start("client1", f"{program} coordinator {{{node}}}")
        check(pretender.wait(20) == 0, f"the {node} takes somebody for its host")
        check("refuses: " in pretender.err, f"it says '{pretender.err}'")
    check(play.result(client)["wrong"] == 0, "answers are wrong")
    play.end(host, quiet=False)
    play.end(play.serve("uwarp-kv serve --events --soc {soc}"), quiet=False)
    play.end(soc, quiet=False)


def front(play):
    """Nor does a front lose its index by what clients tell it."""
    program = os.path.join(play.build, "tests", "apps", "hostile")
    host = serve(play, "uwarp-kv")
    soc = play.serve("uwarp-kv front {server} --bind {soc} --events", "soc")
    check(play.start("client1", f"{program} uwarp-kv {{soc}} 1").wait(60) == 0, "hostile to a front")
    play.ask("uwarp-kv run {server} --soc {soc} --alternative A5+A4 --load --keys 500 --verify --mix B -n 2000", "client2")
    play.end(soc, quiet=False)
    play.end(host, quiet=False)


def index(play):
    """What a server or a front lets its clients READ, none of them can WRITE."""
    program = os.path.join(play.build, "tests", "apps", "hostile")
    host = serve(play, "uwarp-kv")
    soc = play.serve("uwarp-kv front {server} --bind {soc} --events", "soc")
    for node in ("server", "soc"):
        check(play.start("client1", f"{program} uwarp-kv {{{node}}} index").wait(20) == 0, f"the index at the {node} can be written")
    play.end(soc, quiet=False)
    play.end(host, quiet=False)
    tree = serve(play, "uwarp-btree")
    check(play.start("client1", f"{program} uwarp-btree {{server}} index").wait(20) == 0, "the root can be written")
    play.end(tree, quiet=False)


def rooms(play):
    """A client of uwarp-rate has as much as it can need, and all clients together as much as the server was told."""
    server = serve(play, "uwarp-rate")
    bad = play.start("client1", os.path.join(play.build, "tests", "apps", "hostile") + " rooms {server}")
    check(bad.wait(20) == 0, f"it is given a room: {bad.err}")
    play.end(server, quiet=False)
    play.forget(bad)
    play.forget(server)
    for name, limit, run in (("uwarp-rate", "--memory 1Mi", "run {server} --op write --size 64Ki -w 12"),
                             ("uwarp-kv", "--memory 64Mi --staging 1Mi", "run {server} --keys 50 --value 64Ki -w 12")):  # fmt: skip
        server = play.serve(f"{name} serve --events {limit}")
        first = play.begin(f"{name} {run} --events -s 60")
        first.until_busy(0.05)
        for more, line in (("-w 30", "refuses: Cannot allocate memory"), ("--wait 0.2", "refuses: Device or resource busy")):
            second = play.begin(f"{name} {run} -n 50 {more}", "client2")
            check(second.wait(20) == 1 and line in second.err, f"{name} {more}: the second one says '{second.err}'")
        first.kill()
        third = play.begin(f"{name} {run} -n 50", "client3")
        check(third.wait(20) == 0, f"{name} has not got back what the first one had: {third.err}")
        play.end(server, quiet=False)
        for program in list(play.programs):
            play.forget(program)


def deaf(play):
    """A client that takes no replies does not keep the others from theirs for long."""
    server = serve(play, "uwarp-seq")
    bad = play.start("client1", os.path.join(play.build, "tests", "apps", "hostile") + " deaf {server}")
    play.ask("uwarp-seq take {server} --mode rpc -n 20000", "client2", seconds=30)
    check(bad.wait(30) == 0, f"the deaf one ends with {bad.popen.returncode}")
    play.ask("uwarp-seq take {server} --mode rpc -n 2000", "client2")
    check("takes no replies" in server.err, f"the server says '{server.err}'")
    play.end(server, quiet=False)


def no_command(play):
    """Words that are no command: why, and the usage."""
    for name in (*SERVERS, "uwarp-tcp-peer"):
        for words, why in (([], "no command given"), (["fly", "high", "up"], "these words are no command: fly high up")):
            program = play.start_plain("client1", [play.app(name), *words])
            check(program.wait(10) == 2, f"{name} {' '.join(words)}: exit code {program.popen.returncode}")
            said = program.err.splitlines()
            check(said[0] == f"{name}: {why}", f"{name} says {said[0]}")
            check(said[1].startswith(f"Usage: {name} "), f"{name} says {said[1:]}")
            play.forget(program)


CASES = {"no command": no_command, "deaf": deaf, "other programs": others, "refused": refused, "not ours": not_ours, "hostile": hostile, "hostile to nodes": nodes, "hostile to a front": front, "index": index, "rooms": rooms}
