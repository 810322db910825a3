#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The parts of tools/check: build a tree, run suites in it, count. Called by tools/check, which
has installed what is needed. What only computes, or only waits, is done beside the rest, at low
priority: the programs wait a lot, for timers and for each other."""

import json
import os
import shutil
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import house  # noqa: E402
import leftovers  # noqa: E402
import results  # noqa: E402
import toolsenv  # noqa: E402
from house import ROOT, Failed, say  # noqa: E402

sys.path.insert(1, house.TOOLS)
from run import ending  # noqa: E402

# Parts that are a command of their own; its figures are read from what it prints.
COMMANDS = {
    "fresh": [os.path.join(house.LIB, "fresh")],
    "fuzz": [os.path.join(ROOT, "tests", "fuzz", "run"), "--seconds", "3", "--cpu", "--jobs", "2"],
    "interop": [os.path.join(ROOT, "tests", "interop", "run"), "--quick"],
    "nics": [os.path.join(ROOT, "tests", "nics", "run"), "--quick"],
    "arm64-guest": [os.path.join(ROOT, "tests", "nics", "run-arm64")],
    "impair": [os.path.join(ROOT, "tests", "impair", "run"), "--quick"],
    "packages": [os.path.join(ROOT, "tests", "packages", "run")],
    "captures": [os.path.join(ROOT, "tests", "programs", "run-cases"), "--captures"],
}
# Those that run what is in build/, and how they find it.
OF_BUILD = {
    "interop": {"UWARP_BUILD_DIR": "build"},
    "nics": {"UWARP_BUILD_DIR": "build"},
    "arm64-guest": {"UWARP_BUILD_DIR": "build"},
    "impair": {"UWARP_BUILD_DIR": "build"},
    "captures": {"UWARP_BUILD_DIR": "build", "UWARP_PROGRAMS_SELF": "build/tests/programs/programs-self"},
}
# Those with peers in other machines, and timers: what fails beside other parts tries once more alone.
AGAIN = ("interop", "nics", "impair")
CROSS = os.path.join(ROOT, "tools", "cross", "aarch64.ini")
# What the arm64 guest runs.
GUEST_TREE, GUEST_CROSS = "build-arm64-full", os.path.join(ROOT, "tools", "cross", "aarch64-full.ini")
GUEST_TARGETS = [
    "stack/libuwarp.so", "verbs-provider/preload/libuwarp-preload.so", "verbs-provider/provider/libuwarp-rdmav34.so",
]  # fmt: skip
# The sanitizers' shadow memory needs address space that randomisation may have taken.
NO_RANDOM_ADDRESSES = ["setarch", "-R"]
# Optimised a little, so that the sanitized tests end in time, with frames that can be named.
SANITIZE = ["--buildtype=debugoptimized", "-Doptimization=1", "-Dc_args=-g1", "-Db_lundef=false"]
# Lanes beside the main one: what only waits, for virtual machines and timers, and what only computes.
BESIDE = (("conform", "interop", "nics", "impair", "apps"), ("arm64", "asan", "tsan", "fuzz"))
BESIDE_NICE = 10


class Track:
    """What runs one after the other. The one beside is nice while the main one is at work, and shows
    what a command printed when that has ended."""

    def __init__(self, beside=False):
        self.beside, self.total, self.parts = beside, results.Count(), 0
        self.failures = []  # lines for the end of the run: what failed, and why
        self.alone = threading.Event()  # nothing else runs any more
        self.later = []  # what tries once more then
        self.through = threading.Event()  # each part has run once

    def run(self, command, env):
        if not self.beside:
            subprocess.run(command, env=env, stdin=subprocess.DEVNULL)
            return
        p = subprocess.Popen(
            [*self.nice(), *command], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, errors="replace",
        )  # fmt: skip
        print(p.communicate()[0], end="", flush=True)

    def nice(self):
        return ["nice", "-n", str(BESIDE_NICE)] if self.beside and not self.alone.is_set() else []


class Part:
    """A build tree with its options, and the suites to run in it."""

    def __init__(self, tree, suites, *options, wrapper=(), slowness=1):
        self.tree, self.suites, self.options = os.path.join(ROOT, tree), suites, options
        self.wrapper, self.slowness = list(wrapper), slowness


PARTS = {
    "unit": Part("build", ["house", "unit", "links"]),
    "sim": Part("build", ["sim"]),
    "programs": Part("build", ["programs", "verbs"]),
    "more": Part("build", ["more"]),
    "apps": Part("build", ["apps"]),
    "conform": Part("build", ["conform"]),
    "gate": Part("build", ["perf"]),
    "arm64": Part("build-arm64", ["unit", "sim"], "--cross-file", CROSS, "-Dcore_only=true", "-Ddebug=false", slowness=10),
    "asan": Part(
        "build-asan", ["unit", "links", "sim"], *SANITIZE, "-Db_sanitize=address,undefined",
        wrapper=NO_RANDOM_ADDRESSES, slowness=4,
    ),
    # What has several threads, and not the links: DPDK's own locks are not instrumented, so TSan cannot see what they order.
    "tsan": Part(
        "build-tsan", ["threads"], *SANITIZE, "-Db_sanitize=thread",
        wrapper=NO_RANDOM_ADDRESSES, slowness=10,
    ),
}  # fmt: skip


def isolation():
    """As root every test runs in a network namespace that ends with it."""
    if os.getuid() != 0 or not shutil.which("ip"):
        return []
    command = ["unshare", "--net", "--", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    return command if subprocess.run([*command, "true"], capture_output=True).returncode == 0 else []


def introspect(tree, what):
    return json.loads(house.run_quietly([toolsenv.tool("meson"), "introspect", what, tree], "looking into the tree"))


def targets_of(part):
    """What the part's tests need: with a sanitizer the rest of the tree is not worth its time."""
    if not part.wrapper:
        return []
    tests = [t for t in introspect(part.tree, "--tests") if {s.rpartition(":")[2] for s in t["suite"]} & set(part.suites)]
    wanted = {target for t in tests for target in t["depends"]}
    files = [f for t in introspect(part.tree, "--targets") if t["id"] in wanted for f in t["filename"]]
    return [os.path.relpath(f, part.tree) for f in files]


