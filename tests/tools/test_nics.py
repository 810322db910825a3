#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Rows that are played in a guest (tests/nics/lib): what breaks the guest is told from what fails in it, and never hidden."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "nics", "lib"))
sys.path.insert(1, os.path.join(ROOT, "tests", "interop", "lib"))
import state  # noqa: E402
from ends import Rig  # noqa: E402
from guest import Broken  # noqa: E402
from guest import ctl, qemu  # noqa: E402
from rows import TOO_LONG, Rows, Score, last_lines  # noqa: E402

X86 = """
CPU#0
RAX=0000000000000000 RBX=ffffffff82a1a840
RIP=ffffffff81a592eb RFL=00000202 [-------] CPL=0 II=0 A20=1 SMM=0 HLT=1
CPU#1
RIP=ffffffff815446e9 RFL=00000092 [--S-A--] CPL=0 II=0 A20=1 SMM=0 HLT=0
"""
ARM = """
CPU#0
 PC=ffff8000090f1234 X00=0000000000000000 X01=0000000000000001
PSTATE=600000c5 -ZC- NS EL1h
"""


class FakeGuest:
    """works: what its check exits with, one after the other; answers: of other commands."""

    def __init__(self, works=(), statuses=()):
        self.place = os.path.join(ROOT, "tests")  # no monitor.sock there
        self.p, self.works, self.statuses = FakeProcess(), list(works), list(statuses)
        self.started, self.commands = 1, []

    def run(self, command, limit=60):
        self.commands.append(command)
        if command == "check":
            works = self.works.pop(0)
            if isinstance(works, Exception):
                raise works
            return works, "no route to itself\n"
        if command == "state":
            return 0, "up 7 s\n"
        return (self.statuses.pop(0) if command.startswith("job -w") else 0), ""

    must = run

    def again(self):
        self.started += 1


class FakeProcess:
    pid = os.getpid()


class Play(unittest.TestCase):
    def play(self, guest, *results, rows=None):
        """Results are what the row says one after the other."""
        left, self.made_ready = list(results), 0

        def test():
            result = left.pop(0)
            if isinstance(result, Exception):
                raise result
            return result, {}

        def ready():
            self.made_ready += 1

        self.rows, out = rows or Rows(guest, "check", Score()), io.StringIO()
        with contextlib.redirect_stdout(out):
            _, problem, _, lines = self.rows.play("a row", test, ready)
        self.said = out.getvalue()
        return problem, lines

    def test_a_row_that_passes_asks_nothing(self):
        guest = FakeGuest()
        self.assertEqual(self.play(guest, ""), ("", []))
        self.assertEqual(guest.commands, [])

    def test_a_failure_in_a_guest_that_works_is_one(self):
        guest = FakeGuest(works=[0])
        problem, lines = self.play(guest, "took too long")
        self.assertEqual(problem, "took too long")
        self.assertIn("CPU time", lines[0])
        self.assertEqual(lines[2:], ["up 7 s"])
        self.assertEqual((guest.started, self.rows.score.anew), (1, 0))

    def test_another_guest_for_one_that_broke(self):
        guest = FakeGuest(works=[1])
        self.assertEqual(self.play(guest, "took too long", ""), ("", []))
        self.assertEqual((guest.started, self.made_ready), (2, 1))
        self.assertIn("the guest broke in 'a row' (took too long): a program without uwarp failed with 1: no route to itself\n", self.said)
        self.assertEqual(self.rows.score.figures(), "guest started anew: 1\n0 passed, 0 failed")

    def test_a_failure_in_the_other_guest_is_one(self):
        guest = FakeGuest(works=[1])
        self.assertEqual(self.play(guest, "took too long", "failed with 1")[0], "failed with 1")

    def test_a_guest_that_does_not_answer(self):
        guest = FakeGuest(works=[Broken("the guest does not answer: timed out")])
        self.assertEqual(self.play(guest, Broken("the guest does not answer: timed out"), "")[0], "")
        self.assertEqual(guest.started, 2)

    def test_a_server_that_does_not_start_is_a_failed_row(self):
        guest = FakeGuest(works=[0])
        self.assertEqual(self.play(guest, Broken("in the guest: job s1"))[0], "in the guest: job s1")

    def test_a_second_break_is_a_failure(self):
        guest = FakeGuest(works=[1, 1])
        self.play(guest, "took too long", "")
        with self.assertRaises(Broken):
            self.play(guest, "took too long", rows=self.rows)
        self.assertEqual(guest.started, 2)


