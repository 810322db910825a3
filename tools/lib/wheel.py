#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""wheel.py ROOT WORK OUT VERSION [MACHINE]: builds the Python wheel, called by tools/package. For another MACHINE than this one,
aarch64, with Debian's cross compiler and the libraries of its multiarch.

The libraries are to load with a C library as old as 2.28, and this machine's is newer. What gcc compiles names the
functions of the C library without a version; the linker adds that of the library that it finds. So the link step gets
lists of what glibc 2.28 has (the package ziglang makes them for any version) instead of the machine's C library."""

import base64
import hashlib
import os
import platform
import re
import shutil
import stat
import subprocess
import sys
import zipfile

GLIBC = (2, 28)
LIBRARIES = ("stack/libuwarp.so", "verbs-provider/preload/libuwarp-preload.so", "verbs-provider/provider/libuwarp-rdmav34.so")
ABIS = ("57", "59", "64", "65")  # verbs-provider/provider/meson.build
STUBS = ("libc.so.6", "libm.so.6", "libpthread.so.0", "libdl.so.2", "librt.so.1")
# What thread-local variables are found by; its versions are old.
LOADERS = {"x86_64": "/lib64/ld-linux-x86-64.so.2", "aarch64": "/lib/ld-linux-aarch64.so.1"}
SCRIPTS = ("tools/uwarp-run", "tools/uwarp-stat")
MODULES = ("__init__.py", "caller.py", "ending.py", "place.py", "private_sysfs.py", "program.py", "variables.py")  # of uwarp-run, in tools/run
MAN = ("doc/man/uwarp-run.1", "doc/man/uwarp-stat.1")

COMPILER = """#!/bin/bash
# gcc, which links with the lists of an old C library
for word in "$@"; do
	case $word in -c | -r | -E | -S | -M | -MM | --version | -v | -dumpversion | -print-*) exec {gcc} "$@" ;; esac
done
exec {gcc} -L{stubs} "$@" -nodefaultlibs -Wl,--start-group -lgcc {stubs}/libc_nonshared.a -Wl,--end-group -Wl,--as-needed {all} {loader} -lgcc -lgcc_s
"""

METADATA = """Metadata-Version: 2.1
Name: uwarp
Version: {version}
Summary: A software RNIC in a library: unmodified verbs programs without RDMA hardware, kernel module or root
License: BSD-3-Clause
Requires-Python: >=3.8
Description-Content-Type: text/markdown

"""


def run(*command, **how):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, **how)
    if done.returncode:
        sys.exit(f"package: {' '.join(command[:4])}... failed:\n{(done.stdout + done.stderr)[-3000:]}")
    return done.stdout


def zig():
    """The command of the package ziglang, in an environment of its own."""
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    python = os.path.join(home, "uwarp", "zig", "bin", "python3")
    if not os.path.exists(python) or subprocess.run([python, "-c", "import ziglang"], capture_output=True).returncode:
        print("package: fetching ziglang (about 100 MB)", file=sys.stderr, flush=True)
        run("/usr/bin/python3", "-m", "venv", "--clear", os.path.dirname(os.path.dirname(python)))
        run(python, "-m", "pip", "-q", "install", "ziglang")
    return [python, "-m", "ziglang"]


def make_stubs(work, machine):
    """A folder with the lists, by the names that a linker looks for."""
    cache, stubs, source = (os.path.join(work, name) for name in ("zig", "stubs", "empty.c"))
    with open(source, "w", encoding="ascii") as f:
        f.write("int nothing;\n")
    target = f"{machine}-linux-gnu.{GLIBC[0]}.{GLIBC[1]}"
    env = {**os.environ, "ZIG_GLOBAL_CACHE_DIR": cache, "ZIG_LOCAL_CACHE_DIR": cache}
    run(*zig(), "cc", "-target", target, "-shared", "-fPIC", "-o", os.path.join(work, "empty.so"), source, env=env)
    os.mkdir(stubs)
    for here, _, names in os.walk(cache):
        for name in set(names) & {*STUBS, "libc_nonshared.a"}:
            shutil.copy(os.path.join(here, name), stubs)
    for name in STUBS:
        os.symlink(name, os.path.join(stubs, name.split(".")[0] + ".so"))
    return stubs


def prefix(machine):
    """What the names of the tools for that machine begin with."""
    return "" if machine == platform.machine() else f"{machine}-linux-gnu-"


def cross_options(root, work, machine, compiler):
    """Meson's options; only for another machine there are any."""
    if not prefix(machine):
        return []
    own = os.path.join(work, "compiler.ini")
    with open(own, "w", encoding="utf-8") as f:
        f.write(f"[binaries]\nc = '{compiler}'\n")
    return ["--cross-file", os.path.join(root, "tools", "cross", f"{machine}-multiarch.ini"), "--cross-file", own]


