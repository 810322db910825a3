# SPDX-License-Identifier: BSD-3-Clause
"""The table of cases. A case is a callable that is given a Stage; it says by `program` and `flags`
what it runs."""

import re

import apps
import bad_input
import bridge
import capture
import cmless
import failures
import flood_cases
import hostile_cases
import kept
import lifecycle
import local_cases
import pyverbs_cases
import qemu_cases
import roce_capture
import shared6
import shared_rc
import shared_port
import shared_port6
import stat_cases
import valkey_cases
from alone import Alone, PrivateSysfs, Watch
from harness import hears_udp, listens
from links import Host, Local, LocalMixed, LocalMixedBack, LocalOwn, LocalSix, LocalVlan, Loop, Memif, Packet, PacketFixed, PacketOwn, PacketSix, PacketSixAlone, Tap, Uwarpd, UwarpdDpdk, UwarpdLocal, UwarpdLossy, UwarpdOwn, UwarpdSix, UwarpdSixAlone, UwarpdSixLocal, UwarpdSixOwn, UwarpdSixPacket, Veth, Vlan
from pairs import ConnectionTimes, Copy, Endless, Impaired, Pair
from routed import Narrow, Routed

# rping takes 23 (room for its greeting) to 65535: the ends, powers of two or a neighbour of each,
# and sizes around what one and two segments of an Ethernet frame and of a memif frame hold.
RPING_SIZES = [
    23, 24, 25, 33, 64, 101, 255, 512, 1000, 1025, 1439, 1500, 2048, 4095, 8192, 8930, 16384, 17861, 32769, 65534, 65535,
]  # fmt: skip
RPING_SIZES_VETH = [23, 64, 101, 1024, 1440, 1441, 4096, 16384, 65535]


PERFTEST_PORT = 18515


def rping(size, more=""):
    flags = f"-V -v -C 1000 -S {size}{more}"
    return Pair("rping", flags, f"rping -s {flags}", f"rping -c -a {{server}} {flags}", 30)


def perftest(name, flags, seconds):
    return Pair(name, flags, f"{name} {flags}", f"{name} {flags} {{server}}", seconds)


def perftest6(name, flags, seconds=90):
    """Without rdma_cm, with which perftest has IPv4 only; as RoCE, since ib_send_bw needs that."""
    pair = Pair(name, f"{flags}, IPv6", f"{name} -x 1 --ipv6 {flags}", f"{name} -x 1 --ipv6 {flags} {{server}}", seconds)
    pair.ready = listens(PERFTEST_PORT)
    return pair.with_env(UWARP_IDENTITY="roce")


def perftests(flags, seconds):
    return [perftest(f"ib_{op}_{what}", flags, seconds) for op in ("write", "send", "read") for what in ("lat", "bw")]


def rping_to(server, client, more=""):
    """Its addresses in all their forms."""
    flags = f"-V -v -C 50 -S 1000{more}"
    return Pair("rping", f"-s -a {server}, -c -a {client}", f"rping -s -a {server} {flags}", f"rping -c -a {client} {flags}")


CM = [
    rping_to("0.0.0.0", "127.0.0.1"),
    rping_to("{server}", "::ffff:{server}"),
    rping_to("::", "::1"),
    rping_to("::", "{server}"),
    rping_to("::1", "{server6}"),
    Pair("rping", "-q", "rping -s -V -q -C 50", "rping -c -a {server} -V -v -q -C 50"),
    Pair("rping", "RDMAV_FORK_SAFE=1", "rping -s -V -C 50", "rping -c -a {server} -V -v -C 50").with_env(RDMAV_FORK_SAFE="1"),
    Endless("rping", "-s -P", "rping -s -P -V -C 50", "rping -c -a {server} -V -v -C 50"),
    Pair("ucmatose", "", "ucmatose", "ucmatose -s {server}"),
    Pair("ucmatose", "-c 10 -C 100 -S 5000", "ucmatose -c 10 -C 100 -S 5000", "ucmatose -s {server} -c 10 -C 100 -S 5000"),
    Pair("ucmatose", "-m", "ucmatose -m -C 50", "ucmatose -s {server} -m -C 50"),
    Pair("rdma_client", "", "rdma_server", "rdma_client -s {server}"),
    Pair("rdma_xclient", "-c r", "rdma_xserver -c r", "rdma_xclient -s {server} -c r"),
    ConnectionTimes("cmtime", "-c 100", "cmtime -c 100", "cmtime -c 100 -s {server}"),
    ConnectionTimes("cmtime", "-c 1000", "cmtime -c 1000", "cmtime -c 1000 -s {server}"),
]


