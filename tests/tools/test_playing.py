#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which case is played a second time (tests/programs/playing.py), and that its row says so."""

import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "programs"))
import playing  # noqa: E402
from harness import Failed, Skipped  # noqa: E402

LATE = "Correlation coefficient r^2: 0.72 < 0.9"


class Program:
    def __init__(self, err):
        self.out, self.err = "", err

    def report(self):
        return "its last lines"


class Stage:
    def __init__(self, _link):
        self.programs = []

    def left_over(self):
        return []

    def close(self):
        pass


class Case:
    """Each try: what its program says, and the exception that ends it."""

    program, needs = "none", ()

    def __init__(self, *tries):
        self.tries, self.played = tries, 0

    def __call__(self, stage):
        said, ends = self.tries[self.played]
        self.played += 1
        stage.programs.append(Program(said))
        if ends:
            raise ends


class Playing(unittest.TestCase):
    def play(self, *tries):
        case = Case(*tries)
        return *playing.play(case, None, Stage), case.played

    def test_a_case_that_passes_is_played_once(self):
        self.assertEqual(self.play((LATE, None)), ("passed", "", 1))

    def test_any_other_failure_is_one(self):
        self.assertEqual(self.play(("Can't produce a report", Failed("bad"))), ("failed", "bad\nits last lines", 1))

    def test_without_a_clock_it_is_played_once_more(self):
        result, details, played = self.play((f"{LATE}\nCan't produce a report\n", Failed("bad")), ("", None))
        self.assertEqual((result, played), ("passed", 2))
        self.assertEqual(details, playing.SECOND_TRY + LATE)
        self.assertTrue(playing.tried_twice(details))

    def test_and_not_a_third_time(self):
        result, details, played = self.play((LATE, Failed("bad")), (LATE, Failed("bad again")))
        self.assertEqual((result, played), ("failed", 2))
        self.assertEqual(details.splitlines(), [playing.SECOND_TRY + LATE, "bad again", "its last lines"])

    def test_a_skip_is_none(self):
        result, details, played = self.play((LATE, Skipped("not here")))
        self.assertEqual((result, details, played), ("skipped", "not here", 1))
        self.assertFalse(playing.tried_twice(details))


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv)
