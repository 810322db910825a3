#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""uwarp-bench's own arithmetic, reading and judging; nothing is measured here."""

import contextlib
import io
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock

sys.dont_write_bytecode = True
TOOLS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "tools")
sys.path.insert(0, TOOLS)

from bench import apps, cli, conditions, goals, icount, lossy, numbers, output, peers, perftest, plan, programs, qperf, report, rig, rounds, servers, verbs  # noqa: E402
from bench.process import Failed, Group, Unavailable, wait_until  # noqa: E402
from bench.rig import Rig, helper, last_row  # noqa: E402


class Clock:
    """A probe that gives one value after the other; an exception is raised."""

    def __init__(self, *values):
        self.values = list(values)

    def __call__(self):
        value = self.values.pop(0)
        if isinstance(value, Exception):
            raise value
        return {"value": value, "more": 1}


def probe(key, *values, **facts):
    return rounds.Probe(key, "us", Clock(*values), **{"test": "latency", "scheme": "uwarp", "op": "send", "size": 64, **facts})


def run(*probes, n=3):
    return rounds.run(list(probes), n, quiet=True)


class Rows(unittest.TestCase):
    def test_the_last_row_of_numbers_counts_even_if_one_is_none(self):
        text = "#bytes t_min\n 64 200 5.25 97.1 7.3 8.4 -nan 9.5 9.9\n--------\n"
        row = last_row(text, 9)
        self.assertEqual((row[4], row[5], row[8]), (7.3, 8.4, 9.9))
        with self.assertRaisesRegex(Failed, "no figures"):
            last_row("64 200 none\n", 2)
        with self.assertRaisesRegex(Failed, "clock rate"):
            last_row(" 64 200 inf inf inf inf -nan inf inf\n", 9)


class Waiting(unittest.TestCase):
    def waits(self, sleeps, seconds):
        """The time that passed until it gave up, where sleep() takes so long, one time after the other, then as asked for."""
        now = [0.0]

        def sleep(wanted):
            now[0] += sleeps.pop(0) if sleeps else wanted

        with unittest.mock.patch("bench.process.time", sleep=sleep, monotonic=lambda: now[0]):
            self.assertFalse(wait_until(lambda: False, seconds))
        return now[0]

    def test_it_gives_up_when_the_time_is_over(self):
        self.assertAlmostEqual(self.waits([], 3), 3, delta=0.1)
        self.assertAlmostEqual(self.waits([0.5] * 4, 3), 3, delta=0.1)  # a busy machine

    def test_the_time_does_not_pass_while_it_is_stopped(self):
        self.assertAlmostEqual(self.waits([0.5, 60], 3), 63, delta=0.1)
        self.assertAlmostEqual(self.waits([60, 0.5, 60], 3), 123, delta=0.1)


class Numbers(unittest.TestCase):
    def test_sizes_are_read_as_people_write_them(self):
        for text, octets in (("64", 64), ("1K", 1000), ("64Ki", 65536), ("1MiB", 1 << 20), ("500kb", 500_000)):
            self.assertEqual(numbers.parse_size(text), octets)

    def test_what_is_no_size_is_refused(self):
        for text in ("", "K", "0", "-1", "1G", "1.5K"):
            with self.assertRaises(ValueError):
                numbers.parse_size(text)

    def test_spread_is_extremes_of_few_and_quartiles_of_many(self):
        self.assertEqual(numbers.spread([3, 1, 2]), (1, 3))
        self.assertEqual(numbers.spread([1, 2, 3, 4, 100]), (2, 4))


