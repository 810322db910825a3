# SPDX-License-Identifier: BSD-3-Clause
"""tcpdump on an interface, from outside the programs; what it captures has to be complete."""

import os
import signal
import time

from harness import START, Skipped, check, need, wait_until

# A capture is complete when its file has not grown over so many looks.
QUIET_LOOKS, QUIET_PAUSE = 10, 0.02
EMPTY = 24  # octets: the file's header


class Tcpdump:
    def __init__(self, stage, role, interface, words):
        """words: tcpdump's own, for its ring and what it looks at."""
        self.path = os.path.join(stage.folder, f"{role}-{interface}.pcap")
        self.program = stage.start_plain(role, [need("tcpdump"), "-i", interface, "-Z", "root", *words, "-U", "-w", self.path])
        wait_until(lambda: "listening on" in self.program.err or self.program.poll() is not None, START)
        if "Couldn't change to" in self.program.err:  # in a user namespace there is nothing to change to
            raise Skipped(f"only root can run it: {self.program.err.strip()}")
        check("listening on" in self.program.err, f"tcpdump does not start: {self.program.err.strip()}")

    def stop(self, seconds=10, anything=True):
        """It has written what there was, which may be nothing unless `anything`, once its file stops
        growing."""
        sizes = [-1] * QUIET_LOOKS

        def settled():
            sizes.append(os.stat(self.path).st_size)
            time.sleep(QUIET_PAUSE)
            return (sizes[-1] > EMPTY or not anything) and sizes[-1] == sizes[-QUIET_LOOKS]

        check(wait_until(settled, seconds), "tcpdump captures nothing or does not come to an end")
        self.program.kill(signal.SIGINT)
        self.program.wait(10)
        check("0 packets dropped by kernel" in self.program.err, "tcpdump has not captured everything")
