#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The manual pages name what there is: options, commands, counters, variables."""

import os
import re
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

sys.path.insert(0, os.path.join(ROOT, "tools"))
from run.variables import NAMES, PREFIX  # noqa: E402


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def section(page, name):
    return re.search(rf"(?ms)^\.Sh {name}\n(.*?)(?=^\.Sh )", read("doc", "man", page))[1]


def synopsis_options(page):
    return set(re.findall(r"(?:Fl|\|) -([a-z][a-z-]+)", section(page, "SYNOPSIS")))


def tool_help(tool, *words):
    return subprocess.run([os.path.join(ROOT, "tools", tool), *words, "--help"], capture_output=True, text=True, check=True, timeout=60).stdout


def options(text):
    return set(re.findall(r"(?m)^  (?:-\w(?: \w)?, )?--([a-z][a-z-]+)", text)) - {"help"}


def macro_words(text, macro):
    """Of lines such as `.It Li one , two`."""
    return {word for line in re.findall(rf"(?m)^\.It {macro} (.*)$", text) for word in re.split(r"[ ,]+", line)}


class Options(unittest.TestCase):
    def test_uwarp_run(self):
        self.assertEqual(synopsis_options("uwarp-run.1"), options(tool_help("uwarp-run")))

    def test_uwarpd(self):
        self.assertEqual(synopsis_options("uwarpd.8"), set(re.findall(r'\{ "([a-z-]+)", [01], NULL', read("tools", "uwarpd", "options.c"))) - {"help"})

    def test_commands_of_uwarp_bench(self):
        text = section("uwarp-bench.1", "SYNOPSIS")
        said = {word for line in re.findall(r"(?m)^\.Cm ([a-z| -]+)", text) for word in re.split(r"[ |]+", line)}
        commands = set(re.findall(r"(?m)^    ([a-z][a-z-]+)(?= |$)", tool_help("uwarp-bench").partition("COMMAND\n")[2].partition("\noptions")[0]))
        self.assertEqual(said - {""}, commands)

    def test_doc_of_uwarp_bench(self):
        text = section("uwarp-bench.1", "SYNOPSIS").partition(".Cm doc\n")[2].partition(".Nm")[0]
        found = tool_help("uwarp-bench", "doc")
        self.assertEqual(set(re.findall(r"Fl -([a-z]+)", text)), options(found))
        self.assertEqual(re.search(r"-section Cm (.*)", text)[1].split(" | "), re.search(r"--section \{(.*)\}", found)[1].split(","))


class Counters(unittest.TestCase):
    def setUp(self):
        self.said = macro_words(section("uwarp-run.1", "COUNTERS"), "Li")

    def test_of_a_link(self):
        body = re.search(r"(?s)struct io_stats \{(.*?)\n\};", read("stack", "io", "io.h"))[1]
        body = re.sub(r"(?s)/\*.*?\*/", "", body)
        names = {name for line in re.findall(r"uint64_t ([^;]+);", body) for name in line.split(", ")}
        self.assertIn("peer_faults", names)
        self.assertEqual(names - self.said, set())
        logged = set(re.findall(r'\{ "(\w+)", st->\1 \}', read("stack", "engine", "counters.c")))
        self.assertEqual(logged, names)

    def test_of_the_layers(self):
        names = set(re.findall(r"X\((\w+)\)", read("stack", "base", "stats.h")))
        self.assertIn("tcp_timeouts", names)
        self.assertEqual(names - self.said, set())


class Variables(unittest.TestCase):
    def test_each_that_is_read(self):
        said = macro_words(section("uwarp-run.1", "ENVIRONMENT"), "Ev")
        names = set(re.findall(r'"(UWARP_[A-Z0-9_]+)"', read("stack", "engine", "config.c") + read("verbs-provider", "facts.c")))
        self.assertIn("UWARP_NAME", names)
        self.assertEqual(names - said, set())
        for path in ("stack", "verbs-provider"):
            for folder, _, files in os.walk(os.path.join(ROOT, path)):
                for name in files:
                    if name.endswith((".c", ".h")):
                        names |= set(re.findall(r'"(UWARP_[A-Z0-9_]+)"', read(folder, name)))
        self.assertEqual({PREFIX + n for n in NAMES} - {"UWARP_BUILD_DIR"}, names)


if __name__ == "__main__":
    unittest.main()