class HowSure(unittest.TestCase):
    """When to measure again, and when to say that the machine was not fit."""

    def test_rounds_go_on_until_the_quartiles_are_close(self):
        s = rounds.run([probe("a", 1, 9, *[5] * 8), probe("b", *[7] * 10)], 2, quiet=True, width=0.2, most=10)
        self.assertEqual(s["a"].rounds, [1, 9, 5, 5, 5])
        self.assertEqual(s["b"].rounds, [7] * 5)
        self.assertEqual(rounds.too_wide(s, 0.2), [])

    def test_they_end_at_the_most_and_say_who_is_wide(self):
        s = rounds.run([probe("a", *[1, 9] * 3)], 2, quiet=True, width=0.2, most=6)
        self.assertEqual(len(s["a"].rounds), 6)
        self.assertEqual([x.key for x in rounds.too_wide(s, 0.2)], ["a"])
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            cli.say_how_sure(cli.parser().parse_args(["servers", "--width", "20"]), s, conditions.Conditions())
        self.assertRegex(said.getvalue(), r"further than 20 % apart after 6 rounds:\n +160%  a")

    def test_without_a_width_rounds_are_as_many_as_asked_for(self):
        self.assertEqual(len(run(probe("a", 1, 9, 5), n=3)["a"].rounds), 3)

    def test_what_others_take_is_told(self):
        times = iter([(0, 0), (1, 100), (1, 100), (61, 200)])
        others = conditions.Others(lambda: next(times), 0)
        rounds.run([probe("a", 1, 2)], 2, quiet=True, look=others.look)
        self.assertEqual(others.shares, [0.01, 0.6])
        self.assertIn("before 1 of 2 rounds others took 60% to 60%", others.told())
        self.assertIsNone(conditions.Others().told())
        busy, total = conditions.cpu_times()
        self.assertTrue(0 < busy < total)

    def test_cpus_that_moved_are_told(self):
        speeds = iter([7.0, None, 1.9, 7.2])
        cpus = conditions.Cpus(lambda: next(speeds))
        rounds.run([probe("a", 1, 2, 3, 4)], 4, quiet=True, look=conditions.Conditions(cpus).look)
        self.assertEqual(cpus.facts(), {"cpu_gbytes": [7.0, 1.9, 7.2]})
        self.assertIn("at 1.9 to 7.2 GB/s; compare within a round only", cpus.told())
        self.assertIn(" (1.9 to 7.2 GB/s from one to another)", report.cpu_speeds(cpus.facts()))

    def test_cpus_that_stayed_are_not(self):
        for speeds in ([], [7.0], [7.0, 9.9]):
            cpus = conditions.Cpus()
            cpus.speeds = speeds
            self.assertIsNone(cpus.told())
        self.assertEqual(report.cpu_speeds({}), "")
        self.assertEqual(report.cpu_speeds({"cpu_gbytes": [7.01, 7.04]}), " (7.0 GB/s from one to another)")

    def test_one_cpu_is_no_distance(self):
        try:
            program = helper("cpu_bench")
        except Unavailable as e:
            self.skipTest(str(e))
        all_cpus = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(all_cpus)})
        try:
            self.assertEqual(subprocess.run([program], check=False).returncode, 1)
            self.assertIsNone(conditions.gbytes_between_cpus())
        finally:
            os.sched_setaffinity(0, all_cpus)

    def test_what_cpu_bench_prints_is_read(self):
        printed = subprocess.CompletedProcess([], 0, '{"octets": 98304, "written_ns": 10800, "read_ns": 2500, "gbytes": 7.391}')
        with unittest.mock.patch("bench.conditions.helper"), unittest.mock.patch("subprocess.run", return_value=printed):
            self.assertEqual(conditions.gbytes_between_cpus(), 7.391)
        with unittest.mock.patch("bench.conditions.helper", side_effect=Unavailable("not built")):
            self.assertIsNone(conditions.gbytes_between_cpus())

    def test_wrong_widths_are_refused(self):
        for words in (["--width", "0"], ["--most-rounds", "9"], ["--width", "5", "--rounds", "9", "--most-rounds", "3"]):
            self.assertTrue(cli.check(cli.parser().parse_args(["servers", *words])))


class Rounds(unittest.TestCase):
    def test_probes_take_turns(self):
        order = []
        made = [rounds.Probe(k, "us", lambda k=k: order.append(k) or {"value": 1}, test="t", scheme="s", op="o", size=1) for k in "ab"]
        run(*made, n=2)
        self.assertEqual(order, list("abab"))

    def test_some_are_chosen_by_their_names(self):
        probes = [rounds.probe("connections", scheme, "set up", 0, "/s", dict) for scheme in ("uwarp", "tcp")]
        self.assertEqual(rounds.only(probes, None), probes)
        self.assertEqual(rounds.only(probes, "TCP/Set"), probes[1:])
        with self.assertRaisesRegex(rounds.Failed, "nothing .* 'udp' .*connections/uwarp/set up/0"):
            rounds.only(probes, "udp")

    def test_quotients_are_of_one_round(self):
        s = run(probe("a", 10, 20, 30), probe("b", 5, 5, 10))
        self.assertEqual(rounds.ratio(s, "a", "b"), [2, 4, 3])

    def test_a_round_that_the_system_refuses_costs_one_figure(self):
        s = run(probe("a", 1, FileNotFoundError(2, "No such file", "/x"), 3), probe("b", 4, 5, 6))
        self.assertEqual((s["a"].rounds, s["b"].rounds), ([1, None, 3], [4, 5, 6]))

    def test_a_failed_round_counts_for_nobody(self):
        s = run(probe("a", 10, Failed("late"), 30), probe("b", 5, 5, 10))
        self.assertEqual(rounds.ratio(s, "a", "b"), [2, 3])
        self.assertIn("late", s["a"].text())

    def test_what_is_unavailable_is_tried_once_and_says_so(self):
        s = run(probe("a", Unavailable("no such device"), 1, 1))
        self.assertEqual(s["a"].text(), "not available: no such device")
        self.assertEqual(s["a"].values(), [])

    def test_no_round_begins_that_would_end_too_late(self):
        s = rounds.run([probe("a", 1, 2, 3)], 3, quiet=True, seconds=-1)
        self.assertEqual(s["a"].values(), [1])

    def test_a_probe_may_sit_rounds_out(self):
        p = probe("a", 1)
        p.most = 1
        self.assertEqual(run(p)["a"].values(), [1])