def stream(program, mode, more="-S 65536 -I 20 -C 20"):
    """One mode; without more the whole list of sizes."""
    flags = f"-T {mode} {more}".strip()
    return Pair(program, flags, f"{program} {flags}", f"{program} -s {{server}} {flags}", 60)


# Of async the server alone: a client in that mode takes the server's good end for a failure when it has not
# read the last octets yet (doc/programs.md).
ASYNC = "-S 65536 -I 20 -C 20"
SOCKETS = [
    stream("rstream", "v", "-S all -I 20"),
    Pair("rstream", f"-T a {ASYNC}; server alone", f"rstream -T a {ASYNC}", f"rstream -s {{server}} {ASYNC}"),
    *(stream("rstream", mode) for mode in ("b", "n", "r")),
    *(stream("riostream", mode) for mode in ("a", "b", "n", "v")),
    Copy("rcopy", "", "rcopy", "rcopy original {server}:{folder}/copy", 60),
]
DEVICE = [
    Alone("ibv_devices", "", "ibv_devices", r"^\s+uwarp0\s+[0-9a-f]{16}$"),
    Alone("ibv_devinfo", "", "ibv_devinfo", r"hca_id:\s+uwarp0", r"state:\s+PORT_ACTIVE"),
    Alone("ibv_devinfo", "-v", "ibv_devinfo -v", r"max_qp:\s+[1-9]", r"atomic_cap:\s+ATOMIC_"),
    Alone("ibv_devinfo", "-d uwarp0 -i 1", "ibv_devinfo -d uwarp0 -i 1", r"port:\s+1$"),
    Alone("ibv_devinfo", "-l", "ibv_devinfo -l", r"^\s+uwarp0$"),
    # what a kernel device shows in /sys, to programs that use libc and to one that does not
    Alone("cat", "/sys/class/infiniband", "cat /sys/class/infiniband/uwarp0/ports/1/gids/0", r"^0000:0000:0000:0000:0000:ffff:7f00:000[0-9a-f]$"),
    Alone("realpath", "/sys/class/infiniband", "realpath /sys/class/infiniband/uwarp0/../..", r"^/sys/devices/platform/uwarp.0$"),
    Alone("ls", "/dev/infiniband", "ls -l /dev/infiniband", r"^crw-rw-rw- .* uverbs30071$"),
    Alone("python3", "os.listdir", "python3 -c \"import os; print(os.listdir('/sys/class/infiniband'))\"", r"'uwarp0'"),
    PrivateSysfs(),
    Watch("ibv_asyncwatch", "", "ibv_asyncwatch -d uwarp0", "async event FD"),
]
# What perftest can be told besides the size; -n and -D keep it short.
PERFTEST_FLAGS = [
    ("ib_send_bw ib_write_bw ib_read_bw ib_atomic_bw", "-R -n 200 -b"),
    ("ib_send_bw ib_write_bw ib_read_bw ib_atomic_bw", "-R -n 200 -q 4"),
    ("ib_send_bw ib_read_bw ib_atomic_bw ib_send_lat ib_read_lat ib_atomic_lat", "-R -n 200 -e"),
    ("ib_send_bw ib_send_lat", "-R -n 200 --use-srq"),
    ("ib_write_bw ib_write_lat ib_send_bw ib_send_lat", "-R -n 200 -s 64 -I 64"),
    ("ib_send_bw ib_write_bw ib_read_bw ib_atomic_bw", "-R -D 1"),
    ("ib_send_bw", "-R -n 200 -l 8"),
    ("ib_write_bw ib_send_lat", "-R -n 200 -z"),
    ("ib_write_bw", "-R -n 200 -t 1"),
    ("ib_atomic_bw ib_atomic_lat", "-R -n 1000 -A CMP_AND_SWAP"),
    ("ib_atomic_bw ib_atomic_lat", "-R -n 1000 -A FETCH_AND_ADD"),
]
PERFTEST_MORE = [
    *(perftest(name, flags, 30) for names, flags in PERFTEST_FLAGS for name in names.split()),
    # To an RNIC it waits for ever now and then (doc/programs.md): it has no credits for RoCE.
    perftest("ib_send_bw", "-R -n 200 -q 4 --use-srq", 30).with_env(UWARP_IDENTITY="roce"),
]



