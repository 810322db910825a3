# SPDX-License-Identifier: BSD-3-Clause
"""What a guest is doing, for a row that failed to explain itself: QEMU's CPU time
meanwhile, where its processors are, its processes, its kernel's last words."""

import os
import re
import socket
import time

from guest import Broken, qemu

# Seconds for the guest's own answer, and for QEMU's.
PATIENCE, MONITOR = 20, 5
LINES = 40


class Clock:
    """Of a guest since a moment: what passed here, and what QEMU computed in it."""

    def __init__(self, guest):
        self.guest, self.pid = guest, qemu.process_of(guest.p.pid)
        self.start, self.cpu = time.monotonic(), qemu.state_of(self.pid)[1]

    def line(self):
        state, cpu = qemu.state_of(self.pid)
        return f"QEMU (state {state}) had {cpu - self.cpu:.1f} s of CPU time in {time.monotonic() - self.start:.1f} s"


def monitor(place, command):
    """What QEMU's monitor says to this."""
    fd = os.open(place, os.O_PATH | os.O_DIRECTORY)  # a socket's path must be short
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.settimeout(MONITOR)
            s.connect(f"/proc/self/fd/{fd}/monitor.sock")
            text = ""
            for words in (b"", command.encode() + b"\n"):
                s.sendall(words)
                text = ""
                while not text.endswith("(qemu) "):
                    part = s.recv(65536)
                    if not part:
                        return text
                    text += part.decode(errors="replace")
            return text
    finally:
        os.close(fd)


def processors(text):
    """Of `info registers -a`: where each processor is, and whether it sleeps."""
    found = re.findall(r"CPU#(\d+)(.*?)(?=CPU#|\Z)", text, re.S)
    lines = []
    for number, registers in found:
        at = re.search(r"\b[RE]?IP=([0-9a-f]+)|\bPC=([0-9a-f]+)", registers)
        halted = re.search(r"\bHLT=(\d)", registers)
        lines += [f"processor {number} at {(at[1] or at[2]) if at else '?'}" + (", asleep" if halted and halted[1] == "1" else "")]
    return lines


def where(guest):
    """Where its processors are, asked twice: do they move?"""
    lines = []
    for pause in (0.5, 0):
        try:
            lines += processors(monitor(guest.place, "info registers -a"))
        except OSError as e:
            return [*lines, f"QEMU's monitor does not answer: {e}"]
        time.sleep(pause)
    return lines


def gather(guest, clock):
    """Lines that say what the guest is doing."""
    lines = [clock.line(), *where(guest)]
    try:
        lines += guest.run("state", PATIENCE)[1].splitlines()
    except Broken as e:
        lines += [str(e), *guest.read("console.log").splitlines()[-20:]]
    return lines[:LINES]
