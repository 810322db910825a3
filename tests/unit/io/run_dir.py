#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""run_dir.py PRINT_RUN_DIR: the run directory of stack/io/run_dir.c is that of tools/run/place.py, and the right one."""

import os
import subprocess
import sys
import tempfile

TOOLS = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))), "tools")
sys.path.insert(0, TOOLS)
from run import Refusal, place  # noqa: E402


def by_python():
    try:
        return place.run_dir()
    except Refusal:
        return None


def compare(program, wanted, env):
    for name in ("UWARP_DIR", "XDG_RUNTIME_DIR"):
        os.environ.pop(name, None)
    os.environ.update(env)
    r = subprocess.run([program], capture_output=True, text=True, timeout=10, check=False)
    found = r.stdout.removesuffix("\n") if r.returncode == 0 else None
    if not found == by_python() == wanted:
        sys.exit(f"{env} in {wanted}: C says {found}, Python {by_python()}")


def main(program):
    default = f"/tmp/uwarp-{os.getuid()}"
    with tempfile.TemporaryDirectory() as folder:
        folder = os.path.realpath(folder)
        own, gone, foreign = (os.path.join(folder, name) for name in ("own", "gone", "foreign"))
        for path in (own, gone, foreign):
            os.mkdir(path, 0o700)
        if os.getuid() == 0:
            os.chown(foreign, 65534, 65534)
        else:
            foreign = "/"
        os.chdir(own)
        for wanted, env in (
            (default, {}),
            (default, {"UWARP_DIR": "", "XDG_RUNTIME_DIR": ""}),
            (f"{own}/uwarp", {"XDG_RUNTIME_DIR": own}),
            (default, {"XDG_RUNTIME_DIR": foreign}),
            (default, {"XDG_RUNTIME_DIR": f"{folder}/none"}),
            ("/a/b", {"UWARP_DIR": "/a/b", "XDG_RUNTIME_DIR": own}),
            (f"{own}/rel/x", {"UWARP_DIR": "rel/x", "XDG_RUNTIME_DIR": own}),
        ):
            compare(program, wanted, env)
        os.chdir(gone)
        os.rmdir(gone)
        compare(program, None, {"UWARP_DIR": "rel"})
        compare(program, "/a", {"UWARP_DIR": "/a"})
        os.chdir("/")


if __name__ == "__main__":
    main(os.path.abspath(sys.argv[1]))
