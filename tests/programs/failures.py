# SPDX-License-Identifier: BSD-3-Clause
"""What fails around programs, and what they hear of it (doc/failures.md has the bounds). Both ends are count.c, which
knows each request and each completion.

UWARP_KILLS=1000 tests/programs/run-cases failures --only kills    for more than CI has time for"""

import os
import random
import re
import signal
import subprocess
import sys
import time

from harness import Failed, Skipped, check, made, need, read_bytes, wait_until
from pairs import sweep

COUNT = made("UWARP_PROGRAMS_COUNT", "programs-count")
HALF_PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "half_peer.py")
LINE = re.compile(
    r"conn \d+: sent (?P<sent>\d+) ok (?P<ok>\d+) failed (?P<failed>\d+) flushed (?P<flushed>\d+) received \d+ recvs (?P<recvs>\d+) "
    r"flushed \d+; lost (?P<lost>-?\d+) wrong (?P<wrong>\d+); first (?P<first>.+); heard (?P<heard>\d+)"
)
# Bounds in seconds, with time for a busy machine on top of those of doc/failures.md.
BUSY = 3.0
KEEPALIVE_MS = 500
GIVE_UP = 4 * KEEPALIVE_MS / 1000
QUICK = {"UWARP_KEEPALIVE_MS": str(KEEPALIVE_MS)}
SEED = int(os.environ.get("UWARP_SEED", "1"))


def now_ms():
    return time.clock_gettime(time.CLOCK_BOOTTIME) * 1000


def ups(program):
    return program.out.count("up ")


def lines(program):
    return [{k: int(v) if v.lstrip("-").isdigit() else v for k, v in m.groupdict().items()} for m in LINE.finditer(program.out)]


class Case:
    """Starts ends, and judges what they print."""

    program, needs = "count", []
    env = None

    def __init__(self, flags, **more):
        self.flags = flags
        for name, value in more.items():
            setattr(self, name, value)

    def __call__(self, stage):
        if not COUNT:
            raise Skipped("UWARP_PROGRAMS_COUNT does not name the program that count.c makes")
        self.stage = stage
        self.play()
        for program in list(stage.programs):
            program.stop()
        sweep(stage)

    def start(self, role, flags, port=7471, env=None, at="server", options=None):
        env = {**(self.env or {}), **(env or {})}
        return self.stage.start(role, f"{COUNT} {flags} {{{at}}} {port}", env=env, options=options)

    def serve(self, flags="", role="server", port=7471, env=None):
        server = self.start(role, flags, port, env, role)
        check(wait_until(lambda: "listens" in server.out or server.poll() is not None, 10), "the server does not listen")
        server.until_link_up()
        return server

    def pair(self, client_flags="", server_flags="", env=None):
        """A connection at work."""
        server = self.serve(server_flags, env=env)
        client = self.start("client", f"-c {client_flags}", env=env)
        self.until_up(client, server)
        return server, client

    def until_up(self, *programs):
        for p in programs:
            wait_until(lambda: ups(p) or p.poll() is not None, 10)
            if not ups(p):  # who has done its work may have ended already
                raise Failed(f"{p.role} has no connection")

    def ends_well(self, program, seconds, code=0):
        rc = program.wait(seconds)
        check(rc == code, f"{program.role} ended with exit code {rc}")
        return self.counted(program)

    def counted(self, program):
        found = lines(program)
        check(found, f"{program.role} reports no connection")
        for line in found:
            check(not line["lost"] and not line["wrong"], f"{program.role}: requests lost or wrong: {line}")
            check(line["sent"] == line["ok"] + line["failed"] + line["flushed"], f"{program.role}: {line}")
        return found

    def heard_within(self, program, since_ms, seconds):
        line = self.counted(program)[-1]
        took = (line["heard"] - since_ms) / 1000
        check(took <= seconds + BUSY, f"{program.role} heard of it after {took:.1f} s, not within {seconds:g} s")
        return took


# ---- processes that die or stop -----------------------------------------------------------------