def over_ip6(program, server, client, seconds=30):
    return Pair(program, client.partition(" ")[2], server, client, seconds)


IP6 = [
    rping_to("{server6}", "{server6}"),
    rping_to("::", "{server6}"),
    rping_to("::", "{local6}"),
    over_ip6("ucmatose", "ucmatose -f ip6 -b {server6} -c 10 -C 50", "ucmatose -f ip6 -s {server6} -c 10 -C 50"),
    over_ip6("rstream", "rstream -f ip6 -b {server6} -T v -S 65536 -I 20 -C 20", "rstream -f ip6 -s {server6} -T v -S 65536 -I 20 -C 20", 60),
]


DAMAGE = "corrupt=0.5%,truncate=0.1%"
IMPAIRED = [
    Impaired("drop=1%", "rping", "-s -V -C 300 -S 4000", "-c -a {server} -V -C 300 -S 4000"),
    Impaired(DAMAGE, "rping", "-s -V -C 300 -S 4000", "-c -a {server} -V -C 300 -S 4000"),
    Impaired("reorder=2%:200us,duplicate=2%", "rping", "-s -V -C 300 -S 65535", "-c -a {server} -V -C 300 -S 65535"),
    Impaired("drop=0.1%," + DAMAGE, "ib_send_bw", "-R -n 300", "-R -n 300 {server}"),
    Impaired("drop=0.1%,reorder=1%:200us", "ib_write_bw", "-R -n 300", "-R -n 300 {server}"),
    Impaired("delay=1ms,rate=1G,queue=128K", "ib_read_bw", "-R -n 300", "-R -n 300 {server}"),
    Impaired("blackout=20ms+300ms", "ib_send_lat", "-R -n 2000", "-R -n 2000 {server}"),
]
# Each thread model: a program that sleeps between messages, one that polls, one that spins on memory, a stream.
MODELS = ("c1", "c2", "c3", "adaptive")
MODEL_CASES = [
    lambda: Pair("rping", "-C 50", "rping -s -V -C 50", "rping -c -a {server} -V -v -C 50"),
    lambda: perftest("ib_send_lat", "-R -n 200", 60),
    lambda: perftest("ib_write_lat", "-R -n 200", 60),
    lambda: perftest("ib_send_bw", "-R -n 3200 -s 64 -l 32", 60),
]


def in_model(case, model):
    case.flags += f", UWARP_THREADS={model}"
    return case.with_env(UWARP_THREADS=model)


THREADS = [in_model(case(), model) for model in MODELS for case in MODEL_CASES]

# Addresses in other forms are memif's; and cmtime of rdma-core 56 reaches its peer by the kernel's TCP,
# too, at the same address.
CM_VETH = [case for case in CM if case.program not in ("rping", "cmtime")]

# perftest's -a spends 0.2 s per size on finding out the clock rate; the default number of
# iterations up to 8 MiB would add minutes. Over Ethernet one program does it, and the others send
# what -a ends with: there the large sizes are what differs.
VETH_ALL = [perftest("ib_send_bw", "-R -a -n 20", 90)] + [
    perftest(f"ib_{name}", "-R -s 8388608 -n 5", 60)
    for name in ("write_lat", "write_bw", "send_lat", "read_lat", "read_bw")
]

