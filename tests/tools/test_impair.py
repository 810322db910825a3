#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""uwarp-impair: what it refuses, what it makes of its options, and what it does between two
interfaces: three network namespaces in a row, the one in the middle is the impaired path."""

import os
import re
import shutil
import signal
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TOOL = os.path.join(ROOT, "tools", "uwarp-impair")
PYTHON = "/usr/bin/python3"
A, B = "10.77.0.1", "10.77.0.2"
ALONE = "UWARP_TEST_IMPAIR_ALONE"

SEND = """
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for i in range(int(sys.argv[2])):
    s.sendto(b"%d" % i, (sys.argv[1], 7))
"""
# Until nothing more comes for two seconds; a busy machine may take long to start the sender.
RECEIVE = """
import select, socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 22)
s.bind(("", 7))
print("ready", flush=True)
got = []
while select.select([s], [], [], 2.0 if got else 30.0)[0]:
    got.append(int(s.recv(100)))
print(*got)
"""
TCP_IN = """
import hashlib, socket
l = socket.create_server(("", 9))
print("ready", flush=True)
c, h = l.accept()[0], hashlib.sha256()
while data := c.recv(1 << 16):
    h.update(data)
print(h.hexdigest())
"""
TCP_OUT = """
import hashlib, random, socket, sys
data = random.Random(1).randbytes(int(sys.argv[2]))
c = socket.create_connection((sys.argv[1], 9), timeout=60)
c.sendall(data)
c.close()
print(hashlib.sha256(data).hexdigest())
"""


def run_tool(*args, env=None):
    return subprocess.run([TOOL, *args], capture_output=True, text=True, timeout=60, env=env)


class Words(unittest.TestCase):
    def refused(self, code, text, *args):
        r = run_tool(*args)
        self.assertEqual((r.returncode, r.stdout), (code, ""))
        self.assertRegex(r.stderr, rf"\Auwarp-impair: .*{re.escape(text)}.*\n\Z")

    def test_help_names_every_impairment(self):
        r = run_tool("--help")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        with open(os.path.join(ROOT, "stack", "io", "impair", "options.c")) as f:
            names = re.findall(r'^\t\{ "(\w+)", ', f.read().partition("options[] = {")[2], re.M)
        self.assertIn("drop", names)
        for name in names:
            self.assertIn(f"--{name} ", r.stdout)

    def test_refusals(self):
        self.refused(2, "name two interfaces, or a program", "--drop", "1%")
        self.refused(2, "name what to impair", "--", "true")
        self.refused(2, "not both", "--drop", "1%", "eth0", "--", "true")
        self.refused(2, "are the same", "lo", "lo")
        self.refused(2, "--run is for programs", "--run=--mtu=9000", "a", "b")
        self.refused(2, "unrecognized arguments", "--loss", "1%", "--", "true")
        self.refused(2, "drop=lots: must be a percentage", "--drop", "lots", "a", "b")
        self.refused(1, "no-such-if0: no such interface", "--drop", "1%", "no-such-if0", "no-such-if1")

    def test_a_program_runs_over_uwarp_with_its_options(self):
        r = run_tool("--drop", "0.1%", "--seed", "7", "--run=--quiet", "--run=--link=loop", "--", "env")
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertIn("UWARP_IMPAIR=seed=7,drop=0.1%\n", r.stdout)
        self.assertIn("UWARP_LINK=loop\n", r.stdout)
        self.assertEqual(run_tool("--nth", "9", "--run=--quiet", "--", "sh", "-c", "exit 37").returncode, 37)

    def test_signals_and_locale_of_a_program_are_those_of_the_caller(self):
        """Python ignores two signals, and sets LC_CTYPE in the C locale; a program that it becomes inherits that."""
        env = {name: value for name, value in os.environ.items() if not name.startswith("LC_")} | {"LANG": "C"}
        show = ["sh", "-c", "grep SigIgn: /proc/self/status; env | grep ^LC_; true"]
        own = subprocess.run(show, env=env, capture_output=True, text=True)
        r = run_tool("--drop", "0.1%", "--run=--quiet", "--run=--link=loop", "--", *show, env=env)
        self.assertEqual((r.returncode, r.stdout, r.stderr), (0, own.stdout, ""))


@unittest.skipUnless(os.environ.get(ALONE), "needs network namespaces")
class Between(unittest.TestCase):
    # Of each test's own: a connection that one left is repeated by the kernel, and would be counted.
    def setUp(self):
        self.ends = [self.end("a", A, 1, 2), self.end("b", B, 2, 1)]

    def tearDown(self):
        for name, p in zip("ab", self.ends):
            subprocess.run(["ip", "link", "del", f"{name}0"], check=True)
            p.kill()
            p.wait()
            p.stdin.close()
            p.stdout.close()

    @staticmethod
    def end(name, addr, own, other):
        """A namespace with one end of a veth pair; its other end is ours."""
        p = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo up; exec cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        p.stdout.readline()
        mac = "02:00:00:00:00:0%d"
        ip = f"{A if other == 1 else B}"
        script = f"""set -e
        sysctl -qw net.ipv6.conf.all.disable_ipv6=1 net.ipv6.conf.default.disable_ipv6=1 || true
        ip link add {name}0 type veth peer name {name}1 netns {p.pid}
        ip link set {name}0 up
        nsenter --net=/proc/{p.pid}/ns/net sh -ec '
            sysctl -qw net.ipv6.conf.all.disable_ipv6=1 || true
            ip link set lo up
            ip link set {name}1 address {mac % own} up
            ip addr add {addr}/24 dev {name}1
            ip neigh add {ip} lladdr {mac % other} dev {name}1 nud permanent'"""
        subprocess.run(["sh", "-c", script], check=True)
        return p

    def enter(self, i, *words):
        return ["nsenter", f"--net=/proc/{self.ends[i].pid}/ns/net", *words]

    def offload(self, state):
        if not shutil.which("ethtool"):
            self.skipTest("ethtool is not installed")
        for i, name in enumerate("ab"):
            words = self.enter(i, "ethtool", "-K", f"{name}1", "tx", state, "tso", state, "gso", state)
            subprocess.run(words, check=True, stdout=subprocess.DEVNULL)

    def impair(self, *options):
        p = subprocess.Popen([TOOL, *options, "a0", "b0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.wait)
        self.addCleanup(p.kill)
        self.assertEqual(p.stdout.readline(), "uwarp-impair: between a0 and b0\n")
        return p

    def counters(self, p):
        """[{counter: n} of a to b, of b to a], and what it said on stderr"""
        p.send_signal(signal.SIGINT)
        out, err = p.communicate(timeout=10)
        self.assertEqual(p.returncode, 0, err)
        lines = out.splitlines()
        self.assertEqual([line.split(" (")[0] for line in lines], ["uwarp-impair: a0 to b0", "uwarp-impair: b0 to a0"])
        return [{k: int(n) for k, n in re.findall(r" ([a-z_]+) (\d+)(?= |$)", line.partition("):")[2])} for line in lines], err

    def pair(self, server, client, *words):
        """What each printed; the server is at B and says when it is ready."""
        s = subprocess.Popen(self.enter(1, PYTHON, "-c", server), stdout=subprocess.PIPE, text=True)
        try:
            self.assertEqual(s.stdout.readline(), "ready\n")
            r = subprocess.run(self.enter(0, PYTHON, "-c", client, B, *words), capture_output=True, text=True, timeout=100)
            self.assertEqual((r.returncode, r.stderr), (0, ""))
            out, _ = s.communicate(timeout=30)
        finally:
            s.kill()
            s.wait()
            s.stdout.close()
        return out, r.stdout

    def arrived(self, *options):
        self.offload("off")
        p = self.impair("--dir", "out", *options)
        out, _ = self.pair(RECEIVE, SEND, "1000")
        return [int(x) for x in out.split()], self.counters(p)[0]

    def test_nothing_is_lost_without_being_asked_for(self):
        got, (out, back) = self.arrived()
        self.assertEqual(got, list(range(1000)))
        self.assertEqual((out, back.get("dropped")), ({"frames": 1000}, None))

    def test_the_same_seed_loses_the_same_frames(self):
        first, (counted, _) = self.arrived("--drop", "10%", "--seed", "5")
        second, _ = self.arrived("--drop", "10%", "--seed", "5")
        other, _ = self.arrived("--drop", "10%", "--seed", "6")
        self.assertEqual(first, second)
        self.assertNotEqual(first, other)
        self.assertTrue(850 < len(first) < 950, len(first))
        self.assertEqual(counted["dropped"], 1000 - len(first))

    def test_reordered_and_repeated(self):
        got, (counted, _) = self.arrived("--reorder", "5%:2ms", "--duplicate", "5%", "--seed", "2")
        self.assertEqual(sorted(set(got)), list(range(1000)))
        self.assertNotEqual(got, sorted(got))
        self.assertEqual(counted["duplicated"], len(got) - 1000)
        self.assertGreater(counted["reordered"], 20)

    def test_delay_is_for_both_directions(self):
        self.offload("off")
        p = self.impair("--delay", "20ms")
        r = subprocess.run(self.enter(0, PYTHON, "-c", PING, B), capture_output=True, text=True, timeout=60)
        self.assertEqual((r.returncode, r.stderr), (0, ""))
        self.assertTrue(0.04 <= float(r.stdout) < 1, r.stdout)
        out, back = self.counters(p)[0]
        self.assertEqual((out["delayed"], back["delayed"]), (out["frames"], back["frames"]))

    def test_kernel_tcp_gets_through_whole(self):
        self.offload("off")
        p = self.impair("--drop", "0.5%", "--corrupt", "0.5%", "--truncate", "0.2%", "--duplicate", "1%", "--reorder", "1%", "--seed", "3")
        got, sent = self.pair(TCP_IN, TCP_OUT, "2000000")
        self.assertEqual(got, sent)
        out, _ = self.counters(p)[0]
        self.assertTrue(all(out[k] for k in ("dropped", "corrupted", "duplicated", "reordered")), out)

    def test_frames_that_cannot_be_handed_on_are_named(self):
        self.offload("on")
        p = self.impair()
        s = subprocess.Popen(self.enter(1, PYTHON, "-c", TCP_IN), stdout=subprocess.DEVNULL)
        c = subprocess.Popen(self.enter(0, PYTHON, "-c", TCP_OUT, B, "1000"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            line = p.stderr.readline()
        finally:
            for q in (s, c):
                q.kill()
                q.wait()
        self.assertRegex(line, r"\Auwarp-impair: a0: frames come in without checksums, .*ethtool -K INTERFACE tx off")
        self.counters(p)


# Somebody answers there: a port that nobody has makes the kernel answer with ICMP.
PING = """
import socket, sys, time
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect((sys.argv[1], 99))
s.settimeout(10)
start = time.monotonic()
s.send(b"x")
try:
    s.recv(1)
except ConnectionRefusedError:
    print(time.monotonic() - start)
"""


def alone():
    """Go on in a network namespace of our own, if that can be had."""
    for how in (["unshare", "--net"], ["unshare", "-Urn"]):
        if not os.environ.get(ALONE) and subprocess.run([*how, "true"], capture_output=True).returncode == 0:
            os.environ[ALONE] = "1"
            os.execvp(how[0], [*how, sys.executable, *sys.argv])


if __name__ == "__main__":
    alone()
    unittest.main(verbosity=2, argv=sys.argv)