class Kills(Case):
    """Either end is killed at a random moment of its life; the other end counts. The server of every other round goes
    on, and keeps neither descriptors nor memory of those that were killed."""

    bound = 2.0

    def play(self):
        if self.stage.link.name != "memif":  # without a segment under way the first keepalive meets the kernel's RST
            self.bound = 4.5
        rounds = int(os.environ.get("UWARP_KILLS", "8"))
        rng, took = random.Random(SEED), []
        # where the kernel has the address, there is one for each namespace
        self.lasting_at = "third" if self.stage.link.name != "packet" else "client"
        lasting = self.serve("-k", role=self.lasting_at, port=7472)
        before = None
        for n in range(rounds):
            if n % 2:
                took += self.kill_server(rng)
            else:
                took += self.kill_client(rng, lasting)
            if n == 3:
                before = self.held(lasting)
        self.judge(lasting, before, rounds, took)

    def kill_server(self, rng):
        server = self.serve()
        client = self.start("client", "-c")
        time.sleep(rng.uniform(0.0, 0.8))
        connected = ups(client) > 0
        at = now_ms()
        server.kill()
        server.wait(5)
        client.wait(self.bound + 5 + BUSY)
        found = [self.heard_within(client, at, self.bound)] if connected else []
        for p in (client, server):
            self.stage.forget(p)
        return found

    def kill_client(self, rng, lasting):
        seen, done = ups(lasting), len(lines(lasting))
        client = self.start("client" if self.lasting_at == "third" else "server", "-c", port=7472, at=self.lasting_at)
        time.sleep(rng.uniform(0.0, 0.8))
        at = now_ms()
        client.kill()
        client.wait(5)
        self.stage.forget(client)
        time.sleep(0.05)
        if ups(lasting) == seen:
            return []
        if not wait_until(lambda: len(lines(lasting)) > done, self.bound + 5 + BUSY):
            raise Failed("the server reports no end of the killed client's connection")
        return [self.heard_within(lasting, at, self.bound)]

    @staticmethod
    def held(program):
        status = read_bytes(f"/proc/{program.pid}/status").decode()
        return len(os.listdir(f"/proc/{program.pid}/fd")), int(re.search(r"VmRSS:\s+(\d+)", status)[1])

    def judge(self, lasting, before, rounds, took):
        check(lasting.poll() is None, "the server that lasts has ended")
        check(wait_until(lambda: self.held(lasting)[0] <= before[0] + 2, 10), f"descriptors: {before[0]}, then {self.held(lasting)[0]}")
        after = self.held(lasting)
        check(after[1] <= before[1] + 8192 + 4 * rounds, f"memory in KiB: {before[1]}, then {after[1]}")
        took.sort()
        if took:
            text = f"{rounds} kills, {len(took)} of them of a connection at work: heard after {took[len(took) // 2] * 1000:.0f} ms (median), {took[-1] * 1000:.0f} ms (most)"
            print(f"    {text}; descriptors {before[0]} to {after[0]}, memory {before[1]} to {after[1]} KiB", flush=True)


class Killed(Case):
    """The server is killed, and nothing tells but its silence."""

    env, least = QUICK, 0

    def play(self):
        server, client = self.pair(self.flags_of_client)
        time.sleep(0.3)
        at = now_ms()
        server.kill()
        server.wait(5)
        client.wait(self.bound + 5 + BUSY)
        took = self.heard_within(client, at, self.bound)
        check(took >= self.least, f"the client heard of it after {took:.1f} s, sooner than {self.least:g} s")


class Stopped(Case):
    """The server is stopped for a while and goes on: nobody's connection ends."""

    env = None

    more = ""

    def play(self):
        server, client = self.pair(f"-p 2000 -f 2000 {self.more}", self.more, env=self.env)
        time.sleep(0.3)
        server.kill(signal.SIGSTOP)
        time.sleep(5)
        check(client.poll() is None and not lines(client), "the client has ended while the server was stopped")
        server.kill(signal.SIGCONT)
        for p in (client, server):
            for line in self.ends_well(p, 20):
                check(not line["failed"], f"{p.role}: {line}")


class StoppedForLong(Case):
    """For longer than a peer waits. Both must end when it goes on, and each request complete."""

    def play(self):
        server, client = self.pair("", env=QUICK)
        time.sleep(0.3)
        at = now_ms()
        server.kill(signal.SIGSTOP)
        client.wait(GIVE_UP + 5 + BUSY)
        self.heard_within(client, at, GIVE_UP + 1)
        server.kill(signal.SIGCONT)
        self.ends_well(server, 10)


