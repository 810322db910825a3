# SPDX-License-Identifier: BSD-3-Clause
"""The command line of uwarp-bench."""

import argparse
import os
import shlex
import sys
import tempfile
import time

from run import Refusal
from run.ending import naming

from . import apps, apps_plots, conditions, ethernet, goals, icount, lossy, output, plan, plots, profile, programs, report, rounds, servers
from .numbers import parse_size
from .process import Failed, Unavailable
from .rig import LIMIT, Rig

PROG = "uwarp-bench"
DESCRIPTION = """\
Measure uwarp beside the raw link it runs on (wire), the kernel's TCP, libfabric and UCX over TCP, or
the stock verbs programs over any other RDMA device. What is compared is measured in turn, round by
round; shown are medians, their spread (quartiles; extremes below five rounds) and quotients of
what was measured in the same round."""
EPILOG = """\
examples:
  uwarp-bench latency --sizes 64,1K,10K --rounds 7
  uwarp-bench throughput --ops send --mtu 9000 --json t.json
  uwarp-bench rate --against wire
  uwarp-bench latency --device mlx5_0 --peer 192.0.2.7 --remote 'ssh 192.0.2.7' --against tcp
  uwarp-bench compare before.json after.json
"""
SKIPPED = 77  # as Meson counts it: cannot be measured here
# What the others measure is uwarp's; a driver's threads are on nobody's CPU time.
WITH_DEVICE = ("latency", "throughput", "rate", "qperf")
BESIDE_DEVICE = ("latency", "throughput", "rate")  # where --uwarp-link goes

# Subjects of which doc/performance.md has a section of its own run.
SECTIONS = {"loss": lossy, "ethernet": ethernet, "programs": programs, "servers": servers, "apps": apps}
# Subjects that have goals, and who judges them.
JUDGES = {"all": goals.verdicts, **{name: module.verdicts for name, module in SECTIONS.items()}}


def sizes(text):
    try:
        return [parse_size(x) for x in text.split(",")]
    except ValueError as e:
        raise argparse.ArgumentTypeError(f"'{e}' is not a size such as 64, 10K (10000) or 64Ki (65536)") from None


def picture(path):
    if not path.lower().endswith((".png", ".svg", ".pdf")):
        raise argparse.ArgumentTypeError(f"'{path}' ends with none of .png, .svg and .pdf")
    return path


def chosen(known):
    def parse(text):
        words = [w for w in text.split(",") if w]
        unknown = [w for w in words if w not in known]
        if unknown:
            raise argparse.ArgumentTypeError(f"'{unknown[0]}' is none of {', '.join(known)}")
        return words

    return parse


def add_measuring(p):
    p.add_argument("--sizes", type=sizes, metavar="N,N...", help="message sizes, such as 64,10K,64Ki")
    p.add_argument("--ops", type=chosen(plan.OPS), default=list(plan.OPS), metavar="OP,OP", help="of send, write, read; default: all")
    p.add_argument("--against", type=chosen(plan.PEERS), metavar="PEER,...", help="of wire, tcp, libfabric, ucx; default: all, with --device tcp")
    p.add_argument("--only", metavar="TEXT", help="of all that is measured only what has this in its name, such as 'set up' or 'GET, memif/65536'")
    p.add_argument("--rounds", type=int, default=5, metavar="N", help="default: 5")
    p.add_argument("--width", type=float, metavar="P", help="measure again until the quartiles of each are at most P per cent of the median apart")
    p.add_argument("--most-rounds", type=int, metavar="N", help="with --width: no more than N rounds; default: three times --rounds")
    p.add_argument("--mtu", type=int, metavar="N", help="of the link; default: the link's own, for throughput 1500, 9000 and 65280")
    p.add_argument("--json", metavar="FILE", help="write everything measured there")
    p.add_argument("--csv", metavar="FILE", help="write a table there")
    p.add_argument("--report", nargs="?", const="uwarp-bench-report", metavar="DIR", help="write a report with plots there")
    p.add_argument("--limit", type=float, default=LIMIT, metavar="N", help="seconds that one measurement may take; default: 20")
    p.add_argument("--quiet", action="store_true", help="show no progress")
    p.add_argument("--device", metavar="DEV", help="run the verbs programs over this RDMA device (siw0, rxe0, mlx5_0) instead of uwarp")
    p.add_argument("--peer", metavar="ADDR", help="with --device: the address of the server's host")
    p.add_argument("--remote", type=shlex.split, default=[], metavar="COMMAND", help="with --device: runs a command at the server's host")
    p.add_argument("--uwarp-link", metavar="IF", help="with --device: also uwarp to the same peer, over the interface of this name at both ends")


