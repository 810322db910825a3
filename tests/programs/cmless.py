# SPDX-License-Identifier: BSD-3-Clause
"""Programs that exchange GIDs and QP numbers over a socket of their own (doc/adr/0006): pairs of
stock programs without rdma_cm, as either kind of device."""

import os
import re
import signal
import time

from harness import START, Failed, check, read_bytes, wait_until
from pairs import judge_perftest

LISTENING = b"0A"


def listening_inodes(pid):
    found = set()
    for name in ("tcp", "tcp6"):
        for line in read_bytes(f"/proc/{pid}/net/{name}").splitlines()[1:]:
            fields = line.split()
            if fields[3] == LISTENING:
                found.add(fields[9].decode())
    return found


def listens(program):
    """Does the program itself, or a child of it, listen on a socket of the kernel's?"""
    inodes = {f"socket:[{n}]" for n in listening_inodes(program.pid)}
    folder = f"/proc/{program.pid}/fd"
    try:
        return any(os.readlink(f"{folder}/{fd}") in inodes for fd in os.listdir(folder))
    except OSError:
        return False


def until_listening(program):
    if not wait_until(lambda: listens(program) or program.poll() is not None, START):
        raise Failed(f"{program.role} does not listen")
    check(program.poll() is None, f"{program.role} ended at once with exit code {program.popen.returncode}")


def judge_pingpong(_stage, server, client, command):
    words = command.split()
    wanted = words[words.index("-n") + 1] if "-n" in words else "1000"
    for program in (server, client):
        check(re.search(rf"^{wanted} iters in ", program.out, re.M), f"the {program.role} does not say that {wanted} iterations were done")


def judge_qperf(_stage, _server, client, command):
    for test in command.split()[1:]:
        if test.startswith(("rc_", "uc_", "ud_", "ver_")):
            check(re.search(rf"^{test}:\n +\w+ +=", client.out, re.M), f"{test} has no result")


def judge_ucx(_stage, _server, client, command):
    words = command.split()
    check(re.search(rf"^Final: +{words[words.index('-n') + 1]} ", client.out, re.M), "it has no final figures")


JUDGES = {"ucx_perftest": judge_ucx, "ibv_ud_pingpong": judge_pingpong, "ibv_uc_pingpong": judge_pingpong, "ibv_rc_pingpong": judge_pingpong, "ibv_srq_pingpong": judge_pingpong, "qperf": judge_qperf}


class CmLess:
    """Server and client take the same flags. identity None: the default."""

    def __init__(self, program, flags="", identity=None, seconds=60):
        self.program, self.words, self.identity, self.seconds = program, flags, identity, seconds
        self.flags = flags + (f" [{identity}]" if identity else "")

    # not the programs' own default, which others of this machine may use
    port = 20000 + os.getpid() % 10000

    def options(self, stage, role):
        more = ["--identity", self.identity] if self.identity else []
        return [*stage.link.options(role), *more]

    def start(self, stage, role, command):
        return stage.start(role, command, options=self.options(stage, role))

    def commands(self):
        both = f"{self.program} -p {self.port} {self.words}"
        return both, f"{both} {{server}}"

    def __call__(self, stage):
        server_command, client_command = self.commands()
        server = self.start(stage, "server", server_command)
        until_listening(server)
        client = self.start(stage, "client", client_command)
        rc = client.wait(self.seconds)
        check(rc == 0, f"the client ended with exit code {rc}")
        self.end(server)
        for program in (server, client):
            check(not program.our_lines(), f"the {program.role} complains: {program.our_lines()}")
        JUDGES.get(self.program, judge_perftest)(stage, server, client, client_command)

    def end(self, server):
        rc = server.wait(self.seconds)
        check(rc == 0, f"the server ended with exit code {rc}")


class OnStacks(CmLess):
    """Processes of two stacks each; the QPs are all on the first."""

    def __init__(self, *args):
        super().__init__(*args)
        self.flags += ", --stacks 2"

    def options(self, stage, role):
        return [*super().options(stage, role), "--stacks", "2"]


