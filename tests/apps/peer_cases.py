# SPDX-License-Identifier: BSD-3-Clause
"""uwarp-tcp-peer, with which uwarp-bench apps compares: its own calls, and memcached where there is one."""

import contextlib
import os
import shutil
import socketserver
import threading

from stagehands import check
from harness import Skipped, listens

PORT = 21000 + os.getpid() % 10000


def talk(play, protocol, more="", rc=0):
    words = [play.app("uwarp-tcp-peer"), "run", "127.0.0.1", "-p", str(PORT), "--protocol", protocol, "--json", "--quiet", *more.split()]
    client = play.start_plain("client1", words)
    return play.result(client, rc=rc, printed=not rc), client.err


def calls(play):
    """Tickets and look-ups over the loopback; keys that the tree has are found."""
    server = play.start_plain("server", [play.app("uwarp-tcp-peer"), "serve", "--bind", "127.0.0.1", "-p", str(PORT), "--events", "--keys", "2000"])
    listens(PORT)(server)
    for protocol, more in (("seq", "-t 2"), ("btree", "--mix A --keys 2000 -w 32"), ("btree", "--mix C --keys 2000 --events -w 1")):
        got, _ = talk(play, protocol, f"{more} -n 3000")
        check(got["operations"] == 3000, str(got))
    server.stop()


def memcached(play):
    """Every key is there before anybody asks for one; with too little memory for all of them the misses are told."""
    program = shutil.which("memcached")
    if not program:
        raise Skipped("memcached is not installed")
    user = ["-u", "root"] if os.getuid() == 0 else []
    for more, load, all_there in (("-m 64", "--keys 500 --value 3000 --mix A -t 3 -w 4", True), ("-m 16", "--keys 500 --value 65536 --mix C", False)):
        server = play.start_plain("server", [program, *user, "-l", "127.0.0.1", "-p", str(PORT), "-U", "0", "-t", "1", *more.split()])
        listens(PORT)(server)
        got, _ = talk(play, "memcached", f"--load {load} -n 3000")
        check(got["operations"] == 3000 and (got["misses"] == 0) == all_there, str(got))
        server.stop()


class Fake(socketserver.StreamRequestHandler):
    """Answers every line as `says` does."""

    def handle(self):
        with contextlib.suppress(OSError):
            for line in self.rfile:
                self.wfile.write(self.server.says(line))


class Listener(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True


def wrong(play):
    """A store that answers with another key's value, with a shorter one, with an error or as if it had been written to is found out."""
    value = lambda octets: b"VALUE x 0 %d\r\n%s\r\nEND\r\n" % (len(octets), octets)  # noqa: E731
    bulk = lambda octets: b"$%d\r\n%s\r\n" % (len(octets), octets)  # noqa: E731
    for protocol, answer, said in (
        ("memcached", value(b"v" * 100), "are not what was written"), ("memcached", value(b""), "are not what was written"),
        ("memcached", b"SERVER_ERROR out of memory\r\n", "requests were refused"), ("memcached", b"ERROR\r\n", "requests were refused"),
        ("memcached", b"STORED\r\n", "requests were refused"), ("valkey", b"+OK\r\n", "requests were refused"),
        ("valkey", bulk(b"v" * 100), "are not what was written"), ("valkey", b"-ERR\r\n", "requests were refused"),
    ):  # fmt: skip
        lines = 1 if protocol == "memcached" else 5  # of a request
        with Listener(("127.0.0.1", PORT), Fake) as fake:
            asked = [0]

            def says(_, lines=lines, answer=answer, asked=asked):
                asked[0] += 1
                return answer if asked[0] % lines == 0 else b""

            fake.says = says
            threading.Thread(target=fake.serve_forever, daemon=True).start()
            _, told = talk(play, protocol, "--keys 10 --value 100 --mix C -n 20 -w 1", rc=1)
            fake.shutdown()
            check(said in told, f"{protocol}: {answer[:20]} is taken: {told}")


CASES = {"calls": calls, "memcached": memcached, "wrong": wrong}
