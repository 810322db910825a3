# SPDX-License-Identifier: BSD-3-Clause
"""Processes that come and go: several at once, one that talks to itself, and ones that are killed in
the middle of their work."""

import os
import re
import subprocess

from harness import Skipped, check, made, wait_until
from pairs import run_pair, sweep, until_connected

SELF = made("UWARP_PROGRAMS_SELF", "programs-self")
FORKS = made("UWARP_PROGRAMS_FORKS", "programs-forks")
CLOSES = made("UWARP_PROGRAMS_CLOSES", "programs-closes")
ADDRESS = made("UWARP_PROGRAMS_ADDRESS", "programs-address")
# What a peer's death may take to be noticed and to be acted upon, on a busy machine.
NOTICED = 8.0
# What an end may take that nothing hurries: a second for each of three threads, on a busy machine.
ENDS = 6.0


def run_self(stage, flags, env=None):
    """One process, two threads, a connection between them (self.c)."""
    if not SELF:
        raise Skipped("UWARP_PROGRAMS_SELF does not name the program that self.c makes")
    program = stage.run("server", f"{SELF} {flags}", 30, env=env)
    check(program.popen.returncode == 0, f"exit code {program.popen.returncode}")
    check("all came back" in program.out, "it does not say that all came back")
    check(("bad STag" in program.out) == ("-x" in flags), "the bad STag made no difference")
    check(not program.our_lines(), f"it complains: {program.our_lines()}")


class Itself:
    program = "self"
    needs = []

    def __init__(self, flags):
        self.flags = flags

    def __call__(self, stage):
        run_self(stage, self.flags)


class Sanitized:
    """A program that was built with a sanitizer, whose library wants to be the first of the process; it finds nothing."""

    program, needs = "self", ["cc"]
    source = os.path.join(os.path.dirname(os.path.abspath(__file__)), "self.c")

    def __init__(self, kind, *prefix):
        self.kind, self.prefix, self.flags = kind, prefix, f"-fsanitize={kind}"

    def __call__(self, stage):
        path = os.path.join(stage.folder, "sanitized")
        words = ["cc", "-g", f"-fsanitize={self.kind}", "-o", path, self.source, "-lrdmacm", "-libverbs", "-lpthread"]
        if subprocess.run(words, capture_output=True).returncode:
            raise Skipped(f"nothing can be built with -fsanitize={self.kind} here")
        program = stage.run("server", " ".join([*self.prefix, path, "{server}"]), 60)
        check(program.popen.returncode == 0, f"exit code {program.popen.returncode}")
        check("all came back" in program.out, "it does not say that all came back")


class Family:
    """A shell under one uwarp-run starts a server and its client: both inherit one address, which the
    second of them finds in use, so it takes another."""

    program, flags = "rping", "-s and -c in one shell, no --ip"
    script = (
        "rping -s -V -C 20 & n=0; until rping -c -a 127.0.0.1 -V -C 20 2>err; do sleep 0.2; n=$((n + 1));"
        " if [ $n -ge 20 ]; then cat err >&2; kill $!; exit 1; fi; done; wait $!"
    )

    def __call__(self, stage):
        shell = stage.run("server", f"sh -c '{self.script}'", 40, options=[])
        check(shell.popen.returncode == 0, f"the shell ended with exit code {shell.popen.returncode}")


class Addresses:
    """Two programs in one shell, the second while the first is there: each says the address that it has, by its GID and
    among the interfaces (address.c)."""

    program, flags, needs = "address", "two in one shell, no --ip", []
    script = (
        "mkfifo gate; {0} <gate >first & exec 3>gate; until grep -q interface first; do sleep 0.1; done;"
        " {0} </dev/null; exec 3>&-; wait; cat first"
    )

    def __call__(self, stage):
        if not ADDRESS:
            raise Skipped("UWARP_PROGRAMS_ADDRESS does not name the program that address.c makes")
        shell = stage.run("server", f"sh -c '{self.script.format(ADDRESS)}'", 30, options=[])
        check(shell.popen.returncode == 0, f"the shell ended with exit code {shell.popen.returncode}")
        said = re.findall(r"^GID (\S+) interface (\S+)$", shell.out, re.M)
        check(len(said) == 2 and said[0][0] != said[1][0], f"they say {said}")
        check(all(gid == interface for gid, interface in said), f"they say {said}")