def suites_of(tree):
    """The suites that have tests in this tree."""
    return {suite.rpartition(":")[2] for test in introspect(tree, "--tests") for suite in test["suite"]}


def meson_test(log, part, env, what, track):
    """One run of meson test; returns the entries of its log."""
    logs = os.path.join(part.tree, "meson-logs")
    command = [*isolation(), toolsenv.tool("meson"), "test", "-C", part.tree, "--no-rebuild", "--print-errorlogs"]
    command += ["--logbase", log, "--timeout-multiplier", str(part.slowness), *what]
    if part.wrapper:
        command += ["--wrapper", " ".join(part.wrapper)]
    track.run(command, env)
    path = os.path.join(logs, log + ".json")
    written = [path] if os.path.exists(path) else []
    if not written:  # with one suite or wrapper Meson adds to the name
        written = [os.path.join(logs, f) for f in os.listdir(logs) if f.startswith(log) and f.endswith(".json")]
    if len(written) != 1:
        raise Failed("meson test left no log")
    return results.read(written[0])


def forget_logs(part, log):
    logs = os.path.join(part.tree, "meson-logs")
    for old in os.listdir(logs):
        if old.startswith(log):
            os.unlink(os.path.join(logs, old))


def failed_names(entries):
    return [e["name"].rpartition(" / ")[2] for e in entries if e["result"] not in results.GOOD + results.SKIP]


def second_try(name, part, env, entries, track):
    """Two noisy cores make a test late now and then: what failed may try once more, alone, and is
    named when it needed to."""
    bad = failed_names(entries)
    if not bad:
        return entries
    say(f"{name}: once more: {', '.join(bad)}")
    forget_logs(part, f"again-{name}")
    again = {e["name"]: e for e in meson_test(f"again-{name}", part, env, ["--num-processes", "1", *bad], track)}
    for e in entries:
        second = again.get(e["name"])
        if second and second["result"] in results.GOOD:
            say(f"{e['name']}: passed at the second try")
    return [again.get(e["name"], e) for e in entries]


def run_tests(name, part, env, track):
    """Run the part's suites; returns the entries of the log."""
    present = suites_of(part.tree)
    missing = [s for s in part.suites if s not in present]
    if missing:
        raise Failed(f"no tests in suite {', '.join(missing)} of {os.path.relpath(part.tree, ROOT)}/")
    forget_logs(part, f"check-{name}")
    suites = [word for suite in part.suites for word in ("--suite", suite)]
    if track.beside:
        say(f"{name}: testing in {os.path.relpath(part.tree, ROOT)}/, beside the other parts")
    return meson_test(f"check-{name}", part, env, suites, track)


def sanitizer_env(env):
    env = dict(env)
    env["ASAN_OPTIONS"] = "halt_on_error=1:abort_on_error=1:detect_leaks=1:detect_stack_use_after_return=1"
    env["UBSAN_OPTIONS"] = "halt_on_error=1:abort_on_error=1:print_stacktrace=1"
    env["TSAN_OPTIONS"] = "halt_on_error=1:second_deadlock_stack=1"
    return env


def run_tree(name, env, track):
    """Build a part's tree, run its suites and count. None: to be judged when the track is alone."""
    part, env = PARTS[name], sanitizer_env(env)
    house.configure(part.tree, *part.options)
    house.build(part.tree, track.nice(), targets_of(part))
    entries = run_tests(name, part, env, track)
    if track.beside and not track.alone.is_set() and failed_names(entries):
        say(f"{name}: failed beside the other parts, will try again alone: {', '.join(failed_names(entries))}")
        track.later.append((name, lambda: judge(name, env, entries, track)))
        return None
    return judge(name, env, entries, track)


