#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The impairment grid: one cell of it passes, and what it is there to find makes it fail."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "programs"))
import impairment  # noqa: E402

RUN = os.path.join(HERE, "run")
TRAFFIC = os.path.join(os.environ["UWARP_BUILD_DIR"], "tests", "impair", "impair-traffic")


class Cell(unittest.TestCase):
    def test_one_cell_passes(self):
        r = subprocess.run([RUN, "--only", "drop 0.1% 9000", "--seconds", "1"], capture_output=True, text=True, timeout=100)
        self.assertEqual((r.returncode, r.stderr), (0, ""), r.stdout)
        self.assertRegex(r.stdout, r"(?m)^drop +0\.1% +9000 +1 +[1-9]\d* +[1-9]\d* .* passed$")
        self.assertRegex(r.stdout, r"impair: 1 passed, 0 failed\n\Z")

    def test_no_such_cell(self):
        r = subprocess.run([RUN, "--only", "drop 7%"], capture_output=True, text=True, timeout=60)
        self.assertEqual((r.returncode, r.stdout), (1, ""))
        self.assertIn("there are: none 0 1500", r.stderr)


class Counters(unittest.TestCase):
    def test_what_did_not_happen_is_named(self):
        def said(counters):
            return f"EAL: some\nuwarp: impair (out, seed 3):{counters}\n"

        good = said(" frames 2000 dropped 17 delayed 9")
        self.assertEqual(impairment.counters(good + said(" frames 1")), {"frames": 2001, "dropped": 17, "delayed": 9})
        self.assertEqual(impairment.missing("drop=1%,delay=50us", [good, good]), "")
        self.assertEqual(impairment.missing("drop=1%,reorder=2%:200us", [good]), "of 2000 frames none was reordered (reorder=2%:200us)")
        self.assertEqual(impairment.missing("delay=1ms", [said(" frames 2000 dropped 17")]), "of 2000 frames none was delayed")
        self.assertEqual(impairment.missing("drop=1%", [said(" frames 900")]), "")
        for nothing in ("", said("")):
            self.assertIn("no frame", impairment.missing("drop=1%", [good, nothing]))


class Traffic(unittest.TestCase):
    """The two ends believe in different seeds: everything that one does is wrong to the other."""

    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="uwarp-test-", dir="/tmp")
        self.addCleanup(shutil.rmtree, self.dir)

    def start(self, role, address, seed):
        words = [os.path.join(ROOT, "tools", "uwarp-run"), "--quiet", "--", TRAFFIC, role, address, "7471", seed, "2", "0"]
        p = subprocess.Popen(words, env={**os.environ, "UWARPD": "", "UWARP_DIR": self.dir}, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        return p

    def both(self, server_seed, client_seed):
        server = self.start("server", "0.0.0.0", server_seed)
        self.assertEqual(server.stdout.readline(), "listening\n")
        client = self.start("client", "127.0.0.1", client_seed)
        return [(p.communicate(timeout=60)[0], p.returncode) for p in (server, client)]

    def test_what_is_wrong_is_found(self):
        out = self.both("1", "2")
        self.assertTrue(all("FAILED: " in text and code == 1 for text, code in out), out)

    def test_what_is_right_passes(self):
        for text, code in self.both("1", "1"):
            self.assertEqual(code, 0, text)
            self.assertRegex(text, r"octets [1-9]\d* operations [1-9]\d* covered \d+ of 192 ")


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv)
