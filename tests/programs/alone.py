# SPDX-License-Identifier: BSD-3-Clause
"""Programs that look at the device and talk to nobody."""

import os
import re
import subprocess

from harness import GRACE, Skipped, check, wait_until


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


READER = r"""
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(void)
{
	char text[64] = "";
	long fd = syscall(SYS_openat, -100, "/sys/class/infiniband/uwarp0/ports/1/state", 0);
	if (syscall(SYS_read, fd, text, sizeof(text) - 1) < 0)
		return 1;
	printf("state %s", text);
	return 0;
}
"""


class PrivateSysfs(Alone):
    """A program whose system calls do not pass through libc, as Go's. uwarp-run --private-sysfs lays real files."""

    needs = ["cc"]

    def __init__(self):
        super().__init__("(raw system calls)", "--private-sysfs", "", r"^state 4: ACTIVE$")

    def __call__(self, stage):
        if subprocess.run(["unshare", "-m", "true"] if os.getuid() == 0 else ["unshare", "-Um", "true"], capture_output=True).returncode:
            raise Skipped("no mount namespace can be had here")
        path = os.path.join(stage.folder, "reader")
        subprocess.run(["cc", "-x", "c", "-", "-o", path], input=READER, text=True, check=True)
        program = stage.start("server", path, options=["--private-sysfs"])
        check(program.wait(20) == 0, f"exit code {program.popen.returncode}")
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
