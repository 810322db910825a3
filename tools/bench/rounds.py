# SPDX-License-Identifier: BSD-3-Clause
"""Probes, measured in turn again and again: A B C, A B C. Whatever the machine does besides hits
all of them alike, and what is compared was measured within seconds of each other."""

import sys
import time

from .numbers import digits, median, size_name, spread
from .process import Failed, Unavailable


class Probe:
    """One thing that is measured once in each round. measure() gives a dictionary whose "value" is
    in `unit`; whatever else it holds is kept beside."""

    def __init__(self, key, unit, measure, **facts):
        self.key, self.unit, self.measure, self.facts = key, unit, measure, facts
        self.most = None  # rounds it takes part in, all if None


def probe(test, scheme, op, size, unit, measure, **facts):
    key = "/".join(str(x) for x in (test, scheme, op, size, *facts.values()))
    return Probe(key, unit, measure, test=test, scheme=scheme, op=op, size=size, **facts)


def only(probes, text):
    """Those that have the text in their name, all without one."""
    probes = list(probes)
    chosen = [p for p in probes if not text or text.lower() in p.key.lower()]
    if not chosen:
        raise Failed(f"--only: nothing that is measured has '{text}' in its name; names: {', '.join(p.key for p in probes)}")
    return chosen


class Series:
    """What the rounds of one probe gave."""

    def __init__(self, key, unit, facts):
        self.key, self.unit, self.facts = key, unit, facts
        self.rounds, self.samples, self.problem, self.available = [], [], None, True

    def add(self, sample):
        self.rounds.append(sample["value"] if sample else None)
        if sample:
            self.samples.append({k: v for k, v in sample.items() if k != "value"})

    def values(self):
        return [v for v in self.rounds if v is not None]

    def median(self):
        return median(self.values()) if self.values() else None

    def width(self):
        """How far the quartiles are apart, as a share of the median."""
        low, high = spread(self.values())
        return (high - low) / abs(self.median()) if self.median() else 0.0

    def as_json(self):
        values = self.values()
        low, high = spread(values) if values else (None, None)
        return {
            "key": self.key, **self.facts, "unit": self.unit, "median": self.median(), "low": low, "high": high,
            "rounds": self.rounds, "problem": self.problem, "available": self.available, "samples": self.samples,
        }  # fmt: skip

    @classmethod
    def from_json(cls, j):
        known = ("key", "unit", "median", "low", "high", "rounds", "problem", "available", "samples")
        s = cls(j["key"], j["unit"], {k: v for k, v in j.items() if k not in known})
        s.rounds, s.problem, s.available, s.samples = j["rounds"], j["problem"], j["available"], j["samples"]
        return s

    def text(self):
        """'median unit (low to high)', or why there is none."""
        values = self.values()
        if not values:
            return ("failed: " if self.available else "not available: ") + (self.problem or "not measured")
        low, high = spread(values)
        told = f" ({self.problem})" if self.problem else ""
        return f"{digits(self.median())} {self.unit} ({digits(low)} to {digits(high)}){told}"


class Progress:
    """One line that changes on a terminal, a line now and then elsewhere."""

    EVERY = 10

    def __init__(self, total, quiet=False, out=sys.stderr):
        self.total, self.quiet, self.out = total, quiet, out
        self.done, self.start, self.told = 0, time.monotonic(), 0.0
        self.live = out.isatty()

    def show(self, text):
        if self.quiet:
            return
        now = time.monotonic()
        passed = now - self.start
        left = passed / self.done * (self.total - self.done) if self.done else 0
        line = f"{self.done}/{self.total}  {int(passed // 60)}:{int(passed % 60):02} passed, about {int(left // 60)}:{int(left % 60):02} left  {text}"
        if self.live:
            self.out.write("\r\033[K" + line[:150])
            self.out.flush()
        elif now - self.told > self.EVERY:
            self.told = now
            self.out.write(line + "\n")
            self.out.flush()

    def step(self):
        self.done += 1

    def note(self, text):
        if not self.quiet:
            self.out.write(("\r\033[K" if self.live else "") + text + "\n")
            self.out.flush()

    def end(self):
        if self.live and not self.quiet:
            self.out.write("\r\033[K")
            self.out.flush()


def describe(p):
    f = p.facts
    return f"{f['test']}: {f['scheme']} {f['op']} {size_name(f['size'])}" if f.get("size") else f"{f['test']}: {f['scheme']} {f['op']}"


def measure_once(p, series, progress):
    try:
        series.add(p.measure())
    except Unavailable as e:
        series.available, series.problem = False, str(e)
    except (Failed, OSError) as e:  # one figure less, and the others stay
        series.add(None)
        if series.problem != str(e):
            progress.note(f"  {describe(p)}: {e}")
        series.problem = str(e)


def run_round(probes, series, progress, title):
    for p in probes:
        progress.show(f"{title}  {describe(p)}")
        if series[p.key].available:
            measure_once(p, series[p.key], progress)
        progress.step()


def too_wide(series, width):
    """Those whose quartiles are further apart than this share of the median."""
    return [s for s in series.values() if s.values() and s.width() > width and len(s.values()) > 1]


def run(probes, rounds, quiet=False, seconds=None, width=None, most=None, look=None):
    """{key: Series}. No round begins that would probably last beyond so many seconds from now; an
    interrupt ends the measuring, and what has been measured is kept. width: after `rounds` rounds
    all are measured again, up to `most` times in all, until the quartiles of each are within it. look():
    called before each round."""
    series = {p.key: Series(p.key, p.unit, p.facts) for p in probes}
    most = max(most or rounds, rounds) if width else rounds
    progress = Progress(sum(min(rounds, p.most or rounds) for p in probes), quiet)
    start, lasted = time.monotonic(), 0.0
    try:
        for n in range(most):
            begun = time.monotonic()
            if n >= rounds and not too_wide(series, width):
                break
            if n and seconds and begun - start + lasted > seconds:
                progress.note(f"  the time is over after {n} of {rounds} rounds")
                break
            if look:
                look()
            run_round([p for p in probes if n < (p.most or most)], series, progress, f"round {n + 1}/{max(n + 1, rounds)}")
            lasted = time.monotonic() - begun
    except KeyboardInterrupt:
        progress.note("  interrupted")
    progress.end()
    return series


def joined(runs):
    """One {key: Series} of several. The rounds of a run come after those of the run before it, also where that one lacks the probe:
    what was measured in the same round stays in the same round."""
    found, before = {}, 0
    for run_of in runs:
        for key, s in run_of.items():
            to = found.setdefault(key, Series(key, s.unit, s.facts))
            to.rounds += [None] * (before - len(to.rounds)) + s.rounds
            to.samples += s.samples
            to.problem, to.available = s.problem or to.problem, s.available
        before += max((len(s.rounds) for s in run_of.values()), default=0)
    return found


def ratio(series, over, under):
    """The quotients of two probes, round by round; empty if either is missing."""
    a, b = series.get(over), series.get(under)
    if not a or not b:
        return []
    return [x / y for x, y in zip(a.rounds, b.rounds) if x is not None and y]
