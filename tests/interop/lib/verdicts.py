# SPDX-License-Identifier: BSD-3-Clause
"""uwarp-conform's findings about siw: what is recorded of a run, and the page made of the record."""

import json
import os

import faults
from ends import ROOT

RECORD = os.path.join(ROOT, "doc", "rfc", "siw-verdicts.json")
PAGE = os.path.join(ROOT, "doc", "rfc", "siw-verdicts.md")
HEAD = """\
# Linux's siw, judged by uwarp-conform

Made by `tests/interop/run --conform` from what it recorded (`siw-verdicts.json`); do not edit. {kernel},
siw as the kernel's source has it, in the rig of `tests/interop/rig`, with uwarp-conform-target behind it.
"""


def recorded(verdicts):
    """The part of uwarp-conform's JSON that is kept: what failed, in full; of the rest the number."""
    cases = []
    for case in verdicts["cases"]:
        bad = [[c["requirement"], c["expected"], c["seen"]] for c in case["checks"] if c["verdict"] == "fail"]
        cases.append({"name": case["name"], "verdict": case["verdict"], "failed": [list(x) for x in dict.fromkeys(map(tuple, bad))]})
    rules = {r["id"]: [r["cite"], r["verdict"]] for r in verdicts["requirements"]}
    return {"role": verdicts["role"], "program": verdicts["program"], "cases": cases, "requirements": rules}


def findings(record):
    """(requirement, case, expected, seen) of everything that failed."""
    for run in record["runs"]:
        for case in run["cases"]:
            for requirement, expected, seen in case["failed"]:
                yield requirement, case["name"], expected, seen


def sort_out(record):
    """Fault -> its findings; and what no fault explains."""
    named, rest = {}, []
    for finding in findings(record):
        fault = faults.explain(finding[0], finding[1], f"{finding[2]}; {finding[3]}")
        if fault:
            named.setdefault(fault.name, []).append(finding)
        else:
            rest.append(finding)
    return named, rest


def unexplained(run):
    """The cases with such findings."""
    rest = sort_out({"runs": [run]})[1]
    return list(dict.fromkeys(case for _, case, _, _ in rest))


def replace(run, second):
    """The cases of the second run count instead of those of the first."""
    again = {case["name"]: case for case in second["cases"]}
    run["cases"] = [again.get(case["name"], case) for case in run["cases"]]


def problems(record):
    """What does not agree with the list of known faults: sentences."""
    named, rest = sort_out(record)
    yield from (f"no known fault: {r} in {case}: expected {expected}, seen {seen}" for r, case, expected, seen in rest)
    yield from (f"not seen: {f.name}" for f in faults.FAULTS if f.always and f.name not in named)
    yield from (f"no crash: {crash['case']}" for crash in record["crashes"] if not crash["said"])


def seen(record):
    """The faults that showed, by name."""
    return sort_out(record)[0]


def summary(record):
    """Lines for the terminal."""
    for run in record["runs"]:
        bad = sum(case["verdict"] == "fail" for case in run["cases"])
        yield f"  as {run['role']}: {len(run['cases'])} cases, {bad} of which fail"
    for name, found in seen(record).items():
        yield f"  {name}: {len({f[1] for f in found})} cases"
    for crash in record["crashes"]:
        yield f"  {crash['case']}: {crash['said'] or 'survives'}"


def tally(run):
    count = {}
    for case in run["cases"]:
        count[case["verdict"]] = count.get(case["verdict"], 0) + 1
    broken = {requirement for case in run["cases"] for requirement, _, _ in case["failed"]}
    judged = [r for r, (_, verdict) in run["requirements"].items() if verdict in ("pass", "fail")]
    return (f"| {run['role']} | {len(run['cases'])} | {count.get('pass', 0)} | {count.get('fail', 0)} | {count.get('inconclusive', 0)} |"
            f" {count.get('not applicable', 0)} | {len(set(judged) - broken)} | {len(broken)} |")  # fmt: skip


def fault_row(fault, found):
    if not found:
        return f"| {fault.name} | {fault.cite} | {fault.origin} | {fault.text} | not seen | |"
    rules = " ".join(sorted({f[0] for f in found}, key=lambda r: (r[0], int(r[1:]))))
    cases = sorted({f[1] for f in found})
    _, _, expected, seen = found[0]
    example = f"{len(cases)} case{'s' if len(cases) > 1 else ''}, `{found[0][1]}`: expected {expected}; seen {seen}"
    return f"| {fault.name} | {fault.cite} | {fault.origin} | {fault.text} | {rules} | {example.replace('|', '/')} |"


def page(record):
    named, rest = sort_out(record)
    lines = [HEAD.format(kernel=record["kernel"])]
    lines += ["| tester as | cases | pass | fail | inconclusive | not applicable | requirements kept | broken |", "|---|---|---|---|---|---|---|---|"]
    lines += map(tally, record["runs"])
    lines += ["", "## Its faults", "", "| fault | section | | what siw does | requirement | as seen |", "|---|---|---|---|---|---|"]
    lines += [fault_row(f, named.get(f.name, [])) for f in faults.FAULTS]
    lines += ["", "## Frames that its kernel does not survive", "", f"Known before for the first; {faults.CRASH_CITE}. A bad pointer need not end it every time.", ""]
    lines += ["| case | frame | siw's kernel |", "|---|---|---|"]
    lines += [f"| `{c['case']}` | {c['what']} | {c['said'] or 'survived this time'} |" for c in record["crashes"]]
    lines += ["", "## Known, and seen elsewhere", "", "| fault | section | what siw does | shows in |", "|---|---|---|---|"]
    lines += [f"| {' | '.join(row)} |" for row in faults.ELSEWHERE]
    lines += ["", "siw has nothing of RFC 7306: opcodes 8 and up get Terminate 0/2/06, which A13 allows.", ""]
    if rest:
        lines += ["## Not named yet", ""] + [f"- {r} in `{case}`: expected {e}; seen {s}" for r, case, e, s in rest] + [""]
    return "\n".join(lines)


def write(record):
    with open(RECORD, "w", encoding="utf-8") as f:
        json.dump(record, f, separators=(",", ":"))
        f.write("\n")
    with open(PAGE, "w", encoding="utf-8") as f:
        f.write(page(record))
