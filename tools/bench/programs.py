# SPDX-License-Identifier: BSD-3-Clause
"""Programs that were written for InfiniBand, over the packet link beside themselves over the kernel's TCP, on the same
cable (veth, MTU 1500): UCX's ucx_perftest, NetPIPE over MPICH, and servers of which each thread sleeps on a completion
channel of its own, beside memcached with as many threads."""

import re
import subprocess

from . import apps, peers
from .goals import LEAST, MOST, Goal, judge
from .numbers import size_name
from .process import Failed, Group, Unavailable, need
from .rounds import probe
from .servers import ENDS, Packet

UWARP, TCP = "uwarp", "tcp"
K64, M1 = 65_536, 1 << 20
# (test, octets, messages of a run: half a second)
UCX = (("tag_lat", 8, 40_000), ("tag_lat", 4096, 20_000), ("tag_lat", K64, 3_000), ("tag_bw", M1, 1_000))
# (octets, round trips of each of NetPIPE's trials: some half a second together). It would choose the number itself, by the
# time of a few first ones, and on a core that others use as well go on for minutes.
NETPIPE = ((8, 12_000), (4096, 8_000), (K64, 1_500), (M1, 200))
# (threads of the server, of the client, GETs under way of each, octets of a value)
THREADS = ((1, 1, 1, 64), (4, 4, 1, 64), (4, 16, 1, 64), (4, 4, 8, 64), (4, 4, 1, K64))
KEYS, SECONDS = 1000, "1"
MEMORY = "1024"  # MB of memcached: with less than all values need, many of the answers are that there is none


def transports(scheme, role):
    """What UCX is to use, as variables for env(1)."""
    names = {UWARP: "ib,self", TCP: "tcp,self"}[scheme]
    device = "uwarp0:1" if scheme == UWARP else ENDS[role]
    return ["env", f"UCX_TLS={names}", f"UCX_NET_DEVICES={device}", "UCX_WARN_UNUSED_ENV_VARS=n"]


# UCX looks for interfaces in /sys, which shows those of the namespace that it was mounted in.
OWN_SYS = ("unshare", "--mount", "sh", "-c", 'mount -t sysfs sysfs /sys && exec "$@"', "sh")


def way(at, scheme, role, words):
    """UCX connects RoCE devices, which uwarp's are by --identity."""
    return at.uwarp(role, words, ("--identity", "roce")) if scheme == UWARP else at.tcp(role, [*OWN_SYS, *words])


# ---- UCX --------------------------------------------------------------------------------


