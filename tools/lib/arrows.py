# SPDX-License-Identifier: BSD-3-Clause
"""Who knows whom in C source: which file includes which header, which .c file calls a function that
another one defines, and the circles in that. Functions are found by the house's layout: a definition
begins in the first column and its body is a '{' alone on a line. What is called by way of a table
of functions is no arrow; that is what such tables are for."""

import collections
import os
import re

import csource

DEFINITION = re.compile(r"^(?!typedef\b|extern\b|#)(?:(?P<static>static)\s+)?[A-Za-z_][^;={}#]*?\b(?P<name>[A-Za-z_]\w*)\s*\([^;{}]*\)[^;{}()]*\n\{", re.MULTILINE)
# A call, or the name given to somebody as a value; not a member of something.
USE = re.compile(r"(?<![\w.>])([A-Za-z_]\w*)\s*\(|[=(,&]\s*([A-Za-z_]\w*)\s*(?=[,;)}])")


class Source:
    """All files of some folders, without comments and strings."""

    def __init__(self, root, folders, include_dirs):
        self.root, self.include_dirs = root, include_dirs
        self.paths = [f for d in folders for f in csource.files(root, d)]
        self.known = set(self.paths)
        self.code = {p: csource.strip(csource.read(root, p)) for p in self.paths}
        self.defined = collections.defaultdict(set)
        self.own = collections.defaultdict(set)  # static functions by file
        for path in self.paths:
            if path.endswith(".c"):
                for m in DEFINITION.finditer(self.code[path]):
                    if m["static"]:
                        self.own[path].add(m["name"])
                    else:
                        self.defined[m["name"]].add(path)

    def header(self, path, name):
        """The file of ours that an #include "name" in path means, or None."""
        for place in (os.path.dirname(path), *self.include_dirs):
            found = os.path.normpath(os.path.join(place, name))
            if found in self.known:
                return found
        return None

    def includes(self, path):
        """(line, file of ours) of every include."""
        for line, _, name in csource.includes(csource.read(self.root, path)):
            there = self.header(path, name)
            if there and there != path:
                yield line, there

    def uses(self, path):
        """(line, .c file, function) of each function of another file, at its first use. Of several files that
        define the name (each library has a main of its own) none is meant, unless one lies in the same folder."""
        code, seen = self.code[path], set(self.own[path])
        for m in USE.finditer(code):
            name = m[1] or m[2]
            if name in seen or name not in self.defined:
                continue
            seen.add(name)
            there = self.defined[name]
            if len(there) > 1:
                there = {f for f in there if os.path.dirname(f) == os.path.dirname(path)}
            if len(there) == 1 and path not in there:
                yield code.count("\n", 0, m.start()) + 1, next(iter(there)), name


def circles(graph):
    """The strongly connected parts of {node: {nodes}} that are larger than one, sorted (Tarjan, without recursion)."""
    index, low, on, stack, found = {}, {}, set(), [], []
    for root in sorted(graph):
        work = [(root, iter(sorted(graph[root])))] if root not in index else []
        if work:
            index[root] = low[root] = len(index)
            stack.append(root)
            on.add(root)
        while work:
            node, rest = work[-1]
            for other in rest:
                if other not in index:
                    index[other] = low[other] = len(index)
                    stack.append(other)
                    on.add(other)
                    work.append((other, iter(sorted(graph.get(other, ())))))
                    break
                if other in on:
                    low[node] = min(low[node], index[other])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    part = []
                    while not part or part[-1] != node:
                        part.append(stack.pop())
                        on.discard(part[-1])
                    if len(part) > 1:
                        found.append(sorted(part))
    return sorted(found)
