#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What the documents list is complete: decisions and threads."""

import glob
import os
import re
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


class Decisions(unittest.TestCase):
    """doc/adr/README.md has a row for each decision, and says of each number between them that it is free."""

    def setUp(self):
        self.index = read("doc/adr/README.md")
        self.files = sorted(os.path.basename(p) for p in glob.glob(os.path.join(ROOT, "doc/adr/[0-9]*.md")))
        self.numbers = [int(name[:4]) for name in self.files]

    def test_each_has_a_row(self):
        named = re.findall(r"^\| \[(\d+)\]\(([^)]+)\) \|", self.index, re.M)
        self.assertEqual(named, [(str(int(name[:4])), name) for name in self.files])

    def test_each_has_a_status(self):
        for name in self.files:
            self.assertRegex(read(f"doc/adr/{name}"), r"(?m)^(\*\*)?Status:", name)

    def test_no_number_means_two(self):
        self.assertEqual(len(set(self.numbers)), len(self.numbers))

    def test_numbers_that_are_free_are_said(self):
        said, text = set(), re.search(r"^The numbers (.*?) were given", self.index, re.M | re.S).group(1)
        for first, last in re.findall(r"(\d+)(?: to (\d+))?", text):
            said.update(range(int(first), int(last or first) + 1))
        self.assertEqual(said, set(range(1, max(self.numbers))) - set(self.numbers))


class Threads(unittest.TestCase):
    def test_each_name_is_explained(self):
        """Whoever sees a thread's name in a debugger finds it in doc/threads.md."""
        doc, names = read("doc/threads.md"), set()
        for folder in ("stack", "verbs-provider", "tools"):
            for path in glob.glob(os.path.join(ROOT, folder, "**", "*.c"), recursive=True):
                names.update(re.findall(r'(?:setname_np\([^;"\n]*|PR_SET_NAME, )"([^"]+)"', read(path)))
        self.assertIn("uwarp-stat", names)
        self.assertEqual([n for n in sorted(names) if f"`{n}`" not in doc], [])


if __name__ == "__main__":
    unittest.main()
