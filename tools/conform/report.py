# SPDX-License-Identifier: BSD-3-Clause
"""Verdicts as text and as JSON."""

import json

from . import requirements, verdict
from .verdict import FAIL, INCONCLUSIVE, NA, PASS

MARK = {PASS: "pass", FAIL: "FAIL", NA: "n/a ", INCONCLUSIVE: "?   "}


def about(check):
    text = f"{check.requirement}: "
    if check.expected and check.verdict in (FAIL, INCONCLUSIVE):
        text += f"expected {check.expected}; seen "
    return text + check.seen


def case_lines(result, verbose):
    yield f"{MARK[result.verdict]} {result.name}"
    shown = result.checks if verbose else [c for c in result.checks if c.verdict == result.verdict or c.verdict == FAIL]
    if result.verdict != PASS or verbose:
        for line in dict.fromkeys(f"{MARK[c.verdict]} {about(c)}" for c in shown):
            yield f"       {line}"
    if verbose:
        for line in result.log:
            yield f"       {line}"


def requirement_lines(rows):
    for r in rows:
        req = r.requirement
        yield f"{MARK[r.verdict]} {req.id:<4}{req.level:<7}{req.cite}: {req.text}"
        if r.verdict == FAIL:
            yield f"            expected {r.expected}; seen {r.seen}"
            yield f"            cases: {', '.join(r.cases)}"
        elif r.verdict in (INCONCLUSIVE, NA) and r.seen:
            yield f"            {r.seen}"


def summary(rows, what):
    n = verdict.count(r.verdict for r in rows)
    return f"{what}: {n[PASS]} pass, {n[FAIL]} fail, {n[INCONCLUSIVE]} inconclusive, {n[NA]} not applicable"


def broken(rows, strict):
    """The requirements that decide the exit code."""
    return [r for r in rows if r.verdict == FAIL and (strict or r.requirement.level == requirements.MUST)]


def as_json(options, results, rows):
    return json.dumps({
        "target": f"{options.address[0]}:{options.address[1]}",
        "role": options.role,
        "program": options.program.name,
        "requirements": [
            {"id": r.requirement.id, "level": r.requirement.level, "cite": r.requirement.cite, "text": r.requirement.text,
             "verdict": r.verdict, "expected": r.expected, "seen": r.seen, "cases": r.cases} for r in rows],
        "cases": [
            {"name": c.name, "verdict": c.verdict, "seconds": round(c.seconds, 3), "exchange": c.log,
             "checks": [vars(x) for x in c.checks]} for c in results],
    }, indent=1)  # fmt: skip
