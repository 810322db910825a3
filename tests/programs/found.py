# SPDX-License-Identifier: BSD-3-Clause
"""What the tests of programs found, kept in found.json: for each program its version and, for each group of cases, how many
passed, failed and were skipped. programs-doc makes doc/programs.md of it."""

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
RECORD = os.path.join(HERE, "found.json")
RESULTS = ("passed", "failed", "skipped")
# Not programs that people have: ours, what shows a file, what only goes wrong.
OURS = {
    "self", "forks", "mesh", "count", "address", "program", "no-program", "uwarpd", "hostile client", "(raw system calls)",
    "cat", "ls", "realpath", "python3",
}  # fmt: skip
# Programs whose package no file of their own name tells.
PACKAGES = {"pyverbs": "python3-pyverbs", "mpi4py": "python3-mpi4py", "librpma": "librpma0", "NPopenmpi": "netpipe-openmpi", "NPtcp": "netpipe-tcp"}


def load(path=RECORD):
    try:
        with open(path, encoding="utf-8") as f:
            return json.load(f)
    except FileNotFoundError:
        return {}


def save(record, path=RECORD):
    with open(path + ".new", "w", encoding="utf-8") as f:
        json.dump(record, f, indent=1, sort_keys=True, ensure_ascii=False)
        f.write("\n")
    os.replace(path + ".new", path)


@contextlib.contextmanager
def changing(path=RECORD):
    """The record, which is saved at the end. Of several that note something at once, one waits for the other. It is the folder
    that is locked: the file is replaced, and nothing is left behind."""
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX)
        record = load(path)
        yield record
        save(record, path)
    finally:
        os.close(folder)


def first(words):
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip().partition("\n")[0] if done.returncode == 0 else ""


def package_of(program):
    if program in PACKAGES:
        return PACKAGES[program]
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    owner = first(["dpkg-query", "-S", os.path.realpath(path)]) if path else ""
    return owner.partition(":")[0]


def package_version(package):
    """Of a package that is installed, else ""."""
    return first(["dpkg-query", "-W", "-f", "${Version}\n", package])


def version_of(program):
    """(package, version), as the distribution has it; empty: it is not from there."""
    if program == "valkey":
        server = os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "uwarp", "valkey-rdma", "valkey-server")
        m = re.search(r"v=(\S+)", first([server, "--version"]))
        return "valkey, built with RDMA", m[1] if m else ""
    package = package_of(program)
    return package, package_version(package) if package else ""


def note_elsewhere(key, **row):
    """A program that has a command of its own: its row (program, version, command, result, note), in the order of the keys."""
    with changing() as record:
        record.setdefault("elsewhere", {})[key] = row


def forget(entry, group, link):
    """What was known of the group, or of it over one kind of link."""
    counts = entry["groups"].get(group, {})
    counts.pop(link, None)
    if link is None or not counts:
        entry["groups"].pop(group, None)


def note_group(record, group, rows, only_link=None):
    """rows: (program, link, result) of every case of the group, or of those over one kind of link, which replace what was known."""
    programs = record.setdefault("programs", {})
    for entry in programs.values():
        forget(entry, group, only_link)
    for program, link, result in rows:
        if program in OURS or "/" in program:
            continue
        entry = programs.setdefault(program, {"groups": {}})
        entry["package"], entry["version"] = version_of(program)
        counts = entry["groups"].setdefault(group, {})
        count = counts.setdefault(link, dict.fromkeys(RESULTS, 0))
        count[result] += 1
    for program in [p for p, entry in programs.items() if not entry["groups"]]:
        del programs[program]


def row(cells):
    return "| " + " | ".join(str(c) for c in cells) + " |\n"


def table(heads, rows):
    return row(heads) + row("---" for _ in heads) + "".join(row(r) for r in rows)


def programs_table(record):
    """Each program once."""
    rows = []
    for program, entry in sorted(record.get("programs", {}).items(), key=lambda item: item[0].lower()):
        counts = [count for links in entry["groups"].values() for count in links.values()]
        links = sorted({link for links in entry["groups"].values() for link in links})
        sums = [sum(count[r] for count in counts) for r in RESULTS]
        rows.append([program, f"{entry['package']} {entry['version']}".strip(), *sums, ", ".join(links)])
    return table(["program", "package", *RESULTS, "links"], rows)


def elsewhere_table(record):
    """What is no package of the distribution: wheels, crates."""
    rows = [[e["program"], e["version"], e["command"], e["result"], e["note"]] for _, e in sorted(record.get("elsewhere", {}).items())]
    return table(["program", "version", "command", "result", "what was done"], rows)


def suites_table(record):
    keys = ("executed", "failed", "skipped", "vendors")
    rows = [[version, *(suite[k] for k in keys)] for version, suite in sorted(record.get("suites", {}).items())]
    return table(["rdma-core", "executed", "failed", "skipped", "of these for the devices of one vendor"], rows)


def page(record, template):
    """The template's lines `@programs@` and so on are tables."""
    tables = {"programs": programs_table, "elsewhere": elsewhere_table, "suites": suites_table}
    return re.sub(r"^@(\w+)@\n", lambda m: tables[m[1]](record), template, flags=re.M)