def parser():
    p = argparse.ArgumentParser(prog=PROG, description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False,
                                formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    commands = p.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, what in (
        ("latency", "round trips against size"),
        ("throughput", "Gb/s against size, with the link's limits"),
        ("rate", "messages per second against post-list length and QPs"),
        ("connections", "many of them: cost of a message, memory, setting up, one that stops"),
        ("cpu", "CPU time for an octet"),
        ("schemes", "uwarp's transports beside each other and the raw link"),
        ("threads", "uwarp's thread models beside each other"),
        ("qperf", "the stock qperf's tests of verbs beside its tests of TCP"),
        ("ethernet", "the packet link beside the kernel's TCP over the same cable"),
        ("programs", "UCX, MPI, and threads that sleep, over the packet link beside themselves over TCP"),
        ("loss", "goodput through a network that loses, beside the kernel's TCP (root)"),
        ("servers", "servers that sleep until something comes (Valkey, qperf, rstream), many clients, beside TCP"),
        ("apps", "key-value store, B-tree, sequencer, rate (apps/), beside memcached, Valkey and calls over TCP"),
    ):
        add_measuring(commands.add_parser(name, help=what, allow_abbrev=False))
    commands.choices["apps"].add_argument("--part", choices=list(apps.PARTS), help="of the applications, only this")
    add_lossy(commands.choices["loss"])
    commands.choices["servers"].add_argument("--part", choices=list(servers.PARTS), help="only this")
    commands.choices["programs"].add_argument("--part", choices=list(programs.PARTS), help="only this")
    everything = commands.add_parser("all", help="everything that the goals need; prints them with what was measured", allow_abbrev=False)
    add_measuring(everything)
    everything.add_argument("--part", choices=list(plan.PARTS), help="of all, only this")
    everything.add_argument("--minutes", type=float, default=15, metavar="N", help="no round begins that would end later; default: 15")
    compare = commands.add_parser("compare", help="two files of --json beside each other")
    compare.add_argument("files", nargs=2, metavar="FILE")
    judged = commands.add_parser("goals", help="files of --json as one, and whether they reach the goals")
    judged.add_argument("files", nargs="+", metavar="FILE")
    plot = commands.add_parser("plot", help="the report with its plots from a file of --json")
    plot.add_argument("files", nargs="+", metavar="FILE")
    plot.add_argument("--report", default="uwarp-bench-report", metavar="DIR")
    of_csv = commands.add_parser("plot-csv", help="latency against throughput from files that the applications' --csv wrote")
    of_csv.add_argument("files", nargs="+", metavar="FILE")
    of_csv.add_argument("--output", type=picture, default="apps.png", metavar="FILE", help="PNG, SVG or PDF; default: apps.png")
    gate = commands.add_parser("gate", help="instructions per message against the baseline kept in the repository")
    gate.add_argument("--update", action="store_true", help="make what is counted now the baseline")
    where = commands.add_parser("profile", help="instructions and CPU time of a message, layer by layer, for 64 B and 64 KiB")
    where.add_argument("--mtu", type=int, metavar="N", help="of the link")
    where.set_defaults(device=None, uwarp_link=None)
    doc = commands.add_parser("doc", help="doc/performance.md from files of --json")
    doc.add_argument("files", nargs="+", metavar="FILE")
    doc.add_argument("--section", choices=list(SECTIONS), help="of files of that subject: only its section, in the page that there is")
    doc.add_argument("--losses", action="store_true", help="the same as --section loss")
    doc.add_argument("--output", default="doc/performance.md", metavar="FILE")
    return p


def check(options):
    if options.rounds < 1:
        return "--rounds: at least 1"
    if options.width is not None and options.width <= 0:
        return "--width: more than 0"
    if options.most_rounds is not None and (not options.width or options.most_rounds < options.rounds):
        return "--most-rounds: with --width, and at least as many as --rounds"
    if bool(options.device) != bool(options.peer):
        return "--device and --peer go together"
    if options.uwarp_link and not options.device:
        return "--uwarp-link goes with --device"
    if options.uwarp_link and options.command not in BESIDE_DEVICE:
        return f"--uwarp-link goes with {', '.join(BESIDE_DEVICE)}"
    if options.device and options.command not in WITH_DEVICE:
        return f"--device goes with {', '.join(WITH_DEVICE)}"
    if options.device and options.mtu:
        return "--mtu: the device's interface has its own"
    if options.device and not set(options.against or ()) <= set(plan.BESIDE_DEVICE):
        return f"--against: beside another device only {', '.join(plan.BESIDE_DEVICE)}"
    return None


def numbers(text):
    try:
        return [float(x) for x in text.split(",")]
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a list of numbers") from None


def add_lossy(p):
    p.add_argument("--rtt", type=numbers, metavar="MS,MS...", help="round trips in milliseconds; default: 0.1,1,20")
    p.add_argument("--drop", type=numbers, metavar="P,P...", help="per cent of the frames lost, each way; default: 0,0.01,0.1,1,5")
    p.add_argument("--schemes", type=chosen(lossy.SCHEMES), metavar="NAME,...", help="of kernel, cubic, delay; default: all")
    p.add_argument("--link", choices=("packet", "af_packet"), default="packet", help="uwarp's link; default: packet")
    p.add_argument("--seconds", type=float, metavar="N", help=f"that each measurement counts; default: {lossy.SECONDS:g}, and {lossy.ROUND_TRIPS} round trips where these last longer (12 s at 20 ms)")
    p.add_argument("--seed", type=int, default=1, metavar="N", help="of the losses in the first round, the next round has the next; a run that is to be joined with another one takes others; default: 1")
    p.add_argument("--part", choices=list(lossy.PARTS), help="only the flows, or only the round trips of 1 KB messages")


def measure(options, look):
    minutes = getattr(options, "minutes", None)
    with Rig(options) as rig:
        chosen_part = getattr(options, "part", None)
        parts = {"apps": apps.PARTS, "servers": servers.PARTS, "programs": programs.PARTS, "loss": lossy.PARTS}.get(options.command, plan.PARTS)
        probes = rounds.only((parts[chosen_part] if chosen_part else plan.TESTS[options.command])(rig), options.only)
        return rounds.run(probes, options.rounds, options.quiet, minutes and minutes * 60, options.width and options.width / 100,
                          options.most_rounds or 3 * options.rounds, look)  # fmt: skip


def say_how_sure(options, series, around):
    """What stands between these figures and a judgement."""
    for line in around.told():
        print(f"\n{PROG}: {line}")
    wide = rounds.too_wide(series, options.width / 100) if options.width else []
    if wide:
        print(f"\n{PROG}: quartiles further than {options.width:g} % apart after {max(len(s.rounds) for s in wide)} rounds:")
        for s in sorted(wide, key=rounds.Series.width, reverse=True):
            print(f"    {s.width():4.0%}  {s.key}")
    elif options.width:
        print(f"\n{PROG}: all quartiles within {options.width:g} %")


def check_outputs(options):
    """What cannot be written is said before anything is measured."""
    for path in filter(None, (options.json, options.csv)):
        new = not os.path.lexists(path)
        if new or os.path.isfile(path) or os.path.isdir(path):  # a pipe's reader would take this for the end
            open(path, "a", encoding="utf-8").close()
        if new:  # nothing is left of a run that fails
            os.unlink(path)
    if options.report:
        os.makedirs(options.report, exist_ok=True)
        tempfile.TemporaryFile(dir=options.report).close()


def write(options, doc, series):
    if options.json:
        output.write_json(options.json, doc)
    if options.csv:
        output.write_csv(options.csv, series)
    if options.report:
        report.write(options.report, doc, series)


def run(options):
    start, around = time.monotonic(), conditions.Conditions()
    try:
        check_outputs(options)
    except OSError as e:
        raise Failed(f"{e.filename}: {e.strerror}") from None
    series = measure(options, around.look)
    output.print_tables(series)
    rows = JUDGES[options.command](series) if options.command in JUDGES else []
    if rows:
        report.print_goals(rows)
    say_how_sure(options, series, around)
    write(options, {**output.document(series, options, rows), **around.facts()}, series)
    failed = [s for s in series.values() if not s.values() and s.available]
    absent = [s for s in series.values() if not s.available]
    measured = len(series) - len(failed) - len(absent)
    print(f"\n{PROG}: {measured} measured in {time.monotonic() - start:.0f} s, {len(failed)} failed, {len(absent)} not available")
    return 1 if failed else 0


def merged(files):
    """Several runs' files as one: parts, or further rounds of what an earlier file has. Goals are judged anew."""
    read = [output.read_json(f) for f in files]
    doc, series = read[0][0], rounds.joined([found for _, found in read])
    settings = {**doc["settings"], "rounds": max((len(s.values()) for s in series.values()), default=0)}
    judge = JUDGES.get(settings["command"], goals.verdicts)
    speeds = [x for of_one, _ in read for x in of_one.get("cpu_gbytes", [])]
    return {**doc, "settings": settings, "cpu_gbytes": speeds, "goals": judge(series)}, series


def put_section(options, test):
    """Only this section: the rest of the page is of a run of all that the goals need."""
    doc, series = merged(options.files)
    with open(options.output, encoding="utf-8") as f:
        text = f.read()
    text = report.put_section(text, test, report.section(SECTIONS[test], test, doc, series))
    with naming(options.output), open(options.output, "w", encoding="utf-8") as f:
        f.write(text)
    return 0


def write_doc(options):
    if options.losses or options.section:
        return put_section(options, options.section or "loss")
    doc, series = merged(options.files)
    text = report.markdown(doc, series)
    with naming(options.output), open(options.output, "w", encoding="utf-8") as f:
        f.write(text)
    return 0


def gate(options):
    with Rig(options) as rig:
        if options.update:
            print(icount.table(found := icount.measure(rig)))
            icount.update(found)
            return 0
        return icount.gate(rig, lambda text: None)


def of_files(options):
    """The commands that measure nothing."""
    if options.command == "compare":
        output.print_comparison(*(output.read_json(f)[1] for f in options.files))
    elif options.command == "goals":
        doc, series = merged(options.files)
        output.print_tables(series)
        report.print_goals(doc["goals"])
    elif options.command == "plot":
        plots.pyplot()
        report.write(options.report, *merged(options.files))
    elif options.command == "plot-csv":
        apps_plots.plot_csv(plots.pyplot(), options.files, options.output)
    elif options.command == "gate":
        return gate(options)
    elif options.command == "profile":
        with Rig(options) as rig:
            return profile.run(rig)
    else:
        write_doc(options)
    return 0


def main(argv):
    p = parser()
    options = p.parse_args(argv)
    try:
        if options.command not in plan.TESTS:
            return of_files(options)
        wrong = check(options)
        if wrong:
            p.error(wrong)
        return run(options)
    except Unavailable as e:
        print(f"{PROG}: {e}", file=sys.stderr)
        return SKIPPED
    except (output.BadFile, Failed, Refusal) as e:
        print(f"{PROG}: {e}", file=sys.stderr)
        return 2
