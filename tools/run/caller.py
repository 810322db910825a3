# SPDX-License-Identifier: BSD-3-Clause
"""Gives a program what its caller had. Python changes some of that in itself from its start on, and a program that it
becomes would inherit it."""

import os
import signal
import sys


def restore_signals():
    """Python ignores these. The shell in front of it has read which ones the caller ignores: -X ignored=MASK."""
    ignored = int(sys._xoptions.get("ignored") or "0", 16)
    for sig in (signal.SIGPIPE, signal.SIGXFSZ):
        if not ignored >> (sig - 1) & 1:
            signal.signal(sig, signal.SIG_DFL)


def restore_locale():
    """In the C locale Python sets LC_CTYPE (PEP 538)."""
    try:
        with open("/proc/self/environ", "rb") as f:
            words = f.read().split(b"\0")
    except OSError:  # no /proc
        return
    for word in words:
        if word.startswith(b"LC_CTYPE="):
            os.environb[b"LC_CTYPE"] = word.partition(b"=")[2]
            return
    os.environ.pop("LC_CTYPE", None)
