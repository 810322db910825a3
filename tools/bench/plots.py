# SPDX-License-Identifier: BSD-3-Clause
"""The plots, each as PNG and SVG."""

import os

from run.ending import naming

from . import apps_plots, servers
from .numbers import median, size_name
from .process import Unavailable

COLOURS = {"uwarp": "tab:blue", "wire": "tab:gray", "tcp": "tab:red", "libfabric": "tab:orange", "ucx": "tab:green"}
STYLES = ("-", "--", ":", "-.")
POINTS = "os^vD"


def pyplot():
    try:
        import matplotlib as mpl
    except ImportError:
        raise Unavailable("no plots: matplotlib is missing; run tools/setup bench") from None
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    return plt


def chosen(series, **facts):
    """Series with these facts that have values."""
    return [s for s in series.values() if s.values() and all(s.facts.get(k) == v for k, v in facts.items())]


def lines(found):
    """{(scheme, op): [(size, series)]}"""
    grouped = {}
    for s in found:
        grouped.setdefault((s.facts["scheme"], s.facts["op"]), []).append((s.facts["size"], s))
    return {k: sorted(v, key=lambda x: x[0]) for k, v in grouped.items()}


def draw_lines(ax, found):
    seen = {}
    for (scheme, op), points in lines(found).items():
        nth = seen[scheme] = seen.get(scheme, -1) + 1
        x, y = [p[0] for p in points], [p[1].median() for p in points]
        spread = [p[1].as_json() for p in points]
        errors = [[v - j["low"] for v, j in zip(y, spread)], [j["high"] - v for v, j in zip(y, spread)]]
        errors = [[max(0.0, e) for e in side] for side in errors]
        ax.errorbar(x, y, yerr=errors, label=f"{scheme} {op}", color=COLOURS.get(scheme, "tab:purple"),
                    linestyle=STYLES[nth % len(STYLES)], marker=POINTS[nth % len(POINTS)], markersize=4, capsize=2, linewidth=1.2)  # fmt: skip


def size_axis(ax):
    ax.set_xscale("log", base=2)
    ax.set_xlabel("message")
    ax.xaxis.set_major_formatter(lambda x, _: size_name(round(x)))
    ax.tick_params(axis="x", labelrotation=30)


def latency(plt, series):
    found = chosen(series, test="latency")
    if not found:
        return None
    figure, ax = plt.subplots(figsize=(7, 5))
    draw_lines(ax, found)
    size_axis(ax)
    ax.set_yscale("log")
    ax.set_ylabel("us (half a round trip; READ: all of it)")
    ax.set_title("Latency against size")
    return figure


def throughput_of(mtu):
    def draw(plt, series):
        found = chosen(series, test="throughput", mtu=mtu)
        streams = [s for s in found if s.facts["scheme"] != "wire"]
        if not streams:
            return None
        figure, ax = plt.subplots(figsize=(7, 5))
        draw_lines(ax, streams)
        for style, s in zip(("-", "--"), [s for s in found if s.facts["scheme"] == "wire"]):
            ax.axhline(s.median(), color=COLOURS["wire"], linestyle=style, label=f"the link's limit, {s.facts['op']}")
        size_axis(ax)
        ax.set_ylim(bottom=0)
        ax.set_ylabel("Gb/s")
        ax.set_title(f"Throughput against size, MTU {mtu}")
        return figure

    return draw


def rate(plt, series):
    found = [s for s in chosen(series, test="rate") if "post_list" in s.facts]
    if not found:
        return None
    figure, ax = plt.subplots(figsize=(7, 5))
    columns = list(dict.fromkeys((s.facts["post_list"], s.facts["qps"]) for s in found))
    ops = list(dict.fromkeys(s.facts["op"] for s in found))
    for n, op in enumerate(ops):
        mine = [s for s in found if s.facts["op"] == op]
        x = [columns.index((s.facts["post_list"], s.facts["qps"])) + (n - len(ops) / 2) * 0.25 for s in mine]
        ax.bar(x, [s.median() for s in mine], width=0.22, align="edge", label=op)
    for s in chosen(series, test="rate", scheme="tcp"):
        ax.axhline(s.median(), color=COLOURS["tcp"], linestyle=":", label="TCP's messages")
    ax.set_xticks(range(len(columns)), [f"post list {p}" + (f"\n{q} QPs" if q > 1 else "") for p, q in columns])
    ax.set_ylabel("M messages/s")
    ax.set_title(f"Message rate, {size_name(found[0].facts['size'])}")
    return figure


