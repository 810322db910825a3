# SPDX-License-Identifier: BSD-3-Clause
"""The command line of uwarp-bench."""

import argparse
import shlex
import sys
import time

from . import output, plan, rounds
from .numbers import parse_size
from .rig import Rig

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
PEERS = ("wire", "tcp", "libfabric", "ucx")


def sizes(text):
    try:
        return [parse_size(x) for x in text.split(",")]
    except ValueError as e:
        raise argparse.ArgumentTypeError(f"'{e}' is not a size such as 64, 10K (10000) or 64Ki (65536)") from None


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
    p.add_argument("--against", type=chosen(PEERS), default=list(PEERS), metavar="PEER,...", help="of wire, tcp, libfabric, ucx; default: all")
    p.add_argument("--rounds", type=int, default=5, metavar="N", help="default: 5")
    p.add_argument("--mtu", type=int, metavar="N", help="of the link; default: the link's own, for throughput 1500, 9000 and 65280")
    p.add_argument("--json", metavar="FILE", help="write everything measured there")
    p.add_argument("--csv", metavar="FILE", help="write a table there")
    p.add_argument("--quiet", action="store_true", help="show no progress")
    p.add_argument("--device", metavar="DEV", help="run the verbs programs over this RDMA device (siw0, rxe0, mlx5_0) instead of uwarp")
    p.add_argument("--peer", metavar="ADDR", help="with --device: the address of the server's host")
    p.add_argument("--remote", type=shlex.split, default=[], metavar="COMMAND", help="with --device: runs a command at the server's host")


def parser():
    p = argparse.ArgumentParser(prog=PROG, description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False,
                                formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    commands = p.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, what in (
        ("latency", "round trips against size"),
        ("throughput", "Gb/s against size, with the link's limits"),
        ("rate", "messages per second against post-list length and QPs"),
    ):
        add_measuring(commands.add_parser(name, help=what, allow_abbrev=False))
    compare = commands.add_parser("compare", help="two files of --json beside each other")
    compare.add_argument("files", nargs=2, metavar="FILE")
    return p


def check(options):
    if options.rounds < 1:
        return "--rounds: at least 1"
    if bool(options.device) != bool(options.peer):
        return "--device and --peer go together"
    return None


def measure(options):
    with Rig(options) as rig:
        probes = list(plan.TESTS[options.command](rig))
        return rounds.run(probes, options.rounds, options.quiet)


def write(options, series):
    if options.json:
        output.write_json(options.json, output.document(series, options))
    if options.csv:
        output.write_csv(options.csv, series)


def run(options):
    start = time.monotonic()
    series = measure(options)
    output.print_tables(series)
    write(options, series)
    missing = [s for s in series.values() if not s.values() and s.available]
    print(f"\n{PROG}: {len(series)} measured in {time.monotonic() - start:.0f} s, {len(missing)} failed")
    return 1 if missing else 0


def main(argv):
    p = parser()
    options = p.parse_args(argv)
    try:
        if options.command == "compare":
            output.print_comparison(*(output.read_json(f)[1] for f in options.files))
            return 0
        wrong = check(options)
        if wrong:
            p.error(wrong)
        return run(options)
    except (output.BadFile, OSError) as e:
        print(f"{PROG}: {e}", file=sys.stderr)
        return 2