class Named(CmLess):
    """A program that insists on a device's name."""

    def options(self, stage, role):
        return [*super().options(stage, role), "--name", "mlx5_0"]


class Stopped(CmLess):
    """The server is stopped for less than what memif takes for hung where datagrams wait (io/memif/lane.c): nothing may be lost, although
    UC repeats nothing."""

    def __init__(self, *args):
        super().__init__(*args)
        self.flags += ", stopped for 1.5 s"

    def start(self, stage, role, command):
        program = super().start(stage, role, command)
        if role == "client":
            server = stage.programs[0]
            time.sleep(0.6)
            check(program.poll() is None, "the client has ended before the server is stopped")
            server.kill(signal.SIGSTOP)
            time.sleep(1.5)
            server.kill(signal.SIGCONT)
        return program


class Ucp(CmLess):
    """UCX's protocol layer over the device alone: RC, whose start-up is UD's, or UD; or as it likes."""

    def __init__(self, tls, identity="roce"):
        super().__init__("ucx_perftest", "-t tag_lat -n 1000 -s 64", identity)
        self.tls = tls
        self.flags += f", UCX_TLS={tls or 'unset'}"

    def start(self, stage, role, command):
        return stage.start(role, command, env={"UCX_TLS": self.tls} if self.tls else {}, options=self.options(stage, role))


class Qperf(CmLess):
    """One server, as many tests as there are; it is told to go."""

    def commands(self):
        return f"qperf -lp {self.port}", f"qperf -lp {self.port} -t 1 {{server}} {self.words}"

    def end(self, server):
        server.stop()


# As a RoCE device the port has no LID, so that the programs must be told a GID, as on a RoCE NIC.
def pingpongs(identity):
    gid = "-g 0 " if identity == "roce" else ""
    return [
        CmLess("ibv_rc_pingpong", gid.strip(), identity),
        CmLess("ibv_rc_pingpong", "-g 0 -e -n 500", identity),
        CmLess("ibv_rc_pingpong", "-g 0 -c -s 65536 -n 200", identity),
        CmLess("ibv_rc_pingpong", "-g 0 -r 1", identity),
        CmLess("ibv_srq_pingpong", "-g 0 -q 8", identity),
        CmLess("ibv_srq_pingpong", f"{gid}-e -q 16 -n 500", identity),
    ]


# As an RNIC without rdma_cm ib_send_bw does not run, by itself (doc/programs.md).
def perftests(identity, flags=""):
    names = [f"ib_{op}_{what}" for op in ("send", "write", "read", "atomic") for what in ("lat", "bw")]
    return [CmLess(name, flags, identity) for name in names if not (identity != "roce" and name == "ib_send_bw")]


MORE = [
    CmLess("ib_send_bw", "-b", "roce"),
    CmLess("ib_send_bw", "-r 1 -n 200", "roce"),
    CmLess("ib_send_bw", "--use-srq -q 4", "roce"),
    CmLess("ib_write_bw", "-b -q 4", "roce"),
    CmLess("ib_read_bw", "-q 4 -e", "roce"),
    CmLess("ib_atomic_bw", "-A CMP_AND_SWAP", "roce"),
    CmLess("ib_send_lat", "-I 64 -e", "roce"),
    CmLess("ib_write_bw", "-a -n 100", "roce", 120),
    CmLess("ib_write_bw", "-q 200 -t 8 -n 20", None, 120),
]
QPERF = ["rc_lat", "rc_bw", "rc_bi_bw", "rc_rdma_read_lat", "rc_rdma_read_bw", "rc_rdma_write_lat", "rc_rdma_write_bw",
         "rc_compare_swap_mr", "rc_fetch_add_mr", "ver_rc_compare_swap", "ver_rc_fetch_add"]  # fmt: skip

