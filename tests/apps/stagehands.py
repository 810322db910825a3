# SPDX-License-Identifier: BSD-3-Clause
"""What the cases of this folder share: servers that say when they are ready, clients whose result is a line of JSON."""

import json
import os
import signal
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "programs"))
import links  # noqa: E402
from harness import Stage, check, printed  # noqa: E402

# A server that is told to end gives back what its clients had first.
ENDING = 10.0


class Room(links.Memif):
    """Processes of this machine, more of them than the stock programs need."""

    addresses = {"server": "127.0.0.2", "soc": "127.0.0.8", **{f"client{n}": f"127.0.0.{n + 2}" for n in range(1, 6)}}


class Play(Stage):
    """A stage whose programs are ours."""

    def __init__(self, link):
        super().__init__(link)
        self.extra = []  # further options of uwarp-run
        self.build = os.environ.get("UWARP_BUILD_DIR") or os.path.join(os.path.dirname(os.path.dirname(HERE)), "build")

    def app(self, name):
        folder = {"uwarp-tcp-peer": "tcp"}.get(name, name.removeprefix("uwarp-"))
        return os.path.join(self.build, "apps", folder, name)

    def start(self, role, command, env=None, options=None):
        return super().start(role, command, env, [*self.link.options(role), *self.extra] if options is None else options)

    def command(self, text):
        name, _, rest = text.partition(" ")
        return f"{self.app(name)} {rest}"

    def serve(self, text, role="server"):
        program = self.start(role, self.command(text))
        printed("ready on port")(program)
        return program

    def begin(self, text, role="client1"):
        return self.start(role, self.command(text))

    def result(self, program, seconds=60, rc=0, printed=True):
        """What the program printed at its end, where it is to print anything."""
        got = program.wait(seconds)
        check(got == rc, f"the {program.role} ended with exit code {got} instead of {rc}")
        lines = [line for line in program.out.splitlines() if line.startswith("{")]
        check(lines or not printed, f"the {program.role} printed no result")
        return json.loads(lines[-1]) if lines else None

    def ask(self, text, role="client1", seconds=60, rc=0):
        return self.result(self.begin(f"{text} --json --quiet", role), seconds, rc)

    def ask_nothing(self, text, role="client1", seconds=60):
        """A program that only says whether all is well."""
        rc = self.begin(text, role).wait(seconds)
        check(rc == 0, f"the {role} ended with exit code {rc}")

    def end(self, server, quiet=True):
        """It ends well when told to; quiet: and uwarp has not complained to anybody."""
        check(server.poll() is None, f"the {server.role} has ended before it was told to")
        server.kill(signal.SIGTERM)
        rc = server.wait(ENDING)
        check(rc == 0, f"the {server.role} ended with exit code {rc}")
        for program in self.programs if quiet else ():
            check(not program.our_lines(), f"the {program.role} complains: {program.our_lines()}")
