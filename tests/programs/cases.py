# SPDX-License-Identifier: BSD-3-Clause
"""The table of cases. A case is a callable that is given a Stage; it says by `program` and `flags`
what it runs."""

import bad_input
import capture
import lifecycle
from links import Loop, Memif, Veth
from pairs import Copy, Endless, Pair

# rping takes 23 (room for its greeting) to 65535: the ends, the powers of two and their neighbours,
# and sizes around what one and two segments of an Ethernet frame and of a memif frame hold.
RPING_SIZES = [
    23, 24, 31, 32, 33, 63, 64, 65, 101, 128, 255, 256, 511, 512, 513, 1000, 1023, 1024, 1025, 1439, 1500, 2048,
    2049, 4095, 4096, 8191, 8192, 8930, 16384, 17861, 32768, 40001, 65534, 65535,
]  # fmt: skip
RPING_SIZES_VETH = [23, 64, 101, 1024, 1440, 1441, 4096, 16384, 65535]


def rping(size, more=""):
    flags = f"-V -v -C 1000 -S {size}{more}"
    return Pair("rping", flags, f"rping -s {flags}", f"rping -c -a {{server}} {flags}", 30)


def perftest(name, flags, seconds):
    return Pair(name, flags, f"{name} {flags}", f"{name} {flags} {{server}}", seconds)


def perftests(flags, seconds):
    return [perftest(f"ib_{op}_{what}", flags, seconds) for op in ("write", "send", "read") for what in ("lat", "bw")]


CM = [
    Pair("ucmatose", "", "ucmatose", "ucmatose -s {server}"),
    Pair("ucmatose", "-c 10 -C 100 -S 5000", "ucmatose -c 10 -C 100 -S 5000", "ucmatose -s {server} -c 10 -C 100 -S 5000"),
    Pair("rdma_client", "", "rdma_server", "rdma_client -s {server}"),
    Pair("rdma_xclient", "-c r", "rdma_xserver -c r", "rdma_xclient -s {server} -c r"),
]
SOCKETS = [
    Pair("rstream", "-T v", "rstream -T v", "rstream -s {server} -T v", 60),
    Copy("rcopy", "", "rcopy", "rcopy original {server}:{folder}/copy", 60),
]
CMTIME = [Endless("cmtime", "-c 100", "cmtime -c 100", "cmtime -c 100 -s {server}")]

# One for each operation, and both ways of measuring: -a takes long, see below.
VETH_ALL = ["ib_write_bw", "ib_send_lat", "ib_read_bw"]

# perftest's -a spends 0.2 s per size on finding out the clock rate; the default number of
# iterations up to 8 MiB would add minutes.
GROUPS = {
    "rping": [(Memif, [rping(n) for n in RPING_SIZES])],
    "cm": [(Memif, CM + SOCKETS + CMTIME)],
    "perftest": [(Memif, perftests("-R", 60))],
    "perftest-all": [(Memif, perftests("-R -a -n 20", 90))],
    "af_packet": [(Veth, [rping(n) for n in RPING_SIZES_VETH] + CM + perftests("-R", 60))],
    "af_packet-all": [(Veth, [perftest(name, "-R -a -n 20", 90) for name in VETH_ALL])],
    "tshark": [(Memif, capture.MEMIF), (Veth, capture.VETH)],
    "bad-input": [(Memif, bad_input.MEMIF), (Veth, bad_input.VETH)],
    "lifecycle": [(Memif, lifecycle.MEMIF), (Loop, lifecycle.LOOP), (Veth, lifecycle.VETH)],
}
