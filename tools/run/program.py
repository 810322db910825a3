# SPDX-License-Identifier: BSD-3-Clause
"""Finds the program, and refuses one that the loader would preload nothing into."""

import getopt
import os
import stat
import struct

from . import EXIT_NOT_FOUND, EXIT_NOT_RUNNABLE, Refusal

# What the kernel takes of a program's table of segments, and of its interpreter's name.
TABLE_MAX, PATH_MAX = 65536, 4096


def find_program(name):
    if "/" in name:
        paths = [name]
    else:
        paths = [os.path.join(d or ".", name) for d in os.environ.get("PATH", os.defpath).split(":")]
    denied = None
    for path in paths:
        if os.path.isdir(path):
            denied = denied or f"{path}: is a directory"
        elif os.access(path, os.X_OK):
            return path
        elif os.path.exists(path):
            denied = denied or f"{path}: not executable (chmod +x it, or name its interpreter)"
    if denied:
        raise Refusal(denied, EXIT_NOT_RUNNABLE)
    where = "" if "/" in name else " in PATH"
    raise Refusal(f"{name}: not found{where}", EXIT_NOT_FOUND)


def check_privilege(path):
    """A program that gains rights by being run is started without LD_PRELOAD."""
    st = os.stat(path)
    cure = "the loader ignores LD_PRELOAD for it: run a copy without that, from a user that has the rights"
    if st.st_mode & stat.S_ISUID and st.st_uid != os.getuid():
        raise Refusal(f"{path}: is setuid; {cure}", EXIT_NOT_RUNNABLE)
    if st.st_mode & stat.S_ISGID and st.st_mode & stat.S_IXGRP and st.st_gid != os.getgid():
        raise Refusal(f"{path}: is setgid; {cure}", EXIT_NOT_RUNNABLE)
    if os.getuid() != 0:
        try:
            os.getxattr(path, "security.capability")
        except OSError:
            return
        raise Refusal(f"{path}: has file capabilities; {cure}", EXIT_NOT_RUNNABLE)


def read_at(f, offset, size):
    f.seek(min(offset, os.fstat(f.fileno()).st_size))
    data = f.read(size)
    if len(data) < size:
        raise EOFError
    return data


def elf_head(f):
    """(class, machine, interpreter or "") of an ELF file. Its table of segments may be anywhere: tools that rewrite a
    program, such as BOLT, put it at the end."""
    data = read_at(f, 0, 64)
    wide, order = data[4] == 2, "<" if data[5] == 1 else ">"
    word = order + ("Q" if wide else "I")
    machine = struct.unpack_from(order + "H", data, 18)[0]
    phoff = struct.unpack_from(word, data, 32 if wide else 28)[0]
    phentsize, phnum = struct.unpack_from(order + "HH", data, 54 if wide else 42)
    table, interpreter = read_at(f, phoff, min(phnum * phentsize, TABLE_MAX)), ""
    for at in range(0, phnum * phentsize, phentsize):
        if struct.unpack_from(order + "I", table, at)[0] == 3:  # PT_INTERP
            start = struct.unpack_from(word, table, at + (8 if wide else 4))[0]
            size = min(struct.unpack_from(word, table, at + (32 if wide else 16))[0], PATH_MAX)
            interpreter = read_at(f, start, size).split(b"\0")[0].decode("utf-8", "replace") or "?"
    return data[4], machine, interpreter


def check_elf(path, f, libs):
    try:
        cls, machine, interpreter = elf_head(f)
        with open(libs["libuwarp-preload.so"], "rb") as own:
            ours = elf_head(own)
    except (struct.error, EOFError, ValueError):
        raise Refusal(f"{path}: damaged ELF file", EXIT_NOT_RUNNABLE) from None
    if (cls, machine) != ours[:2]:
        raise Refusal(f"{path}: is built for another machine type than uwarp; build it for this one", EXIT_NOT_RUNNABLE)
    if "ld-musl" in interpreter:
        raise Refusal(f"{path}: is linked with musl, and the preloaded library needs glibc; build it for glibc", EXIT_NOT_RUNNABLE)
    if not interpreter:
        raise Refusal(
            f"{path}: is statically linked, so the loader preloads nothing into it; link it dynamically",
            EXIT_NOT_RUNNABLE,
        )


def env_program(words):
    """The program that env(1) starts with these words; None where it may find another one than we do, since they change
    where it looks, or are not known here."""
    try:
        options, rest = getopt.getopt(words, "vu:S:", ["debug", "unset=", "split-string="])
        for name, value in options:
            if name in ("-S", "--split-string"):
                import shlex  # python3-minimal has none

                return None if "$" in value or "\\" in value else env_program(shlex.split(value) + rest)
            if value == "PATH":
                return None
    except (getopt.GetoptError, ValueError):
        return None
    for word in rest:
        if "=" not in word:
            return word
        if word.startswith("PATH="):
            return None
    return None


def check_script(path, data, libs, depth):
    first = data[2:].split(b"\n", 1)[0]
    if first.endswith(b"\r"):
        raise Refusal(f"{path}: its first line ends with a carriage return, and no interpreter has such a name: sed -i 's/\\r$//' {path}", EXIT_NOT_RUNNABLE)
    words = first.decode("utf-8", "replace").split(None, 1)
    if not words or not os.access(words[0], os.X_OK):
        raise Refusal(f"{path}: its interpreter {words[0] if words else ''} cannot be run", EXIT_NOT_RUNNABLE)
    check_program(words[0], libs, depth + 1)
    if os.path.basename(words[0]) == "env" and len(words) > 1:
        real = env_program([words[1].strip()])
        if real:
            check_program(find_program(real), libs, depth + 1)


def check_program(path, libs, depth=0):
    check_privilege(path)
    try:
        f = open(path, "rb")
    except OSError:
        return  # executable but not readable: nothing to be learned beforehand
    with f:
        data = f.read(4096)
        if data[:4] == b"\x7fELF":
            check_elf(path, f, libs)
        elif data[:2] == b"#!" and depth < 4:
            check_script(path, data, libs, depth)
        elif data[:2] != b"#!":
            raise Refusal(f"{path}: is neither an ELF program nor a script that begins with #!", EXIT_NOT_RUNNABLE)
