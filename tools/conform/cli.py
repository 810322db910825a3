# SPDX-License-Identifier: BSD-3-Clause
"""The command line of uwarp-conform."""

import argparse
import os
import sys

from . import report, requirements, runner, stream, verdict

PROG = "uwarp-conform"
DESCRIPTION = """\
Drive an iWARP endpoint through a table of exchanges over an ordinary TCP socket and say, for each
requirement of RFC 5040, 5041, 5044, 6581 and 7306, whether it keeps it. Works against any RNIC."""
EPILOG = """\
the target:
  Behind the RNIC under test a program has to accept connections. With uwarp-conform-target every
  case can run; with rping -s -P the start-up, the errors that need no memory, and rping's own
  exchange; with any other program those that need nothing of it. Which one it is, is found out.

roles:
  initiator   the tester connects to --target
  responder   the tester listens on --target and the RNIC under test connects, once for each case:
              uwarp-conform-target --connect does that by itself; for others give --client

verdicts:
  pass            every exchange about it went as the RFC says
  fail            one did not; what was expected and what was seen is told
  inconclusive    the exchange ran but told nothing
  not applicable  the target's program cannot be asked, or the wire does not show it

exit code:
  0  no MUST failed       1  one did (with --strict: or a SHOULD)
  2  wrong usage, or FILE cannot be written
  3  the target cannot be reached (any more)

examples:
  uwarp-conform-target --port 7471                        (on the machine under test)
  uwarp-conform --target 192.0.2.7:7471                   (on another machine)
  uwarp-conform --target 192.0.2.7:7471 --only P12 -v     one requirement, with the exchange
  uwarp-conform --target 192.0.2.7:7471 --only 'crc/*' --json verdicts.json
  uwarp-conform --role responder --target 192.0.2.1:7471  (and there: uwarp-conform-target
                                                           --connect 192.0.2.1 --port 7471)
"""


def address(text):
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or not 0 < int(port) < 65536:
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form ADDR:PORT, such as 192.0.2.7:7471")
    return host.strip("[]"), int(port)


def seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = 0
    if not 0.05 <= value <= 600:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds from 0.05 to 600")
    return value


def moment(text):
    try:
        value = float(text)
    except ValueError:
        value = -1
    if not 0 <= value <= 10:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of seconds from 0 to 10")
    return value


def parser():
    p = argparse.ArgumentParser(prog=PROG, description=DESCRIPTION, epilog=EPILOG, allow_abbrev=False,
                                formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    p.add_argument("--target", type=address, metavar="ADDR:PORT", help="where the target listens (responder: where we do)")
    p.add_argument("--role", choices=("initiator", "responder"), default="initiator", help="the tester's; default: initiator")
    p.add_argument("--only", action="append", metavar="PATTERN",
                   help="only these: a case's name or a part of it, a shell pattern, or a requirement (may be repeated)")  # fmt: skip
    p.add_argument("--list", action="store_true", help="list cases (with --only: those) and requirements, and exit")
    p.add_argument("--json", metavar="FILE", help="write all verdicts and exchanges there; - is standard output")
    p.add_argument("--timeout", type=seconds, default=2.0, metavar="S", help="how long an answer may take; default: 2")
    p.add_argument("--patience", type=seconds, default=20.0, metavar="S", help="how long the target's own timeouts may take; default: 20")
    p.add_argument("--settle", type=moment, default=0.03, metavar="S", help="pause between start-up and what follows; default: 0.03")
    p.add_argument("--client", metavar="COMMAND", help="responder: shell command that makes the target connect once")
    p.add_argument("--quick", action="store_true", help="leave out the cases that wait for the target's timeouts")
    p.add_argument("--strict", action="store_true", help="a SHOULD that is not kept counts for the exit code, too")
    p.add_argument("-v", "--verbose", action="store_true", help="show every exchange")
    return p


def list_all(cases):
    for c in cases:
        marks = "".join(f" ({m})" for m, on in (("slow", c.slow), ("only when named: crashes some", c.dangerous)) if on)
        needs = f" needs {', '.join(c.needs)}" if c.needs else ""
        print(f"{c.name:<44} {c.role:<10} {' '.join(c.requirements)}{needs}{marks}")
    named = {r for c in cases for r in c.requirements}
    print()
    for r in requirements.ALL.values():
        if r.id in named or r.unseen:
            print(f"{r.id:<4}{r.level:<7}{r.cite}: {r.text}" + (f" (not judged: {r.unseen})" if r.unseen else ""))


def connectable(options):
    """Is there anybody? Says so in one line if not."""
    try:
        if options.role == "responder":
            runner.listen(options)
            print(f"{PROG}: waiting for the target on {options.address[0]} port {options.address[1]}", file=sys.stderr, flush=True)
        options.program = runner.find_program(options)
    except (stream.NotConnected, OSError) as e:
        print(f"{PROG}: no target: {e}", file=sys.stderr)
        return False
    print(f"{PROG}: the program behind the target: {options.program.name}", file=sys.stderr, flush=True)
    return True


def check_output(path):
    """What cannot be written is said before anything runs."""
    new = not os.path.lexists(path)
    if new or os.path.isfile(path) or os.path.isdir(path):  # a pipe's reader would take this for the end
        open(path, "a", encoding="utf-8").close()
    if new:  # nothing is left of a run that fails
        os.unlink(path)


def write_json(path, text):
    if path == "-":
        sys.stdout.write(text)
        return
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


def run(args, cases):
    options = runner.Options(args.target, args.role, args.timeout, args.patience, args.settle, args.client)
    if not connectable(options):
        return 3
    out = sys.stderr if args.json == "-" else sys.stdout

    def tell(result):
        for line in report.case_lines(result, args.verbose):
            print(line, file=out, flush=True)

    results = runner.run(options, cases, tell)
    rows = verdict.of_requirements(results, not args.only)
    print(file=out)
    for line in report.requirement_lines(rows):
        print(line, file=out)
    print(report.summary(results, "cases"), file=out)
    print(report.summary(rows, "requirements"), file=out)
    if args.json:
        try:
            write_json(args.json, report.as_json(options, results, rows) + "\n")
        except OSError as e:
            print(f"{PROG}: --json {args.json}: {e.strerror}", file=sys.stderr)
            return 2
    if runner.gone(results):
        last = next((r.name for r in reversed(results) if not r.unreachable), "the first case")
        print(f"{PROG}: the target takes no connection since {last}; {len(cases) - len(results)} cases did not run", file=sys.stderr)
        return 3
    return 1 if report.broken(rows, args.strict) else 0


def main(argv):
    p = parser()
    args = p.parse_args(argv)
    cases = runner.choose(args.role, args.only, slow=not args.quick)
    if args.only and not cases:
        p.error(f"no case or requirement fits {', '.join(args.only)} in the role of {args.role}; --list shows them")
    if args.list:
        list_all(cases)
        return 0
    if not args.target:
        p.error("--target ADDR:PORT is missing")
    if args.json and args.json != "-":
        try:
            check_output(args.json)
        except OSError as e:
            print(f"{PROG}: --json {args.json}: {e.strerror}", file=sys.stderr)
            return 2
    return run(args, cases)
