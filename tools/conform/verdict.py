# SPDX-License-Identifier: BSD-3-Clause
"""What a case found, and what all cases together say about each requirement."""

from dataclasses import dataclass, field

from . import requirements

PASS, FAIL, NA, INCONCLUSIVE = "pass", "fail", "not applicable", "inconclusive"
# When several checks speak about one thing, the first of these that occurs is the verdict.
ORDER = (FAIL, PASS, INCONCLUSIVE, NA)
# In one case the doubt of one check is worth telling.
CASE_ORDER = (FAIL, INCONCLUSIVE, PASS, NA)


class NotApplicable(Exception):
    """The target cannot be asked this."""


class Inconclusive(Exception):
    """Asked, but what came tells nothing."""


class Failure(Exception):
    """The case's own requirement is broken; nothing further can be asked."""

    def __init__(self, expected, seen):
        super().__init__(f"expected {expected}, seen {seen}")
        self.expected, self.seen = expected, seen


@dataclass
class Check:
    requirement: str
    verdict: str
    expected: str
    seen: str


@dataclass
class CaseResult:
    name: str
    requirements: tuple
    checks: list = field(default_factory=list)
    log: list = field(default_factory=list)
    seconds: float = 0.0
    unreachable: bool = False

    @property
    def verdict(self):
        found = {c.verdict for c in self.checks}
        return next((v for v in CASE_ORDER if v in found), INCONCLUSIVE)

    @property
    def failed(self):
        return [c for c in self.checks if c.verdict == FAIL]


@dataclass
class RequirementResult:
    requirement: requirements.Requirement
    verdict: str
    expected: str
    seen: str
    cases: list


def of_requirement(req, results):
    """The verdict over every check in `results` that names it."""
    mine = [(r.name, c) for r in results for c in r.checks if c.requirement == req.id]
    if not mine:
        return RequirementResult(req, NA, "", req.unseen or "no case ran", [])
    verdict = next(v for v in ORDER if any(c.verdict == v for _, c in mine))
    which = [(n, c) for n, c in mine if c.verdict == verdict]
    name, first = which[0]
    seen = first.seen + (f" [{name}]" if name else "")
    return RequirementResult(req, verdict, first.expected, seen, sorted({n for n, _ in which}))


def of_requirements(results, everything):
    """`everything`: also those that no exchange can judge."""
    asked = {c.requirement for r in results for c in r.checks}
    return [of_requirement(req, results) for req in requirements.ALL.values() if req.id in asked or (everything and req.unseen)]


def count(verdicts):
    tally = dict.fromkeys((PASS, FAIL, NA, INCONCLUSIVE), 0)
    for v in verdicts:
        tally[v] += 1
    return tally
