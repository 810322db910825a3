#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tracks of tools/check: what fails beside other parts does not hold up those behind it."""

import contextlib
import io
import os
import sys
import threading
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools", "lib"))
import check  # noqa: E402

PART = check.Part("build", ["unit"])


def entry(result):
    return {"name": "unit / x", "result": result, "stdout": "1 passed, 0 failed\n" if result == "OK" else "", "stderr": ""}


class Lanes(unittest.TestCase):
    def play(self, results, names=("a", "b")):
        """Runs the parts in a track beside; results: what each run of a test gives. Returns the track, and the names of the runs."""
        track, runs = check.Track(beside=True), []

        def meson_test(log, *_):
            runs.append(log)
            if log == f"check-{names[-1]}":
                track.alone.set()
            return [entry(results.get(log, "OK"))]

        with contextlib.ExitStack() as s:
            s.enter_context(mock.patch.dict(check.PARTS, {n: PART for n in names}))
            for module, name, value in (
                (check.house, "configure", None), (check.house, "build", None), (check, "targets_of", []),
                (check, "suites_of", {"unit"}), (check, "forget_logs", None),
            ):  # fmt: skip
                s.enter_context(mock.patch.object(module, name, lambda *_, value=value: value))
            s.enter_context(mock.patch.object(check, "meson_test", meson_test))
            s.enter_context(contextlib.redirect_stdout(io.StringIO()))
            s.enter_context(contextlib.redirect_stderr(io.StringIO()))
            check.run_parts(names, {}, track)
        return track, runs

    def test_all_pass(self):
        track, runs = self.play({})
        self.assertEqual(runs, ["check-a", "check-b"])
        self.assertEqual((track.total.passed, track.total.failed, track.parts), (2, 0, 2))

    def test_the_second_try_comes_last(self):
        track, runs = self.play({"check-a": "FAIL"})
        self.assertEqual(runs, ["check-a", "check-b", "again-a"])
        self.assertEqual((track.total.passed, track.total.failed, track.parts), (2, 0, 2))

    def test_what_fails_twice_has_failed(self):
        track, _ = self.play({"check-a": "FAIL", "again-a": "FAIL"})
        self.assertEqual((track.total.passed, track.total.failed, track.parts), (1, 1, 2))
        self.assertTrue(track.failures[0].startswith("a: "))

    def test_the_second_try_waits_for_all_tracks(self):
        """It is alone: the main track is through, and so are the others beside it."""
        order, slow = [], threading.Event()

        def play(names, env, track):
            if names[0] == "asan":
                slow.wait(10)
            order.append(names[0])
            track.parts = len(names)
            track.through.set()
            if track.beside:
                track.alone.wait()
                order.append("again " + names[0])
            else:
                slow.set()

        with contextlib.ExitStack() as s:
            for module, name in ((check.house, "configure"), (check.house, "build")):
                s.enter_context(mock.patch.object(module, name, lambda *_: None))
            s.enter_context(mock.patch.object(check, "run_parts", play))
            total, failures = check.run_tracks(["unit", "interop", "asan"], {})
        self.assertEqual(sorted(order[:3]), ["asan", "interop", "unit"])
        self.assertEqual(order[3:], ["again interop", "again asan"])
        self.assertEqual((total.failed, failures), (0, []))

    def test_parts_that_are_all_beside_need_no_track(self):
        self.assertEqual(check.split(["asan", "interop"]), (["interop", "asan"], []))
        self.assertEqual(check.split(["unit", "asan"]), (["unit"], [["asan"]]))

    def play_command(self, figures):
        """Runs interop in a track beside; figures: what each run of it prints."""
        track, runs = check.Track(beside=True), iter([["echo", text] for text in figures])

        class Commands(dict):
            def __getitem__(self, _):
                return next(runs)

        with contextlib.ExitStack() as s:
            for module, name, value in (
                (check.house, "configure", lambda *_: None), (check.house, "build", lambda *_: None),
                (check, "COMMANDS", Commands(interop=None)), (track.alone, "wait", track.alone.set),
            ):  # fmt: skip
                s.enter_context(mock.patch.object(module, name, value))
            s.enter_context(contextlib.redirect_stdout(io.StringIO()))
            s.enter_context(contextlib.redirect_stderr(io.StringIO()))
            check.run_parts(["interop"], {}, track)
        return track

    def test_a_command_tries_once_more(self):
        track = self.play_command(["1 passed, 1 failed", "2 passed, 0 failed"])
        self.assertEqual((track.total.passed, track.total.failed, track.parts, track.failures), (2, 0, 1, []))

    def test_a_command_that_fails_twice_has_failed(self):
        track = self.play_command(["FAIL one\n1 passed, 1 failed", "FAIL two\n1 passed, 1 failed"])
        self.assertEqual((track.total.passed, track.total.failed, track.parts), (1, 1, 1))
        self.assertEqual(track.failures, ["interop: FAIL two"])

    def test_a_command_without_figures_has_failed(self):
        track = check.Track()
        with contextlib.ExitStack() as s:
            s.enter_context(mock.patch.dict(check.COMMANDS, {"a": ["true"]}))
            s.enter_context(contextlib.redirect_stdout(io.StringIO()))
            s.enter_context(contextlib.redirect_stderr(io.StringIO()))
            check.run_parts(["a"], {}, track)
        self.assertEqual((track.total.passed, track.total.failed, track.parts), (0, 1, 1))


if __name__ == "__main__":
    unittest.main()
