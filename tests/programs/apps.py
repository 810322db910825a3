# SPDX-License-Identifier: BSD-3-Clause
"""Larger programs and the libraries behind them: qperf, libfabric, Open MPI, fio, librpma, DAPL, and stock TCP programs
over rsockets. doc/programs.md says of each how it is run."""

import ctypes
import glob
import os
import re

from alone import Alone
from harness import UWARP_RUN, Skipped, check, listens, need, printed
from pairs import Endless, Pair

# ---- stock TCP programs over librspreload -------------------------------------------------------


def rspreload():
    found = glob.glob("/usr/lib/*/rsocket/librspreload.so")
    if not found:
        raise Skipped("librspreload.so is not installed")
    return {"LD_PRELOAD": found[0]}


class Preloaded(Pair):
    """The server's socket is one of uwarp's (its link comes up) and then none of the kernel's: a client that
    reaches it came over uwarp."""

    def __call__(self, stage):
        self.with_env(**rspreload())
        super().__call__(stage)


class PreloadedEndless(Preloaded, Endless):
    pass


def iperf(flags):
    return PreloadedEndless("iperf", f"librspreload, {flags}", "iperf -s", f"iperf -c {{server}} {flags}")


# Without it NetPIPE sends each size for a quarter of a second by the speed of the size before: a hundred thousand times and more,
# where the two had a core each before and share one now.
NETPIPE_TIMES = "-n 100"


def netpipe_tcp(flags):
    end = f"NPtcp -i {NETPIPE_TIMES} {flags} -o /dev/null"
    return Preloaded("NPtcp", f"librspreload, -i {flags}", end, f"{end} -h {{server}}", 60)


SOCKETS = [
    netpipe_tcp("-u 70000"),
    iperf("-n 50M"),
    iperf("-n 10M -P 3"),
]

# ---- qperf --------------------------------------------------------------------------------------

QPERF_PORT = 19765
QPERF_TESTS = [
    "rc_lat", "rc_bw", "rc_bi_bw", "rc_rdma_read_lat", "rc_rdma_read_bw", "rc_rdma_write_lat", "rc_rdma_write_poll_lat",
    "rc_rdma_write_bw", "rc_compare_swap_mr", "rc_fetch_add_mr", "ver_rc_compare_swap", "ver_rc_fetch_add",
]  # fmt: skip


def qperf(flags):
    pair = Endless("qperf", flags, "qperf", f"qperf {{server}} -t 1 {flags}")
    pair.ready = listens(QPERF_PORT)
    return pair


QPERF = [qperf(f"-cm 1 {test}") for test in QPERF_TESTS]

# ---- libfabric ----------------------------------------------------------------------------------

FI_PORT = 47592


def fi_pingpong(flags):
    quoted = flags.replace(";", "\\;")
    pair = Pair("fi_pingpong", flags, f"fi_pingpong {quoted}", f"fi_pingpong {quoted} {{server}}", 60)
    pair.ready = listens(FI_PORT)
    return pair


FABRIC_DGRAM = [
    fi_pingpong("-p verbs;ofi_rxd -e rdm -c -I 20").with_env(UWARP_IDENTITY="roce"),
    fi_pingpong("-p verbs;ofi_rxd -e rdm -m tagged -c -I 20").with_env(UWARP_IDENTITY="roce"),
]
FABRIC = [
    *FABRIC_DGRAM,
    Alone("fi_info", "-p verbs", "fi_info -p verbs", r"domain: uwarp0$", r"type: FI_EP_MSG$", r"protocol: FI_PROTO_IWARP$"),
    fi_pingpong("-p verbs -e msg -c -I 20"),
    fi_pingpong("-p verbs;ofi_rxm -e rdm -c -I 20"),
    fi_pingpong("-p verbs;ofi_rxm -e rdm -m tagged -c -I 20"),
]

# ---- Open MPI -----------------------------------------------------------------------------------

