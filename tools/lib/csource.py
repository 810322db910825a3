# SPDX-License-Identifier: BSD-3-Clause
"""Reading C source for the checkers: which files there are, and what remains of one when
comments and the contents of strings are taken away."""

import os
import re

LEXEME = re.compile(
    r"""
      //(?:[^\n\\]|\\.|\\\n)*          # line comment, continued by a backslash
    | /\*.*?(?:\*/|\Z)                 # block comment
    | "(?:[^"\\\n]|\\.|\\\n)*"         # string
    | '(?:[^'\\\n]|\\.|\\\n)*'         # character
    """,
    re.VERBOSE | re.DOTALL,
)
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*([<\"])([^>\"\n]*)[>\"]", re.MULTILINE)


def files(root, folder, suffixes=(".c", ".h")):
    """Paths below root/folder, relative to root, sorted."""
    found = []
    for here, dirs, names in os.walk(os.path.join(root, folder)):
        dirs[:] = sorted(d for d in dirs if not d.startswith("."))
        found += [os.path.relpath(os.path.join(here, n), root) for n in sorted(names) if n.endswith(suffixes)]
    return found


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8", errors="replace") as f:
        return f.read()


def _blank(match):
    text = match.group()
    kept = re.sub(r"[^\n]", " ", text)
    return text[0] + kept[1:-1] + text[-1] if text[0] in "\"'" else kept


def _blank_comment(match):
    return match.group() if match.group()[0] in "\"'" else _blank(match)


def strip(text):
    """The same text, line for line, without comments and without what strings say."""
    return LEXEME.sub(_blank, text)


def includes(text):
    """(line number, '<' or '\"', name) of every #include that is not in a comment."""
    text = LEXEME.sub(_blank_comment, text)
    return [(text.count("\n", 0, m.start()) + 1, m[1], m[2]) for m in INCLUDE.finditer(text)]
