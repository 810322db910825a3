# SPDX-License-Identifier: BSD-3-Clause
"""Rows of a table that are played in a guest. A row that fails says what the guest was doing. A failure counts
for the guest only if a program without uwarp does not work in it either: then there is another guest, once, and the
row is played again in that."""

import time

import state
from guest import Broken

TOO_LONG = 124


def last_lines(who, text, n):
    """What a program said last, each line not too long."""
    return [f"{who}: {line[:150]}" for line in text.splitlines()[-n:]]


class Score:
    def __init__(self):
        self.passed = self.failed = self.skipped = self.anew = 0

    def row(self, what, seconds, problem, note="", lines=()):
        self.passed += not problem
        self.failed += bool(problem)
        print(f"{'FAIL' if problem else 'ok':<5}{what}{seconds:6.1f} s  {problem or note}", flush=True)
        self.explain(lines)

    def skip(self, what, why):
        self.skipped += 1
        print(f"skip {what}{why}", flush=True)

    @staticmethod
    def explain(lines):
        for line in lines:
            print(f"    {line}", flush=True)

    def figures(self):
        anew = f"guest started anew: {self.anew}\n" if self.anew else ""
        return f"{anew}{self.passed} passed, {self.failed} failed" + (f", {self.skipped} skipped" if self.skipped else "")


class Rows:
    """check: a shell command in the guest that works if the guest does. The row's function returns (problem,
    what else it knows); what it leaves in `lines` is shown with a failure."""

    def __init__(self, guest, check, score):
        self.guest, self.check, self.score, self.lines = guest, check, score, []

    def attempt(self, test):
        self.lines, self.watched, self.clock = [], False, state.Clock(self.guest)
        try:
            problem, cells = test()
        except Broken as e:
            problem, cells = str(e), {}
        if problem and not self.watched:
            self.watch()
        return problem, cells

    def watch(self):
        """What the guest is doing, at the moment that shows it best."""
        self.watched = True
        self.lines = [*self.lines, *state.gather(self.guest, self.clock)]

    def job(self, name, command, limit):
        """The exit status of a job in the guest. One that does not end is looked at, and then ended."""
        self.guest.must(f"job {name} {command}")
        status = self.guest.run(f"job -w {name} {limit}", limit + 10)[0]
        if status == TOO_LONG:
            self.watch()
            self.guest.run(f"job -k {name}")
        return status

    def broken(self):
        """What is wrong with the guest itself, or nothing."""
        try:
            status, said = self.guest.run(self.check, 60)
        except Broken as e:
            return str(e)
        return f"a program without uwarp failed with {status}: {' '.join(said.split())[-200:]}" if status else ""

    def play(self, what, test, ready=lambda: None):
        """Returns (seconds, problem, cells, lines). ready: what another guest needs before this row."""
        start = time.monotonic()
        problem, cells = self.attempt(test)
        why = self.broken() if problem else ""
        if why:
            self.anew(what, problem, why)
            ready()
            start = time.monotonic()
            problem, cells = self.attempt(test)
        return time.monotonic() - start, problem, cells, self.lines if problem else []

    def anew(self, what, problem, why):
        print(f"the guest broke in '{what.strip()}' ({problem}): {why}", flush=True)
        self.score.explain(self.lines)
        if self.score.anew:
            raise Broken("the guest broke a second time")
        self.score.anew += 1
        self.guest.again()
