# SPDX-License-Identifier: BSD-3-Clause
"""What a verbose process tells of an impaired link at its end, and whether it is what was asked for."""

import re

LINE = re.compile(r"^uwarp: impair \([^)]*\):(.*)$", re.M)
# Kinds of impairment that are asked for in per cent, and what counts each.
RATES = {"drop": "dropped", "reorder": "reordered", "duplicate": "duplicated", "corrupt": "corrupted", "truncate": "truncated"}
# A busy machine may carry few frames. Where so many should have been impaired, one has been.
ENOUGH = 10


def counters(text):
    """{name: sum of the process's links and directions}"""
    total = {}
    for line in LINE.findall(text):
        words = line.split()
        for name, n in zip(words[::2], words[1::2]):
            total[name] = total.get(name, 0) + int(n)
    return total


def missing(spec, texts):
    """What did not happen of `spec` (UWARP_IMPAIR), by what each process has said; "" if all did."""
    total = {}
    for text in texts:
        found = counters(text)
        if not found.get("frames"):
            return "a process had no frame on an impaired link"
        for name, n in found.items():
            total[name] = total.get(name, 0) + n
    for kind, _, value in (part.partition("=") for part in spec.split(",")):
        share = float(value.partition(":")[0].rstrip("%")) / 100 if kind in RATES else 0
        if share * total["frames"] >= ENOUGH and not total.get(RATES[kind]):
            return f"of {total['frames']} frames none was {RATES[kind]} ({kind}={value})"
    if "delay=" in spec and not total.get("delayed"):
        return f"of {total['frames']} frames none was delayed"
    return ""