class Device(unittest.TestCase):
    def rig(self, *words):
        return Rig(cli.parser().parse_args([*words, "--device", "siw0", "--peer", "192.0.2.7", "--remote", "ssh 192.0.2.7"]))

    def test_only_tcp_stands_beside_it_and_the_mtu_is_its_own(self):
        for command in cli.WITH_DEVICE:
            with self.rig(command) as rig:
                made = list(plan.TESTS[command](rig))
            self.assertEqual({p.facts["scheme"] for p in made}, {"siw0", "tcp"}, command)
            self.assertEqual(len({p.key for p in made}), len(made))
            self.assertTrue(all(p.facts.get("mtu") is None for p in made))

    def test_uwarp_stands_beside_it_where_it_can(self):
        for command in cli.BESIDE_DEVICE:
            with self.rig(command, "--uwarp-link", "eth7") as rig:
                made = list(plan.TESTS[command](rig))
            self.assertEqual({p.facts["scheme"] for p in made}, {"siw0", "uwarp", "tcp"}, command)
            self.assertEqual(len({p.key for p in made}), len(made))

    def test_uwarp_runs_at_both_ends(self):
        started = []

        class Client:
            cpu = 0

            def wait(self, _):
                return ""

            def cpu_seconds(self):
                return 0

        def start(_, words, **how):
            started.append(words)
            return Client()

        with self.rig("latency", "--uwarp-link", "eth7") as rig, unittest.mock.patch.object(perftest.Group, "start", start):
            perftest.pair(rig, ["/usr/bin/ib_send_lat", "-R"], None, None, perftest.AT_PEER)
            perftest.pair(rig, ["/usr/bin/ib_send_lat", "-R"], None, None)
        (server, client), device = started[:2], started[2:]
        front = [perftest.uwarp_run(), "--quiet", "--link", "eth7", "--"]
        self.assertEqual((server[:2], server[4:9], server[9]), (["ssh", "192.0.2.7"], front, "ib_send_lat"))
        self.assertEqual((client[:5], client[-1]), (front, "192.0.2.7"))
        self.assertNotIn("-d", server + client)
        self.assertTrue(all("-d" in words and front[0] not in words for words in device))

    def test_its_speed_is_found_out_once_by_a_few_messages(self):
        asked = []
        with self.rig("rate") as rig:
            for _ in range(2):
                n = perftest.affordable(rig, "send", 5000, lambda few: asked.append(few) or 1000.0)
                self.assertEqual(n, 500)
            self.assertEqual(perftest.affordable(rig, "slow", 5000, lambda few: 2.0), perftest.FEW)
            self.assertEqual(perftest.affordable(rig, "fast", 5000, lambda few: 1e6), 5000)
        self.assertEqual(asked, [perftest.FEW])
        with Rig(cli.parser().parse_args(["rate"])) as rig:
            self.assertEqual(perftest.affordable(rig, "send", 5000, None), 5000)
        self.assertEqual([perftest.few_of(size) for size in (64, 65_536, 1 << 20)], [perftest.FEW, 16, perftest.FEWEST])

    def test_a_slow_ones_throughput_is_told_by_its_messages(self):
        self.assertEqual(perftest.gigabits([1024, 200, 0, 0.0, 0.000250], 1000), 0.002)
        self.assertEqual(perftest.gigabits([65536, 200, 9.5, 9.41, 0.017], 65536), 9.41)

    def test_every_pair_has_a_port_of_its_own(self):
        with self.rig("rate") as rig:
            self.assertNotEqual(rig.new_port(), rig.new_port())


class Goals(unittest.TestCase):
    def goal(self, bound, limit, factor=1.0):
        return goals.Goal("it", "a", "b", bound, limit, factor=factor)

    def test_a_median_within_the_limit_passes(self):
        s = run(probe("a", 10, 20, 90), probe("b", 10, 10, 10))
        self.assertEqual(goals.judge(s, self.goal("<=", 2.0))["verdict"], goals.PASS)
        self.assertEqual(goals.judge(s, self.goal("<=", 1.9))["verdict"], goals.MISS)
        self.assertEqual(goals.judge(s, self.goal(">=", 2.1))["verdict"], goals.MISS)

    def test_a_factor_scales_what_was_measured(self):
        s = run(probe("a", 20), probe("b", 10), n=1)
        self.assertEqual(goals.judge(s, self.goal("<=", 1.0, factor=0.5))["value"], 1.0)

    def test_what_is_missing_is_never_a_pass(self):
        s = run(probe("a", Unavailable("no rate option")), probe("b", 1), n=1)
        row = goals.judge(s, self.goal("<=", 2.0))
        self.assertEqual((row["verdict"], row["why"]), (goals.NOT_AVAILABLE, "no rate option"))
        s = run(probe("a", Failed("crashed")), probe("b", 1), n=1)
        self.assertEqual(goals.judge(s, self.goal("<=", 2.0))["verdict"], goals.FAILED)
        self.assertTrue(all(r["verdict"] in (goals.NOT_AVAILABLE, goals.FAILED) for r in goals.verdicts({})))

    def test_everything_that_a_goal_names_is_measured_by_all(self):
        options = cli.parser().parse_args(["all"])
        rig = type("Rig", (), {"options": options})
        keys = {p.key for p in plan.everything(rig)}
        for g in goals.every_goal():
            for key in [k for k in (g.over, g.under) if k and g.over]:
                self.assertIn(key, keys, g.what)


