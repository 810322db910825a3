#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""What uwarp-bench apps judges and draws; nothing is measured here."""

import os
import subprocess
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(TOP, "tools"))

from bench import apps, apps_plots, goals, process, rounds  # noqa: E402
from bench.process import Failed, Unavailable  # noqa: E402

CSV = "program,get,window,mops,get_p50_us\nuwarp-kv,reads,1,0.2,4\nuwarp-kv,rpc,1,0.3,3\nuwarp-kv,reads,4,0.4,9\n"


def measured(**values):
    """Series of the real probes' names with made-up values."""
    series = {p.key: rounds.Series(p.key, p.unit, p.facts) for p in apps.apps(types.SimpleNamespace(made={}))}
    for key, s in series.items():
        s.add({"value": values.get(key, 1.0), "p50": 5.0, "series": [[0.1, 1.0]], "cdf": [[50.0, 1.0]]})
    return series


class Goals(unittest.TestCase):
    def test_every_goal_is_about_something_that_is_measured(self):
        keys = {p.key for p in apps.apps(types.SimpleNamespace(made={}))}
        for goal in (*apps.goals(), *apps.model_goals(), *apps.place_goals()):
            self.assertIn(goal.over, keys)
            self.assertIn(goal.under, {None, *keys})

    def test_no_two_probes_have_one_name(self):
        keys = [p.key for p in apps.apps(types.SimpleNamespace(made={}))]
        self.assertEqual(len(keys), len(set(keys)))

    def test_a_ratio_decides(self):
        faa, rpc = "seq-rate/uwarp/faa/0/16", "seq-rate/uwarp/rpc/0/16"
        for value, verdict in ((1.6, goals.PASS), (1.4, goals.MISS)):
            rows = {r["what"]: r for r in apps.verdicts(measured(**{faa: value, rpc: 1.0}))}
            self.assertEqual(rows["tickets by FETCH_ADD / by rpc, 16 under way"]["verdict"], verdict)

    def test_a_part_alone_has_its_goals_alone(self):
        series = {k: s for k, s in measured().items() if k.startswith("seq")}
        self.assertEqual(len(apps.verdicts(series)), 6)


    def test_a_goal_may_be_of_one_thing_alone(self):
        own = f"kv-own-cpu/uwarp/reads/{apps.VALUE}"
        for value, verdict in ((0.4, goals.PASS), (30.0, goals.MISS)):
            rows = {r["what"]: r for r in apps.verdicts(measured(**{own: value}))}
            self.assertEqual(rows["% of a core, the server's own threads, GETs by reads"]["verdict"], verdict)


class Splits(unittest.TestCase):
    def test_they_begin_with_what_each_did_alone(self):
        self.assertEqual(apps.splits({"host": 0.3, "soc": 0.1})[0], 0.75 * apps.TREE_KEYS)
        self.assertEqual(len(set(apps.splits({"host": 0.3, "soc": 0.1}))), len(apps.PLACE_MORE))
        self.assertEqual(set(apps.splits({"host": 1.0, "soc": 0.0})), {apps.TREE_KEYS})

    def test_without_that_there_is_none(self):
        for alone in ({}, {"host": 0.3}, {"soc": 0.3}):
            with self.assertRaisesRegex(Failed, "alone"):
                apps.splits(alone)


class OwnThreads(unittest.TestCase):
    def test_threads_with_other_names_do_not_count(self):
        """One that spins beside one that sleeps."""
        spin = (
            "import ctypes, threading, time\n"
            "def spin():\n"
            "    ctypes.CDLL(None).prctl(15, b'stack', 0, 0, 0)\n"
            "    while True: pass\n"
            "threading.Thread(target=spin, daemon=True).start()\n"
            "print('ready', flush=True)\n"
            "time.sleep(60)\n"
        )
        with process.Group() as group:
            program = group.start([sys.executable, "-c", spin])
            process.wait_until(lambda: program.threads_seconds("stack") > 0.5, 60)
            with open(f"/proc/{program.pid}/comm", encoding="utf-8") as f:
                own = f.read().strip()
            self.assertGreater(program.threads_seconds("stack"), 0.5)
            self.assertLess(program.threads_seconds(own), program.threads_seconds("stack"))
            self.assertEqual(program.threads_seconds("nobody"), 0.0)


class Csv(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def file(self, text, encoding="utf-8"):
        path = os.path.join(self.folder.name, "x.csv")
        with open(path, "w", encoding=encoding) as f:
            f.write(text)
        return path

    def test_what_is_no_result_is_refused(self):
        for text in ("", "a,b\n1,2\n", CSV + "\xe9", CSV.replace("program", "x")):
            with self.assertRaisesRegex(Failed, "not a file that"):
                apps_plots.read_csv(self.file(text, "latin-1"))
        for damaged in ("uwarp-kv,reads,8,0.", "uwarp-kv,reads,8,,3", "uwarp-kv,reads,8,0.4,", "uwarp-kv,reads,x,0.4,9", "uwarp-kv,reads,8,nan,9", "uwarp-kv,reads,8,0.4,1e308"):
            with self.assertRaisesRegex(Failed, "x.csv: row 4 below the heading is damaged"):
                apps_plots.read_csv(self.file(CSV + damaged))
        self.assertEqual(len(apps_plots.read_csv(self.file(CSV))), 3)
        with self.assertRaisesRegex(Failed, "No such file"):
            apps_plots.read_csv(os.path.join(self.folder.name, "none"))

    def test_a_plot_is_written(self):
        from bench import plots

        try:
            plt = plots.pyplot()
        except Unavailable as e:
            self.skipTest(str(e))
        output = os.path.join(self.folder.name, "x.svg")
        apps_plots.plot_csv(plt, [self.file(CSV.replace("uwarp-kv", "$^{$"))], output)  # no mathematics
        apps_plots.plot_csv(plt, [self.file(CSV)], output)
        with open(output, encoding="utf-8") as f:
            text = f.read()
        self.assertIn("get reads", text.replace("<!-- ", "").replace(" -->", ""))

    def test_what_cannot_be_written_is_named(self):
        tool = os.path.join(TOP, "tools", "uwarp-bench")
        full = os.path.join(self.folder.name, "full.svg")
        os.symlink("/dev/full", full)
        for output, said in (("x.txt", "argument --output: 'x.txt' ends with none of .png, .svg and .pdf"), (full, f"{full}: No space left on device")):
            r = subprocess.run([tool, "plot-csv", self.file(CSV), "--output", output], capture_output=True, text=True, timeout=60)
            if r.returncode == 77:
                self.skipTest(r.stderr)
            self.assertEqual((r.returncode, r.stderr.splitlines()[-1].split(": ", 1)[1].removeprefix("error: ")), (2, said))

    def test_every_plot_draws_what_was_measured(self):
        from bench import plots

        try:
            plt = plots.pyplot()
        except Unavailable as e:
            self.skipTest(str(e))
        for name, draw in apps_plots.PLOTS.items():
            self.assertIsNotNone(draw(plt, measured()), name)
            self.assertIsNone(draw(plt, {}), name)
            plt.close("all")


if __name__ == "__main__":
    unittest.main()
