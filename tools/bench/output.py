# SPDX-License-Identifier: BSD-3-Clause
"""What was measured as text, JSON and CSV."""

import csv
import json
import os
import platform
import time

from run.ending import naming

from .numbers import digits, median, size_name
from .rounds import Series, ratio

CSV_FIELDS = ("test", "scheme", "op", "size", "mtu", "post_list", "qps", "unit", "median", "low", "high", "rounds", "problem")


# Processes that wanted to run besides, when this began.
STARTED_WITH = round(os.getloadavg()[0], 1)


# What is read of a file's parts.
PARTS = {"machine": {"cores", "cpu", "kernel"}, "settings": {"command", "rounds"}}


class BadFile(Exception):
    """Not a file of ours; the text says why."""


def cpu_model():
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as f:
        for line in f:
            if line.startswith(("model name", "Model", "CPU implementer")):
                return line.partition(":")[2].strip()
    return platform.machine()


def machine():
    """The class of machine; nothing that tells which one it is."""
    return {
        "cores": len(os.sched_getaffinity(0)), "cpu": cpu_model(), "kernel": platform.release().split("-")[0], "arch": platform.machine(),
        "load": STARTED_WITH,
    }  # fmt: skip


def document(series, options, goals):
    return {
        "uwarp_bench": 1, "when": time.strftime("%Y-%m-%d", time.gmtime()), "machine": machine(),
        "settings": {"command": options.command, "rounds": options.rounds, "mtu": options.mtu},
        "goals": goals, "series": [s.as_json() for s in series.values()],
    }  # fmt: skip


def write_json(path, doc):
    with naming(path), open(path, "w", encoding="utf-8") as f:
        json.dump(doc, f, indent=1)
        f.write("\n")


def series_of(j):
    """Raises KeyError, TypeError or ValueError if it lacks what every table needs."""
    s = Series.from_json(j)
    if not all(isinstance(v, (int, float, type(None))) for v in s.rounds) or not all(isinstance(x, dict) for x in s.samples):
        raise ValueError
    if not {"test", "scheme", "op"} <= s.facts.keys():
        raise ValueError
    reference(s)
    return s


def read_json(path):
    """The document, and its series by key."""
    try:
        with open(path, encoding="utf-8") as f:
            doc = json.load(f)
        if doc["uwarp_bench"] != 1 or not isinstance(doc["when"], str) or not all(names <= doc[part].keys() for part, names in PARTS.items()):
            raise ValueError
        return doc, {j["key"]: series_of(j) for j in doc["series"]}
    except OSError as e:
        raise BadFile(f"{path}: {e.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise BadFile(f"{path}: not a file that uwarp-bench --json wrote, or a damaged one") from None


def write_csv(path, series):
    with naming(path), open(path, "w", newline="", encoding="utf-8") as f:
        w = csv.DictWriter(f, CSV_FIELDS, extrasaction="ignore")
        w.writeheader()
        for s in series.values():
            row = s.as_json()
            row["rounds"] = " ".join("" if v is None else f"{v:.6g}" for v in s.rounds)
            w.writerow(row)


# ---- tables of text ---------------------------------------------------------------------


def columns(table):
    """Rows of words, aligned."""
    widths = [max(len(r[i]) for r in table) for i in range(len(table[0]))]
    return "\n".join("  ".join(w.ljust(n) for w, n in zip(r, widths)).rstrip() for r in table)


def reference(s):
    """The key of what this series is compared with."""
    f = s.facts
    if f["test"] == "latency":
        return f"latency/wire/echo/{f['size']}"
    if f["test"] == "throughput":
        return f"throughput/wire/copied/0/{f['mtu']}"
    if f["test"] == "rate":
        return f"rate/wire/raw/{f['size']}"
    if f["test"] == "qperf":
        return f"qperf/tcp/{'tcp_bw' if '_bw' in f['op'] else 'tcp_lat'}/{f['size']}"
    if f["test"] == "programs":
        return s.key.replace("/uwarp/", "/tcp/", 1)
    if f["test"] == "ethernet":
        return f"ethernet/tcp/{f['op']}/{f['size']}/{f['mtu']}/{f['offloads']}"
    if f["test"] == "loss":
        return f"loss/kernel/{f['op']}/{f['size']}/{f['rtt_ms']}/{f['drop']}"
    return None


def against_reference(series, s):
    key = reference(s)
    quotients = ratio(series, s.key, key) if key and key != s.key else []
    # READ counts whole round trips, the others half ones
    whole = 2 if s.facts["test"] == "latency" and s.facts["op"] == "read" else 1
    return f"{digits(median(quotients) / whole)} x" if quotients else ""


def more_facts(s):
    if "rtt_ms" in s.facts:
        return "{rtt_ms:g} ms, {drop:g}% lost".format(**s.facts)
    names = {"mtu": "MTU {}", "post_list": "post list {}", "qps": "{} QPs", "connections": "{} connections", "offloads": "offloads {}", "window": "{} under way", "clients": "{} clients", "threads": "{} threads"}
    told = [text.format(s.facts[k]) for k, text in names.items() if s.facts.get(k) not in (None, 1)]
    return ", ".join(told)


def rows(series, test):
    found = [("scheme", "what", "size", "", "median (spread)", "against TCP" if test in ("qperf", "loss", "ethernet", "programs") else "against wire")]
    for s in series.values():
        f = s.facts
        if f["test"] == test:
            size = size_name(f["size"]) if f.get("size") else ""
            found.append((f["scheme"], str(f["op"]), size, more_facts(s), s.text(), against_reference(series, s)))
    return found


def print_tables(series):
    tests = dict.fromkeys(s.facts["test"] for s in series.values())
    for test in tests:
        print(f"\n{test}\n{columns(rows(series, test))}")


def print_comparison(one, two):
    found = [("what", "first", "second", "second / first")]
    for key in one:
        if key in two:
            a, b = one[key].median(), two[key].median()
            found.append((key, f"{digits(a)} {one[key].unit}", f"{digits(b)} {two[key].unit}", f"{digits(b / a)} x" if a and b else ""))
    print(columns(found))