class Surroundings(unittest.TestCase):
    def test_a_rate_is_an_option_since_uwarp_run_passes_on_no_other(self):
        started = []
        group = type("Group", (), {"start": lambda _, argv, **how: started.append((argv, how["env"]))})()
        with Rig(None) as rig:
            rig.start_uwarp(group, "127.0.0.3", ["true"], env={"UWARP_LINK_RATE": "10G", "UWARP_CRC": "0"})
        argv, env = started[0]
        self.assertEqual(argv[argv.index("--rate") + 1], "10G")
        self.assertEqual((env["UWARP_CRC"], env.get("UWARP_LINK_RATE")), ("0", None))


CMTIME = """step              total ms     max ms     min us  us / conn
create id    :        0.18       0.01       0.00       0.93
bind addr    :      101.82     100.00       1.00    1297.89
resolve addr :       50.00      47.20     239.00     275.24
resolve route:        5.00       0.28      48.00      25.95
create qp    :        1.00       0.28       1.00       7.41
connect      :       40.00      21.70    6469.00     267.05
disconnect   :        1.00       6.33       8.00      59.94
destroy      :        1.00       0.05       1.00       1.81
"""


class Cmtime(unittest.TestCase):
    def test_every_step_counts_but_for_the_start_of_the_process(self):
        sample = verbs.cmtime_rate(CMTIME)
        self.assertAlmostEqual(sample["value"], verbs.CMTIME_CONNECTIONS / 0.1)
        self.assertEqual(sample["start_ms"], 100)

    def test_a_connection_that_failed_is_no_rate(self):
        for out in ("event: RDMA_CM_EVENT_CONNECT_ERROR, error: -12\n" + CMTIME, CMTIME.replace("connect", "con")):
            self.assertRaises(Failed, verbs.cmtime_rate, out)


class Output(unittest.TestCase):
    def series(self):
        return run(probe("latency/uwarp/send/64", 10, 20, 30), probe("latency/wire/echo/64", 5, 5, 10, scheme="wire", op="echo"))

    def test_what_was_written_is_read_again(self):
        s, options = self.series(), cli.parser().parse_args(["latency"])
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.json")
            output.write_json(path, output.document(s, options, []))
            doc, again = output.read_json(path)
            self.assertEqual([x.as_json() for x in again.values()], [x.as_json() for x in s.values()])
            self.assertIn("3.00 x", report.markdown(doc, again))
            report_html = report.html_page(doc, again, [])
        self.assertIn("uwarp", report_html)

    def test_files_of_one_subject_are_one_run_of_more_rounds(self):
        s, options = self.series(), cli.parser().parse_args(["latency"])
        alone = run(probe("latency/uwarp/send/64", 40), n=1)
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("a", "b", "c")]
            for path, found in zip(paths, (s, alone, s)):
                output.write_json(path, output.document(found, options, []))
            doc, one = cli.merged(paths)
        self.assertEqual(one["latency/uwarp/send/64"].values(), [10, 20, 30, 40, 10, 20, 30])
        self.assertEqual(doc["settings"]["rounds"], 7)
        self.assertEqual(rounds.ratio(one, "latency/uwarp/send/64", "latency/wire/echo/64"), [2, 4, 3, 2, 4, 3])

    def test_another_file_is_refused(self):
        doc = output.document(self.series(), cli.parser().parse_args(["latency"]), [])
        one = doc["series"][0]
        damaged = [
            {"something": "else"}, [], "x", None, {k: v for k, v in doc.items() if k != "settings"}, {**doc, "settings": []}, {**doc, "machine": None},
            *({**doc, "series": wrong} for wrong in (["x"], [None], {"a": 1}, 7, [{**one, "rounds": ["x"]}], [{**one, "rounds": None}], [{**one, "samples": [1]}])),
            *({**doc, "series": [{k: v for k, v in one.items() if k != lost}]} for lost in ("key", "rounds", "op", "size")),
        ]  # fmt: skip
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "x.json")
            for text in [*map(json.dumps, damaged), json.dumps(doc)[:-9], "\xe9"]:
                with self.subTest(text), open(path, "w", encoding="latin-1") as f:
                    f.write(text)
                    f.flush()
                    with self.assertRaisesRegex(output.BadFile, "x.json: not a file that uwarp-bench --json wrote"):
                        output.read_json(path)

    def test_a_table_shows_quotients_against_the_wire(self):
        self.assertIn("3.00 x", output.columns(output.rows(self.series(), "latency")))


class Printed(unittest.TestCase):
    def test_libfabrics_rows_are_found_whatever_the_size(self):
        text = "bytes   #sent   #ack     total       time     MB/sec    usec/xfer   Mxfers/sec\n9.7k    300     =300     5.7m        2.00s      2.99    3339.82       0.00\n"
        self.assertEqual(peers.FI_ROW.findall(text)[-1][2], "3339.82")


