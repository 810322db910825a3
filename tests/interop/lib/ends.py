# SPDX-License-Identifier: BSD-3-Clause
"""The two ends: a uwarp process in the rig's namespace, and the VM."""

import os
import shlex
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
RIG_DIR = os.path.join(os.path.dirname(HERE), "rig")
RIG = os.path.join(RIG_DIR, "rig.sh")
UWARP_RUN = os.path.join(ROOT, "tools", "uwarp-run")
sys.path.insert(0, os.path.join(RIG_DIR, "tools"))
import ctl  # noqa: E402
import qemu  # noqa: E402

NET, NAMESPACE = "10.77.0", os.environ.get("RIG_NS", "uwarp-rig")
UWARP_IP, SIW_IP = f"{NET}.21", f"{NET}.11"
# Seconds that a VM lives if nobody ends it.
VM_LIFE = 1800
# Milliseconds: siw as a client waits for a server that wants to speak first and does not ask for
# peer-to-peer, so this leave is what such programs need.
SPEAK_FIRST = 500
# Seconds to end after the other side did; to begin to listen. An emulated machine takes its time.
LAST_WORDS, LISTEN = 10, 20
# A fresh connection attempt every few ms, until one is accepted; its end is noticed and forgotten.
WAIT_FOR_LISTENER = """
import socket, sys, time
end = time.monotonic() + float(sys.argv[3])
while time.monotonic() < end:
    with socket.socket() as s:
        s.settimeout(0.1)
        try:
            s.connect((sys.argv[1], int(sys.argv[2])))
            sys.exit(0)
        except OSError:
            time.sleep(0.02)
sys.exit(1)
"""


class Broken(Exception):
    """The rig, not the test, does not work."""


class Rig:
    def __init__(self, verbose, vms="a"):
        cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
        self.state = os.environ.get("RIG_STATE") or os.path.join(cache, "uwarp", "rig")
        self.env = {**os.environ, "RIG_STATE": self.state, "RIG_NS": NAMESPACE, "RIG_NET": NET}
        self.env.update(RIG_VMS=vms, RIG_VM="a", RIG_LIFE=str(VM_LIFE))
        self.verbose = verbose

    def call(self, *args):
        # into a file, because what goes on running keeps it open
        with tempfile.TemporaryFile() as log:
            r = subprocess.run([RIG, *args], env=self.env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
            log.seek(0)
            said = log.read().decode(errors="replace")
        if said and (self.verbose or r.returncode):
            print(said, end="", flush=True)
        if r.returncode:
            raise Broken(f"rig.sh {' '.join(args)} failed")

    def vm(self, command, limit=30, name="a"):
        """(exit status, output) of a command in the VM."""
        try:
            status, output = ctl.run(os.path.join(self.state, f"vm-{name}"), limit, command)
        except ctl.NoAnswer as e:
            raise Broken(f"the VM does not answer: {e}; {self.condition(name)}") from None
        return status, output.decode(errors="replace")

    def condition(self, name):
        """What can be said of a VM from outside."""
        try:
            place = os.path.join(self.state, f"vm-{name}")
            with open(os.path.join(place, "pid")) as pid, open(os.path.join(place, "console.log"), errors="replace") as console:
                state, cpu = qemu.state_of(qemu.process_of(int(pid.read())))
                last = " | ".join(console.read().splitlines()[-8:])
        except (OSError, ValueError) as e:
            return str(e)
        return f"QEMU (state {state}) has had {cpu:.0f} s of CPU time; its console's last words: {last[-600:]}"

    def load_siw(self, siw):
        """Load siw afresh; a VM in which that does not work any more is started again."""
        try:
            status, said = self.vm("for p in /tmp/job/*.pid; do kill -KILL -$(cat $p); done 2>/dev/null; siwmod " + siw)
            if status == 0:
                return
        except Broken as e:
            said = str(e)
        print(f"interop: starting the VM again, siw does not load: {said.strip()}", flush=True)
        self.call("down")
        self.call("up")
        status, said = self.vm("siwmod " + siw)
        if status:
            raise Broken(f"siw does not load in a fresh VM: {said}")

    def is_up(self):
        r = subprocess.run([RIG, "status"], env=self.env, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        return " up " in r.stdout

    def in_namespace(self, command):
        return ["ip", "netns", "exec", NAMESPACE, *command]


class UwarpEnd:
    """A program over uwarp, in the rig's namespace."""

    name, ip = "uwarp", UWARP_IP

    def __init__(self, rig, run_dir):
        self.rig, self.run_dir, self.env, self.started = rig, run_dir, {}, []

    def start(self, command, limit):
        link = [UWARP_RUN, "--quiet", "--link", "af_packet:dpdk0", "--ip", f"{UWARP_IP}/24", "--"]
        # nothing of the caller's own settings
        env = {k: v for k, v in os.environ.items() if not k.startswith("UWARP_") or k == "UWARP_BUILD_DIR"}
        env.update(self.env, UWARP_DIR=self.run_dir, UWARP_SPEAK_FIRST_MS=str(SPEAK_FIRST))
        p = LocalProcess(self.rig.in_namespace(["timeout", "-k", "2", str(limit), *link, *command]), env)
        self.started = [q for q in self.started if q.p.poll() is None] + [p]
        return p

    def end(self):
        for p in self.started:
            p.end()

    def serve(self, command, port, limit):
        p = self.start(command, limit)
        wait = [sys.executable, "-IS", "-c", WAIT_FOR_LISTENER, UWARP_IP, str(port), str(LISTEN)]
        if subprocess.run(self.rig.in_namespace(wait), stdin=subprocess.DEVNULL).returncode:
            return p, f"did not listen on port {port} within {LISTEN} s"
        return p, None


class LocalProcess:
    def __init__(self, command, env):
        self.log = tempfile.TemporaryFile()
        self.p = subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True
        )

    def finish(self, seconds):
        """(exit status, output); 124 if it had to be ended."""
        try:
            status = self.p.wait(seconds)
        except subprocess.TimeoutExpired:
            status = 124
        self.end()
        self.log.seek(0)
        return status, self.log.read().decode(errors="replace")

    def end(self):
        try:
            os.killpg(self.p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.p.wait()


class SiwEnd:
    """A program over siw, in the VM."""

    name, ip = "siw", SIW_IP

    def __init__(self, rig):
        self.rig, self.count = rig, 0

    def slow(self, ms):
        """Hold back what the VM sends."""
        how = f"replace dev eth0 root netem limit 10000 delay {ms}ms" if ms else "del dev eth0 root"
        status, said = self.rig.vm(f"/usr/bin/tc qdisc {how}")  # not busybox's own
        if status:
            raise Broken(f"tc fails in the VM: {said}")

    def start(self, command, limit, then=""):
        self.count += 1
        job = VmJob(self.rig, f"j{self.count}", limit)
        job.problem, job.words = self.rig.vm(f"job {job.name} timeout -k 2 {limit} {shlex.join(command)}{then}", LISTEN + 10)
        return job

    def serve(self, command, port, limit):
        job = self.start(command, limit, f"; waitport {port} {LISTEN}")
        return job, f"did not listen on port {port} within {LISTEN} s" if job.problem else None


class VmJob:
    def __init__(self, rig, name, limit):
        self.rig, self.name, self.limit = rig, name, limit

    def finish(self, seconds):
        """(exit status, output); 124 if it had to be ended."""
        status, output = self.rig.vm(f"job -w {self.name} {int(seconds)}", int(seconds) + 10)
        if status == 124:
            self.end()
        return status, output

    def end(self):
        self.rig.vm(f"job -k {self.name}")
