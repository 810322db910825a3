# SPDX-License-Identifier: BSD-3-Clause
"""Python's pyverbs: programs of our own (with-pyverbs/) on the distribution's package."""

import os
import subprocess

from harness import ROOT, Skipped, check
from pairs import run_pair

# The distribution's packages belong to its own interpreter.
PYTHON = "/usr/bin/python3"
SCRIPTS = os.path.join(ROOT, "tests", "programs", "with-pyverbs")


def need_pyverbs():
    command = [PYTHON, "-c", "import pyverbs.cmid"]
    if not os.path.exists(PYTHON) or subprocess.run(command, capture_output=True).returncode:
        raise Skipped("python3-pyverbs is not installed")


class Script:
    program, needs = "pyverbs", []

    def __init__(self, name, words=""):
        self.flags = f"{name} {words}".strip()
        self.command = f"{PYTHON} {SCRIPTS}/{name}.py"


class Single(Script):
    """One process and its children. uwarp-run chooses the address: a child takes another one."""

    def __init__(self, name, words, said):
        super().__init__(name, words)
        self.words, self.said = words, said

    def __call__(self, stage):
        need_pyverbs()
        program = stage.start("server", f"{self.command} {self.words}", options=[])
        rc = program.wait(60)
        check(rc == 0, f"exit code {rc}")
        check(self.said in program.out, f"it does not say '{self.said}'")


class Two(Script):
    """A server and a client."""

    def __init__(self, name, words):
        super().__init__(name, words.replace("{server} ", "").replace("{server}", ""))
        self.words = words

    def __call__(self, stage):
        need_pyverbs()
        server, client = run_pair(stage, f"{self.command} server {self.words}", f"{self.command} client {self.words}", 30)
        for program in (server, client):
            check("all came right" in program.out, f"the {program.role} does not say that all came right")


class Exchange(Two):
    """The two meet on a TCP port of the kernel's before the link comes up."""

    def __call__(self, stage):
        need_pyverbs()
        server = stage.start("server", f"{self.command} server {self.words}")
        client = stage.run("client", f"{self.command} client {self.words}", 30)
        for program in (client, server):
            rc = program.wait(10)
            check(rc == 0 and "all came right" in program.out, f"the {program.role}: exit code {rc}")
            check(not program.our_lines(), f"the {program.role} complains: {program.our_lines()}")


CASES = [
    Single("objects", "", "all came and went"),
    Two("traffic", "sync {server}"),
    Two("traffic", "async {server}"),
    Exchange("exchange", "127.0.0.1 17863"),
    Single("forks", "opened", "opened: done"),
    Single("forks", "running", "running: done"),
    Single("forks", "deep", "deep: done"),
    Single("forks", "opened running deep", "deep: done"),
]