class Qperf(unittest.TestCase):
    def test_figures_are_microseconds_and_gigabits(self):
        self.assertAlmostEqual(qperf.value("rc_lat:\n    latency  =  4844.35 ns\n"), 4.84435)
        self.assertAlmostEqual(qperf.value("rc_bw:\n    bw  =  1250000000 bytes/sec\n"), 10)
        self.assertRaises(Failed, qperf.value, "rc_lat:\nfailed to receive synchronization\n")

    def test_verbs_stand_beside_tcps_test_of_the_same_kind_and_size(self):
        facts = {"test": "qperf", "size": 65536}
        s = run(
            probe("qperf/uwarp/rc_bw/65536", 8, 9, 10, op="rc_bw", **facts), probe("qperf/tcp/tcp_bw/65536", 4, 3, 5, op="tcp_bw", scheme="tcp", **facts),
            probe("qperf/uwarp/rc_lat, polling/65536", 1, 1, 1, op="rc_lat, polling", **facts), probe("qperf/tcp/tcp_lat/65536", 4, 4, 4, op="tcp_lat", scheme="tcp", **facts),
        )  # fmt: skip
        self.assertEqual([r[-1] for r in output.rows(s, "qperf")], ["against TCP", "2.00 x", "", "0.25 x", ""])

    def test_another_device_has_its_server_at_the_peer(self):
        options = cli.parser().parse_args(["qperf", "--device", "siw0", "--peer", "192.0.2.7", "--remote", "sh -c"])
        rig = type("Rig", (), {"options": options})
        self.assertIn("qperf/siw0/rc_lat/64", {p.key for p in plan.qperfs(rig)})
        words = qperf.client_words("21000", options.peer, "rc_lat", 64, ["-cm", "1"])
        self.assertEqual((words[1:3], words[-3:]), (["-lp", "21000"], ["-cm", "1", "rc_lat"]))


class Instructions(unittest.TestCase):
    FILE = "\n".join(
        ["fl=(1) ../stack/qp/sq.c", "fn=(1) post", "10 5", "cfi=(2) ../subprojects/lwip-2.2.1/src/core/tcp.c", "cfn=(2) out", "calls=1 3",
         "11 100", "12 7", "fl=(2)", "fn=(2)", "3 40", "fe=(1)", "4 1", "fl=(3) ../tests/sim/net.c", "fn=(3) sim", "1 1000"]
    )  # fmt: skip

    def test_each_line_counts_for_the_file_it_is_of(self):
        self.assertEqual(icount.layers(self.FILE), {"qp": 13, "lwip": 40})

    def test_layers_go_by_folder(self):
        for path, layer in (("../stack/io/lwip/pcb/tx_queue.c", "io/lwip"), ("stack/io/pcap.c", "io"), ("./string/memcpy.S", icount.LIBRARIES)):
            self.assertEqual(icount.layer_of(path), layer)

    def test_more_instructions_than_tolerated_fail(self):
        baseline = {"compiler": "gcc 12 x86_64", "instructions": {"send 64": 1000}}
        for now, built_with, verdict in (
            (1099, "gcc 12 x86_64", "ok"), (1110, "gcc 12 x86_64", "MORE"), (880, "gcc 12 x86_64", "less: --update"),
            (1400, "gcc 14 x86_64", "ok"), (1600, "gcc 14 x86_64", "MORE"),
        ):  # fmt: skip
            rows, _ = icount.judge({"send 64": {"qp": now}}, baseline, built_with)
            self.assertEqual(rows[0][-1], verdict)

    def gate(self, found):
        with unittest.mock.patch.object(icount, "measure", lambda *_: found), unittest.mock.patch.object(icount, "compiler", lambda: "gcc 12 x86_64"):
            baseline = {"compiler": "gcc 12 x86_64", "instructions": {"send 64": 1000}}
            with unittest.mock.patch.object(icount, "read_baseline", lambda: baseline), contextlib.redirect_stdout(io.StringIO()) as out:
                return icount.gate(None, None), out.getvalue().splitlines()[-1]

    def test_what_has_no_baseline_fails(self):
        self.assertEqual(self.gate({"send 64": {"qp": 1000}}), (0, "1 passed, 0 failed"))
        self.assertEqual(self.gate({"send 64": {"qp": 1000}, "read 64": {"qp": 1}}), (1, "1 passed, 1 failed"))

    def test_the_first_message_of_a_connection_is_not_counted(self):
        costs = lambda rig, op, size, n, connections: {"qp": 9 * n + 5 * min(n, connections or 1)}  # noqa: E731
        with unittest.mock.patch.object(icount, "count", costs):
            self.assertEqual(icount.per_message(None, "send", 64, 1000), {"qp": 9})
            self.assertEqual(icount.per_message(None, "send", 64), {"qp": 9})


