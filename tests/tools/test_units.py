#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""uwarpd's units, read by systemd itself: each word is one that it knows, and no more is allowed than was."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
ANALYZE = shutil.which("systemd-analyze")
# In tenths, of 100; 46 with this release of systemd, while others may weigh differently. A line that is taken out of [Service] makes it more.
WEIGHED_BY, EXPOSURE = "252", 48


def told_of(directory, change=lambda text: text):
    """What systemd says of the units, the service's text changed: nothing if they are as they should be."""
    with open(os.path.join(ROOT, "tools", "uwarpd", "uwarpd.service.in"), encoding="utf-8") as f:
        text = f.read().replace("@sbindir@", directory)
    service, socket = os.path.join(directory, "uwarpd.service"), os.path.join(directory, "uwarpd.socket")
    shutil.copy(os.path.join(ROOT, "tools", "uwarpd", "uwarpd.socket"), socket)
    with open(service, "w", encoding="utf-8") as f:
        f.write(change(text))
    with open(os.path.join(directory, "uwarpd"), "w", encoding="utf-8") as f:
        f.write("#!/bin/sh\n")
    os.chmod(f.name, 0o755)
    # It has words for the machine's other units, too.
    said = analyze("verify", "--man=no", service, socket)
    said = [line for line in said.stderr.splitlines() if "uwarpd" in line]
    if not is_weighed():
        return said
    judged = analyze("security", "--offline=yes", f"--threshold={EXPOSURE}", service)
    return said + ([judged.stdout[-200:] + judged.stderr] if judged.returncode else [])


def is_weighed():
    return re.match(rf"systemd {WEIGHED_BY}\b", analyze("--version").stdout) is not None


def analyze(*words):
    return subprocess.run([ANALYZE, "--no-pager", *words], capture_output=True, text=True, check=False, timeout=60)


@unittest.skipUnless(ANALYZE, "no systemd-analyze here")
class Units(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name
        if analyze("security", "--offline=yes", "--help").returncode:
            self.skipTest("this systemd-analyze judges no files")

    def test_they_are_sound(self):
        self.assertEqual(told_of(self.directory), [])

    def test_a_broken_one_is_not(self):
        self.judge(("NoNewPrivileges=yes", "NoNewPrivilege=yes"), ("Type=notify", "Type=notified"), ("/uwarpd $", "/uwarpb $"),
                   ("SystemCallFilter=", "SystemCallFilter=@unheard-of "))

    @unittest.skipUnless(ANALYZE and is_weighed(), f"not the systemd {WEIGHED_BY} that weighed them")
    def test_one_that_allows_more_is_not(self):
        self.judge(("CapabilityBoundingSet=", "#"), ("ProtectSystem=strict\nProtectHome=yes\n", ""))

    def judge(self, *changes):
        for old, new in changes:
            with self.subTest(old=old):
                self.assertNotEqual(told_of(self.directory, lambda text, old=old, new=new: text.replace(old, new)), [])


if __name__ == "__main__":
    unittest.main()
