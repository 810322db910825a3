#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""uwarp-stat: what it refuses, and what it makes of answers, good and bad, of processes that a test plays."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(ROOT, "tools", "uwarp-stat")
TCP = {
    "control": "cubic", "phase": "recovery", "mss": 1448, "cwnd": 14480, "ssthresh": 7240, "in_flight": 2896, "unsent": 0, "peer_window": 65536,
    "own_window": 65536, "rtt_us": 1500, "rtt_var_us": 250, "rtt_min_us": 900, "rto_us": 32000, "reorder_us": 0, "reordering": False,
    "delivered_bytes": 1000, "sent_again": 7, "recoveries": 1, "timeouts": 0, "probes": 0, "probe_losses": 0, "duplicates": 0, "undone": 0,
    "spurious_timeouts": 0, "reneged": 0, "ecn_reductions": 0, "rx_held_bytes": 0, "rx_buffers": 0, "paused": False,
}  # fmt: skip


def process(pid, again=7):
    conn = {
        "stack": 0, "state": "streaming", "role": "initiator", "cm_less": False, "local": {"address": "10.0.0.1", "port": 4000},
        "remote": {"address": "fd00::2", "port": 7471}, "qpn": 17, "sends": 3, "receives": 4, "ird": 16, "ord": 16, "waits_for_receive": False,
        "age_us": 1, "tcp": {**TCP, "sent_again": again, "delivered_bytes": 1000 * again},
    }  # fmt: skip
    link = {"name": "packet", "mtu": 1500, "addresses": ["10.0.0.1"], "rx_frames": 5}
    return {
        "format": 1, "version": "0", "pid": pid, "program": 'a"b', "transport": "raw", "link": "eth0", "stacks": 1,
        "objects": {"qps": 1, "endpoints": 1, "regions": 2}, "links": [link], "counters": {"tcp_tx_again": again, "cm_failed": 0},
        "connections": [conn], "n_connections": 1,
    }  # fmt: skip


class Player(threading.Thread):
    """A process that answers what it is told to."""

    def __init__(self, folder, pid, answers):
        super().__init__(daemon=True)
        self.answers = list(answers)
        self.s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.s.bind(os.path.join(folder, f"{pid}.0"))
        self.s.listen()
        self.start()

    def run(self):
        for answer in self.answers:
            c = self.s.accept()[0]
            c.recv(16)
            c.sendall(answer)
            c.close()
        self.s.close()


