# SPDX-License-Identifier: BSD-3-Clause
"""What cannot work ends soon, with the program's own exit code and one line that names what to fix."""

import os
import re
import shutil
import subprocess
import sys

from harness import UWARP_RUN, Failed, Skipped, check, need, wait_until
from pairs import sweep, until_connected
from pyverbs_cases import PYTHON, need_pyverbs

WITHOUT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "without.py")
KERNEL_PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "kernel_peer.py")
# Start-up of the program and the stack, on a busy machine.
OVERHEAD = 4.0
CONNECT = 5.0
ANSWER = 15.0
# Where waiting for the default would not tell more.
PATIENT = {"UWARP_DAD_MS": "5000"}
SOONER, SOON = {"UWARP_CONNECT_MS": "1500"}, 1.5
RPING_PORT = 7174
NOBODY = 65534


def one_line(program, pattern):
    lines = program.our_lines()
    check(len(lines) == 1, f"{program.role} should say one line, and says {lines}")
    check(re.search(pattern, lines[0]), f"the line does not match '{pattern}': {lines[0]}")


class Refused:
    """A program that must fail: within `seconds` (and not before `least`), with a line that matches
    the pattern. The exit code is the program's, or uwarp-run's own when `code` is given."""

    role, options, env, least = "client", None, None, 0.0

    def __init__(self, program, flags, pattern, seconds=0.0, **more):
        self.program, self.flags, self.pattern, self.seconds = program, flags, pattern, seconds
        self.code = None
        for name, value in more.items():
            setattr(self, name, value)

    def prepare(self, stage):
        pass

    def command(self, _stage):
        return f"{self.program} {self.flags}"

    def __call__(self, stage):
        self.prepare(stage)
        program = stage.start(self.role, self.command(stage), env=self.env, options=self.options)
        rc = program.wait(self.seconds + OVERHEAD)
        if self.code is None:
            check(rc > 0, f"the exit code is {rc}")  # negative: a signal
        else:
            check(rc == self.code, f"the exit code is {rc} instead of {self.code}")
        check(program.seconds() >= self.least, f"it gave up after {program.seconds():.1f} s")
        one_line(program, self.pattern)


class WhileServing(Refused):
    """There is a server, and it is of no use to the client."""

    server = "rping -s -a {server}"

    def prepare(self, stage):
        self.other = stage.start("server", self.server)
        self.other.until_link_up()

    def __call__(self, stage):
        super().__call__(stage)
        check(self.other.poll() is None, "the server ended")
        self.other.stop()
        sweep(stage)


class Alien(Refused):
    """The client finds an ordinary TCP program of the other kernel."""

    @property
    def flags(self):
        return f"{self.words}; peer: {self.talk or 'none'}"

    @flags.setter
    def flags(self, words):
        self.words = words

    def command(self, _stage):
        return f"{self.program} {self.words}"

    def prepare(self, stage):
        stage.link.give_kernel_an_address()
        if not self.talk:
            return
        words = [sys.executable, KERNEL_PEER, "listen", stage.link.kernel, str(RPING_PORT), self.talk, "veth-b"]
        peer = stage.start_plain("client", words)
        check(wait_until(lambda: "listening" in peer.out, 10), "the TCP program does not start")
        self.peer = peer

    def __call__(self, stage):
        super().__call__(stage)
        if self.talk:
            self.peer.stop()

    role = "server"  # the side whose kernel has no address


class Intruder:
    """An ordinary TCP client knocks at an iWARP listener, which gets rid of it and goes on."""

    program = "rping"

    def __init__(self, talk, least, most, env=None):
        self.flags, self.talk, self.env = f"-s -P; kernel client: {talk}", talk, env
        self.least, self.most = least, most

    def __call__(self, stage):
        stage.link.give_kernel_an_address()
        server = stage.start("server", "rping -s -P -V -C 10", env=self.env)
        server.until_link_up()
        words = ["connect", stage.link.addresses["server"], str(RPING_PORT), self.talk, "veth-b"]
        client = stage.start_plain("client", [sys.executable, KERNEL_PEER, *words])
        rc = client.wait(self.most + OVERHEAD)
        check(rc == 0, f"the TCP client ended with exit code {rc}")
        seconds = float(re.search(r"closed after ([\d.]+)", client.out)[1])
        check(self.least <= seconds <= self.most, f"its connection ended after {seconds} s")
        check(len(server.our_lines()) <= 1, f"the server says too much: {server.our_lines()}")
        good = until_connected(stage, server, "rping -c -a {server} -V -C 10", 15)
        check(good.popen.returncode == 0, "the server does not serve any more")
        server.stop()
        sweep(stage)


