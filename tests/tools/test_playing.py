#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Which case is played a second time (tests/programs/playing.py), and that its row says so."""

import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "programs"))
import playing  # noqa: E402
from harness import Failed, NoFigures, Skipped  # noqa: E402

LATE = "Correlation coefficient r^2: 0.72 < 0.9"
GAVE_UP = Failed("the client ended with exit code 1")
TOLD = f"{playing.SECOND_TRY}{LATE}\nthe first one: "


class Program:
    def __init__(self, err, code):
        self.out, self.err, self.code = "", err, code

    def poll(self):
        return self.code

    def report(self):
        return "its last lines"


class Stage:
    def __init__(self, _link):
        self.programs, self.left = [], []

    def left_over(self):
        return self.left

    def close(self):
        pass


class Case:
    """Each try: what its program says, the exception that ends it, and what is left behind."""

    program, needs = "none", ()

    def __init__(self, *tries):
        self.tries, self.played = tries, 0

    def __call__(self, stage):
        said, ends, *left = self.tries[self.played]
        self.played += 1
        stage.programs.append(Program(said, int(ends is GAVE_UP)))
        stage.left += left
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
        for failure in (GAVE_UP, NoFigures("rows without figures: []")):
            result, details, played = self.play((f"{LATE}\nCan't produce a report\n", failure), ("", None))
            self.assertEqual((result, played), ("passed", 2))
            self.assertEqual(details, TOLD + str(failure))
            self.assertTrue(playing.tried_twice(details))

    def test_what_is_no_consequence_of_it_is_a_failure(self):
        texts = ["the client complains: ['uwarp: bad']", "the client has not ended after 30 s", "the client ended with exit code -11", "the server ended with exit code 1"]
        for text in texts:  # its own exit code is 0
            result, details, played = self.play((LATE, Failed(text)), ("", None))
            self.assertEqual((result, details, played), ("failed", f"{text}\nits last lines", 1))
        result, details, played = self.play((LATE, None, "process 77"), ("", None))
        self.assertEqual((result, details, played), ("failed", "left behind: process 77\nits last lines", 1))

    def test_nor_is_a_failure_beside_a_program_that_gave_up(self):
        programs = [Program(LATE, 1), Program("", 0)]
        for text in ("left behind: process 77", "the server has not ended after 30 s"):
            self.assertEqual(playing.spoilt_by_clock(Failed(text), programs), "")
        self.assertTrue(playing.spoilt_by_clock(GAVE_UP, programs))

    def test_and_not_a_third_time(self):
        result, details, played = self.play((LATE, GAVE_UP), (LATE, Failed("bad again")))
        self.assertEqual((result, played), ("failed", 2))
        self.assertEqual(details, f"{TOLD}{GAVE_UP}\nbad again\nits last lines")

    def test_a_skip_is_none(self):
        result, details, played = self.play((LATE, Skipped("not here")))
        self.assertEqual((result, details, played), ("skipped", "not here", 1))
        self.assertFalse(playing.tried_twice(details))


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv)
