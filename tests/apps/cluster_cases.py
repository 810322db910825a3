# SPDX-License-Identifier: BSD-3-Clause
"""uwarp-kv as a cluster: a host and a SoC share the keys, and keys move while clients are at work."""

import json
import os
import random

from stagehands import check
from harness import wait_until

RUN = "uwarp-kv run {server} --soc {soc}"
WHERE = "uwarp-kv where {server} --soc {soc}"


class Cluster:
    """Both nodes, and a journal of what is written."""

    def __init__(self, play, keys, host="", soc=""):
        self.play, self.keys = play, keys
        self.journal = os.path.join(play.folder, f"journal{len(play.programs)}")
        self.soc = play.serve(f"uwarp-kv serve --bind {{soc}} --events --as-soc --json {soc}", "soc")
        self.host = play.serve(f"uwarp-kv serve --bind {{server}} --events --soc {{soc}} --json {host}")
        self.words = f"--journal {self.journal} --keys {keys} --value 32-1500 --verify --events --json --quiet"

    def where(self):
        """Where the keys are when nothing moves any more: each in one place."""
        got = {}

        def settled():
            program = self.play.begin(f"{WHERE} --events --keys {self.keys} --json --quiet", "client4")
            program.wait(60)
            got.update(json.loads(program.out))
            self.play.forget(program)
            # asked of one node after the other, it may say anything of a key that moves
            return not got["moving"] and not got["owned_by_both"] and not got["owned_by_nobody"]

        check(wait_until(settled, 20), f"keys are in two places or in none, or on their way: {got}")
        return got

    def move(self, low, high, toward):
        return self.play.begin(f"uwarp-kv move {{server}} --events --keys {self.keys} --range {low}-{high} --toward {toward}", "client5")

    def all_right(self):
        self.play.ask_nothing(f"uwarp-kv check {{server}} --soc {{soc}} {self.words}", "client4")

    def end(self):
        self.play.end(self.host)
        self.play.end(self.soc)


def both_ways(play):
    """Ranges move out and in, again and again, under writes, reads and deletes of two processes."""
    cluster = Cluster(play, 600)
    for n in (0, 1):
        play.ask(f"{RUN} {cluster.words} --writer {n}/2 --load --mix C -n 10")
    clients = [play.begin(f"{RUN} {cluster.words} --writer {n}/2 --mix A --deletes 8 --get {get} -s 6", f"client{n + 1}")
               for n, get in enumerate(("reads", "hybrid"))]  # fmt: skip
    for low, high, toward in ((0, 299, "soc"), (100, 199, "host"), (250, 599, "soc"), (0, 599, "host"), (50, 449, "soc")):
        check(cluster.move(low, high, toward).wait(20) == 0, "the host does not move keys")
    for client in clients:
        got = play.result(client)
        check(got["wrong"] == 0 and got["gone"] == 0, str(got))
        check(got["at_soc"] > 0 and got["again"] > 0, f"nothing was at the SoC, or nothing moved: {got}")
    got = cluster.where()
    check(got["soc"] > 250, f"the SoC has {got['soc']} keys after it was given 400, less what was deleted")
    cluster.words += " --deletes 8"
    cluster.all_right()
    cluster.end()


def popular(play):
    """The popular keys find their way to the SoC by themselves, and leave it when others are popular."""
    cluster = Cluster(play, 1000, "--hot 100")
    got = play.ask(f"{RUN} {cluster.words} --hot 100 --load --mix B --dist zipf -s 4")
    check(got["wrong"] == 0, str(got))
    first = cluster.where()
    check(20 <= first["soc"] <= 100, f"{first['soc']} keys are at the SoC instead of up to 100")
    check(got["at_soc"] > got["operations"] / 10, f"only {got['at_soc']} of {got['operations']} operations were the SoC's")
    cluster.all_right()
    cluster.end()


def soc_killed(play):
    """The SoC dies while keys move: what the host owns is right, what the SoC owned is known to be lost."""
    for moment in (0.2, 0.5, 0.9):
        cluster = Cluster(play, 500)
        play.ask(f"{RUN} {cluster.words} --load --mix C -n 10")
        client = play.begin(f"{RUN} {cluster.words} --mix A --may-lose -s 4")
        client.until_busy(0.1)
        mover = cluster.move(0, 499, "soc")
        wait_until(lambda: False, moment * random.Random(moment).random())
        cluster.soc.kill()
        cluster.soc.wait(5)
        mover.wait(20)
        got = play.result(client)
        check(got["wrong"] == 0, str(got))
        check(wait_until(lambda: "the SoC is gone" in cluster.host.err, 10), "the host does not notice")
        play.ask(f"uwarp-kv run {{server}} {cluster.words} --mix A --may-lose -n 5000", "client2")
        play.end(cluster.host, quiet=False)
        for program in list(play.programs):
            program.stop()
            play.forget(program)


def host_killed(play):
    """The host dies while keys move: what the SoC owned is there and right, and can be written."""
    for moment in (0.2, 0.6):
        cluster = Cluster(play, 500)
        play.ask(f"{RUN} {cluster.words} --load --mix C -n 10")
        client = play.begin(f"{RUN} {cluster.words} --mix A --may-lose -s 20")
        check(cluster.move(0, 299, "soc").wait(20) == 0, "the host does not move keys")
        mover = cluster.move(100, 499, "soc")
        wait_until(lambda: False, moment * random.Random(moment).random())
        cluster.host.kill()
        cluster.host.wait(5)
        check(client.wait(20) == 1, "the client goes on without the host")
        mover.wait(20)
        alone = play.begin(f"uwarp-kv check {{soc}} {cluster.words} --may-lose", "client2")
        check(alone.wait(20) == 0, "what the SoC owns is not what was written")
        got = play.ask(f"uwarp-kv run {{soc}} {cluster.words} --may-lose --mix A -n 5000", "client2")
        check(got["wrong"] == 0 and got["hits"] > 500, f"the SoC has not kept what it owned: {got}")
        play.end(cluster.soc, quiet=False)
        for program in list(play.programs):
            program.stop()
            play.forget(program)


def two_hosts(play):
    """A host that begins before the last one has ended waits for that, as one does that is started again after it was killed."""
    soc = play.serve("uwarp-kv serve --bind {soc} --events --as-soc --memory 64Mi", "soc")
    first = play.serve("uwarp-kv serve --events --soc {soc} --memory 64Mi")
    second = play.begin("uwarp-kv serve --events --soc {soc} --memory 64Mi --wait 30", "client1")
    check(not wait_until(lambda: "ready" in second.out or second.poll() is not None, 1.5), f"the second host says '{second.err}'")
    first.kill()
    check(wait_until(lambda: "ready" in second.out, 20), f"the second host says '{second.err}'")
    third = play.begin("uwarp-kv serve --soc {soc} --memory 64Mi --wait 0.5", "client2")
    check(third.wait(10) == 1 and "refuses: Device or resource busy" in third.err, f"the third host says '{third.err}'")
    for program in (second, soc):
        play.end(program, quiet=False)
    for program in list(play.programs):
        program.stop()
        play.forget(program)


CASES = {"two hosts": two_hosts, "moves both ways": both_ways, "popular keys": popular, "SoC killed": soc_killed, "host killed": host_killed}
