#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Cases side by side (tests/programs/beside.py): each has one result, whatever becomes of the processes that play them."""

import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "programs"))
import beside  # noqa: E402
from harness import Skipped  # noqa: E402


class Link:
    name, addresses = "made up", {}

    def close(self):
        pass


class NoLink(Link):
    def __init__(self):
        raise Skipped("there is none")


def play_one(case, _link):
    if case == "dies":
        os._exit(3)
    print(f"    said by {case}")
    return ("failed", "bad") if case == "fails" else ("passed", "")


@unittest.skipIf(os.getuid(), "namespaces need root here")
class Beside(unittest.TestCase):
    def play(self, cases, count=2, kind=Link):
        return {case: (result, details) for case, _, result, _, details in beside.play(kind, play_one, cases, count)}

    def test_each_case_is_played_once(self):
        cases = [f"case {n}" for n in range(9)]
        self.assertEqual(self.play(cases, 3), {case: ("passed", f"said by {case}") for case in cases})

    def test_a_failure_is_that_of_its_case(self):
        found = self.play(["a", "fails", "b"])
        self.assertEqual(found["fails"], ("failed", "said by fails\nbad"))
        self.assertEqual([found[c][0] for c in "ab"], ["passed", "passed"])

    def test_what_a_dead_process_had_has_failed(self):
        found = self.play(["a", "dies", "b", "c"])
        self.assertEqual([found[c][0] for c in "abc"], ["passed"] * 3)
        self.assertEqual(found["dies"][0], "failed")
        self.assertIn("3", found["dies"][1])

    def test_with_all_processes_dead_the_rest_has_failed(self):
        found = self.play(["dies", "a", "b"], 1)
        self.assertEqual([found[c][0] for c in ("dies", "a", "b")], ["failed"] * 3)

    def test_no_link(self):
        self.assertEqual(self.play(["a", "b"], kind=NoLink), {c: ("skipped", "there is none") for c in "ab"})


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv)