# ---- the network --------------------------------------------------------------------------------


class LinkDown(Case):
    """The cable is out for a while. What is under way goes on soon after it is back."""

    more = ""

    def play(self):
        server, client = self.pair(f"-p 1000 {self.more}", self.more)
        time.sleep(0.3)
        full = self.segment(client)
        self.cable("down")
        time.sleep(self.seconds)
        check(client.poll() is None and not lines(client), "the client has ended")
        before = self.acked(client)
        self.cable("up")
        start = time.monotonic()
        check(wait_until(lambda: self.acked(client) > before + 100000, 10), "nothing goes on")
        took = time.monotonic() - start
        print(f"    goes on {took * 1000:.0f} ms after the cable is back", flush=True)
        check(took < 1.0 + BUSY, f"it goes on only after {took:.1f} s")
        check(server.poll() is None, "the server has ended")
        self.as_long_as(full, client)

    def as_long_as(self, full, client):
        """An outage is no path that takes short packets only (doc/adr/0028)."""
        check(wait_until(lambda: self.segment(client) == full, 5), f"segments of {self.segment(client)} octets are left of {full}")

    def cable(self, how):
        self.stage.link.ip_do("client", f"link set {self.stage.link.ends['client']} {how}")

    def tcp(self, program, name):
        from stat_cases import TOOL, json

        r = subprocess.run([TOOL, "--json", str(program.pid)], env=self.stage.env, capture_output=True, text=True, timeout=30)
        answers = json.loads(r.stdout or "[]")
        return max([c["tcp"][name] for a in answers for c in a["connections"]], default=0)

    def acked(self, program):
        return self.tcp(program, "delivered_bytes")

    def segment(self, program):
        return self.tcp(program, "mss")


class NewMac(LinkDown):
    """The client's interface gets another MAC address: both ends find each other again."""

    def play(self):
        server, client = self.pair(f"-p 1000 {self.more}", self.more)
        time.sleep(0.3)
        self.cable("address 02:00:5e:10:00:07")
        start = time.monotonic()
        before = self.acked(client)
        check(wait_until(lambda: self.acked(client) > before + 100000, 10), "nothing goes on")
        took = time.monotonic() - start
        print(f"    goes on {took * 1000:.0f} ms after the change", flush=True)
        check(took < 3.0 + BUSY, f"it goes on only after {took:.1f} s")
        check(client.poll() is None and server.poll() is None, "one has ended")


class LinkGone(LinkDown):
    """It stays out: both ends hear of it."""

    def play(self):
        server, client = self.pair(f"-p 1000 {self.more}", self.more, env=QUICK)
        time.sleep(0.3)
        at = now_ms()
        self.cable("down")
        for p in (client, server):
            p.wait(GIVE_UP + 15)
            self.heard_within(p, at, self.bound)
        self.cable("up")


class LinkDeleted(LinkDown):
    """The interface is deleted: both ends hear of it, and say once what it is."""

    def play(self):
        server, client = self.pair("-p 1000", env=QUICK)
        link = self.stage.link
        time.sleep(0.3)
        at = now_ms()
        link.ip_do("client", f"link del {link.ends['client']}")
        try:
            for p in (client, server):
                p.wait(GIVE_UP + 15)
                self.heard_within(p, at, self.bound)
                said = [line for line in p.our_lines() if "interface" in line]
                check(len(said) == 1 and f"{link.ends[p.role]} is gone" in said[0], f"{p.role} says {said}")
        finally:
            link.build()


class TakenOver(Case):
    """Another process gets the address of one that died: it knows nothing of the old connections and says so."""

    def play(self):
        server, client = self.pair()
        time.sleep(0.3)
        at = now_ms()
        server.kill()
        server.wait(5)
        self.stage.forget(server)
        other = self.serve()
        client.wait(10)
        took = self.heard_within(client, at, 3)
        check(other.poll() is None, "the new server has ended")
        print(f"    heard after {took:.1f} s", flush=True)


