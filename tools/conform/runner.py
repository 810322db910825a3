# SPDX-License-Identifier: BSD-3-Clause
"""Which cases run, one after the other, and what program is behind the target."""

import fnmatch
import socket
from dataclasses import dataclass

from . import (cases_data, cases_errors, cases_reply, cases_startup, cases_target, codec, program, stream, trial,
               verdict)  # fmt: skip
from .case import EITHER

CASES = [c for m in (cases_startup, cases_reply, cases_data, cases_target, cases_errors) for c in m.TABLE.cases]


@dataclass
class Options:
    address: tuple
    role: str = "initiator"
    timeout: float = 2.0
    patience: float = 20.0
    settle: float = 0.03
    client: str = None  # command that makes the target connect, once
    program: object = None
    listener: object = None


def matches(case, patterns):
    """A pattern is a requirement's identifier, or stands for (a part of) the name."""
    return any(p in case.requirements or fnmatch.fnmatchcase(case.name, p) or p in case.name for p in patterns)


def choose(role, patterns, slow=True):
    out = [c for c in CASES if c.role in (role, EITHER)]
    if patterns:
        return [c for c in out if matches(c, patterns) and (not c.dangerous or c.name in patterns)]
    return [c for c in out if not c.dangerous and (slow or not c.slow)]


def listen(options):
    ls = socket.socket(stream.family_of(options.address[0]))
    ls.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    ls.bind(options.address)
    ls.listen(8)
    options.listener = ls


def find_program(options):
    """Look at what the program advertises; of rping, at what it does with a Send of rping's."""
    options.program = program.Program()
    t = trial.Trial(options, None, verdict.CaseResult("program", ()))
    try:
        s = t.open()
        if isinstance(t.program, program.Conform):
            return t.program
        if options.role == "responder":
            first = next((r.segment for r in s.received if r.segment.op == codec.SEND), None)
            return program.Rping() if first is not None and len(first.payload) == 16 else program.Program()
        s.send(codec.untagged(codec.SEND, 0, 1, program.Rping.good_send))
        seg = s.recv()
        if seg.op == codec.READ_REQUEST and codec.parse_read(seg.payload).source == program.Rping.stag:
            return program.Rping()
    except (stream.Ended, codec.Malformed, verdict.Failure):
        pass
    finally:
        t.close()
    return program.Program()


# So many cases in a row without a connection, and the target is gone.
GONE = 3


def gone(results):
    return len(results) >= GONE and all(r.unreachable for r in results[-GONE:])


def run(options, cases, tell):
    """Run them all, as long as there is a target; `tell` hears of each result."""
    results = []
    for case in cases:
        if gone(results):
            break
        result = verdict.CaseResult(case.name, case.requirements)
        trial.Trial(options, case, result).run()
        if not result.checks:
            result.checks.append(verdict.Check(case.requirements[0], verdict.INCONCLUSIVE, "", "nothing was found out"))
        results.append(result)
        tell(result)
    return results