# The transport alone is another: a little of everything that a stream carries. The device has an IPv4 address there
# and nothing else: no GID but the first.
CM_SOCKET = [case for case in CM if "-a ::1" not in case.flags]
CMLESS_SOCKET = [case for case in cmless.CASES if not re.search("-[gx] [1-9]", case.flags)]
SOCKET = (
    [rping(n) for n in (23, 1439, 65535)] + CM_SOCKET + perftests("-R", 60)
    + [perftest("ib_write_bw", "-R -q 4 -s 1048576 -n 100", 60), perftest("ib_read_bw", "-R -e -n 500", 60)]
    + CMLESS_SOCKET
)  # fmt: skip

# Other TCPs than lwIP's raw API, over the same links.
def over(transport, case):
    case.flags = f"{transport}: {case.flags}"
    return case.with_env(UWARP_TRANSPORT=transport)


SEQ = [
    *(over("seq", rping(n)) for n in (64, 1000, 65535)),
    over("seq", rping_to("::", "::1")),
    *(over("seq", perftest(f"ib_{name}", "-R -n 300", 60)) for name in ("send_lat", "read_lat", "write_lat")),
    *(over("seq", perftest(f"ib_{name}", "-R -s 65536 -n 300", 60)) for name in ("send_bw", "write_bw", "read_bw")),
    over("seq", Pair("ucmatose", "-c 10 -C 100 -S 5000", "ucmatose -c 10 -C 100 -S 5000", "ucmatose -s {server} -c 10 -C 100 -S 5000")),
]
SEQ_VETH = [
    over("seq", rping_to("{server}", "{server}")),
    over("seq", perftest("ib_send_bw", "-R -s 65536 -n 100", 60)),
]

# On two stacks: connections spread over them, and a program's CQ is filled by both.
def on_stacks(case, **env):
    case.flags += ", UWARP_STACKS=2"
    return case.with_env(UWARP_STACKS="2", **env)


STACKS_VETH = [
    *(on_stacks(rping(n)) for n in (64, 65535)),
    *(on_stacks(perftest(f"ib_{name}", "-R -n 300", 60)) for name in ("send_lat", "read_lat", "write_lat")),
    # perftest pairs its QPs by the order of the Requests (doc/adr/0054)
    *(on_stacks(perftest(f"ib_{name}", "-R -q 4 -s 65536 -n 100", 60)) for name in ("send_bw", "write_bw", "read_bw")),
    on_stacks(Pair("ucmatose", "-c 10 -C 100 -S 5000", "ucmatose -c 10 -C 100 -S 5000", "ucmatose -s {server} -c 10 -C 100 -S 5000")),
]
STACKS = [*STACKS_VETH, cmless.OnStacks("ib_write_bw", "-q 4 -n 1000"), cmless.OnStacks("ibv_rc_pingpong", "-g 0")]

# Merged frames of many FPDUs, and the ends of what a merged frame holds.
PACKET = [
    *(rping(n) for n in (64, 1440, 16384, 62660, 65535)),
    *CM_VETH,
    *perftests("-R", 60),
    perftest("ib_send_bw", "-R -n 300 -s 1048576", 60),
    perftest("ib_send_lat", "-R -n 300 -e", 60),
    perftest("ib_send_bw", "-R -n 200 -q 4", 60),
]
# Between processes that share one address.
LOCAL = [rping(n) for n in (64, 65535)] + [perftest(f"ib_{name}", "-R -n 300", 60) for name in ("send_bw", "read_lat")]
PACKET_OWN = [rping(64), rping(65535), perftest("ib_write_lat", "-R", 60), perftest("ib_read_bw", "-R", 60), *IP6]

VLAN = [rping(64), rping(65535), perftest("ib_send_bw", "-R -n 300 -s 65536", 60)]

