# SPDX-License-Identifier: BSD-3-Clause
"""Plots of the applications, and of the CSV files that they write themselves."""

import csv
import glob
import os

from run.ending import naming

from .numbers import median, parse_size
from .process import Failed, read_text

COLOURS = {"uwarp": "tab:blue", "memcached": "tab:red", "valkey": "tab:orange", "tcp": "tab:red"}
STYLES = ("-", "--", ":", "-.")
# Columns that tell runs apart; the rest is what was measured.
SETTINGS = ("program", "get", "mode", "by", "op", "mix", "value", "size", "keys", "threads", "batch", "place")
MOST = 1e12  # million operations a second, or microseconds, in a figure
PERCENTILES = ("get_p50_us", "read_p50_us", "p50_us")


def chosen(series, **facts):
    return [s for s in series.values() if s.values() and all(s.facts.get(k) == v for k, v in facts.items())]


def grouped(found):
    lines = {}
    for s in found:
        lines.setdefault((s.facts["scheme"], s.facts["op"]), []).append(s)
    return lines


def beside(s, name):
    """The median of what was measured beside the value."""
    return median([x[name] for x in s.samples])


def latency_throughput(plt, series):
    """Throughput against latency: one point for each number of requests under way."""
    lines = grouped(chosen(series, test="kv-rate"))
    if not lines:
        return None
    figure, ax = plt.subplots(figsize=(7, 5))
    for n, ((scheme, op), points) in enumerate(lines.items()):
        points = sorted(points, key=lambda s: s.facts["window"])
        ax.plot([s.median() for s in points], [beside(s, "p50") for s in points], marker="o", markersize=4, linestyle=STYLES[n % 4],
                color=COLOURS.get(scheme, "tab:purple"), label=f"{scheme} {op}")  # fmt: skip
        for s in points:
            ax.annotate(s.facts["window"], (s.median(), beside(s, "p50")), fontsize=7, xytext=(3, 3), textcoords="offset points")
    ax.set_yscale("log")
    ax.set_xlabel("million GETs/s")
    ax.set_ylabel("us, median (numbers: requests under way)")
    ax.set_title("Key-value store: latency against throughput")
    return figure


def bars(plt, found, title, unit):
    if not found:
        return None
    figure, ax = plt.subplots(figsize=(7, 5))
    names = [f"{s.facts['scheme']}\n{s.facts['op']}" for s in found]
    ax.bar(range(len(found)), [s.median() for s in found], color=[COLOURS.get(s.facts["scheme"], "tab:purple") for s in found])
    ax.set_xticks(range(len(found)), names, fontsize=8)
    ax.set_ylabel(unit)
    ax.set_title(title)
    return figure


def kv_latency(plt, series):
    return bars(plt, chosen(series, test="kv-latency"), "GET, one at a time", "us, median")


def kv_cdf(plt, series):
    """The distribution of GET's latency, of the first round."""
    found = [s for s in chosen(series, test="kv-latency") if s.samples[0].get("cdf")]
    if not found:
        return None
    figure, ax = plt.subplots(figsize=(7, 5))
    for n, s in enumerate(found):
        points = s.samples[0]["cdf"]
        ax.plot([us for _, us in points], [percent / 100 for percent, _ in points], linestyle=STYLES[n % 4],
                color=COLOURS.get(s.facts["scheme"], "tab:purple"), label=f"{s.facts['scheme']} {s.facts['op']}")  # fmt: skip
    ax.set_xscale("log")
    ax.set_xlabel("us")
    ax.set_ylabel("of all GETs")
    ax.set_title("GET, one at a time: distribution of latency")
    return figure


def kv_cpu(plt, series):
    return bars(plt, chosen(series, test="kv-cpu"), "CPU of the server for a GET, its device's work included", "us")


def seq_rate(plt, series):
    return bars(plt, chosen(series, test="seq-rate"), "Sequencer, 16 requests under way", "million tickets/s")


def seq_clients(plt, series):
    return bars(plt, chosen(series, test="seq-clients"), "Sequencer, several clients that sleep while they wait", "million tickets/s")


def caches():
    """Octets of each data cache."""
    found = {}
    for folder in glob.glob("/sys/devices/system/cpu/cpu0/cache/index*"):
        size, level = (read_text(os.path.join(folder, name)).strip() for name in ("size", "level"))
        if read_text(os.path.join(folder, "type")).strip() != "Instruction" and size:
            found[f"L{level}"] = parse_size(size + "i")
    return found