class CommandLine(unittest.TestCase):
    def wrong(self, *words):
        with contextlib.redirect_stderr(io.StringIO()) as err, self.assertRaises(SystemExit) as end:
            cli.main(list(words))
        self.assertEqual(end.exception.code, 2)
        return err.getvalue()

    def test_wrong_words_are_refused_in_one_line(self):
        self.assertIn("'1.5' is not a size", self.wrong("latency", "--sizes", "1.5"))
        self.assertIn("'both' is none of", self.wrong("rate", "--ops", "both"))
        self.assertIn("go together", self.wrong("rate", "--device", "siw0"))
        device = ("--device", "siw0", "--peer", "192.0.2.7")
        self.assertIn("--uwarp-link goes with --device", self.wrong("latency", "--uwarp-link", "eth7"))
        self.assertIn("--uwarp-link goes with latency", self.wrong("qperf", *device, "--uwarp-link", "eth7"))
        self.assertIn("--device goes with latency", self.wrong("schemes", *device))
        self.assertIn("beside another device only tcp", self.wrong("latency", *device, "--against", "wire"))
        self.assertIn("has its own", self.wrong("throughput", *device, "--mtu", "9000"))

    def test_what_cannot_be_written_is_said_before_anything_is_measured(self):
        folder = tempfile.mkdtemp(prefix="uwarp-test-")
        self.addCleanup(shutil.rmtree, folder)
        nowhere, plain = os.path.join(folder, "no", "where"), os.path.join(folder, "plain")
        open(plain, "w").close()
        with unittest.mock.patch.object(cli, "measure", side_effect=AssertionError):
            for option, path in ("--json", nowhere), ("--csv", folder), ("--report", plain):
                with contextlib.redirect_stderr(io.StringIO()) as err:
                    self.assertEqual(cli.main(["latency", option, path]), 2)
                self.assertIn(path, err.getvalue())
            for path in (os.path.join(folder, "new"), plain):  # that can be, and nothing of it yet
                with self.assertRaises(AssertionError):
                    cli.main(["latency", "--json", path])
        self.assertEqual(os.listdir(folder), ["plain"])

    def test_programs_end_with_their_group(self):
        with Group() as group:
            program = group.start(["sleep", "60"])
            self.assertTrue(program.running())
        self.assertFalse(program.running())


class Installed(unittest.TestCase):
    """PREFIX/share/uwarp has the modules, PREFIX/bin the other tools, and what builds Valkey is nowhere."""

    def setUp(self):
        prefix = tempfile.mkdtemp(prefix="uwarp-test-")
        self.addCleanup(shutil.rmtree, prefix)
        for name in ("TOOLS", "PREFIX"):
            patch = unittest.mock.patch.object(rig, name, os.path.join(prefix, "share", "uwarp") if name == "TOOLS" else prefix)
            patch.start()
            self.addCleanup(patch.stop)
        os.mkdir(os.path.join(prefix, "bin"))
        self.impair = os.path.join(prefix, "bin", "uwarp-impair")
        open(self.impair, "w").close()

    def test_the_other_tools_are_found(self):
        self.assertEqual(rig.tool("uwarp-impair"), self.impair)
        group = unittest.mock.Mock()
        group.start.return_value.out.return_value = "between"
        lossy.Path.impair(unittest.mock.Mock(at=lambda role: []), group, 1.0, 0.1, 7)
        self.assertEqual(group.start.call_args[0][0][0], self.impair)
        with self.assertRaises(Unavailable):
            rig.uwarp_run()

    def test_valkey_is_not_available(self):
        with self.assertRaisesRegex(Unavailable, "no Valkey with RDMA"):
            servers.valkey("valkey-server")


class NoGoals:
    verdicts = staticmethod(lambda series: [])


class Sections(unittest.TestCase):
    def test_one_section_is_replaced_and_the_others_stay(self):
        page = "# Page\n\n## latency\n\na\n\n## loss\n\nold\n\n## rate\n\nb\n"
        new = "## loss\n\nnew\n"
        self.assertEqual(report.put_section(page, "loss", new), "# Page\n\n## latency\n\na\n\n## loss\n\nnew\n\n## rate\n\nb\n")
        self.assertEqual(report.put_section("# Page\n", "loss", new), "# Page\n\n## loss\n\nnew\n")
        self.assertEqual(report.put_section("# Page\n\n## loss\n\nold\n", "loss", new), "# Page\n\n## loss\n\nnew\n")

    def test_a_subject_of_several_tests_has_a_table_for_each(self):
        made = lambda test: rounds.Series(test, "us", {"test": test, "scheme": "uwarp", "op": "faa", "size": 0})
        doc = {"machine": {"cores": 2, "cpu": "C", "kernel": "6"}, "settings": {"rounds": 1}, "when": "today"}
        text = report.section(NoGoals, "apps", doc, {"a": made("seq"), "b": made("btree")})
        self.assertTrue(text.startswith("## apps\n"))
        self.assertIn("### seq\n", text)
        self.assertIn("### btree\n", text)
        self.assertNotIn("###", report.section(NoGoals, "cpu", doc, {"a": made("cpu")}))