class Sixteen:
    """Servers at no particular address in sixteen processes: each is reached at its own."""

    program, flags, count = "rping", "16 x rping -s, wildcard", 16

    def __call__(self, stage):
        servers = [stage.start("server", "rping -s -V -C 5", options=["--ip", f"127.0.0.{n + 10}"]) for n in range(self.count)]
        for server in servers:
            server.until_link_up()
        for n, server in enumerate(servers):
            client = until_connected(stage, server, f"rping -c -a 127.0.0.{n + 10} -V -C 5", 20)
            check(client.popen.returncode == 0, f"client {n} ended with exit code {client.popen.returncode}")
        for n, server in enumerate(servers):
            rc = server.wait(10)
            check(rc == 0, f"server {n} ended with exit code {rc}")
            check(not server.our_lines(), f"server {n} complains: {server.our_lines()}")


class Forks:
    """A process that forks while its threads connect (forks.c)."""

    program, needs = "forks", []

    def __init__(self, seconds):
        self.seconds, self.flags = seconds, f"{seconds} s"

    def __call__(self, stage):
        if not FORKS:
            raise Skipped("UWARP_PROGRAMS_FORKS does not name the program that forks.c makes")
        program = stage.start("server", f"{FORKS} {{server}} 7999 {self.seconds}")
        rc = program.wait(self.seconds + 20)
        check(rc == 0, f"exit code {rc}")


class Closes:
    """A server that takes the library's descriptors away while a client is connected: it ends all the same, and soon
    (closes.c)."""

    program, needs = "closes", ["rping"]

    def __init__(self, way):
        self.way, self.flags = way, f"its descriptors: {way}"

    def __call__(self, stage):
        if not CLOSES:
            raise Skipped("UWARP_PROGRAMS_CLOSES does not name the program that closes.c makes")
        server = stage.start("server", f"{CLOSES} {{server}} 7174 {self.way}")
        server.until_link_up()
        client = stage.start("client", "rping -c -a {server}")
        check(wait_until(lambda: "taken" in server.out or server.poll() is not None, 10), "it is not connected")
        rc = server.wait(ENDS)
        check(rc == 0, f"exit code {rc}")
        client.kill()  # over a wire it may have heard nothing of that end
        client.wait(5)
        sweep(stage)


class TwoClients:
    """Two clients of one server at the same time: three processes, each joined with each. `longer` is
    what the first client is given so that it is still at work when the second one comes; such a
    server goes on for ever."""

    def __init__(self, program, flags, server, client, longer=""):
        self.program, self.flags, self.longer = program, flags, longer
        self.server, self.client = server, client

    def __call__(self, stage):
        server = stage.start("server", self.server)
        server.until_link_up()
        if self.longer:
            first = until_busy_client(stage, server, f"{self.client} {self.longer}")
        else:
            first = stage.start("client", self.client)
        second = stage.start("third", self.client)
        if self.longer:
            second.until_printed(1)
            check(first.poll() is None, "the first client ended before the second one was there")
        for program in (second, first):
            rc = program.wait(40)
            check(rc == 0, f"the {program.role} ended with exit code {rc}")
            check(not program.our_lines(), f"the {program.role} complains: {program.our_lines()}")
        if self.longer:
            check(server.poll() is None, "the server ended")
            server.stop()
            sweep(stage)
        else:
            rc = server.wait(10)
            check(rc == 0, f"the server ended with exit code {rc}")


def until_busy_client(stage, server, command, role="client"):
    """A client that is connected and at its work."""
    client = stage.start(role, command)
    client.until_link_up()
    if "rping" in command:
        client.until_printed(1)
    else:
        client.until_busy()
    check(server.poll() is None, "the server ended")
    return client


class KilledServer:
    """The server is killed while the client works: the client notices soon, ends as its author meant
    it, and removes what the dead one left if it finds it."""

    revived = False

    def __init__(self, program, flags, server, client):
        self.program, self.flags = program, f"{flags}; server killed"
        self.server, self.client = server, client

    def __call__(self, stage):
        server = stage.start("server", self.server)
        server.until_link_up()
        client = until_busy_client(stage, server, self.client)
        server.kill()
        server.wait(5)
        if self.revived:
            server = stage.start("server", self.server)
        rc = client.wait(NOTICED)
        if self.program == "rping":  # to which the end of a connection is no failure
            check("client DISCONNECT EVENT" in client.err, "the client does not say that the connection ended")
        else:
            check(rc > 0, f"the client ended with exit code {rc}")
        if self.revived:
            check(server.poll() is None, "the new server ended")
            server.stop()
        # The kernel closes a dead process's sockets before it lets go of its last lock. A client that ends at once may look between
        # the two, and then who comes next removes what is left.
        sweep(stage)


