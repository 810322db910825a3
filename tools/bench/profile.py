# SPDX-License-Identifier: BSD-3-Clause
"""Where the time of a message goes, layer by layer: instructions from a simulated run (icount), and
samples of both processes of a real one, taken by perf."""

import collections
import os
import re
import subprocess

from . import icount, perftest
from .output import columns
from .process import Failed, Group, Unavailable, need, wait_until
from .rig import HERE, LIMIT, THERE, build_dir, last_row

HERTZ, HOTTEST = 4000, 16
SECONDS = 1.5
FEW = 500  # messages of the run that is taken off: starting and ending
OBJECT = re.compile(r"([^/]+)\.c\.o")
SAMPLE = re.compile(r"^\s*(\S+)\s+[0-9a-f]+\s+(.+?)\s+\((.*)\)$")
FOLDERS = ("wire", "mpa", "ddp", "rdmap", "mem", "qp", "cm", "conn", "verbs", "sched", "engine", "base")
LIBRARIES = (("rte_", "DPDK"), ("eth_", "DPDK"), ("memif", "DPDK"), ("crc32", "ISA-L"))


def layer_of_object(path):
    """Of an object file of the build tree: its folder is in its name."""
    name = OBJECT.search(path)[1] if OBJECT.search(path) else path
    if "lwip-2" in name:
        return "lwip"
    for prefix in ("io_lwip", "io_loop"):
        if name.startswith(prefix):
            return prefix.replace("_", "/")
    if "io/dpdk" in path:
        return "io/dpdk"
    if "verbs-provider" in path:
        return "provider"
    first = name.partition("_")[0]
    return first if first in FOLDERS else "io"


def objects():
    for part in ("stack", "verbs-provider"):
        for here, _, names in os.walk(os.path.join(build_dir(), part)):
            yield from (os.path.join(here, n) for n in names if n.endswith(".c.o"))


def symbols():
    """{function: layer}"""
    paths = sorted(objects())
    if not paths:
        raise Unavailable("a profile needs the build tree")
    found = {}
    out = subprocess.run([need("nm"), "-A", "--defined-only", *paths], capture_output=True, text=True, check=False).stdout
    for line in out.splitlines():
        path, _, rest = line.partition(":")
        words = rest.split()
        if len(words) == 3 and words[1] in "tTwW":
            found[words[2]] = layer_of_object(os.path.relpath(path, build_dir()))
    return found


def layer_of_symbol(known, symbol, dso):
    if dso.startswith("[") or symbol.startswith("__vdso"):
        return "kernel"
    base = symbol.partition(".")[0]
    if "uwarp" in os.path.basename(dso):
        if base in known:
            return known[base]
        return next((layer for prefix, layer in LIBRARIES if prefix in base), "DPDK")
    name = os.path.basename(dso)
    if name.startswith(("libc.", "libpthread", "ld-linux")):
        return "libc"
    return "ISA-L" if "isal" in name else "verbs libraries" if name.startswith(("libibverbs", "librdmacm")) else "the program"


def sampled(path):
    """(thread, symbol, dso) of every sample of a perf.data."""
    out = subprocess.run([need("perf"), "script", "-i", path, "-F", "comm,ip,sym,dso"], capture_output=True, text=True, check=False).stdout
    return [m.groups() for m in map(SAMPLE.match, out.splitlines()) if m]


def record(rig, words, n):
    """Samples of a server and a client, and the row that the client printed."""
    perf = [need("perf"), "record", "-q", "-e", "cpu-clock", "-F", str(HERTZ), "-o"]
    paths = [os.path.join(rig.folder, f"{end}.perf") for end in ("server", "client")]
    words = [need(words[0]), "-R", "-F", *words[1:], "-n", str(n)]
    with Group() as group:
        server = group.start([*perf, paths[0], "--", *rig.uwarp(THERE, words, rig.options.mtu)], env=rig.env, cwd=rig.folder)
        if not wait_until(lambda: os.path.exists(paths[0]) or not server.running(), LIMIT) or not server.running():
            raise Unavailable(f"perf cannot sample here{server.last_words()}")
        wait_until(lambda: False, 1.5)
        client = group.start([*perf, paths[1], "--", *rig.uwarp(HERE, [*words, THERE], rig.options.mtu)], env=rig.env, cwd=rig.folder)
        row = last_row(client.wait(LIMIT * 3), perftest.RATE_COLUMNS)
        server.wait(LIMIT)
    return [sample for path in paths for sample in sampled(path)], row


def ours(sample):
    """Not what starting the program cost."""
    return sample[0] not in ("uwarp-run", "perf", "perf-exec")


def counted(samples, known):
    """{(function, layer): samples}"""
    return collections.Counter((symbol, layer_of_symbol(known, symbol, dso)) for _, symbol, dso in filter(ours, samples))


def messages(rig, size):
    """So many that they last for SECONDS."""
    if size <= 64:
        per_second = 5e5 / perftest.latency(rig, "send", size, rig.options.mtu)["value"]
    else:
        per_second = perftest.stream(rig, "send", size, mtu=rig.options.mtu)["mps"] * 1e6
    return max(FEW * 4, int(SECONDS * per_second))


def share_table(count, names, n):
    """Rows of what the samples of n messages say, the largest first."""
    total = sum(count.values())
    if not total:
        raise Failed("perf took no samples")
    return [names, *((*key, f"{hits * 1e9 / HERTZ / n:.0f}", f"{hits / total:.1%}") for key, hits in count.most_common(HOTTEST))]


def print_samples(rig, known, size):
    program = "ib_send_lat" if size <= 64 else "ib_send_bw"
    n = messages(rig, size)
    few, _ = record(rig, [program, "-s", str(size)], FEW)
    many, row = record(rig, [program, "-s", str(size)], n + FEW)
    count = counted(many, known) - counted(few, known)
    layers = collections.Counter()
    for (_, layer), hits in count.items():
        layers[(layer,)] += hits
    told = f"{row[4]:g} us" if size <= 64 else f"{row[3]:g} MB/s"
    print(f"\n{program}, {size} B, {n} messages, {told}: CPU time for a message, of both processes and all their threads")
    print(columns(share_table(layers, ("layer", "ns", "share"), n)))
    print("\n" + columns(share_table(count, ("function", "layer", "ns", "share"), n)))


def run(rig):
    print(icount.table(icount.measure(rig)))
    try:
        known = symbols()
        for size in (64, 65_536):
            print_samples(rig, known, size)
    except Unavailable as e:
        print(f"\nno samples: {e}")
    return 0