class Prepared(Refused):
    """A program that has been made unfit; flags say how."""

    needs = []

    def command(self, stage):
        path = os.path.join(stage.folder, "program")
        self.make(path)
        return path


class Setuid(Prepared):
    def make(self, path):
        if os.getuid() != 0:
            raise Skipped("only root can make a program of another user")
        shutil.copy(need("rping"), path)
        try:
            os.chown(path, NOBODY, NOBODY)
        except OSError as e:
            raise Skipped(f"there is no other user here: {e.strerror}") from None
        os.chmod(path, 0o4755)


class Static(Prepared):
    def make(self, path):
        words = [*os.environ.get("CC", "cc").split(), "-static", "-x", "c", "-", "-o", path]
        if subprocess.run(words, input=b"int main(void) { return 0; }", capture_output=True).returncode:
            raise Skipped("no statically linked program can be made here")


class NoProgram(Prepared):
    def make(self, path):
        with open(path, "w", encoding="ascii") as f:
            f.write("no program")
        os.chmod(path, 0o755)


class Undeletable:
    """A program that cannot delete its private folder of /sys: it ends all the same."""

    program = "ibv_devinfo"

    def __init__(self, flags, *words):
        self.flags, self.words = flags, words

    def __call__(self, stage):
        program = stage.start_plain("client", [*self.words, UWARP_RUN, "--quiet", *stage.link.options("client"), "--", "ibv_devinfo"])
        program.wait(OVERHEAD)
        shutil.rmtree(stage.run_dir, ignore_errors=True)


# A QP of a type that the device has not.
RAW_QP = """
import pyverbs.enums as e
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.pd import PD
from pyverbs.qp import QP, QPCap, QPInitAttr

context = Context(name="uwarp0")
cq = CQ(context, 4)
QP(PD(context), QPInitAttr(qp_type=e.IBV_QPT_RAW_PACKET, scq=cq, rcq=cq, cap=QPCap()))
"""


class RawQp(Refused):
    needs = []

    def __init__(self, pattern):
        super().__init__("pyverbs", "a raw packet QP", pattern)

    def command(self, stage):
        need_pyverbs()
        path = os.path.join(stage.folder, "raw_qp.py")
        with open(path, "w", encoding="ascii") as f:
            f.write(RAW_QP)
        return f"{PYTHON} {path}"


class InterfaceChanged(Refused):
    """While veth-a is not as it was."""

    change, back = "down", "up"

    def __call__(self, stage):
        try:
            stage.link.ip_do("server", f"link set veth-a {self.change}")
            super().__call__(stage)
        finally:
            stage.link.ip_do("server", f"link set veth-a {self.back}")


class ShortPackets(InterfaceChanged):
    change, back = "mtu 68", "mtu 1500"


def no_uwarp_there(addr):
    return rf"^uwarp: cannot connect to {re.escape(addr)}:\d+: no uwarp process has that address.*--list"


NOT_LISTENING = r"^uwarp: cannot connect to [\d.]+:\d+: nothing listens on that port: start the server first"
NO_ANSWER = r"^uwarp: cannot connect to [\d.]+:\d+: .*(check the address|no .* has that address)"
NO_ROUTE = r"^uwarp: cannot connect to 192.168.77.1:\d+: no route leads to that address"
NOT_MPA = r"^uwarp: cannot connect to [\d.]+:\d+: .*(does not speak iWARP|is it an iWARP listener)"

