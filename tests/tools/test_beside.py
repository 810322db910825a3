#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Cases side by side (tests/programs/beside.py): each has one result, whatever becomes of the processes that play them."""

import multiprocessing
import os
import sys
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "programs"))
import beside  # noqa: E402
from harness import Failed, Skipped  # noqa: E402


class Link:
    name, addresses = "made up", {}

    def close(self):
        pass


class NoLink(Link):
    def __init__(self):
        raise Skipped("there is none")


class BadLink(Link):
    def __init__(self):
        raise Failed("it fell down")


def one_bad_link(error):
    """A link that the first process to ask for it has not; the other one has its own only after that."""
    asked = multiprocessing.Value("i", 0)

    class OneBad(Link):
        def __init__(self):
            with asked.get_lock():
                asked.value += 1
                first = asked.value == 1
            if first:
                raise error
            time.sleep(0.3)

    return OneBad


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

    def test_a_link_that_could_not_be_made(self):
        self.assertEqual(self.play(["a", "b"], kind=BadLink), {c: ("failed", "it fell down") for c in "ab"})

    def test_a_process_without_a_link_takes_no_case(self):
        for error in (Skipped("not here"), Failed("not here")):
            found, cases = {}, [f"case {n}" for n in range(5)]
            with self.assertRaisesRegex(Failed, "^1 of 2 processes had no link: not here; exit codes "):
                for case, _, result, _, _ in beside.play(one_bad_link(error), play_one, cases, 2):
                    found[case] = result
            self.assertEqual(found, dict.fromkeys(cases, "passed"))

    def test_none_had_a_link_and_not_all_for_the_same_reason(self):
        lost = [beside.NoLink(True, "no tool"), beside.NoLink(True, "no tool")]
        self.assertEqual(beside.verdict(lost, [0, 0]), ("skipped", "no tool"))
        for other in (beside.NoLink(True, "no right"), beside.NoLink(False, "no right")):
            self.assertEqual(beside.verdict([*lost, other], [0, 0, 0]), ("failed", "no tool; no right"))

    def test_a_process_that_ends_badly_behind_its_last_case(self):
        class Stuck(Link):
            def close(self):
                os._exit(5)

        with self.assertRaisesRegex(Failed, r"exit codes of the processes: \[5\]"):
            self.play(["a"], 1, Stuck)


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv)
