# SPDX-License-Identifier: BSD-3-Clause
"""Whether the machine is one on which figures can be judged: looked at before each round, while nothing
of ours runs."""

import subprocess
import time

from .peers import json_lines
from .process import Failed, Unavailable
from .rig import helper


class Others:
    """What other processes take of the machine."""

    SECONDS, LIMIT = 0.2, 0.1

    def __init__(self, read=None, seconds=SECONDS):
        self.read, self.seconds, self.shares = read or cpu_times, seconds, []

    def look(self):
        """The share of all cores that was in use, or stolen, for a moment."""
        busy, total = self.read()
        time.sleep(self.seconds)
        busy_then, total_then = self.read()
        self.shares.append((busy_then - busy) / (total_then - total) if total_then > total else 0.0)

    def told(self):
        """A line if the machine was not quiet, else None."""
        loud = [x for x in self.shares if x > self.LIMIT]
        if not loud:
            return None
        return f"the machine was not quiet: before {len(loud)} of {len(self.shares)} rounds others took {min(loud):.0%} to {max(loud):.0%} of the CPU"

    def facts(self):
        return {"others": [round(x, 3) for x in self.shares]}


def cpu_times():
    """(busy, all) of all cores since the machine started."""
    with open("/proc/stat", encoding="utf-8") as f:
        times = [int(x) for x in f.readline().split()[1:9]]
    return sum(times) - times[3] - times[4], sum(times)


class Cpus:
    """How fast octets go from one CPU to another. The host of a virtual machine moves CPUs: two threads
    of a core, two cores with one cache, or without. What two processes of the machine reach differs
    by several times then, from one round to the next."""

    LIMIT = 1.5  # times as fast: no spread of one distance

    def __init__(self, measure=None):
        self.measure, self.speeds = measure or gbytes_between_cpus, []

    def look(self):
        speed = self.measure()
        if speed:
            self.speeds.append(speed)

    def told(self):
        """A line if they did not stay where they were, else None."""
        if not self.speeds or max(self.speeds) < self.LIMIT * min(self.speeds):
            return None
        return (f"the machine's CPUs were not always equally far apart: octets went from one to another at {min(self.speeds):.1f} to "
                f"{max(self.speeds):.1f} GB/s; compare within a round only")  # fmt: skip

    def facts(self):
        return {"cpu_gbytes": [round(x, 2) for x in self.speeds]}


def gbytes_between_cpus():
    """None: there is one CPU only, or cpu_bench is missing."""
    try:
        done = subprocess.run([helper("cpu_bench")], capture_output=True, text=True, timeout=10, check=False)
        return None if done.returncode else json_lines(done.stdout, "cpu_bench")[0]["gbytes"]
    except (Failed, Unavailable, OSError, subprocess.TimeoutExpired):
        return None


class Conditions:
    """All of them."""

    def __init__(self, *of):
        self.of = of or (Others(), Cpus())

    def look(self):
        for c in self.of:
            c.look()

    def told(self):
        return [line for line in (c.told() for c in self.of) if line]

    def facts(self):
        return {name: values for c in self.of for name, values in c.facts().items()}
