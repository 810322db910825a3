#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Counting test cases: figures that are too good would be the worst fault of a test tool."""

import os
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools", "lib"))
import results  # noqa: E402

CMOCKA = """[==========] Running 4 test(s).
[ RUN      ] one
[       OK ] one
[ RUN      ] two
[  ERROR   ] --- 1 != 2
[   LINE   ] --- a.c:1: error: Failure!
[  FAILED  ] two
[ RUN      ] three
[  SKIPPED ] three
[ RUN      ] four
[       OK ] four
[==========] 4 test(s) run.
"""
SUMMARY = """[  PASSED  ] 2 test(s).
[  SKIPPED ] 1 test(s), listed below:
[  SKIPPED ] three

 1 SKIPPED TEST(S)
[  FAILED  ] 1 test(s), listed below:
[  FAILED  ] two

 1 FAILED TEST(S)
"""


def entry(result, stdout="", stderr=""):
    return {"name": "x", "result": result, "stdout": stdout, "stderr": stderr}


HEAD = "program  flags  link  result\n"


class Table(unittest.TestCase):
    def test_rows_of_all_programs_under_one_head(self):
        some = [
            entry("OK", f"{HEAD}rping  -C 1  memif  passed\nprograms: 1 passed, 0 failed, 0 skipped"),
            entry("OK", "[ RUN      ] a\n[       OK ] a\n"),
            entry("FAIL", f"{HEAD}qperf  x  memif  failed\n    why\nprograms: 0 passed, 1 failed, 0 skipped\n"),
        ]
        self.assertEqual(results.table(some), f"{HEAD}rping  -C 1  memif  passed\nqperf  x  memif  failed\n    why\n")

    def test_none_without_programs(self):
        self.assertEqual(results.table([entry("OK", "program  flags of a usage text\n")]), "")


class Reasons(unittest.TestCase):
    def test_the_row_that_failed_and_its_details(self):
        printed = f"{HEAD}rping  -C 1  memif  failed\n    why\nqperf  x  memif  passed\nprograms: 1 passed, 1 failed, 0 skipped\n"
        self.assertEqual(results.why_failed(entry("FAIL", printed)), "x (FAIL)\n    rping  -C 1  memif  failed\n        why")

    def test_the_last_lines_without_a_table(self):
        printed = "".join(f"line {i}\n" for i in range(100))
        why = results.why_failed(entry("TIMEOUT", printed))
        self.assertTrue(why.endswith("\n    line 98\n    line 99"))
        self.assertNotIn("line 50", why)

    def test_lines_of_a_command(self):
        text = "ok   one\nFAIL two  1.0 s  why\nfuzz x: FAILED: 3 execs\n2 passed, 1 failed\n"
        self.assertEqual(results.failed_lines(text), ["FAIL two  1.0 s  why", "fuzz x: FAILED: 3 execs"])


class Counting(unittest.TestCase):
    def same(self, e, passed, failed, skipped=0):
        c = results.count_test(e)
        self.assertEqual((c.passed, c.failed, c.skipped), (passed, failed, skipped))

    def test_cmocka(self):
        self.same(entry("FAIL", CMOCKA, SUMMARY), 2, 1, 1)

    def test_cmocka_several_groups(self):
        good = "[ RUN      ] a\n[       OK ] a\n"
        self.same(entry("OK", good + good + good), 3, 0)

    def test_a_name_that_no_case_has_is_no_success(self):
        for group in ("", "tests: "):
            self.same(entry("OK", f"[==========] {group}Running 0 test(s).\n[==========] 0 test(s) run.\n[  PASSED  ] 0 test(s).\n"), 0, 1)
        self.same(entry("OK", "[==========] Running 0 test(s).\n[ RUN      ] a\n[       OK ] a\n"), 1, 0)

    def test_a_crash_in_the_middle_is_a_failure(self):
        self.same(entry("FAIL", "[ RUN      ] a\n[       OK ] a\n[ RUN      ] b\n"), 1, 1)

    def test_a_crash_after_the_last_case_is_a_failure(self):
        self.same(entry("FAIL", "[ RUN      ] a\n[       OK ] a\n"), 1, 1)
        self.same(entry("TIMEOUT", "[ RUN      ] a\n[       OK ] a\n"), 1, 1)

    def test_a_case_that_never_ended_is_no_success(self):
        self.same(entry("OK", "[ RUN      ] a\n"), 0, 1)

    def test_unittest(self):
        self.same(entry("OK", stderr="....\n---\nRan 4 tests in 0.1s\n\nOK\n"), 4, 0)
        self.same(entry("OK", stderr="Ran 4 tests in 0.1s\n\nOK (skipped=3)\n"), 1, 0, 3)
        self.same(entry("FAIL", stderr="Ran 9 tests in 1s\n\nFAILED (failures=1, errors=2, skipped=3)\n"), 3, 3, 3)
        self.same(entry("FAIL", stderr="Ran 1 test in 1s\n\nFAILED (errors=1)\n"), 0, 1)

    def test_a_last_line_of_figures(self):
        self.same(entry("OK", "1 passed, 0 failed\nprograms: 12 passed, 0 failed, 2 skipped\n"), 12, 0, 2)
        self.same(entry("FAIL", "12 passed, 3 failed\n"), 12, 3)

    def test_a_plain_program_is_one_case(self):
        self.same(entry("OK", "fine\n"), 1, 0)
        self.same(entry("FAIL", "bad\n"), 0, 1)
        self.same(entry("ERROR"), 0, 1)
        self.same(entry("TIMEOUT"), 0, 1)
        self.same(entry("SKIP", "cannot\n"), 0, 0, 1)

    def test_no_cases_at_all_but_a_failure(self):
        self.same(entry("FAIL", "0 passed, 0 failed\n"), 0, 1)


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv)