# Through routers: every operation at the ends of what segments of the path hold, over both versions of IP.
ROUTED = [
    *(rping(n) for n in (64, 1440, 1441, 65535)),
    rping_to("{server6}", "{server6}"),
    *perftests("-R -n 300", 60),
    *(perftest(f"ib_{name}_bw", "-R -a -n 20", 90) for name in ("send", "write", "read")),
    *(perftest6(f"ib_{name}", "-a -n 20") for name in ("send_bw", "write_bw", "read_bw", "send_lat")),
]
UWARPD = [
    rping(64), rping(65535), *perftests("-R -n 200", 60)[:2],
    Pair("ucmatose", "-c 10 -C 100 -S 5000", "ucmatose -c 10 -C 100 -S 5000", "ucmatose -s {server} -c 10 -C 100 -S 5000"),
    *shared_port.SHORT,
]
# Long segments that lose some of their pieces, and none at all (doc/adr/0044).
UWARPD_LOSSY = [Pair("rping", "-S 65000 -C 100", "rping -s -V -S 65000 -C 100", "rping -c -a {server} -V -S 65000 -C 100", 60), perftest("ib_send_bw", "-R -n 1000 -s 65536", 60), perftest("ib_read_bw", "-R -n 500 -s 65536", 60)]
UWARPD_SINGLE = [perftest("ib_send_bw", "-R -n 500 -s 65536", 60).with_env(UWARP_TSO="off")]
# Two clients of one uwarpd.
UWARPD_LOCAL = [*LOCAL, shared_port.Refused(), shared_port.SlowAnswer()]
# Datagrams through a uwarpd (doc/adr/0040).
UWARPD_DATAGRAMS = [cmless.CmLess("ibv_ud_pingpong", "-g 0 -c", None, 20), cmless.CmLess("ibv_uc_pingpong", "-g 0 -c -s 20000 -n 500", "roce", 20)]

# Datagrams of rdma_cm (doc/adr/0039). udaddy looks for the GID that a datagram came to, of RoCE's type.
def udaddy(server, flags, more=""):
    return Pair("udaddy", f"{flags}{more}", f"udaddy {flags}{more}", f"udaddy -s {server} {flags}", 30).with_env(UWARP_IDENTITY="roce")


# mckey waits for 3 s when it has joined, so the server is a member before the client sends.
def mckey(flags):
    both = f"mckey -m 239.1.2.3 {flags}"
    return Pair("mckey", flags, f"{both} -b {{server}}", f"{both} -s -b {{client}}", 30)


# IPv6; ff15:: is of this site and given out by nobody (RFC 4291 §2.7).
def mckey6(server, client):
    both = "mckey -m ff15::7577 -C 20 -S 500"
    return Pair("mckey", f"-m ff15::7577 -b {server}", f"{both} -b {server}", f"{both} -s -b {client}", 30)


MCKEY = [mckey("-C 20 -S 500")]
MCKEY6 = [mckey6("{server6}", "{client6}")]
# Between processes of one host and one interface that do not.
LOCAL_OWN = [rping(65535), IP6[0]]
DGRAM_CM = [udaddy("{server}", "-c 10 -C 100 -S 1000")]
# Datagrams are the first stack's; the second hands over what comes to it.
# All datagrams at once, and no more than the ring of DPDK's packet socket holds (512): whoever receives may nap for 1 ms meanwhile.
FITS_RING = "-c 10 -C 40 -S 1000"
STACKS_DGRAM = [on_stacks(udaddy("{server}", FITS_RING), UWARP_IDENTITY="roce"), on_stacks(mckey("-C 20 -S 500"))]
STACKS_PINGPONG = [cmless.OnStacks("ibv_ud_pingpong", "-g 0 -c"), cmless.OnStacks("ibv_uc_pingpong", "-g 0 -c -s 20000 -n 500", "roce")]
DGRAM_CM_MORE = [udaddy("{server}", "-c 1 -C 1 -S 1"), udaddy("{server}", "-c 10 -C 10 -S 1024 -t 40"), udaddy("{server6}", "-c 3 -C 30 -S 500", " -b ::")]
# IPv6 through a uwarpd (doc/adr/0058).
UWARPD_SIX = [*IP6[:4], perftest6("ib_send_bw", "-n 200"), perftest6("ib_write_lat", "-n 200"), *shared6.CASES[:3], shared_port6.Hostile(), shared_port6.Renewed(), udaddy("{server6}", "-c 3 -C 30 -S 500", " -b ::")]
UWARPD_SIX_OWN = [*IP6[1:4], shared_port.Refused("{server6}")]
UWARPD_SIX_LOCAL = [shared_port.Refused("{server6}"), IP6[0], IP6[2], perftest6("ib_send_bw", "-n 200"), udaddy("{server6}", "-c 3 -C 30 -S 500", " -b ::")]


