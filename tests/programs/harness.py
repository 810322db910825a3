# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of programs share: starting programs over uwarp, waiting for them, and finding
out whether anything is left of them."""

import fcntl
import os
import re
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools"))
from bench.process import PR_SET_PDEATHSIG, die_with_parent, libc, wait_until  # noqa: E402, F401

UWARP_RUN = os.path.join(ROOT, "tools", "uwarp-run")
MARK = "UWARP_CASE"
# What was told to end gets this long to do so.
GRACE = 3.0
# From a program's start until its link is up; on a busy machine starting DPDK takes a while.
START = 15.0
SHOWN_LINES, SHOWN_WIDTH = 6, 120
# What a verbose process says at its end.
# what --verbose counts: of every layer, and of the link by its name
FIGURES = re.compile(r"uwarp: (TSO|payload sent|counters|impair \(|link \S+: .* in use: |\w+: [a-z_]+ \d+\b)")


class Failed(Exception):
    """The case failed; the text says how."""


class NoFigures(Failed):
    """Other figures than those that were asked for."""


class Skipped(Exception):
    """The case cannot run here; the text says why."""


def check(truth, text, kind=Failed):
    if not truth:
        raise kind(text)


def need(program):
    """Path of a program that the case cannot do without."""
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise Skipped(f"{program} is not installed")
    return path


def need_tree(who):
    """Skip the case if a command behind these words, which take rights away, cannot read the tree."""
    if subprocess.run([*who, "test", "-r", UWARP_RUN], stderr=subprocess.DEVNULL, check=False).returncode:
        raise Skipped(f"{ROOT} lies in a folder that cannot be read without root's rights")


def made(variable, name):
    """Path of a program of ours: as Meson names it in the environment, or in the build tree if it is there; else ""."""
    build = os.environ.get("UWARP_BUILD_DIR", os.path.join(ROOT, "build"))
    path = os.path.join(os.path.abspath(build), "tests", "programs", name)
    return os.environ.get(variable) or (path if os.path.exists(path) else "")


# Its clock is measured by spinning, for each message size anew (clock.c).
PERFTEST = re.compile(r"ib_(send|write|read|atomic)_(bw|lat)$")
CLOCK = made("UWARP_PROGRAMS_CLOCK", "libprograms-clock.so")


def quick_clock(program):
    """What to add to its environment, that perftest spins for less."""
    return {"LD_PRELOAD": CLOCK} if CLOCK and PERFTEST.match(os.path.basename(program)) else {}


def kernel_listens(port, pid="self"):
    """Is there a kernel TCP socket that listens on it, in the network namespace of a process?"""
    text = read_bytes(f"/proc/{pid}/net/tcp") + read_bytes(f"/proc/{pid}/net/tcp6")
    rows = [line.split() for line in text.decode().splitlines()]
    return any(row[1].endswith(f":{port:04X}") and row[3] == "0A" for row in rows)


def listens(port):
    """Waits until a program that is asked over kernel TCP first can be."""

    def wait(program):
        wait_until(lambda: kernel_listens(port) or program.poll() is not None, START)
        check(kernel_listens(port), f"{program.role} does not listen on port {port}")

    return wait


def hears_udp(port):
    """Waits until the program has a kernel UDP socket on the port, with which rsockets find each other."""

    def bound():
        rows = [line.split() for line in read_bytes("/proc/net/udp").decode().splitlines()]
        return any(row[1].endswith(f":{port:04X}") for row in rows)

    def wait(program):
        wait_until(lambda: bound() or program.poll() is not None, START)
        check(bound(), f"{program.role} has no UDP socket on port {port}")

    return wait


def printed(text, times=1):
    """Waits until the program has printed it, so many times."""

    def wait(program):
        wait_until(lambda: program.out.count(text) >= times or program.poll() is not None, START)
        check(program.out.count(text) >= times, f"{program.role} does not say '{text}' {times} times")

    return wait


def read_bytes(path, size=-1):
    """What can be read of it now; empty if nothing can."""
    try:
        with open(path, "rb") as f:
            return f.read(size)
    except OSError:
        return b""


class Program:
    """A program that runs. Its output goes to files, so that no pipe ever fills."""

    count = 0
    slowness = 1  # what to multiply limits by

    def __init__(self, argv, env, folder, role):
        Program.count += 1
        self.argv, self.role, self.started = argv, role, time.monotonic()
        self.out_path = os.path.join(folder, f"{Program.count}-{role}.out")
        self.err_path = os.path.join(folder, f"{Program.count}-{role}.err")
        with open(self.out_path, "wb") as out, open(self.err_path, "wb") as err:
            self.popen = subprocess.Popen(
                argv, env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                start_new_session=True, preexec_fn=die_with_parent,
            )  # fmt: skip
        self.pid, self.ended = self.popen.pid, None

    def poll(self):
        rc = self.popen.poll()
        if rc is not None and self.ended is None:
            self.ended = time.monotonic()
        return rc

    def wait(self, seconds):
        """Its exit code; raises if there is none in time."""
        if not wait_until(lambda: self.poll() is not None, seconds * Program.slowness):
            raise Failed(f"{self.role} has not ended after {seconds:g} s")
        return self.popen.returncode

    def seconds(self):
        return (self.ended or time.monotonic()) - self.started

    def kill(self, sig=signal.SIGKILL):
        if self.poll() is None:
            os.kill(self.pid, sig)

    def stop(self):
        """End it and whatever it started."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.popen.wait()
        self.poll()

    @property
    def out(self):
        return read_bytes(self.out_path).decode(errors="replace")

    @property
    def err(self):
        return read_bytes(self.err_path).decode(errors="replace")

    def our_lines(self):
        """What uwarp itself said, figures apart."""
        lines = [x for x in self.err.splitlines() if x.startswith(("uwarp: ", "uwarp-run: "))]
        return [x for x in lines if not FIGURES.match(x)]

    def has_thread(self, name):
        tasks = f"/proc/{self.pid}/task"
        try:
            return any(read_bytes(f"{tasks}/{t}/comm").strip() == name.encode() for t in os.listdir(tasks))
        except OSError:
            return False

    def until_link_up(self):
        """The stack's thread runs: what the program asked for comes within the next moments."""
        if not wait_until(lambda: self.has_thread("uwarp-rx") or self.poll() is not None, START):
            raise Failed(f"{self.role} has not brought its link up after {START:g} s")
        if self.poll() is not None and self.popen.returncode:
            raise Failed(f"{self.role} ended at once with exit code {self.popen.returncode}")

    def cpu_seconds(self):
        fields = read_bytes(f"/proc/{self.pid}/stat").rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0

    def until_busy(self, seconds=0.3):
        """It computes or spins since that long: it is in the middle of its work."""
        wanted = self.cpu_seconds() + seconds
        if not wait_until(lambda: self.cpu_seconds() >= wanted or self.poll() is not None, START):
            raise Failed(f"{self.role} does not get to its work")
        check(self.poll() is None, f"{self.role} ended before it got to its work")

    def until_printed(self, octets):
        size = lambda: os.stat(self.out_path).st_size  # noqa: E731
        if not wait_until(lambda: size() >= octets or self.poll() is not None, START):
            raise Failed(f"{self.role} prints nothing")
        check(self.poll() is None, f"{self.role} ended before it got to its work")

    def report(self):
        """How it ended and the last lines it printed, for the reader of a failure."""
        rc = self.poll()
        state = "still running" if rc is None else f"exit code {rc}"
        lines = [f"{self.role}: {shlex.join(self.argv)}", f"  {state} after {self.seconds():.1f} s"]
        for text in (self.out, self.err):
            lines += [f"  | {x[:SHOWN_WIDTH]}" for x in text.splitlines()[-SHOWN_LINES:]]
        return "\n".join(lines)