# As the kind of device that is not the default what differs is one name in two structures.
# By GIDs that are IPv6 addresses: that of processes, and the link-local one.
IP6 = [
    CmLess("ibv_rc_pingpong", "-g 1 -c -s 65536 -n 200"),
    CmLess("ibv_rc_pingpong", "-g 2 -e -n 500", "roce"),
    CmLess("ib_write_bw", "-x 1 -n 500"),
    CmLess("ib_send_lat", "--ipv6"),
]
# UC and UD (doc/adr/0032): their packets, between programs that exchange addresses themselves. Programs that spin on memory, as
# ib_write_lat does, give up no CPU: 100 times 1 MiB took from 9 s to more than 40 s with three more that spin on the same CPU.
DATAGRAMS = [CmLess("ibv_ud_pingpong", "-g 0 -c", None, 20), CmLess("ibv_uc_pingpong", "-g 0 -c -s 20000 -n 500", "roce", 20)]
DATAGRAMS_MORE = [
    CmLess("ibv_ud_pingpong", "-c", None),
    CmLess("ibv_ud_pingpong", "-g 1 -e -s 1000 -n 500", "roce"),
    CmLess("ibv_uc_pingpong", "-g 1 -e -m 512 -s 65536 -n 200", "roce"),
    *(CmLess(f"ib_send_{what}", f"-c UD -x 0 -s {size} {more}".strip(), "roce")
      for what, size, more in (("lat", 2, ""), ("lat", 2, "-e -I 0"), ("bw", 1024, ""), ("bw", 1024, "-q 4"), ("bw", 100, "-b"))),
    *(CmLess(f"ib_send_{what}", f"-c UC -x 0 {more}".strip(), "roce")
      for what, more in (("lat", ""), ("bw", ""), ("bw", "-q 4"), ("bw", "-b"))),
    *(CmLess(f"ib_write_{what}", "-c UC -x 0 -s 1048576 -n 50", "roce", 120) for what in ("lat", "bw")),
    Stopped("ib_write_lat", "-c UC -x 0 -s 1048576 -n 1000", "roce", 200),
    Qperf("qperf", "ud_lat ud_bw ud_bi_bw uc_lat uc_bw uc_bi_bw uc_rdma_write_bw uc_rdma_write_lat uc_rdma_write_poll_lat"),
]  # fmt: skip
# As InfiniBand, by LIDs.
INFINIBAND = [
    CmLess("ibv_rc_pingpong", "-c -n 500", "ib"),
    CmLess("ibv_srq_pingpong", "-c -q 4 -n 500", "ib"),
    CmLess("ibv_ud_pingpong", "-c -n 500", "ib"),
    CmLess("ib_send_bw", "-n 500", "ib"),
]
INFINIBAND_MORE = [
    CmLess("ibv_uc_pingpong", "-c -n 500", "ib"),
    CmLess("ibv_rc_pingpong", "-g 0 -c -n 500", "ib"),
    CmLess("ib_send_lat", "-c UD -n 500", "ib"),
    CmLess("ib_atomic_bw", "-n 500", "ib"),
]
CASES = [*pingpongs(None), *perftests(None), *IP6, CmLess("ibv_rc_pingpong", "-g 0", "roce"), Named("ibv_rc_pingpong", "-g 0 -d mlx5_0")]
MORE_CASES = [*INFINIBAND, *INFINIBAND_MORE, *pingpongs("roce"), *perftests("roce"), *MORE]
# UCX takes no RNIC, but a RoCE device.
UCX = [
    CmLess("ucx_perftest", f"-t {test} -D {data} -s {size} -n 500 -w 10 -x rc_verbs -d uwarp0:1", "roce")
    for test, data, size in (
        ("am_lat", "bcopy", 64),
        ("am_bw", "zcopy", 64),
        ("put_lat", "short", 64),
        ("put_lat", "zcopy", 64),
        ("put_bw", "bcopy", 64),
        ("get", "zcopy", 4096),
        ("add_mr", "short", 8),
        ("fadd", "short", 8),
        ("cswap", "short", 8),
    )
]
# Without rdma_cm qperf exchanges LIDs alone, which a RoCE device has none of.
APPS = [
    Ucp("ib"),
    Ucp("ib", "ib"),
    Ucp("ud"), Ucp(None), *UCX, Qperf("qperf", " ".join(QPERF), "iwarp")]
