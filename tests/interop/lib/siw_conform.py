# SPDX-License-Identifier: BSD-3-Clause
"""uwarp-conform against siw in the rig: both roles, then the frames that crash siw, each in a VM of
its own."""

import json
import os
import shutil
import subprocess

import faults
import verdicts
from ends import NET, ROOT, SIW_IP, Broken

TOOL = os.path.join(ROOT, "tools", "uwarp-conform")
OURS, PORT = f"{NET}.1", 7471
# An emulated machine takes its time.
PATIENCE = ["--timeout", "4", "--settle", "0.1"]
# Seconds that one run of the table may take, and one case.
WHOLE, SINGLE, TRIES = 1200, 90, 3
# They end siw, as the crashes in faults.CRASHES do.
NOT_IN_THE_TABLE = {"reply/pd-513", "reply/pd-65535-announced", *(case for case, _, _ in faults.CRASHES)}
# What the kernel says when it is over.
LAST_WORDS = "dmesg | grep -m 1 -oE 'BUG: .*'; dmesg | grep -m 1 -oE ' siw_[a-z_]+\\+'"


class SiwConform:
    def __init__(self, rig, build, place):
        self.rig, self.place = rig, place
        self.program = os.path.join(build, "apps", "conform-target", "uwarp-conform-target")
        if not os.access(self.program, os.X_OK):
            raise Broken(f"{self.program} is not built")

    def fresh_vm(self):
        self.rig.call("down")
        self.rig.call("up")

    def target(self, role):
        """Start the program behind siw; the tester's role decides who connects."""
        shutil.copy(self.program, os.path.join(self.rig.state, "share"))
        words = f"--connect {OURS}" if role == "responder" else ""
        wait = f"; waitport {PORT} 20" if role == "initiator" else ""
        status, said = self.rig.vm(f"job target /share/uwarp-conform-target {words} --port {PORT}{wait}")
        if status:
            raise Broken(f"uwarp-conform-target does not start in the VM: {said}")

    def drive(self, role, cases, seconds):
        """One run of the tester; its JSON, or None if it got none."""
        out = os.path.join(self.place, f"siw-{role}.json")
        if os.path.exists(out):
            os.unlink(out)
        address = f"{SIW_IP if role == 'initiator' else OURS}:{PORT}"
        only = [word for case in cases for word in ("--only", case)]
        command = self.rig.in_namespace([TOOL, *PATIENCE, "--role", role, "--target", address, "--json", out, *only])
        try:
            r = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds)
        except subprocess.TimeoutExpired:
            return None, "it took too long"
        if not os.path.exists(out):
            return None, r.stderr
        with open(out, encoding="utf-8") as f:
            return json.load(f), r.stderr

    def table(self, role):
        """Every case that siw survives."""
        said = subprocess.run([TOOL, "--role", role, "--list"], capture_output=True, text=True, check=True).stdout
        rows = [line.split() for line in said.split("\n\n")[0].splitlines()]
        cases = [row[0] for row in rows if row[1] in (role, "either") and row[0] not in NOT_IN_THE_TABLE and "named:" not in row]
        self.target(role)
        found, said = self.drive(role, cases, WHOLE)
        if not found or len(found["cases"]) != len(cases):
            raise Broken(f"uwarp-conform as {role} did not get to the end of the table: {said}")
        return self.second_try(role, verdicts.recorded(found))

    def second_try(self, role, run):
        """What no known fault explains may be the emulated machine's pace: those cases once more."""
        odd = verdicts.unexplained(run)
        if odd:
            print(f"  once more as {role}: {', '.join(odd)}", flush=True)
            found, _ = self.drive(role, odd, WHOLE)
            if found:
                verdicts.replace(run, verdicts.recorded(found))
        return run

    def crash(self, case, role, what):
        """A kernel may survive a bad pointer by luck, so up to TRIES times."""
        for _ in range(TRIES):
            self.fresh_vm()
            self.target(role)
            self.drive(role, [case], SINGLE)
            said = "; in ".join(line.strip(" +") for line in self.rig.vm(LAST_WORDS)[1].splitlines())
            if said:
                break
        return {"case": case, "what": what, "said": said}

    def record(self):
        kernel = self.rig.vm("uname -sr")[1].strip()
        runs = []
        for role in ("initiator", "responder"):
            runs.append(self.table(role))
            self.fresh_vm()
        crashes = [self.crash(*row) for row in faults.CRASHES]
        return {"kernel": kernel, "runs": runs, "crashes": crashes}