def is_locked(path):
    try:
        with open(path, "rb") as f:
            fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def is_silent_socket(path):
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        try:
            s.connect(path)
        except ConnectionRefusedError:
            return os.path.basename(os.path.dirname(path)) == "stat"
        except OSError:
            pass
    return False


class Stage:
    """One case's surroundings: its link, its run directory and the programs started in it."""

    def __init__(self, link):
        self.link, self.programs, self.mark = link, [], secrets.token_hex(8)
        self.folder = tempfile.mkdtemp(prefix="uw-")
        self.run_dir = os.path.join(self.folder, "run")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("UWARP_", "RDMAV_", "IBV_"))}
        self.env.update({MARK: self.mark, "UWARP_DIR": self.run_dir, "XDG_RUNTIME_DIR": self.folder, "UWARPD": ""})
        if "UWARP_BUILD_DIR" in os.environ:
            self.env["UWARP_BUILD_DIR"] = os.environ["UWARP_BUILD_DIR"]

    def address(self, role):
        return self.link.addresses[role]

    def fill_in(self, command):
        return [word.format(**self.link.addresses, folder=self.folder) for word in shlex.split(command)]

    def start(self, role, command, env=None, options=None):
        """Start `uwarp-run OPTIONS -- command` at the role's place and with its address."""
        if options is None:
            options = self.link.options(role)
        wrapper = self.link.wrapper(role) if hasattr(self.link, "wrapper") else []
        words = self.fill_in(command)
        argv = [*wrapper, UWARP_RUN, "--quiet", *options, "--", *words]
        return self.start_plain(role, argv, {**quick_clock(words[0]), **(env or {})})

    def start_plain(self, role, argv, env=None):
        """The same without uwarp."""
        return self.start_there(role, self.link.prefix(role), argv, {**self.env, **(env or {})})

    def start_with_rights(self, role, argv):
        """The same with all rights that we have, where the link's programs have none."""
        return self.start_there(role, self.link.inside_of(role), argv, self.env)

    def start_there(self, role, prefix, argv, env):
        program = Program([*prefix, *argv], env, self.folder, role)
        self.programs.append(program)
        return program

    def forget(self, program):
        """It has ended and is of no interest to anybody."""
        self.programs.remove(program)
        os.unlink(program.out_path)
        os.unlink(program.err_path)

    def run(self, role, command, seconds, **how):
        program = self.start(role, command, **how)
        program.wait(seconds)
        return program

    def processes(self):
        found, wanted = [], f"{MARK}={self.mark}".encode()
        for pid in filter(str.isdigit, os.listdir("/proc")):
            if wanted in read_bytes(f"/proc/{pid}/environ").split(b"\0"):
                found.append(f"process {pid}: {read_bytes(f'/proc/{pid}/comm').decode().strip()}")
        return found

    def files(self):
        """Files of the run directory. A lock file may stay, the lock on it may not; so may a socket for uwarp-stat
        that nobody listens on, which goes with the next process that starts."""
        found = []
        for here, _, names in os.walk(self.run_dir):
            paths = (os.path.join(here, n) for n in names)
            found += [p for p in paths if (not p.endswith(".lock") or is_locked(p)) and not is_silent_socket(p)]
        return [os.path.relpath(p, self.folder) for p in sorted(found)]

    def left_over(self):
        """What is there although every program of the case should have ended. One that is killed has no environment any more
        a moment before its sockets are closed."""
        wait_until(lambda: not self.processes() + self.files(), GRACE)
        return self.processes() + self.files()

    def close(self):
        for program in self.programs:
            program.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