def tree_size(plt, series):
    """Throughput against the keys, with the trees that fill a cache marked: an item takes 16 octets, a page is two thirds full."""
    lines = {}
    for s in chosen(series, test="btree", page=4096):
        lines.setdefault((s.facts["scheme"], s.facts["by"]), []).append(s)
    if all(len(points) < 2 for points in lines.values()):
        return None
    figure, ax = plt.subplots(figsize=(7, 5))
    for (scheme, op), points in lines.items():
        points = sorted(points, key=lambda s: s.facts["keys"])
        ax.plot([s.facts["keys"] for s in points], [s.median() for s in points], marker="o", markersize=4,
                color=None if scheme == "uwarp" else COLOURS.get(scheme), label=f"{scheme} {op}")  # fmt: skip
    for name, octets in caches().items():
        ax.axvline(octets / 24, color="tab:gray", linestyle=":", linewidth=1)
        ax.annotate(name, (octets / 24, 0.02), xycoords=("data", "axes fraction"), fontsize=8)
    ax.set_xscale("log")
    ax.set_ylim(bottom=0)
    ax.set_xlabel("keys in the tree")
    ax.set_ylabel("million look-ups/s")
    ax.set_title("B-tree, pages of 4 KiB")
    return figure


def post_list(plt, series):
    lines = grouped(chosen(series, test="app-rate"))
    if not lines:
        return None
    figure, ax = plt.subplots(figsize=(7, 5))
    for (_scheme, op), points in lines.items():
        points = sorted(points, key=lambda s: s.facts["post_list"])
        ax.plot([s.facts["post_list"] for s in points], [s.median() for s in points], marker="o", markersize=4, label=op)
    ax.set_xscale("log", base=2)
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:.0f}")
    ax.set_ylim(bottom=0)
    ax.set_xlabel("requests posted at once")
    ax.set_ylabel("million operations/s")
    ax.set_title("64 B, 128 under way")
    return figure


def alternatives(plt, series):
    return bars(plt, chosen(series, test="kv-alternatives"), "Model: a store on a DPU, the five ways of a GET", "million GETs/s")


def migration(plt, series):
    found = chosen(series, test="kv-migration")
    if not found:
        return None
    figure, ax = plt.subplots(figsize=(7, 5))
    for n, sample in enumerate(found[0].samples):
        ax.plot([t for t, _ in sample["series"]], [rate for _, rate in sample["series"]], label=f"round {n + 1}", linewidth=1)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("s")
    ax.set_ylabel("million operations/s")
    ax.set_title("Model: half of the keys move to the SoC, and back")
    return figure


PLOTS = {
    "kv-alternatives": alternatives, "kv-migration": migration,
    "kv-throughput": latency_throughput, "kv-latency": kv_latency, "kv-cdf": kv_cdf, "kv-cpu": kv_cpu, "seq": seq_rate, "seq-clients": seq_clients, "btree-size": tree_size,
    "post-list": post_list,
}  # fmt: skip


# ---- CSV files of the programs ----------------------------------------------------------


def latency(row):
    return float(next((row[p] for p in PERCENTILES if row.get(p)), "none"))


def check_row(row):
    """Raises ValueError for one that was cut off, or has no figures, or none that can be drawn."""
    if None in row.values():
        raise ValueError
    int(row["window"])
    if not all(0 <= value < MOST for value in (float(row["mops"]), latency(row))):
        raise ValueError


def read_csv(path):
    not_ours = Failed(f"{path}: not a file that --csv of uwarp-kv, uwarp-btree, uwarp-seq or uwarp-rate wrote")
    try:
        with open(path, newline="", encoding="utf-8") as f:
            rows = list(csv.DictReader(f))
    except OSError as e:
        raise Failed(f"{path}: {e.strerror}") from None
    except (UnicodeDecodeError, csv.Error):
        raise not_ours from None
    if not rows or not {"program", "window", "mops"} <= set(rows[0]):
        raise not_ours
    for number, row in enumerate(rows, 1):
        try:
            check_row(row)
        except ValueError:
            raise Failed(f"{path}: row {number} below the heading is damaged: take it out") from None
    return rows


def plain(text):
    """For Matplotlib, which takes what is between two dollars for mathematics."""
    return text.replace("$", "\\$")


def plot_csv(plt, paths, output):
    """Latency against throughput, a line for each set of settings, a point for each window."""
    rows = [row for path in paths for row in read_csv(path)]
    differ = [name for name in SETTINGS if len({row.get(name) for row in rows}) > 1]
    lines = {}
    for row in rows:
        lines.setdefault(" ".join(f"{n} {row[n]}" for n in differ if row.get(n)), []).append(row)
    figure, ax = plt.subplots(figsize=(7, 5))
    for name, points in lines.items():
        points.sort(key=lambda row: int(row["window"]))
        x = [float(row["mops"]) for row in points]
        y = [latency(row) for row in points]
        ax.plot(x, y, marker="o", markersize=4, label=plain(name) or None)
        for row, at in zip(points, zip(x, y)):
            ax.annotate(row["window"], at, fontsize=7, xytext=(3, 3), textcoords="offset points")
    ax.set_xlabel("million operations/s")
    ax.set_ylabel("us, median (numbers: operations under way)")
    ax.set_ylim(bottom=0)
    ax.grid(visible=True, alpha=0.3)
    if any(lines):
        ax.legend(fontsize=8)
    ax.set_title(plain(rows[0]["program"]))
    figure.tight_layout()
    with naming(output):
        figure.savefig(output, dpi=110)
