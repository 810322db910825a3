#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""uwarp-conform finds what it is for: an endpoint that does one thing wrong fails exactly the
requirement that it breaks, and one that does all right fails none."""

import json
import os
import subprocess
import tempfile
import unittest

import fake_peer
from conform import report, requirements, runner, verdict

TOOL = os.path.join(fake_peer.ROOT, "tools", "uwarp-conform")

# fault, a case that shows it, the requirement that it breaks
FAULTS = (
    ("key-unchecked", "startup/key-octet-15", "M23"),
    ("private-data-256", "startup/private-data-257", "M24"),
    ("octets-behind-request", "startup/octets-before-reply", "M31"),
    ("talks-first", "startup/responder-silent", "M28"),
    ("reserved-bits", "startup/rev-2", "M27"),
    ("crc-off", "crc/not-asked-by-us", "M11"),
    ("ord-too-large", "ird-ord/1-1", "E6"),
    ("no-negotiation-unknown", "ird-ord/no-negotiation", "E9"),
    ("a-unanswered", "p2p/offer-write", "E10"),
    ("rtr-without-a", "p2p/bits-without-a", "E10"),
    ("no-markers", "markers/asked", "M17"),
    ("marker-pointer", "markers/asked", "M20"),
    ("crc-wrong", "target/send-numbers", "M13"),
    ("pad", "target/send-numbers", "M9"),
    ("msn-stuck", "target/send-numbers", "D4"),
    ("reserved-bits-of-ddp", "target/send-numbers", "D2"),
    ("invalidate-field", "target/send-numbers", "P3"),
    ("last-everywhere", "target/send-5000", "P1"),
    ("mo-stuck", "target/send-5000", "D5"),
    ("mulpdu-exceeded", "target/mss-536", "M3"),
    ("sink-to-wrong", "read/empty-with-any-stag", "P13"),
    ("crc-unchecked", "crc/damaged-field", "M14"),
    ("version-unchecked", "error/rv-0", "P35"),
    ("code-wrong", "error/rv-0", "P35"),
    ("headers-missing", "error/rv-0", "P24"),
    ("length-of-payload", "error/rv-0", "D13"),
    ("siw-bit-order", "error/rv-0", "P25"),
    ("terminate-queue", "error/rv-0", "P22"),
    ("talks-on", "error/rv-0", "P23"),
    ("reset", "error/rv-0", "P27"),
    ("stays-open", "error/rv-0", "P27"),
    ("no-terminate", "error/rv-0", "P27"),
    ("silence-on-error", "error/rv-0", "P35"),
    ("siw-bit-order", "error/read-invalid-stag", "P25"),
    ("headers-missing", "error/read-invalid-stag", "P24"),
    ("terminate-answered", "terminate-from-us/local", "P23"),
)
# Faults after which something else goes wrong as well.
FOLLOWERS = {"crc-unchecked": {"M33", "P24"}, "terminate-queue": {"P4"}, "a-unanswered": {"E11"},
             "last-everywhere": {"D1", "D5"}, "no-markers": {"M19"}, "marker-pointer": {"M19"}}  # fmt: skip


def play(fault, names):
    fake = fake_peer.Fake(fault)
    try:
        options = runner.Options(("127.0.0.1", fake.port), timeout=0.8, patience=2)
        options.program = runner.find_program(options)
        cases = [c for c in runner.CASES if c.name in names]
        return runner.run(options, cases, lambda result: None)
    finally:
        fake.close()


def failed(results):
    return {c.requirement for r in results for c in r.failed}


class Faults(unittest.TestCase):
    def test_without_a_fault_all_pass(self):
        for r in play(None, {name for _, name, _ in FAULTS}):
            self.assertEqual(r.verdict, verdict.PASS, f"{r.name}: {r.checks}")

    def test_each_fault_is_found(self):
        for fault, name, requirement in FAULTS:
            with self.subTest(fault=fault, case=name):
                found = failed(play(fault, {name}))
                self.assertIn(requirement, found)
                self.assertLessEqual(found, {requirement} | FOLLOWERS.get(fault, set()), "more than what is broken")

    def test_an_error_without_terminate_is_not_told_apart(self):
        (r,) = play("no-terminate", {"error/rv-0"})
        self.assertEqual({c.verdict for c in r.checks if c.requirement == "P35"}, {verdict.INCONCLUSIVE})

    def test_an_advertisement_that_is_cut(self):
        for r in play("advertisement-cut", {"error/rv-0", "startup/rev-2"}):
            self.assertEqual((r.verdict, [c.seen for c in r.failed]), (verdict.FAIL, ["an advertisement of 6 regions in 167 octets instead of 168"]))

    def test_regions_that_are_not_there(self):
        results = play("one-region", {"write/write-only-region", "error/write-without-right", "error/read-other-pd", "error/rv-0"})
        self.assertEqual({r.name: r.verdict for r in results}.pop("error/rv-0"), verdict.PASS)
        self.assertEqual([r.verdict for r in results].count(verdict.NA), 3)

    def test_siw_is_named(self):
        (r,) = play("siw-bit-order", {"error/rv-0"})
        self.assertTrue(any("siw" in c.seen for c in r.failed))
        # ...and what it meant is understood
        self.assertEqual({c.verdict for c in r.checks if c.requirement == "P35"}, {verdict.PASS})


class Table(unittest.TestCase):
    def test_every_requirement_has_a_case_or_a_reason(self):
        named = {r for c in runner.CASES for r in c.requirements}
        for r in requirements.ALL.values():
            self.assertTrue(bool(r.unseen) != (r.id in named) or r.level == "MAY", r.id)
            self.assertIn(r.level, ("MUST", "SHOULD", "MAY"))
            self.assertRegex(r.cite, r"^RFC \d{4} §")

    def test_names_are_unique(self):
        names = [c.name for c in runner.CASES]
        self.assertEqual(len(names), len(set(names)))

    def test_the_dangerous_run_only_when_named(self):
        self.assertFalse(any(c.dangerous for c in runner.choose("initiator", None)))
        self.assertTrue(runner.choose("initiator", ["startup/s-without-word"]))

    def test_choice_by_pattern_and_requirement(self):
        self.assertEqual([c.name for c in runner.choose("initiator", ["crc/zero"])], ["crc/zero"])
        self.assertTrue(all("P12" in c.requirements for c in runner.choose("initiator", ["P12"])))


class Verdicts(unittest.TestCase):
    def of(self, *verdicts):
        checks = [verdict.Check("P12", v, "e", "s") for v in verdicts]
        return verdict.of_requirement(requirements.ALL["P12"], [verdict.CaseResult("x", ("P12",), checks)]).verdict

    def test_one_failure_decides(self):
        self.assertEqual(self.of(verdict.PASS, verdict.FAIL, verdict.PASS), verdict.FAIL)

    def test_a_pass_outweighs_a_doubt(self):
        self.assertEqual(self.of(verdict.INCONCLUSIVE, verdict.PASS), verdict.PASS)
        self.assertEqual(self.of(verdict.INCONCLUSIVE, verdict.NA), verdict.INCONCLUSIVE)

    def test_nothing_known(self):
        self.assertEqual(self.of(), verdict.NA)

    def test_only_must_counts_unless_strict(self):
        checks = [verdict.Check("P27", verdict.FAIL, "e", "s")]
        rows = verdict.of_requirements([verdict.CaseResult("x", ("P27",), checks)], False)
        self.assertFalse(report.broken(rows, strict=False))
        self.assertTrue(report.broken(rows, strict=True))


class CommandLine(unittest.TestCase):
    def tool(self, *words):
        return subprocess.run([TOOL, *words], capture_output=True, text=True, timeout=60)

    def test_list(self):
        r = self.tool("--list")
        self.assertEqual(r.returncode, 0, r.stderr)
        self.assertIn("error/rv-0", r.stdout)
        self.assertIn("RFC 5040", r.stdout)

    def test_wrong_usage(self):
        for words, part in (
            ((), "--target"),
            (("--target", "nowhere"), "ADDR:PORT"),
            (("--target", "127.0.0.1:1", "--only", "no-such-case"), "no-such-case"),
            (("--target", "127.0.0.1:1", "--timeout", "never"), "never"),
        ):
            r = self.tool(*words)
            self.assertEqual(r.returncode, 2, r.stderr)
            self.assertIn(part, r.stderr.splitlines()[-1])

    def test_nobody_there(self):
        r = self.tool("--target", "127.0.0.1:1", "--timeout", "0.2")
        self.assertEqual(r.returncode, 3)
        self.assertIn("127.0.0.1 port 1", r.stderr)

    def test_a_target_that_goes_away(self):
        """After some cases without a connection the tester stops and says since when."""
        fake = fake_peer.Fake("falls-over")
        try:
            r = self.tool("--target", f"127.0.0.1:{fake.port}", "--timeout", "0.3", "--only", "error/*")
        finally:
            fake.close()
        self.assertEqual(r.returncode, 3, r.stdout)
        self.assertIn("takes no connection since error/", r.stderr)

    def run_against(self, fault, *words):
        fake = fake_peer.Fake(fault)
        try:
            return self.tool("--target", f"127.0.0.1:{fake.port}", "--timeout", "0.8", *words)
        finally:
            fake.close()

    def test_json_and_exit_codes(self):
        with tempfile.TemporaryDirectory(prefix="uwarp-test-") as d:
            path = os.path.join(d, "v.json")
            r = self.run_against(None, "--only", "error/rv-0", "--json", path)
            self.assertEqual(r.returncode, 0, r.stdout + r.stderr)
            with open(path) as f:
                found = json.load(f)
            self.assertEqual(found["cases"][0]["verdict"], "pass")
            self.assertEqual({x["verdict"] for x in found["requirements"]}, {"pass"})
            self.assertTrue(found["cases"][0]["exchange"])
            r = self.run_against("version-unchecked", "--only", "error/rv-0", "--json", "-")
            self.assertEqual(r.returncode, 1)
            self.assertEqual(json.loads(r.stdout)["cases"][0]["verdict"], "fail")

    def test_json_that_cannot_be_written(self):
        """That is said before there is a connection, and is not the exit code of a MUST that failed."""
        with tempfile.TemporaryDirectory(prefix="uwarp-test-") as d:
            for path, why in ((d, "Is a directory"), (os.path.join(d, "no", "v.json"), "No such file or directory")):
                r = self.tool("--target", "127.0.0.1:1", "--json", path)
                self.assertEqual((r.returncode, r.stdout, r.stderr), (2, "", f"uwarp-conform: --json {path}: {why}\n"))
            r = self.tool("--target", "127.0.0.1:1", "--json", os.path.join(d, "v.json"))
            self.assertEqual((r.returncode, os.listdir(d)), (3, []))
        r = self.run_against(None, "--only", "error/rv-0", "--json", "/dev/full")
        self.assertEqual((r.returncode, r.stderr.splitlines()[-1]), (2, "uwarp-conform: --json /dev/full: No space left on device"))

    def test_should_and_strict(self):
        self.assertEqual(self.run_against("reset", "--only", "error/rv-0").returncode, 0)
        self.assertEqual(self.run_against("reset", "--only", "error/rv-0", "--strict").returncode, 1)


if __name__ == "__main__":
    unittest.main(verbosity=1)
