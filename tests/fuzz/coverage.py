# SPDX-License-Identifier: BSD-3-Clause
"""Which lines the targets' corpora reach: run --coverage. Needs llvm-profdata and llvm-cov (Debian: llvm)."""

import glob
import json
import os
import shutil
import subprocess

import house

# What a packet of a peer can reach, and what the project wants nearly all of.
ROOMS = ("stack/io/lwip", "stack/mpa", "stack/ddp", "stack/rdmap")
GOAL = 90
OPTION = "-Dfuzz_coverage=true"


def check_tools():
    missing = [tool for tool in ("llvm-profdata", "llvm-cov") if not shutil.which(tool)]
    if missing:
        raise house.Failed(f"{' and '.join(missing)} missing: apt install llvm")


class Coverage:
    def __init__(self, tree, root):
        self.tree, self.root = tree, root
        self.raw = os.path.join(tree, "profiles")
        shutil.rmtree(self.raw, ignore_errors=True)
        os.makedirs(self.raw)
        self.programs = []

    def environment(self, name):
        return {"LLVM_PROFILE_FILE": os.path.join(self.raw, f"{name}.profraw")}

    def ran(self, program):
        self.programs.append(program)

    def export(self):
        """The files of llvm-cov's answer, by path below the root."""
        merged = os.path.join(self.raw, "all.profdata")
        subprocess.run(["llvm-profdata", "merge", "-o", merged, *glob.glob(os.path.join(self.raw, "*.profraw"))], check=True)
        more = [word for p in self.programs[1:] for word in ("-object", p)]
        rooms = [os.path.join(self.root, room) for room in ROOMS]
        command = ["llvm-cov", "export", f"-instr-profile={merged}", self.programs[0], *more, *rooms]
        answer = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True).stdout
        return {os.path.relpath(f["filename"], self.root): f for f in json.loads(answer)["data"][0]["files"]}

    def report(self, missed):
        """Print a line for each room and, if asked, the lines of its files that were not reached. True: all rooms reach the goal."""
        files, good = self.export(), True
        for room in ROOMS:
            of = {path: f for path, f in sorted(files.items()) if path.startswith(room + "/") and path.endswith(".c")}
            lines = sum(f["summary"]["lines"]["count"] for f in of.values())
            hit = sum(f["summary"]["lines"]["covered"] for f in of.values())
            share = 100 * hit / lines if lines else 0
            good &= share >= GOAL
            print(f"coverage {room}: {hit} of {lines} lines, {share:.1f} %{'' if share >= GOAL else f' (goal {GOAL})'}")
            for path, f in of.items() if missed else ():
                say_missed(path, f)
        return good


def missed_lines(segments):
    """Ranges of lines whose code never ran. A segment is (line, column, count, has a count, begins a region, is a gap)."""
    out = []
    for here, after in zip(segments, segments[1:]):
        if not here[3] or here[2] or here[5]:
            continue
        last = after[0] if after[1] > 1 else after[0] - 1
        if out and here[0] <= out[-1][1] + 1:
            out[-1][1] = max(last, out[-1][1])
        else:
            out.append([here[0], last])
    return out


def say_missed(path, f):
    summary = f["summary"]["lines"]
    ranges = [f"{a}-{b}" if a != b else str(a) for a, b in missed_lines(f["segments"])]
    if ranges:
        print(f"  {path}: {summary['covered']} of {summary['count']}; not {', '.join(ranges)}")