def build(root, work, machine):
    tree, stubs = os.path.join(work, "build"), make_stubs(work, machine)
    compiler = os.path.join(work, "cc")
    with open(compiler, "w", encoding="utf-8") as f:
        f.write(COMPILER.format(gcc=f"{prefix(machine)}gcc", stubs=stubs, all=" ".join(os.path.join(stubs, name) for name in STUBS), loader=LOADERS[machine]))
    os.chmod(compiler, 0o755)
    env = dict(os.environ) if prefix(machine) else {**os.environ, "CC": compiler}
    options = ["--wrap-mode=nodownload", "-Dtests=false", "-Dbundled=true", *cross_options(root, work, machine, compiler)]
    run("meson", "setup", tree, root, *options, env=env)
    run("ninja", "-C", tree, *LIBRARIES, env=env)
    return [os.path.join(tree, name) for name in LIBRARIES]


def needed(path, tag):
    return re.findall(rf"{tag}.*\[(.*)\]", run("readelf", "-d", path))


def too_new(path, machine):
    """Names of the C library's versions that it asks for and that are newer than promised."""
    found = set(re.findall(r"GLIBC_(\d+)\.(\d+)", run(f"{prefix(machine)}objdump", "-T", path)))
    return sorted(f"GLIBC_{a}.{b}" for a, b in found if (int(a), int(b)) > GLIBC)


def bundled(libraries, machine):
    """What they need that is no part of the C library: files where the compiler finds libraries."""
    known = {*STUBS, "libgcc_s.so.1", *map(os.path.basename, libraries)}
    names = {n for path in libraries for n in needed(path, "NEEDED") if n not in known and not n.startswith("ld-linux")}
    paths = []
    for name in sorted(names):
        path = run(f"{prefix(machine)}gcc", f"-print-file-name={name}").strip()
        if not os.path.isabs(path):
            sys.exit(f"package: {name} is needed and not here")
        paths.append(os.path.realpath(path))
    return dict(zip(sorted(names), paths))


class Wheel:
    def __init__(self, path, version):
        self.zip, self.info = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED), f"uwarp-{version}.dist-info"
        self.data, self.rows = f"uwarp-{version}.data", []

    def add(self, name, content, mode=0o644):
        entry = zipfile.ZipInfo(name, (2026, 1, 1, 0, 0, 0))
        entry.external_attr = (stat.S_IFREG | mode) << 16
        entry.compress_type = zipfile.ZIP_DEFLATED
        self.zip.writestr(entry, content)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.rows.append(f"{name},sha256={digest},{len(content)}\n")

    def close(self):
        self.rows.append(f"{self.info}/RECORD,,\n")
        self.add(f"{self.info}/RECORD", "".join(self.rows).encode())
        self.zip.close()


def read(path):
    with open(path, "rb") as f:
        return f.read()


def main():
    root, work, out, version = sys.argv[1:5]
    machine = sys.argv[5] if len(sys.argv) > 5 else platform.machine()
    libraries = build(root, work, machine)
    others = bundled(libraries, machine)
    wrong = [f"{p} asks for {', '.join(v)}" for p in [*libraries, *others.values()] for v in [too_new(p, machine)] if v]
    if wrong:
        sys.exit("package: " + "; ".join(wrong))
    tag = f"py3-none-manylinux_{GLIBC[0]}_{GLIBC[1]}_{machine}"
    path = os.path.join(out, f"uwarp-{version}-{tag}.whl")
    wheel = Wheel(path, version)
    for library in libraries:
        run(f"{prefix(machine)}strip", "--strip-unneeded", library)
        wheel.add(f"{wheel.data}/data/lib/uwarp/{os.path.basename(library)}", read(library), 0o755)
    for abi in ABIS:  # no symbolic links in a wheel
        wheel.add(f"{wheel.data}/data/lib/uwarp/libuwarp-rdmav{abi}.so", read(libraries[2]), 0o755)
    for name, library in others.items():
        wheel.add(f"{wheel.data}/data/lib/uwarp/{name}", read(library), 0o755)
    for script in SCRIPTS:
        wheel.add(f"{wheel.data}/scripts/{os.path.basename(script)}", read(os.path.join(root, script)), 0o755)
    for module in MODULES:
        wheel.add(f"{wheel.data}/data/share/uwarp/run/{module}", read(os.path.join(root, "tools", "run", module)))
    for page in MAN:
        wheel.add(f"{wheel.data}/data/share/man/man1/{os.path.basename(page)}", read(os.path.join(root, page)))
    wheel.add(f"{wheel.info}/METADATA", METADATA.format(version=version).encode() + read(os.path.join(root, "README.md")))
    wheel.add(f"{wheel.info}/WHEEL", f"Wheel-Version: 1.0\nGenerator: uwarp\nRoot-Is-Purelib: false\nTag: {tag}\n".encode())
    wheel.add(f"{wheel.info}/LICENSE", read(os.path.join(root, "LICENSE")))
    wheel.close()
    print(path)


if __name__ == "__main__":
    main()
