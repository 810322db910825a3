# SPDX-License-Identifier: BSD-3-Clause
"""What quickstart and check share: where things are, speaking, and building a tree."""

import collections
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import threading
import time

import toolsenv

LIB = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(LIB))
TOOLS = os.path.dirname(LIB)
UWARP_RUN = os.path.join(TOOLS, "uwarp-run")
# Seconds between two words on how far a build is.
PROGRESS_EVERY = 10
# One at a time builds in a tree: tools/check has tracks.
AT_WORK = collections.defaultdict(threading.Lock)


class Failed(Exception):
    """A step did not work; the text says which and is all the user needs."""


def say(text):
    print(f"{os.path.basename(sys.argv[0]).removesuffix('.py')}: {text}", flush=True)


def on_signal(number, _frame):
    raise SystemExit(128 + number)


def clean_up_on_signals():
    """End by way of what stops programs and removes what would be left behind."""
    signal.signal(signal.SIGTERM, on_signal)
    signal.signal(signal.SIGHUP, on_signal)


def jobs():
    return len(os.sched_getaffinity(0))


def run_quietly(command, what, env=None):
    """Run it; show what it printed only if it fails."""
    r = subprocess.run(
        command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    if r.returncode:
        print(r.stdout, flush=True)
        raise Failed(f"{what} failed: {shlex.join(command)}")
    return r.stdout


def configure(build_dir, *args):
    """Make the build tree if it is not there yet, with exactly these options."""
    stamp = os.path.join(build_dir, "uwarp-configured")
    want = shlex.join(args) + "\n"
    try:
        with open(stamp) as f:
            have = f.read()
    except FileNotFoundError:
        have = None
    if os.path.exists(os.path.join(build_dir, "build.ninja")):
        # a plain tree may be the user's own, made by hand; ninja notices changed meson files
        if have == want or (have is None and not args):
            return
        if have is None:
            raise Failed(f"{build_dir} was configured by hand; remove it")
        shutil.rmtree(build_dir)  # meson's --wipe would keep the old options
    command = [toolsenv.tool("meson"), "setup", "--wrap-mode=nodownload", *args]
    say(f"configuring {os.path.relpath(build_dir, ROOT)}/")
    run_quietly([*command, build_dir, ROOT], "configuring")
    with open(stamp, "w") as f:
        f.write(want)


def build(build_dir, how=(), targets=()):
    """Run ninja (`how`: words before it, such as nice) for these targets or all; says how far it is every few seconds, and what
    it printed if it fails."""
    with AT_WORK[os.path.realpath(build_dir)]:
        run_ninja(build_dir, how, targets)


def run_ninja(build_dir, how, targets):
    start = told = time.monotonic()
    where, kept, status = os.path.relpath(build_dir, ROOT), [], re.compile(r"\[(\d+)/(\d+)\]")
    say(f"building {where}/ with {jobs()} jobs")
    command = [*how, "ninja", "-C", build_dir, "-j", str(jobs()), *targets]
    p = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace"
    )
    for line in p.stdout:
        kept.append(line)
        step = status.match(line)
        if step and time.monotonic() - told > PROGRESS_EVERY:
            told = time.monotonic()
            say(f"building {where}/: step {step[1]} of {step[2]}")
    if p.wait():
        interesting = [line for line in kept if not status.match(line)]
        print("".join(interesting), flush=True)
        raise Failed(f"building failed: {shlex.join(command)}")
    say(f"built {where}/ in {time.monotonic() - start:.0f} s")
