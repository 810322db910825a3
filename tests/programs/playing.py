# SPDX-License-Identifier: BSD-3-Clause
"""Playing one case. What perftest's own measure of the CPU's clock has spoilt is played once more, and says so."""

import re

import captures
from harness import Failed, Skipped, need

# perftest compares the CPU's counter with the time of day, and has lost its CPU in between too often. Then it gives up, or
# has figures that are none.
NO_CLOCK = re.compile(r"Correlation coefficient r\^2: \S+ < \S+")
SECOND_TRY = "second try, since perftest could not measure the CPU's clock: "


def play(case, link, make_stage):
    """(result, what to say about it)"""
    result, details, no_clock = play_once(case, link, make_stage)
    if not no_clock:
        return result, details
    result, details, _ = play_once(case, link, make_stage)
    return result, f"{SECOND_TRY}{no_clock}\n{details}".rstrip("\n")


def play_once(case, link, make_stage):
    """The same, and what perftest says of its clock if the case failed."""
    stage = make_stage(link)
    try:
        for program in getattr(case, "needs", [case.program]):
            need(program)
        case(stage)
        left = stage.left_over()
        if left:
            raise Failed(f"left behind: {', '.join(left)}")
        if make_stage is captures.RecordingStage:
            stage.judge()
    except Skipped as s:
        return "skipped", str(s), ""
    except Failed as f:
        no_clock = NO_CLOCK.search("\n".join(p.out + p.err for p in stage.programs))
        return "failed", "\n".join([str(f), *(p.report() for p in stage.programs)]), no_clock[0] if no_clock else ""
    finally:
        stage.close()
    return "passed", "", ""


def tried_twice(details):
    return any(line.startswith(SECOND_TRY) for line in details.splitlines())
