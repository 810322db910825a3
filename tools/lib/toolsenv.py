#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The tools' own Python environment: the packages of requirements.txt at exactly those
versions, in ~/.cache/uwarp, whatever else is installed on the machine. Its name is made from
its contents, so trees of different age never share one.

Every Python tool of this tree runs under the distribution's interpreter, PYTHON: it sees the
Debian packages that tools/setup installs, and the environment is made with it. The first
python3 in PATH may be another one (pyenv, conda, a virtual environment) that sees neither.

    toolsenv.py ensure   make it if it is missing (tools/setup does)
    toolsenv.py path     print where it is
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
REQUIREMENTS = os.path.join(HERE, "requirements.txt")
PYTHON = "/usr/bin/python3"
MISSING = "the tools' Python environment is missing; run tools/setup"


def cache_dir():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "uwarp")


def path():
    with open(REQUIREMENTS, "rb") as f:
        kind = f.read() + f"{platform.python_version()} {platform.machine()}".encode()
    return os.path.join(cache_dir(), "venv-" + hashlib.sha256(kind).hexdigest()[:12])


def complete(place):
    return os.path.exists(os.path.join(place, "complete"))


def ensure():
    place = path()
    if complete(place):
        return place
    os.makedirs(cache_dir(), exist_ok=True)
    shutil.rmtree(place, ignore_errors=True)
    print(f"toolsenv: installing {', '.join(wanted())} from PyPI into {place}", flush=True)
    subprocess.run([PYTHON, "-m", "venv", place], check=True)
    pip = [os.path.join(place, "bin", "python3"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--requirement", REQUIREMENTS], check=True)
    open(os.path.join(place, "complete"), "w").close()
    return place


def wanted():
    with open(REQUIREMENTS) as f:
        return [line.strip() for line in f if line.strip() and not line.startswith("#")]


def add_to_import_path():
    """Let this program import what the environment holds; SystemExit if it is missing."""
    run_under_distribution()
    place = path()
    if not complete(place):
        sys.exit(f"{os.path.basename(sys.argv[0])}: {MISSING}")
    version = "python%d.%d" % sys.version_info[:2]
    sys.path.insert(0, os.path.join(place, "lib", version, "site-packages"))


def tool(name):
    """The path of one of the environment's commands."""
    return os.path.join(path(), "bin", name)


def run_under_distribution():
    """Go on under PYTHON if another interpreter was asked to run this program (python3 tools/...)."""
    if not os.path.samefile(sys.executable, PYTHON):
        os.execv(PYTHON, [PYTHON, *sys.argv])


def main():
    run_under_distribution()
    if sys.argv[1:] == ["ensure"]:
        try:
            ensure()
        except (OSError, subprocess.CalledProcessError) as e:
            sys.exit(f"toolsenv: could not make {path()}: {e}")
    elif sys.argv[1:] == ["path"]:
        print(path())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
