#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""lwIP is in the process twice: nothing of the one may be found by the other.

usage: two_lwips.py NM OBJECT ENTRY ARCHIVE...

OBJECT shows no name but ENTRY, and asks for none that an ARCHIVE, the other lwIP, has."""

import subprocess
import sys


def names(nm, path, *options):
    out = subprocess.run([nm, "--extern-only", *options, path], check=True, capture_output=True, text=True).stdout
    return {words[-1] for words in map(str.split, out.splitlines()) if len(words) > 1 and len(words[-2]) == 1}


def main(nm, obj, entry, *archives):
    shown, asked = names(nm, obj, "--defined-only"), names(nm, obj, "--undefined-only")
    other = set().union(*(names(nm, a, "--defined-only") for a in archives))
    bad = [f"{obj} shows {n}" for n in sorted(shown - {entry})]
    bad += [f"{obj} takes {n} from the other lwIP" for n in sorted(asked & other)]
    bad += [] if entry in shown else [f"{obj} does not show {entry}"]
    # An empty list of names would find nothing wrong.
    bad += [] if "tcp_write" in other and "malloc" in asked else ["nm shows nothing that could be compared"]
    print("\n".join(bad) or f"{len(asked)} names asked for, {len(other)} of the other lwIP: none in common")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
