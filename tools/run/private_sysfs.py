# SPDX-License-Identifier: BSD-3-Clause
"""Real files in /sys, for uwarp-run --private-sysfs."""

import ctypes
import errno
import os
import subprocess

from . import Refusal

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_BIND, MS_REC, MS_PRIVATE = 4096, 16384, 1 << 18
SYS_DEVICE = "/sys/devices/platform/uwarp.0"
CANNOT = "--private-sysfs: this system lets you have no mount namespace of your own"


def libc_call(name, *args):
    libc = ctypes.CDLL(None, use_errno=True)
    if getattr(libc, name)(*[ctypes.c_ulong(a) if isinstance(a, int) else a for a in args]):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def mount(what, where, kind=None, flags=0):
    libc_call("mount", what.encode(), where.encode(), kind and kind.encode(), flags, None)


def make_private():
    """What is mounted here is not seen elsewhere. In a chroot / may be no mount point; that of /sys is enough."""
    try:
        mount("none", "/", None, MS_REC | MS_PRIVATE)
    except OSError as e:
        if e.errno != errno.EINVAL:
            raise
        mount("none", "/sys", None, MS_REC | MS_PRIVATE)


def enter_namespace():
    uid, gid = os.getuid(), os.getgid()
    try:
        libc_call("unshare", CLONE_NEWNS | (CLONE_NEWUSER if uid else 0))
        if uid:
            for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
                with open(f"/proc/self/{name}", "w", encoding="ascii") as f:
                    f.write(text)
        make_private()
    except OSError as e:
        raise Refusal(f"{CANNOT}: {e.strerror}") from None


def make_writable(folder):
    """Put an empty file system over a folder of /sys, with everything that was there bound into it. A link stays a link."""
    old = os.open(folder, os.O_PATH)
    entries = [(e.name, os.readlink(e.path) if e.is_symlink() else None, e.is_dir()) for e in os.scandir(folder)]
    mount("none", folder, "tmpfs")
    for name, to, is_dir in entries:
        if to:
            os.symlink(to, f"{folder}/{name}")
            continue
        if is_dir:
            os.mkdir(f"{folder}/{name}")
        else:
            open(f"{folder}/{name}", "w", encoding="ascii").close()
        mount(f"/proc/self/fd/{old}/{name}", f"{folder}/{name}", None, MS_BIND | MS_REC)
    os.close(old)


def lay_classes(device):
    """The links in /sys/class. A kernel with RDMA has both classes, maybe with devices of its own, which stay."""
    make_writable("/sys/class")
    for kind, name in (("infiniband", device), ("infiniband_verbs", "uverbs30071")):
        folder = f"/sys/class/{kind}"
        if os.path.isdir(folder):
            make_writable(folder)
        else:
            os.mkdir(folder)
        os.symlink(f"../../devices/platform/uwarp.0/{kind}/{name}", f"{folder}/{name}")


def lay():
    """For programs that make system calls without libc (Go), which the preloaded library does not see: the same files,
    copied through it, at their places in a mount namespace of the program's own."""
    enter_namespace()
    try:
        make_writable("/sys/devices/platform")
        # as the preloaded library shows it; the copy's own calls that lead elsewhere are real
        copy = ["cp", "-RP", SYS_DEVICE, "/sys/devices/platform/.copy"]
        subprocess.run(copy, check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        os.rename("/sys/devices/platform/.copy", SYS_DEVICE)
        lay_classes(os.environ.get("UWARP_NAME", "uwarp0"))
    except subprocess.CalledProcessError as e:
        raise Refusal(f"--private-sysfs: {e.stderr.decode(errors='replace').strip()}") from None
    except OSError as e:
        raise Refusal(f"--private-sysfs: {e.filename or ''}: {e.strerror}") from None
