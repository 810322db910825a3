#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""doc/programs.md is what was found, and a group's second run replaces the first."""

import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PROGRAMS = os.path.join(ROOT, "tests", "programs")
sys.path.insert(0, PROGRAMS)
import found  # noqa: E402


class Found(unittest.TestCase):
    def test_the_page_is_what_the_command_prints(self):
        done = subprocess.run([os.path.join(PROGRAMS, "programs-doc"), "--check"], capture_output=True, text=True, check=False)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_every_group_has_been_recorded(self):
        groups = {g for entry in found.load()["programs"].values() for g in entry["groups"]}
        self.assertLessEqual({"rping", "cm", "perftest", "apps-mpi", "apps-storage", "datagrams", "cmless"}, groups)

    def test_a_run_replaces_what_was_known_of_its_group(self):
        record = {}
        found.note_group(record, "a", [("rping", "memif", "passed"), ("rping", "memif", "failed"), ("self", "memif", "passed")])
        found.note_group(record, "b", [("rping", "packet", "skipped")])
        self.assertIn(" | 1 | 1 | 1 | memif, packet |", found.programs_table(record))
        self.assertNotIn("self", found.programs_table(record))
        found.note_group(record, "a", [("rping", "memif", "passed")])
        self.assertIn(" | 1 | 0 | 1 | memif, packet |", found.programs_table(record))
        found.note_group(record, "a", [])
        found.note_group(record, "b", [])
        self.assertEqual(record["programs"], {})

    def test_a_run_over_one_link_replaces_what_was_known_over_that_link(self):
        record = {}
        found.note_group(record, "a", [("rping", "memif", "failed"), ("rping", "packet", "passed"), ("mckey", "memif", "passed")])
        found.note_group(record, "a", [("rping", "memif", "passed")], "memif")
        self.assertEqual(record["programs"]["rping"]["groups"]["a"]["memif"]["passed"], 1)
        self.assertEqual(record["programs"]["rping"]["groups"]["a"]["packet"]["passed"], 1)
        self.assertEqual(list(record["programs"]), ["rping"])

    def test_what_is_saved_is_loaded(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "found.json")
            self.assertEqual(found.load(path), {})
            found.save({"programs": {}}, path)
            self.assertEqual(found.load(path), {"programs": {}})

    def test_none_of_several_that_note_at_once_is_lost(self):
        note = "import sys; sys.path.insert(0, sys.argv[1]); import found\n" \
            "for i in range(20):\n" \
            "    with found.changing(sys.argv[2]) as record:\n" \
            "        record[f'{sys.argv[3]} {i}'] = 1\n"  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "found.json")
            words = [sys.executable, "-c", note, PROGRAMS, path]
            for p in [subprocess.Popen([*words, str(n)]) for n in range(4)]:
                self.assertEqual(p.wait(), 0)
            self.assertEqual(len(found.load(path)), 80)
            self.assertEqual(os.listdir(folder), ["found.json"])

    def test_tables_take_the_place_of_their_names(self):
        record = {"suites": {"44.0": {"executed": 3, "failed": 0, "skipped": 2, "vendors": 1}}}
        page = found.page(record, "before\n\n@suites@\nafter @x@\n")
        self.assertIn("| 44.0 | 3 | 0 | 2 | 1 |\nafter @x@\n", page)


if __name__ == "__main__":
    unittest.main()
