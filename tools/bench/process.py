# SPDX-License-Identifier: BSD-3-Clause
"""Starting programs, waiting for them and ending them, and nothing left of them after that."""

import ctypes
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import time

PATH = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin"
PR_SET_PDEATHSIG = 1
POLL = 0.005
# Who wanted to sleep for POLL and slept for longer than this has been stopped, or its machine has, and all programs with it.
STOPPED = 1.0
libc = ctypes.CDLL(None, use_errno=True)


class Failed(Exception):
    """It could not be measured this time; the text says why."""


class Unavailable(Exception):
    """It cannot be measured here at all; the text says why."""


def need(program):
    path = shutil.which(program, path=PATH)
    if not path:
        raise Unavailable(f"{os.path.basename(program)} is not installed (tools/setup bench)")
    return path


def wait_until(condition, seconds):
    """True as soon as condition() is, False when the time is over. While we are stopped it does not pass."""
    deadline = time.monotonic() + seconds
    while not condition():
        before = time.monotonic()
        if before > deadline:
            return False
        time.sleep(POLL)
        slept = time.monotonic() - before
        deadline += slept if slept > STOPPED else 0
    return True


def die_with_parent():
    """Whatever kills this process kills what it started."""
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def read_text(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as f:
            return f.read()
    except OSError:
        return ""


class Program:
    """A program that runs in a session of its own; what it prints goes to files."""

    def __init__(self, argv, env=None, cwd=None):
        self.argv, self.started = argv, time.monotonic()
        self.out_file = tempfile.TemporaryFile()
        self.err_file = tempfile.TemporaryFile()
        try:
            self.popen = subprocess.Popen(
                argv, env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=self.out_file, stderr=self.err_file,
                start_new_session=True, preexec_fn=die_with_parent,
            )  # fmt: skip
        except OSError as e:
            raise Failed(f"{argv[0]}: {e.strerror}") from None
        self.pid, self.cpu = self.popen.pid, 0.0

    def running(self):
        if self.popen.returncode is None:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid:
                self.popen.returncode = os.waitstatus_to_exitcode(status)
                self.cpu = usage.ru_utime + usage.ru_stime
        return self.popen.returncode is None

    def wait(self, seconds):
        """Its standard output, once it has ended well."""
        if not wait_until(lambda: not self.running(), seconds):
            raise Failed(f"{self.name()} has not ended after {seconds:g} s{self.last_words()}")
        if self.popen.returncode:
            raise Failed(f"{self.name()} ended with {self.popen.returncode}{self.last_words()}")
        return self.out()

    def finish(self, seconds):
        """Let it end, well or not."""
        wait_until(lambda: not self.running(), seconds)

    def name(self):
        words = self.argv[self.argv.index("--") + 1 :] if "--" in self.argv else self.argv
        return os.path.basename(words[0])

    def text(self, file):
        size = os.fstat(file.fileno()).st_size
        return os.pread(file.fileno(), size, 0).decode(errors="replace")

    def out(self):
        return self.text(self.out_file)

    def err(self):
        return self.text(self.err_file)

    def last_words(self):
        lines = [x.strip() for x in (self.text(self.err_file) + "\n" + self.out()).splitlines() if x.strip(" -")]
        told = [x for x in lines if not x.startswith("uwarp: 127.")]
        return f": {told[-1][:160]}" if told else ""

    def command(self):
        return shlex.join(self.argv)

    def has_thread(self, name):
        tasks = f"/proc/{self.pid}/task"
        try:
            return any(read_text(f"{tasks}/{t}/comm").strip() == name for t in os.listdir(tasks))
        except OSError:
            return False

    def threads_seconds(self, name):
        """CPU time of its threads with this name, to the nanosecond."""
        tasks = f"/proc/{self.pid}/task"
        try:
            found = [t for t in os.listdir(tasks) if read_text(f"{tasks}/{t}/comm").strip() == name]
            return sum(int(read_text(f"{tasks}/{t}/schedstat").split()[0]) for t in found) / 1e9
        except (OSError, IndexError):
            return 0.0

    def cpu_seconds(self):
        """User and system time of all its threads, as yet or in all."""
        if not self.running():
            return self.cpu
        fields = read_text(f"/proc/{self.pid}/stat").rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0

    def signal(self, number):
        if self.running():
            os.kill(self.pid, number)

    def stop(self):
        """End it and whatever it started."""
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        wait_until(lambda: not self.running(), 5)
        self.out_file.close()
        self.err_file.close()


class Group:
    """Programs that end together, for a `with`."""

    def __init__(self):
        self.programs = []

    def start(self, argv, **how):
        program = Program(argv, **how)
        self.programs.append(program)
        return program

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in reversed(self.programs):
            program.stop()