class Ends(Case):
    """The client has done its work and closes: the server hears at once."""

    def play(self):
        server = self.serve()
        client = self.start("client", "-c -f 500")
        self.ends_well(client, 15)
        at = now_ms()
        self.ends_well(server, 10)
        self.heard_within(server, at, 0)


class OutBetween(LinkDown):
    """The same behind a switch: no interface sees it. It goes on by the retransmission timeout, after as long again."""

    def play(self):
        blackout = {"UWARP_IMPAIR": f"blackout=3s+{self.seconds}s,dir=out"}
        server, client = self.pair(f"-p 1000 {self.more}", self.more, env=blackout)
        full = self.segment(client)
        check(wait_until(lambda: self.stalls(client), 10), "nothing is lost")
        start = time.monotonic()
        before = self.acked(client)
        check(wait_until(lambda: self.acked(client) > before + 100000, 3 * self.seconds + 10), "nothing goes on")
        took = time.monotonic() - start
        print(f"    goes on {took:.1f} s after it stood still, of which it was out for {self.seconds} s at most", flush=True)
        check(took <= 2 * self.seconds + BUSY, f"it goes on only after {took:.1f} s")
        check(client.poll() is None and server.poll() is None, "one has ended")
        self.as_long_as(full, client)

    def stalls(self, client):
        """Nothing has been acknowledged for half a second."""
        before = self.acked(client)
        time.sleep(0.5)
        return before and self.acked(client) == before


class HalfMessage(Case):
    """A peer's TCP ends in the middle of an FPDU: each request of the other end completes."""

    needs = ["python3"]

    def play(self):
        server = self.serve()
        link = self.stage.link
        at = now_ms()
        peer = self.stage.start_plain("client", [sys.executable, HALF_PEER, link.addresses["server"], "7471", self.how])
        check(peer.wait(15) == 0, "the peer did not get that far")
        self.ends_well(server, 10)
        self.heard_within(server, at, 3)


# ---- too little of something --------------------------------------------------------------------


class Overflow(Case):
    """A CQ that is too small for what is asked of it: the QP fails, the program is not kept waiting, and the peer, whose
    CQ is large enough, loses nothing."""

    def play(self):
        server, client = self.pair("-C 8 -d 64", "-d 64")
        at = now_ms()
        client.wait(15)
        check(client.popen.returncode in (0, 3), f"the client ended with exit code {client.popen.returncode}")
        check(lines(client), "the client reports nothing")
        self.ends_well(server, 10)
        self.heard_within(server, at, 3)


class Unmapped(Case):
    """The client unmaps its memory before it deregisters it: its QP fails, and its peer's with it; nobody is killed by a
    signal, and another connection of the same server goes on."""

    def play(self):
        server = self.serve("-k")
        other = self.start("client", "-c -p 1000")
        self.until_up(other, server)
        at = now_ms()
        client = self.start("client", "-c -u 100", options=self.options())
        self.ends_well(client, 15)
        check(wait_until(lambda: lines(server), 10), "the server reports no end")
        self.heard_within(server, at, 3)
        check(other.poll() is None and not lines(other), "the other connection has ended")

    def options(self):
        """Another address than the other client's, where each process has its own."""
        return self.stage.link.options("third" if self.stage.link.name != "packet" else "client")


class TooLittle(Case):
    """Address space, or descriptors, are short: whoever cannot get them hears so, and is neither killed nor kept waiting.
    Another pair does not notice."""

    needs = ["prlimit"]
    limit, amounts = "as", [mib << 20 for mib in (64, 150, 250, 400, 600)]

    def play(self):
        role = "third" if self.stage.link.name == "memif" else "server"  # where the kernel has it, one address for each namespace
        server = self.serve("-k", role=role, port=7472)
        client = self.start("client", "-c -p 1000", port=7472, at=role)
        self.until_up(client, server)
        ended = [self.tried(amount, role) for amount in self.amounts]
        print(f"    exit codes: {ended}", flush=True)
        for rc in ended:
            check(rc is None or rc >= 0, f"one was killed by signal {-(rc or 0)}: {ended}")
        check(client.poll() is None and server.poll() is None and not lines(client), "the other pair has noticed")

    def tried(self, amount, at):
        """How a client with so little ends; None: it works, and was stopped."""
        command = f"prlimit --{self.limit}={amount} {COUNT} -c -n 8 -s 1048576 -f 50 {{{at}}} 7472"
        over_memif = self.stage.link.name == "memif"
        program = self.stage.start("fourth" if over_memif else "client", command, options=["--link", "memif"] if over_memif else None)
        rc = program.wait(30)
        program.stop()
        return rc