class RevivedServer(KilledServer):
    """Over a wire a dead peer is silent, and TCP has patience. A new process at its address answers
    for it: what it knows nothing of it resets."""

    revived = True

    def __init__(self, program, flags, server, client):
        super().__init__(program, flags, server, client)
        self.flags += ", new one"


class KilledClient:
    """The client is killed: the server takes the next one, or ends as with any device."""

    def __init__(self, program, flags, server, client, next_client=None):
        self.program, self.flags = program, f"{flags}; client killed"
        self.server, self.client, self.next_client = server, client, next_client

    def __call__(self, stage):
        server = stage.start("server", self.server)
        server.until_link_up()
        client = until_busy_client(stage, server, self.client)
        client.kill()
        client.wait(5)
        if not self.next_client:
            rc = server.wait(NOTICED)
            check(rc > 0, f"the server ended with exit code {rc}")
            return
        for _ in range(2):
            good = until_connected(stage, server, self.next_client, 20)
            check(good.popen.returncode == 0, f"the next client ended with exit code {good.popen.returncode}")
        check(server.poll() is None, "the server ended")
        server.stop()
        sweep(stage)


class Again:
    """A server's address and port can be had again at once, after a good end and after a kill."""

    program, flags = "rping", "-s, killed and started again"

    def __call__(self, stage):
        for n in range(4):
            if n % 2:
                run_pair(stage, "rping -s -a {server} -V -C 10", "rping -c -a {server} -V -C 10", 20)
                continue
            server = stage.start("server", "rping -s -a {server}")
            server.until_link_up()
            server.kill()
            server.wait(5)


SERVER = "rping -s -V -S 2000"
CLIENT = "rping -c -a {server} -V -v -S 2000"


def perftest(kind, name):
    return kind(name, "-R -D 60", f"{name} -R -D 60", f"{name} -R -D 60 {{server}}")


CLOSED = [Closes(way) for way in ("nofile", "closefrom", "dup2", "pipe")]
MEMIF = [
    Itself("{server}"),
    Itself("127.0.0.1"),
    Itself("-x {server}"),
    TwoClients("rping", "-s -P, two clients", f"{SERVER} -P", f"{CLIENT} -C 500", "-C 8000"),
    TwoClients("ucmatose", "-c 2, two clients", "ucmatose -c 2 -C 50", "ucmatose -s {server} -C 50"),
    Family(),
    Addresses(),
    Sanitized("address"),
    # its shadow memory needs address space that randomisation may have taken
    Sanitized("thread", "setarch", "-R"),
    Sixteen(),
    Forks(6),
    Again(),
    *CLOSED,
    KilledServer("rping", "-V", SERVER, CLIENT),
    perftest(KilledServer, "ib_write_bw"),
    perftest(KilledServer, "ib_send_bw"),
    perftest(KilledServer, "ib_read_bw"),
    perftest(KilledServer, "ib_send_lat"),
    KilledClient("rping", "-s -P", f"{SERVER} -P", CLIENT, f"{CLIENT} -C 10"),
    perftest(KilledClient, "ib_write_bw"),
    perftest(KilledClient, "ib_send_bw"),
]
SOCKET = [
    Forks(6),
    *CLOSED,
    Itself("{server}"),
    Itself("-x {server}"),
    TwoClients("ucmatose", "-c 2, two clients", "ucmatose -c 2 -C 50", "ucmatose -s {server} -C 50"),
    Family(),
    Again(),
    perftest(KilledServer, "ib_write_bw"),
    KilledClient("rping", "-s -P", f"{SERVER} -P", CLIENT, f"{CLIENT} -C 10"),
]
LOOP = [Itself("{server}"), Itself("-x {server}")]
VETH = [
    *CLOSED,
    Itself("{server}"),
    Itself("-x {server}"),
    RevivedServer("rping", "-V", SERVER, CLIENT),
    perftest(RevivedServer, "ib_write_bw"),
    KilledClient("rping", "-s -P", f"{SERVER} -P", CLIENT, f"{CLIENT} -C 10"),
]
