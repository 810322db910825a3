# SPDX-License-Identifier: BSD-3-Clause
"""Counting test cases in what `meson test` logged. A test program holds many cases; they are
counted from its own output (cmocka, unittest, or a last line 'N passed, M failed'). What was
skipped is never counted as passed, and a program that failed has at least one failed case."""

import json
import re

CMOCKA_RUN = re.compile(r"^\[ RUN      \] ", re.M)
# The name of a test was given, and there is none of that name.
CMOCKA_NONE = re.compile(r"^\[==========\] (?:.*: )?Running 0 test\(s\)", re.M)
CMOCKA_OK = re.compile(r"^\[       OK \] ", re.M)
CMOCKA_SKIP = re.compile(r"^\[  SKIPPED \] (?!\d+ test)(\S+)", re.M)
UNITTEST = re.compile(r"^Ran (\d+) tests? in .*\n+(?:OK|FAILED)(?: \((.*)\))?$", re.M)
FIGURES = re.compile(r"^(?:.*: )?(\d+) passed, (\d+) failed(?:, (\d+) skipped)?\s*$", re.M)
# What tests/programs/run-cases prints: the heads of its columns, rows with details between them, figures.
TABLE = re.compile(r"^(program +flags .*)\n((?:.*\n)*?)programs: ", re.M)
GOOD, SKIP = ("OK", "EXPECTEDFAIL"), ("SKIP",)
# How the commands of a part name one thing that failed, in the first column or the last.
FAILED_LINE = re.compile(r"^(?:FAIL\b.*|.*\bFAILED\b.*)$", re.M)
# A row of tests/programs/run-cases that failed, with its details.
FAILED_ROW = re.compile(r"^\S.* failed.*\n(?:    .*\n)*", re.M)
LAST_LINES = 12  # of a failed test's output, enough for an assertion and what stands around it


class Count:
    def __init__(self, passed=0, failed=0, skipped=0):
        self.passed, self.failed, self.skipped = passed, failed, skipped

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def total(self):
        return self.passed + self.failed + self.skipped

    def __str__(self):
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"


def count_cmocka(text):
    run = len(CMOCKA_RUN.findall(text))
    if not run:
        return Count(failed=1) if CMOCKA_NONE.search(text) else None
    passed = len(CMOCKA_OK.findall(text))
    # the summary names each skipped case a second time
    skipped = len(set(CMOCKA_SKIP.findall(text)))
    return Count(passed, max(0, run - passed - skipped), skipped)


def count_unittest(text):
    found = UNITTEST.findall(text)
    if not found:
        return None
    total = Count()
    for ran, details in found:
        parts = dict(p.split("=") for p in details.split(", ")) if details else {}
        failed = sum(int(parts.get(k, 0)) for k in ("failures", "errors", "unexpected successes"))
        skipped = int(parts.get("skipped", 0))
        total.add(Count(int(ran) - min(failed, int(ran) - skipped) - skipped, failed, skipped))
    return total


def count_figures(text):
    found = FIGURES.findall(text)
    return Count(*(int(x or 0) for x in found[-1])) if found else None


def count_test(entry):
    """The cases of one program of testlog.json."""
    text = entry.get("stdout", "") + "\n" + entry.get("stderr", "")
    count = count_cmocka(text) or count_unittest(text) or count_figures(text)
    if entry["result"] in SKIP:
        return Count(skipped=max(1, count.skipped if count else 1))
    good = entry["result"] in GOOD
    if count is None or count.total() == 0:
        return Count(int(good), int(not good))
    if not good and not count.failed:
        count.failed = 1  # it crashed or ran out of time in the middle
    return count


def why_failed(entry):
    """A failed program's name, and its rows that failed or the end of what it printed."""
    text = entry.get("stdout", "") + "\n" + entry.get("stderr", "") + "\n"
    table = TABLE.search(text)
    lines = "".join(FAILED_ROW.findall(table.group(2)) if table else []) or text
    tail = "".join(f"\n    {line}" for line in lines.strip().splitlines()[-LAST_LINES:])
    return f"{entry['name']} ({entry['result']}){tail}"


def failed_lines(text):
    """The lines of a command's output that name what failed."""
    return FAILED_LINE.findall(text)


def read(log_path):
    """Every program of a testlog.json."""
    with open(log_path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def table(entries):
    """The rows of all programs that ran others, under one line of heads; empty if none did."""
    found = [m for e in entries for m in TABLE.findall(e.get("stdout", "") + "\n")]
    return found[0][0] + "\n" + "".join(rows for _, rows in found) if found else ""
