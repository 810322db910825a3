# SPDX-License-Identifier: BSD-3-Clause
"""Cases that wait a lot, played side by side by several processes of run-cases. Each has a network namespace of its own, and
makes its own link in it."""

import collections
import contextlib
import io
import multiprocessing
import multiprocessing.connection
import os
import signal
import subprocess
import time

from harness import PR_SET_PDEATHSIG, Failed, Skipped, libc
from links import INSIDE

CLONE_NEWNET = 0x40000000
# As much of a link as is needed to speak of it.
Told = collections.namedtuple("Told", "name addresses")
# Of a process that has none.
NoLink = collections.namedtuple("NoLink", "skipped why")


def workers(wanted, cases):
    """How many processes; one where no namespace can be made."""
    return min(wanted, cases) if os.environ.get(INSIDE) else 1


def play(kind, play_one, chosen, count):
    """Yields (case, link, result, seconds, details) as they come. Every case has a result, also if a process that played
    cases came to a bad end. Raises Failed at the end if they all have been played, but by fewer processes than wanted."""
    context = multiprocessing.get_context("fork")
    turn, pipes, left, lost = context.Value("i", 0), {}, dict(enumerate(chosen)), []
    try:
        for _ in range(count):
            here, there = context.Pipe(duplex=False)
            process = context.Process(target=work, args=(kind, play_one, chosen, turn, there))
            process.start()
            there.close()
            pipes[here] = process
        for said in heard(pipes):
            if isinstance(said, NoLink):
                lost.append(said)
            else:
                n, *what = said
                yield left.pop(n), *what
    finally:
        for process in pipes.values():
            process.terminate()  # to those still at it: they clean up
            process.join()
    codes = [process.exitcode for process in pipes.values()]
    result, details = verdict(lost, codes)
    for case in left.values():
        yield case, Told(kind.name, kind.addresses), result, 0, details
    if not left and (lost or any(codes)):
        raise Failed(details)


def verdict(lost, codes):
    """(result, details) of what should have been played, and was not."""
    reasons = "; ".join(dict.fromkeys(one.why for one in lost))
    if len(lost) == len(codes):
        return "skipped" if len(set(lost)) == 1 and lost[0].skipped else "failed", reasons
    details = [f"{len(lost)} of {len(codes)} processes had no link: {reasons}"] if lost else []
    return "failed", "; ".join([*details, f"exit codes of the processes: {codes}"])


def heard(pipes):
    """What the processes send, until all have ended."""
    open_pipes = list(pipes)
    while open_pipes:
        for pipe in multiprocessing.connection.wait(open_pipes):
            try:
                yield pipe.recv()
            except EOFError:
                open_pipes.remove(pipe)


def work(kind, play_one, chosen, turn, pipe):
    """One process: it takes the next case until there is none. Without a link it takes none, or in no time it would have
    them all."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if libc.unshare(CLONE_NEWNET):
        raise OSError("no network namespace for a process of run-cases")
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    try:
        link = kind()
    except (Failed, Skipped) as e:
        pipe.send(NoLink(isinstance(e, Skipped), str(e)))
        return
    try:
        take(chosen, turn, pipe, link, lambda case: play_one(case, link))
    finally:
        link.close()


def take(chosen, turn, pipe, link, play_one):
    while True:
        with turn.get_lock():
            n, turn.value = turn.value, turn.value + 1
        if n >= len(chosen):
            return
        start, said = time.monotonic(), io.StringIO()
        with contextlib.redirect_stdout(said):  # one process prints, or lines of several would mix
            result, details = play_one(chosen[n])
        details = "\n".join([*(line.strip() for line in said.getvalue().splitlines()), *([details] if details else [])])
        pipe.send((n, Told(link.name, link.addresses), result, time.monotonic() - start, details))
