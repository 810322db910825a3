# SPDX-License-Identifier: BSD-3-Clause
"""Sizes as people write them, medians and spreads."""

import statistics

UNITS = {"": 1, "K": 1000, "KI": 1024, "M": 10**6, "MI": 2**20}


def parse_size(text):
    """'64', '1K' (1000 times), '64Ki' (1024 times); ValueError if it is none."""
    t = text.strip().upper().removesuffix("B")
    digits = t.rstrip("KIM")
    if not digits.isdigit() or t[len(digits) :] not in UNITS or not int(digits):
        raise ValueError(text)
    return int(digits) * UNITS[t[len(digits) :]]


def size_name(octets):
    for name, unit in (("MiB", 2**20), ("KiB", 1024), ("MB", 10**6), ("KB", 1000)):
        if octets >= unit and octets % unit == 0:
            return f"{octets // unit} {name}"
    return f"{octets} B"


def median(values):
    return statistics.median(values)


def spread(values):
    """(low, high): the quartiles, or the extremes where there are fewer than five."""
    if len(values) < 5:
        return min(values), max(values)
    low, _, high = statistics.quantiles(values, n=4, method="inclusive")
    return low, high


def digits(value):
    """A value as short as it can be and still say something."""
    if value is None:
        return "-"
    size = abs(value)
    if size >= 100:
        return f"{value:.0f}"
    if size >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if size >= 0.1 or size == 0 else f"{value:.2g}"