class Job(unittest.TestCase):
    def test_one_that_does_not_end_is_looked_at_and_ended(self):
        rows = Rows(FakeGuest(statuses=[TOO_LONG]), "check", Score())
        rows.clock = state.Clock(rows.guest)
        self.assertEqual(rows.job("c1", "sleep 100", 90), TOO_LONG)
        self.assertEqual(rows.guest.commands, ["job c1 sleep 100", "job -w c1 90", "state", "job -k c1"])
        self.assertEqual(rows.lines[2:], ["up 7 s"])

    def test_one_that_ends(self):
        rows = Rows(FakeGuest(statuses=[3]), "check", Score())
        self.assertEqual(rows.job("c1", "false", 90), 3)
        self.assertEqual(rows.lines, [])


def script(name):
    """tests/nics/NAME, as a module."""
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), os.path.join(ROOT, "tests", "nics", name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


class Rping(unittest.TestCase):
    """Its own threads' race, after all its pings, is no failure; everything else that ends it is."""

    RACE, OTHER = "client DISCONNECT EVENT...\nrdma_get_cm_event: Bad file descriptor\n", "wc.status 12\n"
    PINGS = "".join(f"ping data: rdma-ping-{n}: ABC\n" for n in range(3))

    def arm64(self, said):
        guest = FakeGuest(statuses=[255])
        bench = script("run-arm64").Bench(Rows(guest, "check", Score()), None, guest.place)
        bench.rows.clock = state.Clock(guest)
        bench.here, bench.words_of = lambda command: mock.Mock(), lambda p: ""
        answer = guest.run
        guest.run = lambda command, limit=60: (0, said) if command.startswith("job -l") else answer(command, limit)
        with mock.patch("time.sleep"):
            return bench.attempt(bench.guest_connects, "eth0", 11, "rping -s", "rping -c -v -C 3")[0]

    def test_in_the_arm64_guest(self):
        self.assertEqual(self.arm64(self.PINGS + self.RACE), "")
        self.assertEqual(self.arm64(self.RACE), "0 pings of 3")
        self.assertEqual(self.arm64(self.PINGS + self.OTHER), "failed with 255")

    def over_a_card(self, said):
        guest = FakeGuest(statuses=[255])
        bench = script("run").Bench(Rows(guest, "check", Score()), None, guest.place)
        bench.rows.clock = state.Clock(guest)
        answer = guest.run
        guest.run = lambda command, limit=60: (0, f"{said}STDOUT\n{self.PINGS}") if command.startswith("cd ") else answer(command, limit)
        return bench, mock.Mock(pci="0000:00:04.0", host="10.79.0.20")

    def card(self, said):
        bench, card = self.over_a_card(said)
        return bench.judge(*bench.client(card, "rping -c -C 3", {}, card.host), "rping -c -C 3")

    def test_over_a_card(self):
        self.assertEqual(self.card(self.RACE), "")
        self.assertEqual(self.card(self.OTHER), "failed with 255")

    def test_a_refusal_is_a_failure_of_rpings_own(self):
        bench, card = self.over_a_card("uwarp: no such VLAN\n" + self.RACE)
        self.assertEqual(bench.refused(card, [], "no such VLAN"), "")


class Shown(unittest.TestCase):
    def test_a_row_and_its_lines(self):
        out, score = io.StringIO(), Score()
        with contextlib.redirect_stdout(out):
            score.row("card  what  ", 1.25, "bad", lines=["up 7 s"])
        self.assertEqual(out.getvalue(), "FAIL card  what     1.2 s  bad\n    up 7 s\n")
        self.assertEqual(score.figures(), "0 passed, 1 failed")

    def test_last_lines_are_few_and_short(self):
        self.assertEqual(last_lines("client", "a\nb\n" + "c" * 200, 2), ["client: b", "client: " + "c" * 150])


class State(unittest.TestCase):
    def test_where_processors_are(self):
        self.assertEqual(state.processors(X86), ["processor 0 at ffffffff81a592eb, asleep", "processor 1 at ffffffff815446e9"])
        self.assertEqual(state.processors(ARM), ["processor 0 at ffff8000090f1234"])

    def test_qemu_is_what_runs_below_timeout(self):
        p = subprocess.Popen(["timeout", "20", "sh", "-c", "read line; exit 0"], stdin=subprocess.PIPE)
        try:
            while qemu.process_of(p.pid) == p.pid and p.poll() is None:
                pass
            found = qemu.process_of(p.pid)
            self.assertNotEqual(found, p.pid)
            self.assertIn(qemu.state_of(found)[0], "RSD")
        finally:
            p.communicate(b"\n")
        self.assertEqual(qemu.state_of(found), ("gone", 0.0))

    def test_a_guest_that_is_silent(self):
        class Silent(FakeGuest):
            def run(self, command, limit=60):
                raise Broken("the guest does not answer: timed out")

            def read(self, name):
                return "a last word\n"

        guest = Silent()
        lines = state.gather(guest, state.Clock(guest))
        self.assertIn("QEMU's monitor does not answer: ", lines[1])
        self.assertEqual(lines[2], "the guest does not answer: timed out")
        self.assertEqual(lines[3], "a last word")

    @unittest.skipUnless(shutil.which("busybox"), "busybox is not installed")
    def test_the_guests_own_answer(self):
        said = subprocess.run(["busybox", "sh", os.path.join(ROOT, "tests", "nics", "guest", "state")], capture_output=True, text=True)
        self.assertRegex(said.stdout.splitlines()[0], r"^up [0-9.]+ s, load [0-9. ]+, MemFree: +\d+ kB$")


class Port(unittest.TestCase):
    """How a command gets into a guest (tests/interop/rig/tools/ctl.py)."""

    def answer(self, *parts, limit=1):
        """What ctl makes of an agent that says these parts; NONCE in them is the request's."""
        with tempfile.TemporaryDirectory() as place, socket.socket(socket.AF_UNIX) as server:
            server.bind(os.path.join(place, "ctl0.sock"))
            server.listen(1)

            def agent():
                with server.accept()[0] as s:
                    nonce = s.recv(1000).split()[0]
                    for part in parts:
                        s.sendall(part.replace(b"NONCE", nonce))
                    s.recv(1)

            thread = threading.Thread(target=agent)
            thread.start()
            try:
                return ctl.run(place, limit, "true")
            finally:
                thread.join()

    def test_an_answer_behind_one_that_nobody_waited_for(self):
        self.assertEqual(self.answer(b"\x01RIG old 0 1\nx\x01RI", b"G NONCE 3 5\nhel", b"lo"), (3, b"hello"))

    def test_none(self):
        with mock.patch.object(ctl, "GRACE", 0.3), mock.patch.object(ctl, "SLICE", 0.1), self.assertRaises(ctl.NoAnswer) as said:
            self.answer(b"\x01RIG old 0 1\nx", limit=0.2)
        self.assertEqual(str(said.exception), "timed out")

    def test_a_wait_while_everything_stood_still_costs_no_more_than_it_was_to(self):
        now = [100.0]
        patience = ctl.Patience(90)
        with mock.patch.object(ctl.time, "monotonic", lambda: now[0]):
            patience.wait(1, lambda _: now.__setitem__(0, now[0] + 300))
            self.assertEqual(patience.left, 89)
            patience.wait(1, lambda _: now.__setitem__(0, now[0] + 0.25))
            self.assertEqual(patience.left, 88.75)


class Outside(unittest.TestCase):
    def test_what_is_said_of_a_vm_that_does_not_answer(self):
        with tempfile.TemporaryDirectory() as place, mock.patch.dict(os.environ, RIG_STATE=place):
            rig = Rig(False)
            self.assertIn("No such file", rig.condition("a"))
            os.mkdir(os.path.join(place, "vm-a"))
            for name, text in (("pid", "999999999\n"), ("console.log", "RIG-READY a 3.1\nwatchdog: BUG: soft lockup\n")):
                with open(os.path.join(place, "vm-a", name), "w") as f:
                    f.write(text)
            self.assertEqual(
                rig.condition("a"),
                "QEMU (state gone) has had 0 s of CPU time; its console's last words: RIG-READY a 3.1 | watchdog: BUG: soft lockup",
            )


if __name__ == "__main__":
    unittest.main()