def ucx_once(rig, scheme, test, size, n):
    at, port = Packet(rig), rig.new_port()
    words = lambda role: [*transports(scheme, role), need("ucx_perftest"), "-p", port]  # noqa: E731
    more = ["-t", test, "-s", str(size), "-n", str(n), "-w", str(n // 20), "-f"]
    how = {"env": rig.env, "cwd": rig.folder}
    with Group() as group:
        server = group.start(way(at, scheme, "server", words("server")), **how)
        client = way(at, scheme, "client", [*words("client"), at.server, *more])
        out = peers.repeat_until_there(rig, server, lambda: group.start(client, **how))
    figures = peers.ucx_figures(out)
    if test == "tag_lat":
        return {"value": figures["mean"], "p50": figures["p50"]}
    return {"value": figures["mbytes"] * 2**20 * 8 / 1e9}


def ucx_rows(rig):
    for test, size, n in UCX:
        for scheme in (UWARP, TCP):
            unit = "us" if test == "tag_lat" else "Gb/s"
            yield probe("programs", scheme, f"UCX {test}", size, unit, lambda s=scheme, t=test, o=size, m=n: ucx_once(rig, s, t, o, m))


# ---- NetPIPE over MPICH -----------------------------------------------------------------

NETPIPE_ROW = re.compile(r"(\d+) bytes\s+\d+ times -->\s+[\d.]+ Mbps in\s+([\d.]+) usec")


def mpich():
    """Its mpirun, if it was built with UCX: Debian's is, from 12 on."""
    mpirun = need("mpirun.mpich")
    told = subprocess.run([need("mpichversion")], capture_output=True, text=True, check=False).stdout
    if not re.search(r"^MPICH Device:\s+ch4:ucx", told, re.MULTILINE):
        raise Unavailable("this MPICH does not use UCX")
    return mpirun


def netpipe_time(text, size):
    """That of this size: unless told otherwise NetPIPE measures those beside it as well."""
    found = [time for octets, time in NETPIPE_ROW.findall(text) if int(octets) == size]
    if not found:
        raise Failed(f"NetPIPE printed no figures of {size} octets")
    return float(found[-1])


def netpipe_words(size, n):
    return [need("NPmpich2"), "-l", str(size), "-u", str(size), "-p", "0", "-n", str(n), "-o", "/dev/null"]


def netpipe_once(rig, scheme, size, n):
    """Half a round trip. Its two ranks are in two namespaces; what mpirun says to them goes over pipes. MPICH is told not to
    use memory that both have, which it might: they are on one host."""
    at = Packet(rig)
    words = netpipe_words(size, n)
    rank = lambda role: way(at, scheme, role, [*transports(scheme, role), "MPIR_CVAR_NOLOCAL=1", *words])  # noqa: E731
    with Group() as group:
        mpirun = [rig.once("mpich", mpich), "-n", "1", *rank("client"), ":", "-n", "1", *rank("server")]
        run = group.start(mpirun, env=rig.env, cwd=rig.folder)
        run.wait(rig.limit)
        return {"value": netpipe_time(run.out() + run.err(), size)}


def netpipe_rows(rig):
    for size, n in NETPIPE:
        for scheme in (UWARP, TCP):
            yield probe("programs", scheme, "NetPIPE, MPICH", size, "us", lambda s=scheme, o=size, m=n: netpipe_once(rig, s, o, m))


# ---- threads that sleep -----------------------------------------------------------------


def loaded_and_measured(rig, server, start, client):
    """A client of its own writes every key first, so that the server's CPU time is that of the GETs alone."""
    threads, window, value = client
    same = f"--keys {KEYS} --value {value} --json --quiet"
    apps.result(start(f"{same} --load -n 1"), rig.limit)
    return apps.measured(server, start(f"{same} --events -t {threads} -w {window} -s {SECONDS} --mix C"), rig.limit)


def threads_uwarp(rig, server_threads, client):
    at, port = Packet(rig), rig.new_port()
    how = {"env": rig.env, "cwd": rig.folder}
    with Group() as group:
        server = group.start(at.uwarp("server", apps.words(f"uwarp-kv --events -t {server_threads} -p {port} serve")), **how)
        apps.until_ready(server)
        talk = f"uwarp-kv run {at.server} -p {port} --get rpc"
        return loaded_and_measured(rig, server, lambda more: group.start(at.uwarp("client", apps.words(f"{talk} {more}")), **how), client)


def threads_tcp(rig, server_threads, client):
    """In the namespaces of a user memcached is root as well, and wants to be told so; elsewhere it does not look at -u."""
    at, port = Packet(rig), rig.new_port()
    with Group() as group:
        words = [need("memcached"), "-u", "root", "-l", at.tcp_server, "-U", "0", "-t", str(server_threads), "-m", MEMORY, "-p", port]
        server = group.start(at.tcp("server", words), cwd=rig.folder)
        talk = f"uwarp-tcp-peer run {at.tcp_server} -p {port} --wait 10"
        return loaded_and_measured(rig, server, lambda more: group.start(at.tcp("client", apps.words(f"{talk} {more}")), cwd=rig.folder), client)


def threads_once(rig, scheme, server_threads, client):
    got = (threads_uwarp if scheme == UWARP else threads_tcp)(rig, server_threads, client)
    head = "get_" if scheme == UWARP else ""
    return {"value": got["mops"] * 1000, "p50": got[f"{head}p50_us"], "p99": got[f"{head}p99_us"], "server_cpu_us": got["server_cpu_us"]}


def threads_rows(rig):
    for server, *client, value in THREADS:
        for scheme in (UWARP, TCP):
            yield probe("programs", scheme, "GET, sleeping threads", value, "k/s",
                        lambda s=scheme, n=server, c=(*client, value): threads_once(rig, s, n, c), threads=f"{server} x {client[0]}", window=client[1])  # fmt: skip


PARTS = {"ucx": ucx_rows, "mpi": netpipe_rows, "threads": threads_rows}


def programs(rig):
    for part in PARTS.values():
        yield from part(rig)


# ---- what is to be reached --------------------------------------------------------------


def both(*which):
    return ["/".join(str(x) for x in ("programs", scheme, *which)) for scheme in (UWARP, TCP)]


def goals():
    for test, size, _ in UCX:
        bound = MOST if test == "tag_lat" else LEAST
        yield Goal(f"UCX {test}, {size_name(size)} / over TCP", *both(f"UCX {test}", size), bound, 1.0)
    for size, _ in NETPIPE:
        yield Goal(f"NetPIPE over MPICH, {size_name(size)} / over TCP", *both("NetPIPE, MPICH", size), MOST, 1.0)
    for server, client, window, value in THREADS:
        name = f"GETs of {size_name(value)}, {server} x {client} threads, {window} under way of each / memcached's over TCP"
        yield Goal(name, *both("GET, sleeping threads", value, f"{server} x {client}", window), LEAST, 1.0)


def verdicts(series):
    """Of what was measured; a part alone has a part of the goals."""
    return [judge(series, g) for g in goals() if g.over in series and g.under in series]
