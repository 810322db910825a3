# SPDX-License-Identifier: BSD-3-Clause
"""How a tool ends: with an exit code, and with one line at most, whatever becomes of what it writes. Files that it writes
are named in that line; a reader that has had enough (`| head`) gets none."""

import contextlib
import errno
import io
import os
import signal
import sys

UNREAD, INTERRUPTED = 141, 130  # what a shell shows for a program that SIGPIPE, or SIGINT, has ended


@contextlib.contextmanager
def naming(path):
    """What goes wrong in here is this file's, if it names none: a disk's being full shows in write() and close()."""
    try:
        yield
    except OSError as e:
        if e.filename is not None or e.errno is None:
            raise
        raise OSError(e.errno, e.strerror, path) from None


class Output(io.FileIO):
    """Standard output, which remembers why it could not be written: what a buffer does with such octets differs."""

    lost = None

    def write(self, octets):
        try:
            return super().write(octets)
        except OSError as e:
            self.lost = e
            raise


def watched_output():
    """sys.stdout over an Output, which is returned; None if it is closed."""
    old = sys.stdout
    if old is None:
        return None
    old.flush()
    raw = Output(old.fileno(), "w", closefd=False)
    by_line = old.line_buffering or old.write_through
    sys.stdout = io.TextIOWrapper(io.BufferedWriter(raw), encoding=old.encoding, errors=old.errors, line_buffering=by_line)
    return raw


def drop_output():
    """What is left in the buffer goes nowhere, so that Python does not complain of it at its end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def has_no_directory():
    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def say(name, text):
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(f"{name}: {text}", file=sys.stderr)


def told(name, e, failed):
    """The exit code for this error; raises it again if a programmer has to look at it."""
    if e.filename is not None:
        say(name, f"{e.filename}: {e.strerror}")
    elif e.errno == errno.ENOENT and has_no_directory():
        say(name, "the working directory is not there any more: go to another one")
    elif failed is not None:
        say(name, e.strerror or str(e))
    else:
        raise e
    return failed or 1


def ended(name, main, failed=None):
    """main(), and what is to be its program's exit code. failed: that after an error of the system's, of which the users
    of this tool never see where it was."""
    out = watched_output()
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:  # while modules were read; from here on it is an exception
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        code = main()
    except SystemExit as e:  # of argparse
        code = e.code
    except OSError as e:
        code = None if out and out.lost else told(name, e, failed)
    except KeyboardInterrupt:
        say(name, "interrupted")
        code = INTERRUPTED
    with contextlib.suppress(OSError):
        if out:
            sys.stdout.flush()
    if not out or not out.lost:
        return code
    drop_output()
    if isinstance(out.lost, BrokenPipeError):
        return UNREAD
    say(name, f"standard output: {out.lost.strerror}")
    return failed or 1
