# SPDX-License-Identifier: BSD-3-Clause
"""Huge pages for a while: the kernel sets them aside for the whole machine, so they are given back."""

import contextlib

PATH = "/proc/sys/vm/nr_hugepages"


@contextlib.contextmanager
def huge_pages(wanted):
    """So many are set aside meanwhile, if we may: says how many there are."""
    try:
        with open(PATH, encoding="ascii") as f:
            before = int(f.read())
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