COLLECTIVES = """
import mpi4py
mpi4py.rc.threads = False  # with threads Open MPI has no windows over messages
from mpi4py import MPI
world = MPI.COMM_WORLD
me, n = world.rank, world.size
assert world.allreduce(me) == n * (n - 1) // 2
assert world.allgather(me * me) == [i * i for i in range(n)]
wanted = bytearray(range(256)) * 8192
data = bytearray(wanted) if me == 0 else bytearray(len(wanted))
world.Bcast(data, root=0)
assert data == wanted
assert world.alltoall([bytes([me]) * 100000] * n) == [bytes([i]) * 100000 for i in range(n)]
window = MPI.Win.Allocate(4096, comm=world)
window.Fence()
window.Put(bytes([me]) * 16, (me + 1) % n, target=(0, 16))
window.Fence()
assert bytes(window.tomemory()[:16]) == bytes([(me - 1) % n]) * 16
window.Free()
print(f"rank {me} agrees\\n", end="")  # one write each
"""
SHMEM = """
import ctypes as C
s = C.CDLL("liboshmem.so.40", C.RTLD_GLOBAL)
s.shmem_malloc.restype, s.shmem_long_atomic_fetch_add.restype = C.c_void_p, C.c_long
s.shmem_init()
me, n, size = s.shmem_my_pe(), s.shmem_n_pes(), 300_000
wanted = lambda pe: bytes((i * 7 + pe) & 255 for i in range(size))
heap, counter = (C.c_void_p(s.shmem_malloc(C.c_size_t(m))) for m in (size, 8))
C.memset(counter, 0, 8)
s.shmem_barrier_all()
s.shmem_putmem(heap, wanted(me), C.c_size_t(size), (me + 1) % n)
s.shmem_barrier_all()
assert C.string_at(heap, size) == wanted((me - 1) % n)
got = C.create_string_buffer(size)
s.shmem_getmem(got, heap, C.c_size_t(size), (me + 1) % n)
assert got.raw == wanted(me)
for _ in range(100):
    s.shmem_long_atomic_fetch_add(counter, C.c_long(me), 0)
s.shmem_barrier_all()
assert me or C.c_long.from_address(counter.value).value == 100 * n * (n - 1) // 2
print(f"PE {me} agrees\\n", end="", flush=True)
s.shmem_finalize()
"""
# Every message goes through libfabric's verbs provider: with these there is no other way.
OVER_VERBS = "--mca pml cm --mca mtl ofi --mca mtl_ofi_provider_include verbs --mca btl self --mca osc pt2pt"
PYTHON = "/usr/bin/python3"  # the one that Debian's python3-mpi4py is for


