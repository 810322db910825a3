# SPDX-License-Identifier: BSD-3-Clause
"""Huge pages for a while: the kernel sets them aside for the whole machine, so they are given back."""

import contextlib
import fcntl
import os
import signal
import tempfile

PATH = "/proc/sys/vm/nr_hugepages"


@contextlib.contextmanager
def alone():
    """One at a time: who comes meanwhile would give back another's pages, or keep them."""
    fd = os.open(tempfile.gettempdir(), os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def end(number, _frame):
    raise SystemExit(128 + number)


@contextlib.contextmanager
def huge_pages(wanted):
    """So many are set aside meanwhile, if we may: says how many there are. SIGTERM gives them back, too."""
    with alone():
        try:
            with open(PATH, encoding="ascii") as f:
                before = int(f.read())
            was = signal.signal(signal.SIGTERM, end)
            with open(PATH, "w", encoding="ascii") as f:
                f.write(str(max(before, wanted)))
            with open(PATH, encoding="ascii") as f:
                now = int(f.read())
        except OSError:
            yield 0
            return
        try:
            yield now
        finally:
            with open(PATH, "w", encoding="ascii") as f:
                f.write(str(before))
            signal.signal(signal.SIGTERM, was)
