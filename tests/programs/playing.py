# SPDX-License-Identifier: BSD-3-Clause
"""Playing one case. What perftest's own measure of the CPU's clock has spoilt is played once more, and says so."""

import re

import captures
from harness import Failed, NoFigures, Skipped, need

# perftest compares the CPU's counter with the time of day, and has lost its CPU in between too often. Then it gives up with
# exit code 1, or has figures that are none. Whatever else fails is no consequence of it.
NO_CLOCK = re.compile(r"Correlation coefficient r\^2: \S+ < \S+")
GAVE_UP = re.compile(r"\bended (at once )?with exit code 1$")
SECOND_TRY = "second try, since perftest could not measure the CPU's clock: "


def play(case, link, make_stage):
    """(result, what to say about it)"""
    result, details, spoilt = play_once(case, link, make_stage)
    if not spoilt:
        return result, details
    result, details, _ = play_once(case, link, make_stage)
    return result, f"{SECOND_TRY}{spoilt}\n{details}".rstrip("\n")


def play_once(case, link, make_stage):
    """The same, and if the case failed by it, what perftest says of its clock."""
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
        return "failed", "\n".join([str(f), *(p.report() for p in stage.programs)]), spoilt_by_clock(f, stage.programs)
    finally:
        stage.close()
    return "passed", "", ""


def spoilt_by_clock(failure, programs):
    """What the program says whose failure this is, and the failure; else ""."""
    for program in programs:
        said = NO_CLOCK.search(program.out + program.err)
        gave_up = GAVE_UP.search(str(failure)) and program.poll() == 1
        if said and (gave_up or isinstance(failure, NoFigures)):
            return f"{said[0]}\nthe first one: {failure}"
    return ""


def tried_twice(details):
    return any(line.startswith(SECOND_TRY) for line in details.splitlines())