# Datagrams of rsockets. The server does not end.
UDPONG_PORT = 7174
def udpong(flags, client=""):
    pair = Endless("udpong", flags, f"udpong -b {{server}} {flags}", f"udpong -s {{server}} {flags} {client}".rstrip(), 30)
    pair.ready = hears_udp(UDPONG_PORT)
    return pair.with_env(UWARP_IDENTITY="roce")


UDPONG = [udpong("-C 100 -S 1000"), udpong("-T e -C 100 -S 1000"), udpong("-T a -C 20 -S 60"), udpong("-T b -C 1000 -S 200"), udpong("-T n -C 200 -S 500")]
# Between processes that share one address.
DGRAM_LOCAL = [cmless.CmLess("ibv_ud_pingpong", "-g 0 -c", None, 20), cmless.CmLess("ibv_uc_pingpong", "-g 0 -c -s 20000 -n 500", "roce", 20),
               udaddy("{server}", "-c 10 -C 100 -S 1000"), *MCKEY]  # fmt: skip
# Groups whose programs wait a lot: so many processes play their cases side by side, each in a network of its own. The second
# row waits for links, timers and the ends of processes, for more than half of its time.
WORKERS = {
    "failures": 4,
    "af_packet": 2, "bad-input": 2, "datagrams": 2, "datagrams-more": 2, "ip6": 2, "lifecycle": 2, "narrow": 2, "packet": 2, "routed": 2, "stacks": 2, "tshark": 2, "uwarpd": 2,
}  # fmt: skip
GROUPS = {
    "cmless": [(Memif, cmless.CASES)],
    "cmless-more": [(Memif, cmless.MORE_CASES)],
    "cmless-shared": [(Packet, shared_rc.CASES), (Local, shared_rc.LOCAL), (Uwarpd, shared_rc.UWARPD), (UwarpdLocal, shared_rc.UWARPD)],
    "apps-cmless": [(Memif, cmless.APPS)],
    "datagrams": [(Memif, cmless.DATAGRAMS + DGRAM_CM + [udaddy("127.0.0.1", "-c 2 -C 10 -S 64")]), (Packet, cmless.DATAGRAMS + cmless.INFINIBAND + DGRAM_CM), (Local, DGRAM_LOCAL)],
    "datagrams-more": [(Memif, cmless.DATAGRAMS_MORE + DGRAM_CM_MORE + MCKEY + MCKEY6 + UDPONG), (Veth, DGRAM_CM_MORE + MCKEY6), (PacketOwn, DGRAM_CM_MORE + MCKEY6), (Packet, MCKEY + UDPONG), (Local, UDPONG[:1])],
    "rping": [(Memif, [rping(n) for n in RPING_SIZES])],
    "cm": [(Memif, CM)],
    "socket": [(Host, SOCKET + lifecycle.SOCKET)],
    "sockets": [(Memif, SOCKETS)],
    "ip6": [(Memif, IP6), (Veth, IP6), (PacketSix, IP6 + shared6.CASES + [perftest6("ib_send_bw", "-n 200")]), (PacketSixAlone, IP6[1:2]), (LocalSix, IP6[:2] + shared6.LOCAL)],
    "device": [(Memif, DEVICE)],
    "threads": [(Memif, THREADS)],
    "pyverbs": [(Memif, pyverbs_cases.CASES)],
    "perftest": [(Memif, perftests("-R", 60))],
    "perftest-more": [(Memif, PERFTEST_MORE)],
    "perftest-all": [(Memif, perftests("-R -a -n 20", 90))],
    "af_packet": [(Veth, [rping(n) for n in RPING_SIZES_VETH] + CM_VETH + perftests("-R", 60))],
    "packet": [(Packet, PACKET + kept.CASES + local_cases.MISTAKES), (PacketOwn, PACKET_OWN + kept.OWN), (Vlan, VLAN), (PacketFixed, [rping(64), IP6[0]]), (Local, LOCAL + local_cases.CASES),
               (LocalOwn, [*LOCAL_OWN, perftest("ib_send_lat", "-R -n 300", 60), *MCKEY]), *((kind, LOCAL_OWN) for kind in (LocalVlan, LocalMixed, LocalMixedBack))],
    "uwarpd": [
        (Uwarpd, UWARPD + UWARPD_DATAGRAMS + DGRAM_CM), (UwarpdLocal, UWARPD_LOCAL + UWARPD_DATAGRAMS + DGRAM_CM),
        (UwarpdOwn, [rping(64), perftest("ib_send_bw", "-R -n 200", 60), *DGRAM_CM]),
        (UwarpdDpdk, [rping(64), perftest("ib_send_bw", "-R -n 200", 60), shared_port.Refused("{server}"), udaddy("{server}", FITS_RING)]),
        (UwarpdSix, UWARPD_SIX), (UwarpdSixLocal, UWARPD_SIX_LOCAL), (UwarpdSixAlone, IP6[1:2]), (UwarpdSixOwn, UWARPD_SIX_OWN),
        (UwarpdSixPacket, [IP6[1], IP6[3]]),
    ],
    "uwarpd-all": [(Uwarpd, PACKET + shared_port.MORE)],
    "uwarpd-lossy": [(UwarpdLossy, UWARPD_LOSSY), (Uwarpd, UWARPD_SINGLE)],
    "uwarpd-kills": [(Uwarpd, shared_port.LONG)],
    "af_packet-all": [(Veth, VETH_ALL)],
    "transports": [(Memif, SEQ), (Veth, SEQ_VETH)],
    "stacks": [(Memif, STACKS + STACKS_DGRAM + STACKS_PINGPONG), (Veth, STACKS_VETH + STACKS_DGRAM)],
    "tshark": [(Memif, capture.MEMIF + roce_capture.MEMIF), (Veth, capture.VETH + roce_capture.VETH)],
    "routed": [(Routed, ROUTED)],
    "bridge": [(bridge.Bridge, bridge.CASES), (bridge.Snooping, bridge.SNOOPED)],
    "narrow": [(Narrow, ROUTED)],
    "tso": [(Tap, capture.TAP)],
    "bad-input": [(Memif, bad_input.MEMIF), (Veth, bad_input.VETH)],
    "apps-sockets": [(Memif, apps.SOCKETS)],
    "apps-qperf": [(Memif, apps.QPERF)],
    "apps-fabric": [(Memif, apps.FABRIC), (Packet, apps.FABRIC_DGRAM)],
    "apps-mpi": [(Memif, apps.MPI)],
    "apps-ucx": [(Memif, apps.UCX), (PacketOwn, apps.UCX_RC), (Packet, apps.UCX_RC + apps.UCX_UD), (Local, apps.UCX_LOCAL)],
    "apps-storage": [(Memif, apps.STORAGE + qemu_cases.CASES)],
    "apps-dapl": [(Memif, apps.DAPL)],
    "apps-valkey": [(Memif, valkey_cases.CASES)],
    "flood": [(Packet, flood_cases.CASES), (PacketOwn, hostile_cases.CASES), (PacketSix, hostile_cases.SHARED), (Veth, hostile_cases.UNFILTERED)],
    "impaired": [(Memif, IMPAIRED), (Veth, IMPAIRED)],
    "failures": [(Memif, failures.MEMIF), (Packet, failures.PACKET), (PacketOwn, failures.PACKET_OWN)],
    "stat": [(Memif, stat_cases.MEMIF), (Packet, stat_cases.PACKET)],
    "lifecycle": [(Memif, lifecycle.MEMIF), (Loop, lifecycle.LOOP), (Veth, lifecycle.VETH), (Packet, lifecycle.CLOSED), (Uwarpd, lifecycle.CLOSED)],
}
