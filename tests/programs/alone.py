# SPDX-License-Identifier: BSD-3-Clause
"""Programs that look at the device and talk to nobody."""

import re

from harness import GRACE, check, wait_until


class Alone:
    """One program, which must end well and print something that matches each pattern."""

    def __init__(self, program, flags, command, *patterns):
        self.program, self.flags, self.command, self.patterns = program, flags, command, patterns

    def __call__(self, stage):
        program = stage.run("server", self.command, 20)
        check(program.popen.returncode == 0, f"exit code {program.popen.returncode}")
        check(not program.our_lines(), f"it complains: {program.our_lines()}")
        for pattern in self.patterns:
            check(re.search(pattern, program.out, re.M), f"it does not say '{pattern}'")


class Watch(Alone):
    """One that goes on for ever once it has said its text. It buffers what it says, unless told not to."""

    def __call__(self, stage):
        program = stage.start("server", f"stdbuf -oL {self.command}")
        said = lambda: all(re.search(p, program.out, re.M) for p in self.patterns)  # noqa: E731
        check(wait_until(lambda: said() or program.poll() is not None, 20) and said(), "it does not say its text")
        check(not wait_until(lambda: program.poll() is not None, GRACE / 10), "it ended")
        check(not program.our_lines(), f"it complains: {program.our_lines()}")
        program.stop()
