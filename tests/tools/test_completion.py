#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What bash offers for a command that is begun: tools/completion and apps/completion."""

import os
import shlex
import subprocess
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def offered(file, function, *words):
    """COMPREPLY for these words, of which the last one is being typed."""
    listed = " ".join(shlex.quote(word) for word in words)
    script = f"source {file}; COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; {function} {listed}; printf '%s\\n' \"${{COMPREPLY[@]}}\""
    r = subprocess.run(["bash", "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    return r.stdout.split()


class Bench(unittest.TestCase):
    def offered(self, *words):
        return offered("tools/completion/uwarp-bench", "_uwarp_bench", "tools/uwarp-bench", *words)

    def test_commands(self):
        self.assertEqual(self.offered("plot"), ["plot", "plot-csv"])
        self.assertLess({"apps", "latency", "gate", "goals", "--help"}, set(self.offered("")))

    def test_options_of_a_command(self):
        self.assertEqual(self.offered("apps", "--rep"), ["--report"])
        self.assertEqual(self.offered("gate", "--"), ["--help", "--update"])

    def test_values_of_an_option(self):
        self.assertEqual(self.offered("apps", "--part", ""), ["kv", "cluster", "seq", "btree", "rate"])
        self.assertEqual(self.offered("loss", "--part", "e"), ["echo"])
        self.assertEqual(self.offered("ethernet", "--report", "LICEN"), ["LICENSE"])

    def test_files(self):
        self.assertEqual(self.offered("compare", "CHANGE"), ["CHANGELOG.md"])


class Apps(unittest.TestCase):
    def test_commands(self):
        for program, commands in (("kv", "serve run check move where front"), ("seq", "serve take audit"), ("btree", "serve run"), ("rate", "serve run")):
            self.assertEqual(offered("apps/completion/uwarp-apps.bash", "_uwarp_apps", f"uwarp-{program}", ""), commands.split())


if __name__ == "__main__":
    unittest.main()
