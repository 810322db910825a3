# SPDX-License-Identifier: BSD-3-Clause
"""QEMU's process: one that is stopped, or gets no CPU time, is a VM that does not answer."""

import os

TICKS = os.sysconf("SC_CLK_TCK")


def process_of(pid):
    """QEMU below what was started (timeout, say), or that itself."""
    while True:
        try:
            with open(f"/proc/{pid}/task/{pid}/children") as f:
                children = f.read().split()
        except OSError:
            return pid
        if not children:
            return pid
        pid = int(children[0])


def state_of(pid):
    """State, and seconds of CPU time."""
    try:
        with open(f"/proc/{pid}/stat") as f:
            words = f.read().rpartition(")")[2].split()
    except OSError:
        return "gone", 0.0
    return words[0], (int(words[11]) + int(words[12])) / TICKS