UCX_OUT = """+--------------+--------------+------------------------------+---------------------+-----------------------+
|    Stage     | # iterations | 50.0%ile | average | overall |  average |  overall |  average  |  overall  |
[thread 0]             19999      5.100     5.400     5.300       100.10      100.20       26000       26001
Final:                 20000      4.730     0.000     5.116        0.00     1491.19           0       24404
"""
# NPmpich2 -l 65536 -u 65536, which is without -p 0
NETPIPE_OUT = """Sending output to /dev/null
0: vm
Now starting the main loop
  0:   65533 bytes      3 times -->     20.10 Mbps in   24871.47 usec
  1:   65536 bytes      3 times -->     29.48 Mbps in   16958.83 usec
  2:   65539 bytes      3 times -->    539.51 Mbps in     926.81 usec
"""


class Programs(unittest.TestCase):
    def rig(self):
        made = Rig(cli.parser().parse_args(["programs"]))
        self.addCleanup(made.__exit__)
        return made

    def test_what_ucx_perftest_prints_is_read(self):
        self.assertEqual(peers.ucx_figures(UCX_OUT), {"p50": 4.73, "mean": 5.116, "mbytes": 1491.19})
        for text in ("", "Final: 20000 4.7\n", "UCX ERROR no transport\n"):
            self.assertRaises(Failed, peers.ucx_figures, text)

    def test_a_client_comes_again_until_the_server_listens(self):
        def clients(refused):
            return iter([unittest.mock.Mock(wait=unittest.mock.Mock(side_effect=Failed("refused")))] * refused + [unittest.mock.Mock(wait=lambda _: "ok")])

        rig, server = unittest.mock.Mock(limit=1), unittest.mock.Mock(running=lambda: True)
        with unittest.mock.patch("bench.peers.wait_until"):
            come = clients(100)
            self.assertEqual(peers.repeat_until_there(rig, server, lambda: next(come)), "ok")
            server.running = lambda: False
            come = clients(1)
            self.assertRaises(Failed, peers.repeat_until_there, rig, server, lambda: next(come))

    def test_what_netpipe_prints_is_read(self):
        self.assertEqual(programs.netpipe_time(NETPIPE_OUT, 65536), 16958.83)
        for text, size in ((NETPIPE_OUT, 8), (NETPIPE_OUT, 5536), ("Now starting the main loop\n", 8)):
            self.assertRaises(Failed, programs.netpipe_time, text, size)

    def test_netpipe_is_told_how_often_and_what_alone(self):
        with unittest.mock.patch("bench.programs.need", lambda name: name):
            words = programs.netpipe_words(4096, 50)
        self.assertEqual(words[1:9], "-l 4096 -u 4096 -p 0 -n 50".split())

    def test_only_an_mpich_with_ucx_is_measured(self):
        told = lambda device: subprocess.CompletedProcess([], 0, f"MPICH Version:    \t4\nMPICH Device:    \t{device}\n")
        for device, good in (("ch4:ucx", True), ("ch4:ofi", False), ("ch3:nemesis", False)):
            with unittest.mock.patch("bench.programs.need", lambda name: name), unittest.mock.patch("subprocess.run", return_value=told(device)):
                if good:
                    self.assertEqual(programs.mpich(), "mpirun.mpich")
                else:
                    self.assertRaises(Unavailable, programs.mpich)

    def test_both_ends_use_the_link_that_they_are_told_of(self):
        place = unittest.mock.Mock(at=lambda role: ["nsenter", role])
        with unittest.mock.patch("bench.peers.place", lambda *_: place):
            at = servers.Packet(self.rig())
            ours = programs.way(at, "uwarp", "server", programs.transports("uwarp", "server"))
            theirs = programs.way(at, "tcp", "client", programs.transports("tcp", "client"))
        self.assertEqual(ours[:2] + ours[3:8], ["nsenter", "server", "--quiet", "--link", "uwb-a", "--identity", "roce"])
        self.assertIn("UCX_NET_DEVICES=uwarp0:1", ours)
        self.assertEqual(theirs[:2], ["nsenter", "client"])
        self.assertTrue({"UCX_TLS=tcp,self", "UCX_NET_DEVICES=uwb-b"} <= set(theirs))
        self.assertNotIn("--link", theirs)

    def test_a_user_enters_the_namespaces_that_are_named(self):
        """nsenter's --user without a name wants a process's number, too."""
        with contextlib.ExitStack() as stack:
            for name, instead in (("os.getuid", lambda: 1000), ("bench.peers.need", lambda n: n), ("bench.peers.Veth.hold", lambda *_: 7),
                                  ("bench.peers.Veth.cable", lambda *_: None)):  # fmt: skip
                stack.enter_context(unittest.mock.patch(name, instead))
            at = peers.Veth(self.rig(), 1500, True).at("server")
        self.assertEqual(at, "nsenter --preserve-credentials --net=/proc/7/ns/net --user=/proc/7/ns/user --".split())

    def test_the_keys_are_written_before_the_server_is_watched(self):
        """And memcached, which is root in a user's namespaces, is told that it may be."""
        rig, at = unittest.mock.Mock(limit=1, new_port=lambda: "1"), unittest.mock.Mock(tcp_server="t", server="u")
        at.uwarp = at.tcp = lambda role, words: words
        answer = json.dumps({"operations": 10, "mops": 1.0, **{f"{h}{p}_us": 1 for h in ("", "get_") for p in ("p50", "p99")}})
        for scheme in ("tcp", "uwarp"):
            begun = []

            def start(_, words, begun=begun, **how):
                begun.append(" ".join(words))
                return unittest.mock.Mock(wait=lambda _: answer, out=lambda: "ready on port", cpu_seconds=lambda: 0.0)

            with contextlib.ExitStack() as stack:
                for name, instead in (("bench.programs.Packet", lambda _: at), ("bench.programs.need", lambda n: n), ("bench.apps.app", lambda n: n),
                                      ("bench.process.Group.start", start), ("os.getuid", lambda: 1000)):  # fmt: skip
                    stack.enter_context(unittest.mock.patch(name, instead))
                stack.enter_context(unittest.mock.patch("bench.process.Group.__exit__", lambda *_: None))
                programs.threads_once(rig, scheme, 4, (16, 8, 64))
            server, first, second = begun
            self.assertTrue("--load" in first and "--load" not in second and "-t 16 -w 8" in second, begun)
            self.assertEqual("-u root" in server, scheme == "tcp")

    def test_a_key_that_was_not_there_is_no_get(self):
        client = unittest.mock.Mock(wait=lambda _: '{"operations": 10, "misses": 1, "mops": 1.0}\n')
        with self.assertRaisesRegex(Failed, "1 of 10 keys"):
            apps.measured(unittest.mock.Mock(cpu_seconds=lambda: 0.0), client, 1)

    def test_every_row_has_its_own_over_tcp(self):
        keys = [p.key for p in programs.programs(self.rig())]
        self.assertEqual(len(set(keys)), len(keys))
        judged = {g.over: g.under for g in programs.goals()}
        for key in keys:
            s = rounds.Series(key, "us", {"test": "programs", "scheme": key.split("/")[1], "op": "x"})
            self.assertIn(output.reference(s), keys)
            if "/uwarp/" in key:
                self.assertEqual(judged[key], output.reference(s))

    def test_a_part_alone_has_its_goals_alone(self):
        made = {p.key: rounds.Series(p.key, p.unit, p.facts) for p in programs.PARTS["mpi"](self.rig())}
        for s in made.values():
            s.add({"value": 2.0 if s.facts["scheme"] == "uwarp" else 1.0})
        self.assertEqual([r["verdict"] for r in programs.verdicts(made)], [goals.MISS] * len(programs.NETPIPE))


