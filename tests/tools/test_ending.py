#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""How tools end whose output goes to /dev/full, or to a reader that has gone, or whose working directory has been removed."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
from run import ending  # noqa: E402

# Something of each that prints, and takes no time.
TOOLS = (
    "tools/uwarp-run --help", "tools/uwarp-run --list", "tools/uwarp-stat --help", "tools/uwarp-stat --list", "tools/uwarp-bench --help",
    "tools/uwarp-conform --help", "tools/uwarp-conform --list", "tools/uwarp-impair --help", "tools/check-layers --help", "tools/check-sizes --help",
    "tools/rfc-table --help", "tests/apps/run --help", "tests/apps/long --help", "tests/conform/run --help", "tests/fuzz/run --help",
    "tests/fuzz/seeds --help", "tests/impair/run --help", "tests/interop/run --help", "tests/nics/run --help", "tests/nics/run-arm64 --help",
    "tests/perf/shared-port --help", "tests/programs/abi-matrix --help", "tests/programs/programs-doc --help", "tests/programs/rdma-core-tests --help",
    "tests/programs/run-cases --help", "tests/programs/with-ceph/run --help", "tests/programs/with-crates/run --help",
    "tests/programs/with-erpc/run --help", "tests/programs/with-fabtests/run --help", "tests/programs/with-gloo/run --help",
    "tests/programs/with-herd/run --help", "tests/programs/with-osu/run --help", "tests/programs/with-wheels/run --help",
    "tests/vectors/from-pcap --help",
)  # fmt: skip


class Ends(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="uw-ending-")
        self.addCleanup(shutil.rmtree, self.dir)

    def run_it(self, words, out=subprocess.PIPE, gone=False, **env):
        command = [os.path.join(ROOT, words.split()[0]), *words.split()[1:]]
        if gone:  # the shell makes and removes the directory that the tool starts in
            command = ["sh", "-c", 'mkdir "$0" && cd "$0" && rmdir "$0" && exec "$@"', os.path.join(self.dir, "gone"), *command]
        env = {**os.environ, "UWARP_DIR": os.path.join(self.dir, "none"), **env}
        return subprocess.run(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, text=True, timeout=60)

    def test_nobody_reads(self):
        for words in TOOLS:
            with self.subTest(words):
                read, write = os.pipe()
                os.close(read)
                with open(write, "w") as out:
                    r = self.run_it(words, out)
                self.assertEqual((r.returncode, r.stderr), (ending.UNREAD, ""))

    def test_no_room(self):
        for words in TOOLS:
            with self.subTest(words), open("/dev/full", "w") as out:
                r = self.run_it(words, out)
                self.assertRegex(r.stderr, r"\A[a-z0-9-]+: standard output: No space left on device\n\Z")
                self.assertIn(r.returncode, (1, 2))

    def test_no_working_directory(self):
        for words in TOOLS:
            with self.subTest(words):
                r = self.run_it(words, gone=True)
                self.assertEqual(r.returncode, 0)
                self.assertNotIn("Traceback", r.stderr)
        for words in ("tools/uwarp-stat", "tools/uwarp-run --list"):
            with self.subTest(words):
                r = self.run_it(words, gone=True, UWARP_DIR="rel")
                self.assertEqual(r.returncode, 1)
                said = [line for line in r.stderr.splitlines() if "getcwd" not in line]  # the shell's
                self.assertEqual(len(said), 1)
                self.assertRegex(said[0], r"rel: the working directory is not there any more")


class Errors(unittest.TestCase):
    def raised(self, error):
        def main():
            raise error

        return main

    def test_errors_of_files_are_a_line(self):
        with self.assertRaises(OSError) as caught, ending.naming("a-file"):
            raise OSError(28, "No space left on device")
        self.assertEqual(caught.exception.filename, "a-file")
        self.assertEqual(ending.ended("x", self.raised(caught.exception)), 1)
        self.assertEqual(ending.ended("x", self.raised(caught.exception), failed=2), 2)

    def test_other_errors_are_the_programmers(self):
        with self.assertRaises(OSError):
            ending.ended("x", self.raised(OSError(5, "what")))
        self.assertEqual(ending.ended("x", self.raised(OSError(5, "what")), failed=2), 2)
        with self.assertRaises(BrokenPipeError):  # not of our output: some child's
            ending.ended("x", self.raised(BrokenPipeError(32, "Broken pipe")))
        self.assertEqual(ending.ended("x", self.raised(BrokenPipeError(32, "Broken pipe")), failed=2), 2)
        with self.assertRaises(ValueError):
            ending.ended("x", self.raised(ValueError()), failed=2)

    def test_an_interrupt_is_a_word(self):
        self.assertEqual(ending.ended("x", self.raised(KeyboardInterrupt()), failed=2), ending.INTERRUPTED)

    def test_an_interrupt_while_modules_are_read(self):
        """It ends the tool as it ends any program, without a traceback; inside of main() it is an exception again."""
        for tool in ("uwarp-bench", "uwarp-conform", "uwarp-impair", "uwarp-run", "uwarp-stat"):
            with self.subTest(tool), open(os.path.join(ROOT, "tools", tool), encoding="utf-8") as f:
                before = f.read().partition("import _signal\n")[2].partition("\nimport ")[0]
            code = f"import _signal\n{before}\nprint(int(_signal.getsignal(_signal.SIGINT)))"
            for trap, handler in (("", signal.SIG_DFL), ("trap '' INT; ", signal.SIG_IGN)):
                r = subprocess.run(["sh", "-c", trap + 'exec "$0" -IS -c "$1"', sys.executable, code], capture_output=True, text=True, timeout=60)
                self.assertEqual(r.stdout, f"{int(handler)}\n", r.stderr)

    def test_every_program_is_among_the_tools(self):
        """What is started by its name and has a main() ends as ending.py says."""
        if not shutil.which("git"):
            self.skipTest("no git")
        found = subprocess.run(["git", "-C", ROOT, "grep", "-l", "-E", r"^#!/(usr/bin/python3|bin/sh)", "--", "tools", "tests"], capture_output=True, text=True)
        if found.returncode:
            self.skipTest("not a checkout")
        for path in found.stdout.split():
            with open(os.path.join(ROOT, path), encoding="utf-8") as f:
                text = f.read()
            if "." not in os.path.basename(path) and "python3" in text[:600] and re.search(r"(?m)^def main|cli\.main", text) and "rig/guest" not in path:
                with self.subTest(path):
                    self.assertIn("ending.ended(", text)
                    self.assertTrue(any(words.split()[0] == path for words in TOOLS))


if __name__ == "__main__":
    unittest.main(verbosity=2)