class Tool(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="uw-stat-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.stat = os.path.join(self.dir, "stat")
        os.mkdir(self.stat, 0o700)

    def play(self, pid, *answers):
        Player(self.stat, pid, [a if isinstance(a, bytes) else json.dumps(a).encode() for a in answers])

    def run_tool(self, *options):
        env = {**os.environ, "UWARP_DIR": self.dir}
        return subprocess.run([TOOL, *options], env=env, capture_output=True, text=True, timeout=30)

    def test_wrong_options_are_refused(self):
        for options in (["-i", "0"], ["-i", "x"], ["-n", "2"], ["-i", "1", "-n", "0"], ["--json", "--prometheus"], ["x"], ["--nothing"]):
            with self.subTest(options):
                r = self.run_tool(*options)
                self.assertEqual((r.returncode, r.stdout), (2, ""))
                self.assertRegex(r.stderr, r"\Auwarp-stat: .+\n\Z")

    def test_without_the_distributions_python(self):
        """The wheel, in a container whose Python is elsewhere."""
        copy = os.path.join(self.dir, "uwarp-stat")
        with open(TOOL) as f, open(copy, "w") as to:
            to.write(f.read().replace("/usr/bin/python3", "/nowhere/python3"))
        os.chmod(copy, 0o755)
        os.mkdir(os.path.join(self.dir, "bin"))
        shutil.copytree(os.path.join(ROOT, "tools", "run"), os.path.join(self.dir, "run"))
        env = {"UWARP_DIR": self.dir, "PATH": os.path.join(self.dir, "bin")}
        r = subprocess.run([copy, "--json"], env=env, capture_output=True, text=True, timeout=30)
        self.assertEqual((r.returncode, r.stdout), (1, ""))
        self.assertRegex(r.stderr, r"\Auwarp-stat: needs python3, which is not in PATH; .*\n\Z")
        os.symlink(sys.executable, os.path.join(self.dir, "bin", "python3"))
        r = subprocess.run([copy, "--json"], env=env, capture_output=True, text=True, timeout=30)
        self.assertEqual((r.returncode, r.stdout), (0, "[]\n"), r.stderr)

    def test_nobody_there(self):
        self.assertEqual(self.run_tool("--json").stdout, "[]\n")
        for options in ([], ["-i", "0.05", "-n", "1"]):
            r = self.run_tool(*options, "77")
            self.assertEqual((r.returncode, r.stdout), (1, ""))
            self.assertIn("no uwarp process 77", r.stderr)
        for options in ([], ["-i", "0.05", "-n", "1"]):
            r = self.run_tool(*options)
            self.assertEqual((r.returncode, r.stdout), (0, ""))
            self.assertRegex(r.stderr, rf"\Auwarp-stat: no uwarp process .*{self.dir}.*\n\Z")

    def test_text(self):
        self.play(77, process(77))
        out = self.run_tool().stdout
        self.assertIn("10.0.0.1:4000", out)
        self.assertIn("[fd00::2]:7471", out)
        self.assertIn("qp:17 sends:3 receives:4", out)
        self.assertIn("cubic recovery rtt:1.5/0.25 minrtt:0.9 rto:32 mss:1448 cwnd:14480", out)
        self.assertIn("again:7", out)
        self.assertNotIn("timeouts", out)

    def test_rates(self):
        self.play(77, process(77, 10), process(77, 30))
        out = self.run_tool("-i", "0.5", "-n", "1").stdout
        self.assertRegex(out, r"tcp_tx_again/s:(3[0-9]|40)")
        self.assertRegex(out, r"sent_again/s:(3[0-9]|40)")
        self.assertNotIn("cm_failed", out)

    def test_prometheus(self):
        self.play(77, process(77))
        out = self.run_tool("--prometheus").stdout
        self.assertIn('uwarp_tcp_tx_again_total{pid="77",program="a\\"b"} 7\n', out)
        self.assertIn('uwarp_conn_rtt_us{pid="77",program="a\\"b",local="10.0.0.1:4000",remote="[fd00::2]:7471",qpn="17",state="streaming"} 1500\n', out)
        self.assertIn("# TYPE uwarp_conn_sent_again_total counter\n", out)
        names = [line.split()[2] for line in out.splitlines() if line.startswith("# TYPE")]
        self.assertEqual(len(names), len(set(names)))

    def test_bad_answers_are_said_and_hide_nobody(self):
        self.play(77, b"{]")
        self.play(78, b"")
        self.play(79, process(79))
        r = self.run_tool("--json")
        self.assertEqual([a["pid"] for a in json.loads(r.stdout)], [79])
        self.assertEqual(r.stderr.count("does not answer"), 2)

    def test_who_says_nothing_costs_a_bounded_time(self):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.addCleanup(s.close)
        s.bind(os.path.join(self.stat, "77.0"))
        s.listen()
        r = self.run_tool("--json")
        self.assertEqual(r.stdout, "[]\n")
        self.assertIn("process 77 does not answer", r.stderr)

    def test_the_dead_are_removed(self):
        path = os.path.join(self.stat, "77.0")
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.bind(path)
        s.close()
        self.assertEqual(self.run_tool("--list").stdout.count("\n"), 1)
        self.assertFalse(os.path.exists(path))

    @unittest.skipUnless(os.getuid() == 0, "needs root to make somebody else's directory")
    def test_the_runtime_directory_of_another_user_is_left_alone(self):
        env = {k: v for k, v in os.environ.items() if k != "UWARP_DIR"}
        for owner, place in ((0, f"{self.dir}/uwarp"), (65534, "/tmp/uwarp-0")):
            os.chown(self.dir, owner, owner)
            r = subprocess.run([TOOL, "77"], env={**env, "XDG_RUNTIME_DIR": self.dir}, capture_output=True, text=True, timeout=30)
            self.assertIn(f"no uwarp process 77 in {place};", r.stderr)

    def test_a_directory_that_others_may_write_to_is_refused(self):
        os.chmod(self.stat, 0o777)
        r = self.run_tool()
        self.assertEqual((r.returncode, r.stdout), (1, ""))
        self.assertIn("others may write", r.stderr)


if __name__ == "__main__":
    unittest.main()
