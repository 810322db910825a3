#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""without.py CALL PROGRAM [ARGS...]: becomes the program, in which a system call is forbidden by seccomp, as a strict
container may do."""

import ctypes
import os
import platform
import struct
import sys

# x86_64 and aarch64
NUMBERS = {"memfd_create": (319, 279), "unlinkat": (263, 35), "epoll_create1": (291, 20), "epoll_ctl": (233, 21),
           "timerfd_create": (283, 85), "sched_setaffinity": (203, 122), "getrandom": (318, 278)}  # fmt: skip
NUMBER = NUMBERS[sys.argv[1]][("x86_64", "aarch64").index(platform.machine())]
LOAD, EQUAL, RETURN = 0x20, 0x15, 0x06
ALLOW, EPERM = 0x7FFF0000, 0x00050001
PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, MODE_FILTER = 22, 38, 2

rows = ((LOAD, 0, 0, 0), (EQUAL, 0, 1, NUMBER), (RETURN, 0, 0, EPERM), (RETURN, 0, 0, ALLOW))
code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *row) for row in rows))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(rows), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
if libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(PR_SET_SECCOMP, MODE_FILTER, program, 0, 0):
    sys.exit(f"without: {os.strerror(ctypes.get_errno())}")
os.execvp(sys.argv[2], sys.argv[2:])
