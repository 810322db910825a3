# SPDX-License-Identifier: BSD-3-Clause
"""The table of cases: each exchange with the requirements that it is about and what it needs."""

from dataclasses import dataclass

from . import requirements

INITIATOR, RESPONDER, EITHER = "initiator", "responder", "either"
# What a case may need of the program behind the target.
NEEDS = ("send", "regions", "commands", "wish", "atomics")


@dataclass(frozen=True)
class Case:
    name: str
    requirements: tuple  # the first is what the case stands or falls with
    run: object  # function of a Trial
    role: str = INITIATOR
    needs: tuple = ()
    slow: bool = False
    dangerous: bool = False  # known to crash some endpoints: runs only when named
    doc: str = ""


class Table:
    def __init__(self):
        self.cases = []

    def add(self, name, reqs, run, **how):
        reqs = tuple(reqs.split())
        unknown = [r for r in reqs if r not in requirements.ALL] + [n for n in how.get("needs", ()) if n not in NEEDS]
        if unknown or any(c.name == name for c in self.cases):
            raise ValueError(f"case {name}: {unknown or 'there is one of that name'}")
        self.cases.append(Case(name, reqs, run, doc=(run.__doc__ or "").strip(), **how))

    def case(self, name, reqs, **how):
        """Decorator."""

        def put(run):
            self.add(name, reqs, run, **how)
            return run

        return put
