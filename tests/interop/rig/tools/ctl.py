#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run one command in a rig VM over a virtio-serial port.

usage: ctl.py DIR TIMEOUT COMMAND

DIR holds ctl0.sock, ctl1.sock, ... (QEMU's character devices). A free one is taken under a file
lock, so several callers can run commands at once. Prints the command's output and exits with its
status; 124 if it took too long, 125 if the VM does not answer."""

import base64
import fcntl
import glob
import os
import socket
import sys
import time

# What the VM may take beyond the command's own time, and how long one wait of it is.
GRACE, SLICE = 15, 1.0


class NoAnswer(Exception):
    pass


class Patience:
    """Seconds of waiting. A wait that took far longer than it was to costs no more than that: this machine, or this
    process, stood still, and so did the VM, whose answer is to be read now."""

    def __init__(self, seconds):
        self.left = seconds

    def wait(self, limit, what):
        """what(seconds) waits that long at most."""
        if self.left <= 0:
            raise NoAnswer("timed out")
        start = time.monotonic()
        try:
            return what(limit)
        finally:
            self.left -= min(time.monotonic() - start, limit)


def take_port(directory, patience):
    """(path of a socket, lock file that holds it)"""
    while True:
        for path in sorted(glob.glob(os.path.join(directory, "ctl*.sock"))):
            lock = open(path + ".lock", "w")
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return path, lock
            except OSError:
                lock.close()
        try:
            patience.wait(0.05, time.sleep)
        except NoAnswer:
            raise NoAnswer("no free control port") from None


def dial(path):
    """Connect by way of the directory's descriptor: a socket's path must be short."""
    fd = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY)
    try:
        s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        s.settimeout(GRACE)
        s.connect(f"/proc/self/fd/{fd}/{os.path.basename(path)}")
        return s
    finally:
        os.close(fd)


def dial_when_free(path, patience):
    """A socket with a full queue refuses at once."""
    while True:
        try:
            return dial(path)
        except BlockingIOError:
            patience.wait(0.05, time.sleep)


class Answer:
    """The port's octets as they come."""

    def __init__(self, sock, patience):
        self.sock, self.patience, self.buf = sock, patience, b""

    def receive(self, seconds):
        self.sock.settimeout(seconds)
        try:
            part = self.sock.recv(65536)
        except TimeoutError:
            return
        if not part:
            raise NoAnswer("the control port was closed")
        self.buf += part

    def more(self):
        self.patience.wait(SLICE, self.receive)

    def until(self, mark):
        while mark not in self.buf:
            self.more()
        head, _, self.buf = self.buf.partition(mark)
        return head

    def exactly(self, n):
        while len(self.buf) < n:
            self.more()
        return self.buf[:n]


def run(directory, limit, command):
    """(exit status, output) of a shell command in the VM; NoAnswer if it does not answer."""
    patience = Patience(limit + GRACE)
    path, lock = take_port(directory, patience)
    nonce = os.urandom(6).hex()
    code = base64.b64encode(command.encode()).decode()
    try:
        with lock, dial_when_free(path, patience) as s:
            s.sendall(f"{nonce} {max(1, int(limit))} {code}\n".encode())
            answer = Answer(s, patience)
            answer.until(b"\x01RIG " + nonce.encode() + b" ")  # before it: an answer nobody waited for
            status, length = answer.until(b"\n").split(b" ")
            return int(status), answer.exactly(int(length))
    except OSError as e:
        raise NoAnswer(str(e)) from None


def main():
    try:
        status, output = run(sys.argv[1], float(sys.argv[2]), sys.argv[3])
    except NoAnswer as e:
        print(f"ctl: {e}", file=sys.stderr)
        return 125
    sys.stdout.buffer.write(output)
    return status


if __name__ == "__main__":
    sys.exit(main())
