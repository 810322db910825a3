# SPDX-License-Identifier: BSD-3-Clause
"""Every program of a case writes what it sends and receives (UWARP_PCAP; over the kernel's TCP tcpdump
does), and tshark judges it: nothing malformed, every CRC good, no opcode unknown. capture.py looks
closer, at a few cases."""

import collections
import os
import re
import subprocess

from harness import ROOT, Program, Stage, check, need
from links import Host
from tcpdump import Tcpdump

TSHARK = ["-n", "--disable-protocol", "rpcordma", "--disable-protocol", "smb_direct", "-o", "tcp.try_heuristic_first:TRUE"]
# tshark is not to guess what a datagram's payload is: random octets look like some protocol now and then.
for guess in ("eth_over_ib", "mellanox_eoib", "sdp_infiniband", "lnet_ib", "nvme_rdma", "iser_infiniband"):
    TSHARK += ["--disable-heuristic", guess]
# What was lost is sent again, and has to be put where it belongs.
TSHARK += ["-o", "tcp.reassemble_out_of_order:TRUE"]
LUA = os.path.join(ROOT, "tools", "wireshark", "uwarp.lua")
SHOWN = ["-Y", "iwarp_mpa or iwarp_ddp_rdmap or _ws.malformed", "-O", "iwarp_mpa,iwarp_ddp_rdmap", "-X", f"lua_script:{LUA}"]
# What tshark says, and what it means to us. Opcodes 8 and 9 are unknown to it; uwarp.lua names them,
# and our 15.
WORDS = {
    "FPDUs": r"ULPDU length: ",
    "good CRCs": r"\(Good CRC32\)",
    "bad CRCs": r"\(Bad CRC32",
    "malformed": r"Malformed Packet",
    "unknown opcodes": r"OpCode: Unknown \(0x[^89f]\)",
}
# Captures are large and tshark wordy: grep picks the words out much faster than we could.
GREP = ["grep", "-oE", "|".join(WORDS.values())]
# Between processes there is none by default (doc/adr/0043).
CRC = {"UWARP_CRC": "1"}
FAULTS = ("bad CRCs", "malformed", "unknown opcodes")
# Writing everything down takes its time.
SLOWNESS = 4
# A program that was killed leaves half a record behind.
CUT_SHORT = "cut short in the middle of a packet"
# The kernel's loopback is faster than a disk: a ring (KiB) that holds what a case sends, in slots for
# its largest packets.
RING = ["-B", str(1 << 19), "--immediate-mode", "-s", "65600", "tcp"]


class RecordingStage(Stage):
    """One whose programs record."""

    total = collections.Counter()

    def __init__(self, link):
        super().__init__(link)
        Program.slowness = SLOWNESS
        self.outside = None
        if hasattr(link, "weak"):  # its programs are another user's
            os.chmod(self.folder, 0o777)

    def start(self, role, command, env=None, options=None):
        if isinstance(self.link, Host) and (options is None or Host.name in options):
            self.outside = self.outside or Tcpdump(self, "outside", "lo", RING)
            return super().start(role, command, env, options)
        if options and Host.name in options:  # the other end records
            return super().start(role, command, env, options)
        path = os.path.join(self.folder, f"{len(os.listdir(self.folder))}-{role}.pcap")
        return super().start(role, command, {"UWARP_PCAP": path, **CRC, **(env or {})}, options)

    def left_over(self):
        if self.outside:
            self.outside.stop(60, anything=False)
        return super().left_over()

    def captures(self):
        return sorted(os.path.join(self.folder, n) for n in os.listdir(self.folder) if ".pcap" in n)

    def judge(self):
        """Judge and forget what the case has recorded."""
        for path in self.captures():
            seen = tally(path)
            RecordingStage.total.update(seen)
            RecordingStage.total["files"] += 1
            os.unlink(path)
            name = os.path.basename(path)
            bad = [f"{seen[f]} {f}" for f in FAULTS if seen[f]]
            check(not bad, f"{name}: {', '.join(bad)}")
            check(seen["good CRCs"] == seen["FPDUs"], f"{name}: {seen['FPDUs']} FPDUs, {seen['good CRCs']} good CRCs")

    @classmethod
    def summary(cls):
        figures = ", ".join(f"{cls.total[name]} {name}" for name in ("files", *WORDS))
        return f"captures: {figures}"


def tally(path):
    """How often tshark says what."""
    seen = collections.Counter()
    command = [need("tshark"), "-r", path, *TSHARK, *SHOWN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as tshark:
        grep = subprocess.run(GREP, stdin=tshark.stdout, stdout=subprocess.PIPE, env={**os.environ, "LC_ALL": "C"})
        said = tshark.stderr.read().decode(errors="replace")
    found = collections.Counter(grep.stdout.decode().splitlines())
    for text, n in found.items():
        seen[next(what for what, words in WORDS.items() if re.fullmatch(words, text))] += n
    check(tshark.returncode == 0 or CUT_SHORT in said, f"{os.path.basename(path)}: tshark ended with {tshark.returncode}: {said.strip()}")
    return seen
