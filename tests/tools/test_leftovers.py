#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The watch over leftovers sees each kind, cleans up what is the run's own, and keeps its hands
off everything else."""

import fcntl
import os
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools", "lib"))
import leftovers  # noqa: E402


class Leftovers(unittest.TestCase):
    def setUp(self):
        leftovers.GRACE = 0.3
        self.watch = leftovers.Watch()
        self.children = []
        self.addCleanup(self.watch.left_over)
        self.addCleanup(self.stop_children)

    def stop_children(self):
        for p in self.children:
            p.kill()
            p.wait()

    def start(self, env):
        self.children.append(subprocess.Popen(["sleep", "60"], env=env, start_new_session=True))
        return self.children[-1]

    def test_nothing(self):
        subprocess.run(["true"], env=self.watch.env, check=True)
        self.assertEqual(self.watch.left_over(), [])
        self.assertFalse(os.path.exists(self.watch.top))

    def test_what_lies_in_memory_is_unmounted(self):
        self.assertEqual(os.path.ismount(self.watch.top), self.watch.mounted)
        with open(os.path.join(self.watch.env["TMPDIR"], "x"), "w"):  # still open, which a plain unmount would refuse
            self.assertEqual(self.watch.left_over(), [f"file {self.watch.env['TMPDIR']}/x"])
        self.assertFalse(os.path.ismount(self.watch.top))
        self.assertFalse(os.path.exists(self.watch.top))

    def test_a_process_is_found_and_stopped(self):
        p = self.start(self.watch.env)
        self.assertEqual(self.watch.left_over(), [f"process {p.pid}: sleep 60"])
        self.assertEqual(p.wait(timeout=5), -9)

    def test_a_process_that_is_about_to_end_is_none(self):
        self.children.append(subprocess.Popen(["sleep", "0.1"], env=self.watch.env))
        leftovers.GRACE = 5
        # it must be reaped to be gone
        self.children[-1].wait()
        self.assertEqual(self.watch.left_over(), [])

    def test_the_users_own_processes_are_left_alone(self):
        p = self.start(os.environ)
        self.assertEqual(self.watch.left_over(), [])
        self.assertIsNone(p.poll())

    def test_files(self):
        for variable in ("TMPDIR", "XDG_RUNTIME_DIR"):
            open(os.path.join(self.watch.env[variable], "x"), "w").close()
        top = self.watch.top
        self.assertEqual(self.watch.left_over(), [f"file {top}/run/x", f"file {top}/tmp/x"])
        self.assertFalse(os.path.exists(top))

    def test_a_reservation_counts_while_it_is_held(self):
        addr = os.path.join(self.watch.env["XDG_RUNTIME_DIR"], "uwarp", "ctl")
        os.makedirs(addr)
        open(os.path.join(addr, "127.0.0.2.lock"), "w").close()
        with open(os.path.join(addr, "127.0.0.3.lock"), "w") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.assertEqual(self.watch.left_over(), [f"file {addr}/127.0.0.3.lock"])

    def test_shared_memory(self):
        path = f"/dev/shm/uwarp-test-{os.getpid()}"
        open(path, "w").close()
        self.addCleanup(os.unlink, path)
        self.assertEqual(self.watch.left_over(), [path])
        self.assertTrue(os.path.exists(path), "only what is certainly the run's own is removed")


if __name__ == "__main__":
    unittest.main(verbosity=2, argv=sys.argv)
