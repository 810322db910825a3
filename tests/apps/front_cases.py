# SPDX-License-Identifier: BSD-3-Clause
"""The ways of a store on a DPU: a front with a copy of the host's index."""

import ctypes
import os
import signal

from stagehands import check
from harness import read_bytes, wait_until

# Looks in a row that find every thread asleep, and seconds to find them so: one that spins is hardly ever asleep for one.
LOOKS, CALM = 5, 20

RUN = "uwarp-kv run {server} --soc {soc}"


def alternatives(play):
    """A1 to A5 under writes and deletes: an old copy of the index is never believed."""
    for n in (1, 2, 3, 4, "5", "5+A4"):
        host = play.serve("uwarp-kv serve --bind {server} --buckets 512 --events")
        front = play.serve("uwarp-kv front {server} --bind {soc}", "soc")
        words = f"--mix A --deletes 8 --keys 1000 --value 32-9000 --alternative A{n} --load --verify -n 4000"
        got = play.ask(f"{RUN} {words}")
        check(got["wrong"] == 0 and got["operations"] == 4000, f"A{n}: {got}")
        play.end(front)
        play.end(host)
        for program in (front, host):
            play.forget(program)


def host_gone(play):
    """A front without its host ends, and says why."""
    host = play.serve("uwarp-kv serve --bind {server} --buckets 512 --events")
    front = play.serve("uwarp-kv front {server} --bind {soc}", "soc")
    host.kill()
    host.wait(5)
    check(front.wait(20) == 1, "it ends as if all was well")
    check("the host is gone" in front.err, f"it says '{front.err}'")


def asleep(program):
    tasks = f"/proc/{program.pid}/task"
    return all(read_bytes(f"{tasks}/{t}/stat").rpartition(b")")[2].split()[:1] == [b"S"] for t in os.listdir(tasks))


def idle(play):
    """With --events nothing spins while nobody asks."""
    host = play.serve("uwarp-kv serve --bind {server} --buckets 512 --events")
    front = play.serve("uwarp-kv front {server} --bind {soc} --events", "soc")
    got = play.ask(f"{RUN} --mix A --keys 500 --alternative A5 --load --verify --events -n 2000")
    check(got["wrong"] == 0 and got["operations"] == 2000, str(got))
    check(wait_until(lambda: all(asleep(front) for _ in range(LOOKS)), CALM), "a thread of the front never sleeps")
    play.end(front)
    play.end(host)


def host_stopped(play):
    """A host that does not run for a while is not gone, nor is it when a signal meets the thread that waits for it."""
    libc = ctypes.CDLL(None)
    host = play.serve("uwarp-kv serve --bind {server} --buckets 512 --events")
    front = play.serve("uwarp-kv front {server} --bind {soc} --events", "soc")
    host.kill(signal.SIGSTOP)
    # once in a second it READs the index, and then waits
    wait_until(lambda: front.poll() is not None, 1.5)
    for thread in os.listdir(f"/proc/{front.pid}/task"):
        libc.tgkill(front.pid, int(thread), signal.SIGTERM)
    wait_until(lambda: front.poll() is not None, 0.5)
    host.kill(signal.SIGCONT)
    check(front.wait(10) == 0, f"the front ends with {front.popen.returncode}, and says '{front.err}'")
    play.end(host)


def one_file(play):
    """With a SoC and without, results have the same columns."""
    host = play.serve("uwarp-kv serve --bind {server} --buckets 512 --events")
    front = play.serve("uwarp-kv front {server} --bind {soc} --events", "soc")
    path = os.path.join(play.folder, "kv.csv")
    for words in ("uwarp-kv run {server}", f"{RUN} --alternative A5"):
        play.ask(f"{words} --keys 500 --load --events -n 1000 --csv {path}")
    rows = read_bytes(path).splitlines()
    check(len(rows) == 3 and len({row.count(b",") for row in rows}) == 1, f"rows: {rows}")
    play.end(front)
    play.end(host)


CASES = {"alternatives": alternatives, "host gone": host_gone, "host stopped": host_stopped, "idle": idle, "one file": one_file}