class Losses(unittest.TestCase):
    def options(self, *words):
        return cli.parser().parse_args(["loss", *words])

    def probes(self, *words):
        return list(lossy.loss(unittest.mock.Mock(options=self.options(*words))))

    def test_a_long_path_has_more_time(self):
        at = lambda rtt_ms, *words, flow=True: lossy.seconds(self.options(*words), flow, rtt_ms)
        self.assertEqual([at(0.1), at(1.0), at(20.0), at(50.0)], [3, 3, 12, 30])
        self.assertEqual(at(0.1, flow=False), 6)
        self.assertEqual([at(0.1, "--seconds", "4"), at(20.0, "--seconds", "4")], [4, 4])

    def test_pieces_of_the_table_are_chosen(self):
        self.assertEqual(len(self.probes()), 3 * (15 + 1))
        keys = [p.key for p in self.probes("--rtt", "20", "--drop", "0,0.1", "--schemes", "kernel,cubic")]
        self.assertIn("loss/cubic/flow/65536/20.0/0.1", keys)
        parts = {name: [p.facts["op"] for p in part(unittest.mock.Mock(options=self.options()))] for name, part in lossy.PARTS.items()}
        self.assertEqual({name: set(ops) for name, ops in parts.items()}, {"flow": {"flow"}, "echo": {"echo"}})

    def test_rounds_of_another_run_have_other_losses(self):
        seeds = lossy.Seeds(self.options("--seed", "7").seed)
        self.assertEqual([seeds.next(), seeds.next()], [7, 8])
        self.assertEqual(lossy.Seeds(self.options().seed).next(), 1)

    def flow(self, rtt_ms, *seconds):
        s = rounds.Series("k", "MB/s", {"test": "loss", "scheme": "cubic", "op": "flow", "size": 65536, "rtt_ms": rtt_ms, "drop": 0.1})
        for n in seconds:
            s.add({"value": 1.0, **({"seconds": n} if n else {})})
        return s

    def test_the_page_says_how_long_was_measured(self):
        note = lossy.note({"a": self.flow(20.0, 12), "b": self.flow(0.1, 3, 3), "c": self.flow(0.1, 4)})
        self.assertIn("3 s or 4 s at 0.1 ms, 12 s at 20 ms", note)
        self.assertEqual(lossy.note({"a": self.flow(20.0, None)}), "")


if __name__ == "__main__":
    unittest.main()
