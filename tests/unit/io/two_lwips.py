#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""lwIP is in the process several times: nothing of the one may be found by another.

usage: two_lwips.py NM OBJECT... -- ARCHIVE...

Each OBJECT (X.o) shows no name but llp_X, and asks for none that an ARCHIVE, the first lwIP, or
another OBJECT has."""

import os
import subprocess
import sys


def names(nm, path, *options):
    out = subprocess.run([nm, "--extern-only", *options, path], check=True, capture_output=True, text=True).stdout
    return {words[-1] for words in map(str.split, out.splitlines()) if len(words) > 1 and len(words[-2]) == 1}


def wrong(nm, obj, others):
    entry = "llp_" + os.path.basename(obj).removesuffix(".o")
    shown, asked = names(nm, obj, "--defined-only"), names(nm, obj, "--undefined-only")
    yield from (f"{obj} shows {n}" for n in sorted(shown - {entry}))
    yield from (f"{obj} takes {n} from another lwIP" for n in sorted(asked & others))
    if entry not in shown:
        yield f"{obj} does not show {entry}"
    # An empty list of names would find nothing wrong.
    if "tcp_write" not in others or "malloc" not in asked:
        yield "nm shows nothing that could be compared"


def main(nm, *paths):
    at = paths.index("--")
    objects, archives = paths[:at], paths[at + 1 :]
    others = set().union(*(names(nm, p, "--defined-only") for p in paths if p != "--"))
    bad = [line for obj in objects for line in wrong(nm, obj, others)]
    print("\n".join(bad) or f"{len(objects)} objects, {len(others)} names of lwIPs: none is asked for")
    return 1 if bad or not objects or not archives else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
