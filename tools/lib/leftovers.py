# SPDX-License-Identifier: BSD-3-Clause
"""Nothing may be left behind by a test run: no process, namespace, file, socket or huge page.

Everything the tests start inherits a mark in its environment and two private directories
(TMPDIR and XDG_RUNTIME_DIR), so what is found afterwards is certainly theirs, even while the
user runs uwarp programs of his own. Places that are shared by their nature are compared before
and after."""

import fcntl
import glob
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time

MARK = "UWARP_CHECK"
# Programs that were told to end get this long to do so.
GRACE = 3.0


def marked_processes(mark):
    """pid -> command line of every process that carries the mark."""
    found, wanted = {}, f"{MARK}={mark}".encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as f:
                if wanted not in f.read().split(b"\0"):
                    continue
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                found[int(pid)] = f.read().replace(b"\0", b" ").decode(errors="replace").strip()
        except OSError:
            continue  # gone, or somebody else's
    return found


def is_locked(path):
    with open(path) as f:
        try:
            fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def hugetlb_mounts():
    with open("/proc/mounts") as f:
        return [line.split()[1] for line in f if line.split()[2] == "hugetlbfs"]


def shared_places():
    """What could be left in places that cannot be made private."""
    found = set(glob.glob("/run/netns/*uw*")) | set(glob.glob("/dev/shm/*uwarp*")) | set(glob.glob("/run/dpdk/*"))
    for mount in hugetlb_mounts():
        found |= set(glob.glob(f"{mount}/*map_*")) | set(glob.glob(f"{mount}/*uwarp*"))
    with open("/proc/net/dev") as f:
        found |= {f"interface {line.split(':')[0].strip()}" for line in f if line.strip().startswith("uw")}
    return found


def in_memory(place):
    """Each program makes some hundred small files and removes them again, in directories that are of memory at most
    logins. On a disk's file system that may take longer than all else that it does. True: to be unmounted."""
    if os.getuid() or not shutil.which("mount"):
        return False
    return not subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "uwarp-check", place], capture_output=True).returncode


class Watch:
    """Use its env for everything that is started; then ask what is left."""

    def __init__(self):
        self.mark = secrets.token_hex(8)
        self.top = tempfile.mkdtemp(prefix="uwarp-check-", dir="/tmp")
        self.mounted = in_memory(self.top)
        self.env = dict(os.environ)
        for variable, name in (("TMPDIR", "tmp"), ("XDG_RUNTIME_DIR", "run")):
            place = os.path.join(self.top, name)
            os.mkdir(place, 0o700)
            self.env[variable] = place
        # other users, too, must reach what a test puts into the temporary directory
        os.chmod(self.top, 0o755)
        os.chmod(self.env["TMPDIR"], 0o1777)
        self.env[MARK] = self.mark
        self.env.pop("UWARP_DIR", None)
        self.before = shared_places()

    def _processes(self):
        deadline = time.monotonic() + GRACE
        while (left := marked_processes(self.mark)) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left

    def _files(self):
        yield from glob.glob(os.path.join(self.env["TMPDIR"], "*"))
        for here, _, names in os.walk(self.env["XDG_RUNTIME_DIR"]):
            # A reservation is the lock on its file. The file may stay, the lock may not.
            in_use = (n for n in names if not n.endswith(".lock") or is_locked(os.path.join(here, n)))
            yield from (os.path.join(here, n) for n in in_use)

    def left_over(self):
        """One line for each thing left; stops the processes and removes the private files."""
        left = [f"process {pid}: {line}" for pid, line in sorted(self._processes().items())]
        left += [f"file {path}" for path in sorted(self._files())]
        left += sorted(shared_places() - self.before)
        for pid in marked_processes(self.mark):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.mounted:  # also where one of those that were just killed is still in it
            subprocess.run(["umount", "--lazy", self.top], capture_output=True)
            self.mounted = False
        shutil.rmtree(self.top, ignore_errors=True)
        return left