def judge(name, env, entries, track):
    """What failed tries once more; count."""
    part, count = PARTS[name], results.Count()
    entries = second_try(name, part, env, entries, track)
    print(results.table(entries), end="", flush=True)
    for entry in entries:
        one = results.count_test(entry)
        count.add(one)
        if one.failed:
            track.failures.append(f"{name}: {results.why_failed(entry)}")
        if one.skipped:
            say(f"{entry['name']}: {one.skipped} skipped")
    if not count.passed and not count.failed:
        raise Failed("no test ran")
    return count


def run_command(name, env, track):
    """What the command counts itself: steps of a new user, targets, programs with a peer."""
    if name in OF_BUILD:
        env = {**env, **{k: os.path.join(ROOT, v) for k, v in OF_BUILD[name].items()}}
        house.configure(env["UWARP_BUILD_DIR"])
        house.build(env["UWARP_BUILD_DIR"])
    if name == "arm64-guest":
        tree = os.path.join(ROOT, GUEST_TREE)
        house.configure(tree, "--cross-file", GUEST_CROSS)
        house.build(tree, [], GUEST_TARGETS)
    count, failures = run_once(name, env, track)
    if count.failed and name in AGAIN and track.beside and not track.alone.is_set():
        for line in failures:
            say(f"{line} (beside the other parts; will try again alone)")
        track.later.append((name, lambda: run_command(name, env, track)))
        return None
    track.failures += failures
    return count


def run_once(name, env, track):
    """One run of a command: what it counts, and a line for each failure."""
    p = subprocess.Popen(
        [*track.nice(), *COMMANDS[name]], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace"
    )  # fmt: skip
    text = ""
    for line in p.stdout:
        print(line, end="", flush=True)
        text += line if not line.startswith(" ") else ""
    count, code = results.count_figures(text), p.wait()
    if not count or (code and not count.failed):
        raise Failed("did not get to the end")
    return count, [f"{name}: {line}" for line in results.failed_lines(text)]


def run_part(name, track, work):
    """Run one part, which returns its figures; prints their line. None: it is not done yet."""
    start, count = time.monotonic(), results.Count()
    say(f"--- {name}{' (beside the other parts)' if track.beside else ''}")
    try:
        count = work()
    except Failed as f:
        say(f"{name}: {f}")
        track.failures.append(f"{name}: {f}")
        count.failed += 1
    if count is None:
        return
    print(f"{name}: {count} in {time.monotonic() - start:.0f} s", flush=True)
    track.total.add(count)
    track.parts += 1


def run_parts(names, env, track):
    try:
        for name in names:
            run = run_command if name in COMMANDS else run_tree
            run_part(name, track, lambda run=run, name=name: run(name, env, track))
    finally:
        track.through.set()
    if track.later:
        track.alone.wait()
    for name, work in track.later:
        run_part(name, track, work)


def split(names):
    """The main track's names, and those of each track beside it. Alone, parts need no tracks."""
    beside = [[n for n in names if n in track] for track in BESIDE]
    beside = [track for track in beside if track]
    main = [n for n in names if not any(n in track for track in beside)]
    return (main, beside) if main else ([n for track in beside for n in track], [])


def run_main(names, env, track, begin):
    """The main track. It builds its first tree before the others begin, or all would have the compiler at part of the speed."""
    first = PARTS.get(names[0])
    try:
        if first:
            house.configure(first.tree, *first.options)
            house.build(first.tree)
        begin()
        run_parts(names, env, track)
    except Failed as f:
        say(f"{names[0]}: {f}")
        track.failures.append(f"{names[0]}: {f}")


def run_tracks(names, env):
    """All parts; returns what they count and what failed."""
    main, beside = split(names)
    track, others = Track(), [Track(beside=True) for _ in beside]
    threads = [
        threading.Thread(target=run_parts, args=(parts, env, other), daemon=True) for parts, other in zip(beside, others, strict=True)
    ]
    run_main(main, env, track, lambda: [t.start() for t in threads])
    started = [(t, other) for t, other in zip(threads, others, strict=True) if t.ident]
    for _, other in started:
        other.through.wait()
    for thread, other in started:  # one after the other: what tries once more does so alone
        other.alone.set()
        thread.join()
    for other in others:
        track.total.add(other.total)
        track.failures += other.failures
    track.total.failed += len(names) - track.parts - sum(o.parts for o in others)  # a thread ends in silence
    return track.total, track.failures


def main():
    total, failures, watch = results.Count(), [], leftovers.Watch()
    house.clean_up_on_signals()
    try:
        total, failures = run_tracks(sys.argv[1:], watch.env)
    finally:
        left = watch.left_over()
    # Once more at the end, which is what is read of a long run.
    for line in failures + [f"left behind: {thing}" for thing in left]:
        say(f"failed: {line}")
    total.failed += bool(left)
    print(f"{total.passed} passed, {total.failed} failed", flush=True)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(ending.ended("check", main))
