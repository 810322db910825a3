# SPDX-License-Identifier: BSD-3-Clause
"""Runs tests of rdma-core's suite in one process, one after the other, and writes a line for each when it starts
and when it has ended: one_by_one.py FOLDER REPORT [ID...], FOLDER that of the package `tests`. Without IDs it
writes the names of all tests. Skips that a test makes by itself are told apart by their reason."""

import json
import os
import sys
import time
import unittest

folder, report_path, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
sys.argv[1:] = []
# The package imports `args_parser` without its own name in front, and `tests.base` with it.
sys.path[:0] = [folder, os.path.join(folder, "tests")]
import args_parser  # noqa: E402

args_parser.parser.parse_args()
import tests  # noqa: E402


def all_tests(suite):
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from all_tests(one)
        else:
            yield one


class Report(unittest.TestResult):
    def __init__(self, path):
        super().__init__()
        self.file = open(path, "w", buffering=1, encoding="utf-8")
        self.main = os.getpid()

    def write(self, test, result, why=""):
        if os.getpid() == self.main:  # a test may fork
            self.file.write(json.dumps([test.id(), result, why]) + "\n")

    def startTest(self, test):
        super().startTest(test)
        self.write(test, "started")

    def addSuccess(self, test):
        self.write(test, "executed")

    def addSkip(self, test, reason):
        self.write(test, "skipped", reason)

    def addFailure(self, test, err):
        self.write(test, "failed", self._exc_info_to_string(err, test))

    def addError(self, test, err):
        self.write(test, "failed", self._exc_info_to_string(err, test))

    def addSubTest(self, test, subtest, err):
        if err:
            self.write(test, "failed", self._exc_info_to_string(err, test))


def main():
    found, result = {}, Report(report_path)
    loader = unittest.TestLoader()
    for module in tests.__test_modules__:
        for test in all_tests(loader.loadTestsFromModule(module)):
            found.setdefault(test.id(), test)
    for name in wanted or found:
        if wanted:
            found[name].run(result)
        else:
            result.write(found[name], "there")


main()
