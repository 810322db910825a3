# SPDX-License-Identifier: BSD-3-Clause
"""Where the processes of a user meet: the run directory, by the rule of stack/io/run_dir.h."""

import os

from . import Refusal


def absolute(path):
    try:
        return os.path.abspath(path)
    except FileNotFoundError:
        raise Refusal(f"{path}: the working directory is not there any more; give a path that begins with /") from None


def is_own(path):
    """Ours, and may be written to. In a shell of su the variable still names the directory of the user before."""
    try:
        return os.stat(path).st_uid == os.getuid() and os.access(path, os.W_OK | os.X_OK)
    except OSError:
        return False


def run_dir():
    chosen = os.environ.get("UWARP_DIR")
    if chosen:
        absolute(chosen)  # which says what is missing
        return os.path.join(os.getcwd(), chosen) if chosen[0] != "/" else chosen
    xdg = os.environ.get("XDG_RUNTIME_DIR")
    if xdg and is_own(xdg):
        return os.path.join(xdg, "uwarp")
    return f"/tmp/uwarp-{os.getuid()}"
