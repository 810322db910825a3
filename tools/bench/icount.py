# SPDX-License-Identifier: BSD-3-Clause
"""Instructions that a message costs, by layer: callgrind counts them in a simulated run, the same
every time, so that a few per cent more are seen whatever the machine does besides.

What C library and ISA-L execute depends on the CPU's features and is told but not judged."""

import json
import os
import platform
import re
import subprocess

from run.ending import naming

from .output import columns
from .process import Failed, Group, need
from .rig import TOP, helper

# (operation, octets, connections): see tests/perf/icount.c
CASES = [("list", 64, None), ("reads", 256, None), ("atomics", 8, None), *((op, size, None) for size in (64, 65_536) for op in ("send", "write", "read")), ("event", 64, None), ("atomic", 8, None), ("send", 64, 1000)]
FEW, MANY = 32, 96  # messages
# Of each connection: its first one takes more than the others, and is not counted.
FEW_EACH, MANY_EACH = 2, 3
LIMIT = 120.0
BASELINE = os.path.join(TOP, "tests", "perf", "icount.json")
NO_BASELINE, MORE = "no baseline: --update", "MORE"  # verdicts that fail
# For the compiler that the baseline was made with, and for any other one.
SAME, OTHER = 0.10, 0.50
LAYERS = ("wire", "mpa", "ddp", "rdmap", "mem", "qp", "cm", "conn", "verbs", "sched", "engine", "base", "io/loop", "io/lwip", "io", "lwip")
LIBRARIES = "libraries"
NAMED = re.compile(r"^(\w+)=\((\d+)\)(?: (.*))?$")
COST = re.compile(r"^[+*-]?\d* ?(\d+)$")


def layer_of(path):
    """Which part of the stack a source file belongs to; None for the simulated world itself."""
    if "/tests/" in path or path.startswith(("tests/", "../tests/")):
        return None
    found = re.search(r"(?:^|/)stack/((?:io/)?\w+)/", path)
    if found:
        return found[1] if found[1] in LAYERS else found[1].partition("/")[0]
    return "lwip" if "subprojects/lwip" in path else LIBRARIES


def costs(text):
    """{file: instructions executed in lines of it} of a callgrind file."""
    names, total, at, skip = {}, {}, None, False
    for line in text.splitlines():
        named = NAMED.match(line)
        if named:
            kind, number, name = named.groups()
            if kind in ("fl", "fi", "fe"):
                at = names.setdefault(number, name) if name else names[number]
            elif kind in ("cfi", "cfl") and name:
                names[number] = name
        elif line.startswith("calls="):
            skip = True  # the next line says what the callee cost
        elif at is not None and (cost := COST.match(line)):
            total[at] = total.get(at, 0) + (0 if skip else int(cost[1]))
            skip = False
    return total


def layers(text):
    total = {}
    for path, n in costs(text).items():
        layer = layer_of(path)
        if layer:
            total[layer] = total.get(layer, 0) + n
    return total


def name_of(op, size, connections):
    return f"{op} {size}, {connections} QPs" if connections else f"{op} {size}"


def count(rig, op, size, n, connections=None):
    path = os.path.join(rig.folder, "callgrind.out")
    argv = [need("valgrind"), "--tool=callgrind", f"--callgrind-out-file={path}", helper("icount"), op, str(size), str(n)]
    argv += [str(connections)] if connections else []
    with Group() as group:
        group.start(argv, cwd=rig.folder).wait(LIMIT)
    with open(path, encoding="utf-8", errors="replace") as f:
        return layers(f.read())


def per_message(rig, op, size, connections=None):
    """{layer: instructions} of one message, both sides: a longer run less a shorter one."""
    lengths = (FEW_EACH * connections, MANY_EACH * connections) if connections else (FEW, MANY)
    few, many = (count(rig, op, size, n, connections) for n in lengths)
    return {k: (many[k] - few.get(k, 0)) / (lengths[1] - lengths[0]) for k in many if many[k] > few.get(k, 0)}


def measure(rig, told=lambda text: None):
    found = {}
    for case in CASES:
        told(f"counting: {name_of(*case)}")
        found[name_of(*case)] = per_message(rig, *case)
    return found


def own(one):
    """What is judged: the stack's and lwIP's own instructions."""
    return sum(n for layer, n in one.items() if layer != LIBRARIES)


def table(found):
    cases = list(found)
    order = [*LAYERS, LIBRARIES]
    present = [layer for layer in order if any(layer in found[c] for c in cases)]
    rows = [("instructions per message", *cases)]
    rows += [(layer, *(f"{found[c].get(layer, 0):.0f}" for c in cases)) for layer in present]
    rows.append(("judged (without libraries)", *(f"{own(found[c]):.0f}" for c in cases)))
    return columns(rows)


# ---- the gate ---------------------------------------------------------------------------


def compiler():
    """What built the helper, as far as it changes the count: 'gcc 12 x86_64'."""
    text = subprocess.run(["readelf", "-p", ".comment", helper("icount")], capture_output=True, text=True, check=False).stdout
    gcc, clang = re.findall(r"GCC: \(.*?\) (\d+)", text), re.findall(r"clang version (\d+)", text)
    name = f"clang {clang[-1]}" if clang else f"gcc {gcc[-1]}" if gcc else "unknown"
    return f"{name} {platform.machine()}"


def read_baseline():
    try:
        with open(BASELINE, encoding="utf-8") as f:
            return json.load(f)
    except OSError as e:
        raise Failed(f"{BASELINE}: {e.strerror}; uwarp-bench gate --update makes it") from None


def update(found):
    baseline = {"compiler": compiler(), "instructions": {c: round(own(one)) for c, one in found.items()}}
    with naming(BASELINE), open(BASELINE, "w", encoding="utf-8") as f:
        json.dump(baseline, f, indent=1)
        f.write("\n")
    return baseline


def judge(found, baseline, built_with):
    """Rows of (case, baseline, now, change, verdict)."""
    tolerance = SAME if baseline["compiler"] == built_with else OTHER
    rows = []
    for case, one in found.items():
        was, now = baseline["instructions"].get(case), own(one)
        if was is None:
            rows.append((case, "-", f"{now:.0f}", "", NO_BASELINE))
            continue
        change = now / was - 1
        verdict = MORE if change > tolerance else "less: --update" if change < -tolerance else "ok"
        rows.append((case, str(was), f"{now:.0f}", f"{change:+.1%}", verdict))
    return rows, tolerance


def gate(rig, told):
    found, baseline, built_with = measure(rig, told), read_baseline(), compiler()
    rows, tolerance = judge(found, baseline, built_with)
    print(table(found))
    print("\n" + columns([("case", "baseline", "now", "change", ""), *rows]))
    print(f"\nbaseline: {baseline['compiler']}; built with: {built_with}; tolerated: {tolerance:.0%} more")
    bad = sum(r[-1] in (MORE, NO_BASELINE) for r in rows)
    print(f"{len(rows) - bad} passed, {bad} failed")
    return 1 if bad else 0
