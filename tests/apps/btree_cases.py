# SPDX-License-Identifier: BSD-3-Clause
"""uwarp-btree: every look-up and every scan against what was written, while pages are split and merged."""

import os

from stagehands import check

from harness import printed

RUN = "uwarp-btree run {server}"


def fresh(play, serve, words, rc=0):
    """A run on a server of its own: the oracle knows nothing of what others wrote."""
    server = play.serve(f"uwarp-btree serve {serve}")
    got = play.ask(f"{RUN} {words} --verify", rc=rc)
    play.end(server)
    play.forget(server)
    return got


def mixes(play):
    """Look-ups by READs, calls by mail and by SEND; updates, deletes, new keys, scans; pages of three sizes."""
    for page, words in (
        (4096, "--by reads --mix C -n 20K"), (1024, "--by reads --mix A --deletes 2 --scans 10"), (1024, "--by mail --mix A --deletes 2 --scans 10"),
        (1024, "--by reads --mix A --deletes 2 --cache 16"), (256, "--by reads --mix D --cache 256"), (4096, "--by reads --mix B --dist zipf --cache 256"), (1024, "--by reads --mix D --deletes 3 --cache 64"), (256, "--by send --mix D --scans 20"), (256, "--by reads --mix D"), (4096, "--by mail --mix B --dist zipf"),
    ):  # fmt: skip
        mail = "--mail" if "mail" in words else ""
        got = fresh(play, f"--page {page} --keys 5000 -t 2 {mail}", f"--keys 5000 -t 2 -n 20K {words}")
        check(got["wrong"] == 0 and got["operations"] == 20000, f"{page} {words}: {got}")
        if "--cache" in words and page > 512:
            check(got["pieces_read"] > got["hits"] / 2, f"leaves were not read by pieces: {got}")
        if "--cache 256" in words:
            check(got["pages_read"] < 2 * got["hits"], f"what was kept was not used: {got}")
        elif "reads" in words and "A" not in words and "--cache" not in words:
            check(got["pages_read"] >= 2 * got["hits"] / 1.3, f"look-ups did not go page by page: {got}")


def windows(play):
    """More calls by mail at once than the server's send queue takes answers."""
    server = play.serve("uwarp-btree serve --keys 5K --mail")
    for words in ("--mix A", "--mix C --scans 2"):
        got = play.ask(f"{RUN} --keys 5K --by mail -w 4096 -n 20K {words}")
        check(got["operations"] == 20000, f"{words}: {got}")
    play.end(server)


def split(play):
    """Two servers, each with a part of the keys."""
    host = play.serve("uwarp-btree serve --bind {server} --keys 3000 --events")
    soc = play.serve("uwarp-btree serve --bind {soc} --first 3000 --keys 2000 --events", "soc")
    for way in ("reads", "send"):
        got = play.ask(f"{RUN} --soc {{soc}} --keys 5000 --split 3000 --by {way} --scans 20 --verify -n 5000")
        check(got["wrong"] == 0 and got["misses"] == 0, str(got))
    play.end(host)
    play.end(soc)


def balanced(play):
    """Two servers that both have all keys, the second behind a slow link: the first gets more of them."""
    host = play.serve("uwarp-btree serve --bind {server} --keys 4000 --events")
    slow = play.start("soc", play.command("uwarp-btree serve --bind {soc} --keys 4000 --events"), options=[*play.link.options("soc"), "--rate", "20M"])
    printed("ready on port")(slow)
    for place, low, high in (("both", 2100, 4000), ("host", 0, 0), ("soc", 0, 0)):
        split = "--split auto" if place == "both" else ""
        got = play.ask(f"{RUN} --soc {{soc}} --place {place} {split} --keys 4000 --scans 5 --verify -w 32 -s 1")
        check(got["wrong"] == 0 and got["misses"] == 0 and got["place"] == place, str(got))
        check(low <= got["split"] <= high, f"{place}: split at {got['split']}")
    play.end(slow)
    play.end(host)


def killed(play):
    """A client is killed in the middle of its writes; none that was acknowledged is lost."""
    server = play.serve("uwarp-btree serve --keys 2000 --page 1024 --mail")
    journal = os.path.join(play.folder, "journal")
    for way in ("send", "mail"):
        words = f"{RUN} --keys 2000 --mix A --deletes 4 --scans 10 --by {way} --journal {journal} --verify --json --quiet"
        victim = play.begin(f"{words} -s 30")
        victim.until_busy()
        victim.kill()
        victim.wait(5)
        got = play.ask(f"{words} -n 5000", "client2")
        check(got["wrong"] == 0, str(got))
    play.end(server)


def memory(play):
    """A server that has no pages left says so, and what it has is right."""
    got = fresh(play, "--keys 1000 --page 256 --pages 200", "--keys 1000 --mix D --scans 10 -n 60K")
    check(got["no_memory"] > 0 and got["wrong"] == 0, str(got))
    said = f"{got['no_memory']} writes found no memory"
    check(any(said in p.err for p in play.programs), "the client does not say so")


def planted(play):
    """A client that believes what it reads loses keys; the oracle finds out."""
    words = "--keys 2K --mix D -w 64 -n 50K"
    serve = "--page 256 --keys 2K"
    program = play.serve(f"uwarp-btree serve {serve}")
    client = play.begin(f"{RUN} {words} --verify --fault believe")
    check(client.wait(100) == 1, "it did not find anything wrong")
    check("is lost" in client.err or "was read where" in client.err or "never written" in client.err, f"it says '{client.err}'")
    play.end(program)
    got = fresh(play, serve, words)
    check(got["wrong"] == 0 and got["restarts"] > 0, f"with its checks: {got}")


CASES = {"mixes": mixes, "windows": windows, "split": split, "balanced": balanced, "killed": killed, "memory": memory, "planted fault": planted}