class LittleShm(Case):
    """A few pages in /dev/shm: a pair works all the same, or says that it cannot."""

    needs = ["unshare", "mount"]

    def play(self):
        if os.getuid() or subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode:
            raise Skipped("no mount namespace can be made here")
        server = self.serve()
        script = f"mount -t tmpfs -o size=16k none /dev/shm && exec {COUNT} -c -f 2000 {{server}} 7471"
        client = self.stage.start("client", f"unshare -m sh -c '{script}'")
        for p in (client, server):
            for line in self.ends_well(p, 20):
                check(not line["failed"], f"{p.role}: {line}")


class ClockSteps(Case):
    """The wall clock jumps by an hour to and fro: nothing of the stack goes by it."""

    more = ""

    def play(self):
        if not STEPS:
            raise Skipped("UWARP_PROGRAMS_STEPS does not name the library that steps.c makes")
        server, client = self.pair(f"-p 1000 -f 3000 {self.more}", self.more, env={"LD_PRELOAD": STEPS})
        for p in (client, server):
            for line in self.ends_well(p, 20):
                check(not line["failed"], f"{p.role}: {line}")


STEPS = made("UWARP_PROGRAMS_STEPS", "libprograms-steps.so")
MEMIF = [
    Kills("kills at random moments"),
    Ends("the peer closes"),
    TakenOver("address taken over by another process"),
    Stopped("SIGSTOP for 5 s"),
    Stopped("SIGSTOP for 5 s, of which 2 s end a silent connection", env=QUICK),
    Overflow("CQ of 8 for 64 requests"),
    Unmapped("memory unmapped before it is deregistered"),
    TooLittle("ulimit -v of 64 to 600 MiB"),
    TooLittle("ulimit -n of 10 to 30", limit="nofile", amounts=range(10, 31)),
    LittleShm("16 KiB of /dev/shm"),
    ClockSteps("wall clock steps by an hour"),
]
PACKET = [
    Kills("kills at random moments, the kernel's address"),
    Ends("the peer closes"),
    Stopped("SIGSTOP for 5 s"),
    StoppedForLong("SIGSTOP for longer than a peer waits"),
    LinkDown("cable out for 2 s", seconds=2),
    LinkGone("cable out for good", bound=GIVE_UP + 1),
    LinkDown("cable out for 2 s, both sleep", seconds=2, more="-w"),
    LinkDeleted("the interface is deleted", bound=GIVE_UP + 1),
    NewMac("the interface gets another MAC address"),
    LinkGone("cable out for good, both sleep", bound=GIVE_UP + 1, more="-w"),
    Stopped("SIGSTOP for 5 s, both sleep", more="-w"),
    ClockSteps("wall clock steps by an hour, both sleep", more="-w"),
    OutBetween("out for 2 s, and the interface does not see it", seconds=2),
    TooLittle("ulimit -v of 64 to 600 MiB"),
    TooLittle("ulimit -n of 10 to 30", limit="nofile", amounts=range(12, 31, 4)),
    ClockSteps("wall clock steps by an hour"),
    HalfMessage("RST in the middle of a message", how="rst"),
    HalfMessage("FIN in the middle of a message", how="fin"),
    Overflow("CQ of 8 for 64 requests"),
    Unmapped("memory unmapped before it is deregistered"),
]
PACKET_OWN = [
    Killed("server killed, busy connection, its own address", flags_of_client="-p 1000", bound=GIVE_UP + 1),
    Killed("server killed, idle connection, its own address", flags_of_client="-q", bound=GIVE_UP + 1),
    Killed("server killed, idle connection, 4 s as by default", flags_of_client="-q", bound=8.5, least=6, env={}),
    TakenOver("address taken over by another process"),
]