def merged_cdf(s):
    """At each percentage the median of the rounds' times."""
    curves = [dict(map(tuple, x["cdf"])) for x in s.samples if x.get("cdf")]
    return [(p, median([c[p] for c in curves])) for p in curves[0]] if curves else []


def cdf(plt, series):
    found = [s for s in chosen(series, test="latency", size=64) if merged_cdf(s)]
    if not found:
        return None
    figure, ax = plt.subplots(figsize=(7, 5))
    for n, s in enumerate(found):
        curve = [(p, t) for p, t in merged_cdf(s) if p <= 99.99]
        ax.plot([t for _, t in curve], [p / 100 for p, _ in curve], label=f"{s.facts['scheme']} {s.facts['op']}",
                color=COLOURS.get(s.facts["scheme"], "tab:purple"), linestyle=STYLES[n % len(STYLES)])  # fmt: skip
    ax.set_xscale("log")
    ax.set_xlabel("us (half a round trip; READ: all of it)")
    ax.set_ylabel("share of messages")
    ax.set_title("Distribution of 64 B latency")
    return figure


def cpu(plt, series):
    found = chosen(series, test="cpu")
    if not found:
        return None
    figure, ax = plt.subplots(figsize=(7, 5))
    names = [f"{s.facts['scheme']} {s.facts['op']}\n{size_name(s.facts['size'])}" for s in found]
    ax.bar(range(len(found)), [s.median() for s in found], color=[COLOURS.get(s.facts["scheme"], "tab:purple") for s in found])
    ax.set_xticks(range(len(found)), names)
    ax.set_ylabel("CPU ns per octet, both sides")
    ax.set_title("CPU per octet")
    return figure


def ethernet(plt, series):
    """Throughput over a cable, ours beside TCP's."""
    found = chosen(series, test="ethernet", op="throughput")
    if not found:
        return None
    figure, ax = plt.subplots(figsize=(9, 5))
    cell = lambda s: (s.facts["mtu"], s.facts["offloads"], s.facts["size"])  # noqa: E731
    cells = list(dict.fromkeys(map(cell, found)))
    for n, (scheme, colour) in enumerate((("packet", COLOURS["uwarp"]), ("tcp", COLOURS["tcp"]))):
        mine = [s for s in found if s.facts["scheme"] == scheme]
        ax.bar([cells.index(cell(s)) + (n - 1) * 0.4 for s in mine], [s.median() for s in mine], width=0.38, align="edge", label=scheme, color=colour)
    ax.set_xticks(range(len(cells)), [f"{size_name(size)}\nMTU {mtu}\noffloads {on}" for mtu, on, size in cells], fontsize=8)
    ax.set_ylabel("Gb/s")
    ax.set_title("Over a veth cable: the packet link and the kernel's TCP")
    return figure


PLOTS = {
    "latency": latency, "throughput-1500": throughput_of(1500), "throughput-9000": throughput_of(9000),
    "throughput-65280": throughput_of(65280), "rate": rate, "cdf": cdf, "cpu": cpu, "ethernet": ethernet, **apps_plots.PLOTS, **servers.PLOTS,
}  # fmt: skip


def write(folder, series):
    """Every plot that there is something for; their names."""
    plt, written = pyplot(), []
    for name, draw in PLOTS.items():
        figure = draw(plt, series)
        if figure is None:
            continue
        ax = figure.axes[0]
        ax.grid(visible=True, which="major", alpha=0.3)
        if ax.get_legend_handles_labels()[0]:
            ax.legend(fontsize=8)
        figure.tight_layout()
        for kind in ("png", "svg"):
            path = os.path.join(folder, f"{name}.{kind}")
            with naming(path):
                figure.savefig(path, dpi=110)
        plt.close(figure)
        written.append(name)
    return written