MEMIF = [
    Refused("rping", "-c -a 127.0.0.2", r"^uwarp-run: unknown link 'nope'; known are: memif", options=["--link", "nope"], code=1),
    Refused("rping", "-c -a 127.0.0.2", r"^uwarp-run: --ip 300.1.1.1: not an address of the form", options=["--ip", "300.1.1.1"], code=2),
    Refused("rping", "-c -a 127.0.0.2", r"^uwarp-run: --ip 127.0.0.1: .*take 127.0.0.2", options=["--ip", "127.0.0.1"], code=1),
    WhileServing("rping", "-c -a {server}", r"^uwarp-run: address 127.0.0.2 is in use by process \d+ \(rping\); choose another",
                 options=["--ip", "127.0.0.2"], code=1),
    Refused("rping", "-c -a 127.0.0.99", no_uwarp_there("127.0.0.99"), CONNECT),
    Refused("rping", "-c -a 10.9.9.9", no_uwarp_there("10.9.9.9"), CONNECT),
    Refused("ib_write_bw", "-R 127.0.0.99", no_uwarp_there("127.0.0.99"), CONNECT),
    Refused("ucmatose", "-s 127.0.0.99", no_uwarp_there("127.0.0.99"), CONNECT),
    Refused("rdma_client", "-s 127.0.0.99", no_uwarp_there("127.0.0.99"), CONNECT),
    Refused("rping", "-s -a 127.0.0.77", r"^uwarp: 127.0.0.77 is no address of this process, which has 127.*--ip"),
    Refused("rping", "-c -a 127.0.0.1", NOT_LISTENING, CONNECT),
    WhileServing("rping", "-c -a {server} -p 7777", NOT_LISTENING, CONNECT),
    WhileServing("ib_send_lat", "-R {server}", NOT_LISTENING, CONNECT),
    Refused("rping", "-c -a 127.0.0.2 -C 1", r"^uwarp: UWARP_THREADS=4: must be c1, c2, c3 or adaptive", env={"UWARP_THREADS": "4"}),
    Refused("rping", "-c -a 127.0.0.2 -C 1", r"^uwarp: UWARP_IRD=0: must be a number from [1-9][0-9]* to [1-9][0-9]*$", env={"UWARP_IRD": "0"}),
    Refused("rping", "-c -a 127.0.0.2 -C 1", r"^uwarp: UWARP_TSO=yes: must be on, off or auto", env={"UWARP_TSO": "yes"}),
    Refused("rping", "-c -a 127.0.0.2 -C 1", r"^uwarp: UWARP_IMPAIR: drop=2: must be a percentage or a fraction", options=["--impair", "drop=2"]),
    Refused("rping", "-c -a 127.0.0.2 -C 1", r"^uwarp: UWARP_IMPAIR: loss: no such impairment; known are", options=["--impair", "loss=1%"]),
    Refused("rping", "-c -a 127.0.0.2 -C 1", r"^uwarp: UWARP_IMPAIR: a link that several stacks share", options=["--impair", "drop=1%", "--stacks", "2"]),
    Refused("rping", "-c -a 127.0.0.2 -C 1", r"^uwarp: no TSO on link memif: it has no port that cuts", options=["--tso", "on"]),
    Refused(WITHOUT, "memfd_create rping -c -a 127.0.0.2 -C 1", r"^uwarp: no shared memory for the doorbells \(memfd_create\): Operation not permitted",
            needs=["rping"]),
    Refused("rping", "-c -a 127.0.0.2 -C 1", r"^uwarp: the link \S+ has no routers: leave --gateway and --route out", options=["--gateway", "127.0.0.9"]),
    Refused("rping", "-c -a 192.0.2.7 -C 1", r"^uwarp: cannot connect to 192.0.2.7:\d+: the kernel has no way to it from this process's address \(--ip\)",
            options=["--transport", "socket"]),
    Refused("ibv_ud_pingpong", "-g 0", r"^uwarp: UD and UC queue pairs need the transport raw",
            options=["--transport", "socket", "--identity", "roce"]),
    *(Refused(WITHOUT, f"{call} rping -c -a 127.0.0.2 -C 1", r"^uwarp: DPDK needs epoll, and the kernel refuses it to this process "
              r"\(seccomp\?\): Operation not permitted", needs=["rping"]) for call in ("epoll_create1", "epoll_ctl")),
    *(Refused(WITHOUT, f"{call} rping -c -a 127.0.0.2 -C 1", rf"^uwarp: DPDK needs {call}, and the kernel refuses it to this process "
              r"\(seccomp\?\): Operation not permitted", needs=["rping"]) for call in ("timerfd_create", "sched_setaffinity")),
    Refused(WITHOUT, "getrandom rping -c -a 127.0.0.2 -C 1", r"^uwarp: the kernel refuses random numbers to this process \(getrandom, seccomp\?\)", needs=["rping"]),
    Undeletable("unlinkat forbidden", WITHOUT, "unlinkat"),
    Undeletable("ulimit -n 12", "sh", "-c", 'ulimit -n 12; exec "$@"', "sh"),
    RawQp(r"^uwarp: ibv_create_qp: uwarp0 has RC, UC and UD queue pairs; the program asked for another type"),
    Setuid("rping", "(setuid)", r"^uwarp-run: .*/program: is setuid; .*run a copy without", code=126),
    Static("program", "(static)", r"^uwarp-run: .*/program: is statically linked.*link it dynamically", code=126),
    NoProgram("program", "(text)", r"^uwarp-run: .*/program: is neither an ELF program nor a script", code=126),
    Refused("no-program", "", r"^uwarp-run: no-program: not found in PATH", code=127, needs=[]),
]
VETH = [
    Refused("rping", "-c -a 10.77.0.1", r"^uwarp-run: no network interface 'nope0' here; there are: .*veth-a",
            role="server", options=["--link", "af_packet:nope0", "--ip", "10.77.0.5/24"], code=1),
    InterfaceChanged("rping", "-c -a 10.77.0.2", r"^uwarp-run: interface veth-a is down; bring it up: ip link set veth-a up",
                     role="server", code=1),
    ShortPackets("rping", "-c -a 10.77.0.2", r"^uwarp: link packet: an MTU of 68 octets is too small; raise it to at least 576 \(ip link set IF mtu 1500\)", role="server",
                 options=["--link", "packet:veth-a", "--ip", "10.77.0.1/24"]),
    Refused("rping", "-c -a 10.77.0.2", r"^uwarp: no TSO on link af_packet:veth-a: its driver does not cut TCP segments", role="server",
            options=["--link", "af_packet:veth-a", "--ip", "10.77.0.1/24", "--tso", "on"]),
    Alien("rping", "-c -a 10.77.0.1", r"^uwarp-run: address 10.77.0.9 is configured in the kernel.*give an unused one",
          role="client", options=["--link", "af_packet:veth-b", "--ip", "10.77.0.9/24"], code=1, talk=None),
    Refused("rping", "-c -a 10.77.0.2", r"^uwarp: gateway 10.78.0.1 is in none of the link's networks: give one that is", role="server",
            options=["--link", "af_packet:veth-a", "--ip", "10.77.0.1/24", "--gateway", "10.78.0.1"]),
    Refused("rping", "-c -a 10.77.0.2", r"^uwarp: UWARP_GATEWAY: 10.77.0 is not of the form A.B.C.D or A:B::C", role="server",
            options=["--link", "packet:veth-a", "--ip", "10.77.0.1/24", "--gateway", "10.77.0"]),
    Refused("rping", "-c -a 10.77.0.2", r"^uwarp: UWARP_ROUTES: 10.78.0.0=10.77.0.9 is not of the form NETWORK/BITS=GATEWAY", role="server",
            options=["--link", "packet:veth-a", "--ip", "10.77.0.1/24", "--route", "10.78.0.0=10.77.0.9"]),
    Refused("rping", "-c -a 10.77.0.2", r"^uwarp-run: --mtu 9000 is more than the 1500 of veth-a; raise that first: ip link set veth-a mtu 9000", role="server",
            options=["--link", "packet:veth-a", "--ip", "10.77.0.1/24", "--mtu", "9000"], code=1),
    Refused("rping", "-c -a 10.77.0.2", r"^uwarp: no VLAN on link af_packet:veth-a: its driver does not insert and strip tags", role="server",
            options=["--link", "af_packet:veth-a", "--ip", "10.77.0.1/24", "--vlan", "7"]),
    Refused("rping", "-c -a 10.77.0.8", NO_ANSWER, CONNECT, role="server"),
    Refused("ib_write_bw", "-R 10.77.0.8", NO_ANSWER, SOON, role="server", env=SOONER),
    Refused("rping", "-c -a 192.168.77.1", NO_ROUTE, role="server"),
    Refused("rping", "-c -a 10.77.0.2", r"^uwarp: cannot connect to 10.77.0.2:\d+: this process has, or is bound to, addresses of the other version of IP alone",
            role="server", options=["--link", "packet:veth-a", "--ip", "fd77::1/64"]),
    *(Alien("rping", "-c -a 10.77.0.2", r"^uwarp: address 10.77.0.9 is in use: a host with the MAC [0-9a-f:]{17} has it; give an unused one",
            role="server", options=["--link", f"{kind}:veth-a", "--ip", "10.77.0.9/24"], talk=None, env=PATIENT) for kind in ("packet", "af_packet")),
    WhileServing("rping", "-c -a 10.77.0.1", r"^uwarp: address fd77::1 is in use: a host with the MAC",
                 options=["--link", "packet:veth-b", "--ip", "10.77.0.5/24,fd77::1/64"], env=PATIENT),
    WhileServing("rping", "-c -a {server} -p 7777", NOT_LISTENING, CONNECT),
    Alien("rping", "-c -a 10.77.0.9", NOT_LISTENING, CONNECT, talk=None),
    Alien("rping", "-c -a 10.77.0.9", NOT_MPA, CONNECT, talk="http"),
    Alien("rping", "-c -a 10.77.0.9", NOT_MPA, ANSWER, talk="silent"),
    Alien("rping", "-c -a 10.77.0.9", NOT_MPA, 3 * SOON, talk="half", env=SOONER),
    Alien("rping", "-c -a 10.77.0.9", NOT_MPA, CONNECT, talk="close"),
    Alien("ib_read_lat", "-R -p 7174 10.77.0.9", NOT_MPA, CONNECT, talk="http"),
    Intruder("http", 0, 2.0),
    Intruder("silent", 1.0, 3.5, SOONER),
    Intruder("half", 1.0, 3.5, SOONER),
    Intruder("close", 0, 2.0),
]  # fmt: skip