class Mpi:
    """mpirun starts the ranks, each in a uwarp-run of its own."""

    launcher, over = "mpirun --oversubscribe", OVER_VERBS

    def __init__(self, program, flags, ranks, *command, wanted, options=()):
        self.program, self.flags, self.ranks, self.command, self.wanted = program, flags, ranks, command, wanted
        self.options = options
        self.needs = [self.launcher.split()[0], command[0]]
        self.env = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def rank(self, stage, role):
        """Without an address of its own where each process is given one."""
        options = [] if stage.link.name == "memif" else stage.link.options(role)
        return [*stage.link.prefix(role), UWARP_RUN, "--quiet", *options, *self.options, "--", *self.command]

    def words(self, stage):
        """Half of the ranks at either end."""
        half = str(self.ranks // 2)
        return ["-n", half, *self.rank(stage, "server"), ":", "-n", half, *self.rank(stage, "client")]

    def __call__(self, stage):
        launcher, *flags = self.launcher.split()
        argv = [need(launcher), *flags, *self.over.split(), *self.words(stage)]
        program = stage.start_plain("server", argv, {"TMPDIR": stage.folder, **self.env})
        rc = program.wait(90)
        check(rc == 0, f"exit code {rc}")
        check(not program.our_lines(), f"it complains: {program.our_lines()}")
        found = len(re.findall(self.wanted, program.out + program.err, re.M))
        check(found == self.ranks or found >= 20, f"'{self.wanted}' is there {found} times")


def netpipe_mpi(flags):
    return Mpi("NPopenmpi", f"-i {flags}", 2, "NPopenmpi", "-i", *NETPIPE_TIMES.split(), *flags.split(), "-o", "/dev/null", wanted="check passed")


class Mpi4py(Mpi):
    def __call__(self, stage):
        if not os.path.isdir("/usr/lib/python3/dist-packages/mpi4py"):
            raise Skipped("python3-mpi4py is not installed")
        super().__call__(stage)


class Ucx(Mpi):
    """Open MPI with UCX, which chooses its transports: datagrams to find each other, then RC."""

    over = "--mca pml ucx"

    def __init__(self, program, flags, ranks, *command, wanted, tls=None):
        super().__init__(program, f"{flags}, pml ucx, UCX_TLS={tls or 'unset'}", ranks, *command, wanted=wanted, options=["--identity", "roce"])
        if tls:
            self.env["UCX_TLS"] = tls


class UcxMpi4py(Ucx, Mpi4py):
    pass


class Shmem(Ucx):
    """Its heap lies at an address that it does not ask for (0xff000000). Without patcher, which ends it by SIGSEGV over TCP too."""

    launcher, over = "oshrun --oversubscribe", "--mca spml ucx --mca memory ^patcher"


class Mpich(Ucx):
    """Debian's has UCX alone."""

    launcher, over = "mpirun.mpich", ""


def netpipe_ucx(kind, program, tls=None):
    return kind(program, "-i -u 5000", 2, program, "-i", *NETPIPE_TIMES.split(), "-u", "5000", "-o", "/dev/null", wanted="check passed", tls=tls)


def mpi4py_ucx(tls):
    return UcxMpi4py("mpi4py", "4 ranks", 4, PYTHON, "-c", COLLECTIVES, wanted="^rank . agrees$", tls=tls)


# On one host UCX takes its shared memory, if it is not told to leave it: "ib" is what it has between hosts.
NETWORK = "self,ib"
UCX = [
    *(netpipe_ucx(Mpich, "NPmpich2", tls) for tls in (None, NETWORK, "self,ud")),
    netpipe_ucx(Ucx, "NPopenmpi", NETWORK),
    *(mpi4py_ucx(tls) for tls in (None, NETWORK)),
    Shmem("oshrun", "OpenSHMEM, 4 PEs", 4, PYTHON, "-c", SHMEM, wanted="^PE . agrees$", tls=NETWORK),
]
# Open MPI's ranks speak the kernel's TCP with mpirun, which those of another network namespace cannot.
UCX_RC = [netpipe_ucx(Mpich, "NPmpich2", NETWORK)]
UCX_UD = [netpipe_ucx(Mpich, "NPmpich2", "self,ud")]
UCX_LOCAL = [mpi4py_ucx("self,ud"), mpi4py_ucx(NETWORK)]
MPI = [
    netpipe_mpi("-u 300000"),
    Mpi4py("mpi4py", "collectives, windows; 4 ranks", 4, PYTHON, "-c", COLLECTIVES, wanted="^rank . agrees$"),
    Mpi4py(
        "mpi4py", "the same, as roce", 4, PYTHON, "-c", COLLECTIVES, wanted="^rank . agrees$", options=["--identity", "roce"]
    ),
]

# ---- storage ------------------------------------------------------------------------------------

FIO_SIZE = "16m"


def fio(verb):
    common = f"--ioengine=rdma --port=7777 --bs=64k --size={FIO_SIZE} --name=job"
    server = f"fio {common} --rw=read --iodepth=16"
    client = f"fio {common} --rw=write --iodepth=4 --iodepth_batch_complete=1 --hostname={{server}} --verb={verb}"
    pair = Pair("fio", f"ioengine=rdma verb={verb}", server, client, 60)
    pair.ready = printed("waiting for connection")
    return pair


def fio_jobs():
    """Four jobs of one process, each on a port of its own."""
    jobs = " ".join(f"--name=job{i} --port={7780 + i}" for i in range(4))
    common = "--ioengine=rdma --bs=64k --size=4m --thread"
    server = f"fio {common} --rw=read --iodepth=16 {jobs}"
    client = f"fio {common} --rw=write --iodepth=4 --iodepth_batch_complete=1 --hostname={{server}} --verb=write {jobs}"
    pair = Pair("fio", "ioengine=rdma, 4 jobs", server, client, 60)
    pair.ready = printed("waiting for connection", 4)
    return pair


class Rpma(Pair):
    """A pair of our own (rpma.py) over the stock library."""

    needs = []

    def __call__(self, stage):
        try:
            ctypes.CDLL("librpma.so.0")
        except OSError:
            raise Skipped("librpma0 is not installed") from None
        super().__call__(stage)


RPMA = os.path.join(os.path.dirname(os.path.abspath(__file__)), "rpma.py")
STORAGE = [
    *(fio(verb) for verb in ("write", "read", "send")),
    fio_jobs(),
    Rpma("librpma", "write, flush, read, atomic write, send", f"{RPMA} server {{server}}", f"{RPMA} client {{server}}"),
]

# ---- DAPL ---------------------------------------------------------------------------------------


class Dapl(Pair):
    """DAPL finds its device by an address, in a file."""

    def __call__(self, stage):
        for role in ("server", "client"):
            path = os.path.join(stage.folder, f"{role}.conf")
            with open(path, "w") as f:
                f.write(f'uw u2.0 nonthreadsafe default libdaplofa.so.2 dapl.2.0 "{stage.address(role)} 0" ""\n')
            self.env.setdefault(role, {})["DAT_OVERRIDE"] = path
        super().__call__(stage)


class DaplEndless(Dapl, Endless):
    pass


def dapl(name, flags):
    end = f"{name} -P uw {flags}".strip()
    return Dapl(name, flags, end, f"{end} -h {{server}}", 60)


DAPL = [
    dapl("dtest", "-b 65536 -B 100"),
    dapl("dtest", "-p -b 65536 -B 100"),
    dapl("dtest", "-W -D -b 4096 -B 10"),
    dapl("dtestcm", "-c 20"),
    Dapl("dtestsrq", "-c 4 -B 10", "dtestsrq -P uw -s -c 4 -B 10", "dtestsrq -P uw -h {server} -c 4 -B 10", 60),
    DaplEndless(
        "dapltest", "-T T, send, read, write", "dapltest -T S -D uw",
        "dapltest -T T -s {server} -D uw -i 100 -t 1 -w 1 client SR 4096 server SR 4096 client RR 65536 client RW 65536",
    ),
]  # fmt: skip
