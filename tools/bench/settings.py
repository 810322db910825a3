# SPDX-License-Identifier: BSD-3-Clause
"""Settings of uwarp's that a comparison turns. What this build does not know is not measured."""

import glob
import os

from .process import Unavailable
from .rig import PREFIX, build_dir

CRC, RATE, THREADS, TRANSPORT = "UWARP_CRC", "UWARP_LINK_RATE", "UWARP_THREADS", "UWARP_TRANSPORT"
MEANING = {
    CRC: "MPA CRC", RATE: "a link rate", THREADS: "a choice of thread models", TRANSPORT: "a choice of transports",
}  # fmt: skip


def library():
    installed = glob.glob(os.path.join(PREFIX, "lib", "*", "uwarp"))
    for folder in (os.path.join(build_dir(), "stack"), os.path.join(PREFIX, "lib", "uwarp"), *installed):
        path = os.path.join(folder, "libuwarp.so")
        if os.path.isfile(path):
            return path
    raise Unavailable("libuwarp.so is not built")


def known(rig, name):
    """Does the library read this variable? Its name is among the library's strings then."""

    def look():
        with open(library(), "rb") as f:
            return name.encode() + b"\0" in f.read()

    return rig.once(f"setting {name}", look)


def need_setting(rig, name):
    if not known(rig, name):
        raise Unavailable(f"uwarp has no {MEANING[name].removeprefix('a ')} yet ({name})")


def with_setting(rig, name, value, measure):
    """What measure(env) gives where uwarp knows the setting."""
    need_setting(rig, name)
    return measure({name: str(value)})
