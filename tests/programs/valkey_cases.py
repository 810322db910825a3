# SPDX-License-Identifier: BSD-3-Clause
"""Valkey with RDMA (tools/lib/valkey-rdma builds it): server, command line client and benchmark, and a client that is
killed in the middle of its work."""

import hashlib
import os
import re
import subprocess

from harness import ROOT, START, Skipped, check, wait_until
from pairs import sweep

PORT = 6379
TOOL = os.path.join(ROOT, "tools", "lib", "valkey-rdma")


def valkey(program):
    where = subprocess.run([TOOL, "--where"], capture_output=True, text=True, check=False)
    path = os.path.join(where.stdout.strip(), program)
    if where.returncode or not os.access(path, os.X_OK):
        raise Skipped("no Valkey with RDMA is built (tools/lib/valkey-rdma)")
    return path


class Valkey:
    """A server, and what clients do with it."""

    program, needs = "valkey", []

    def __call__(self, stage):
        self.stage = stage
        flags = f"--port 0 --rdma-bind {{server}} --rdma-port {PORT} --save '' --appendonly no --protected-mode no --dir {{folder}}"
        self.server = stage.start("server", f"{valkey('valkey-server')} {flags}")
        ready = lambda: "Ready to accept" in self.server.out  # noqa: E731
        check(wait_until(lambda: ready() or self.server.poll() is not None, START) and ready(), "valkey-server does not get ready")
        self.work()
        check(self.server.poll() is None, "the server ended")
        check(not self.server.our_lines(), f"the server complains: {self.server.our_lines()}")
        self.server.stop()
        sweep(stage)

    def client(self, program, words, role="client"):
        return self.stage.start(role, f"{valkey(program)} --rdma -h {{server}} -p {PORT} {words}")

    def ask(self, words):
        cli = self.client("valkey-cli", words, "third")
        rc = cli.wait(20)
        check(rc == 0, f"valkey-cli {words[:40]}: exit code {rc}")
        text = cli.out
        self.stage.forget(cli)
        return text.strip()


class Data(Valkey):
    """Values up to 8 MiB, which the server makes and sends, and whose digests agree."""

    flags = "valkey-cli: set, get, 1 octet to 8 MiB"

    def work(self):
        check(self.ask("ping") == "PONG", "no PONG")
        check(self.ask("set here 'some text'") == "OK" and self.ask("get here") == "some text", "it is another text")
        for size in (1, 4096, 65537, 8 << 20):
            self.ask(f"setrange zeros {size - 1} x")
            want = b"\0" * (size - 1) + b"x"
            digest = self.ask("eval \"return redis.sha1hex(redis.call('get', 'zeros'))\" 0")
            check(digest == hashlib.sha1(want).hexdigest(), f"{size} octets: the server has others")
            cli = self.client("valkey-cli", "--raw get zeros")
            check(cli.wait(20) == 0, f"{size} octets do not come")
            with open(cli.out_path, "rb") as f:
                check(f.read() == want + b"\n", f"{size} octets: others came")
            self.stage.forget(cli)
            self.ask("del zeros")


class Benchmark(Valkey):
    flags = "valkey-benchmark -t set,get -c 50 -n 20000 -d 1024"

    def work(self):
        bench = self.client("valkey-benchmark", "-t set,get -c 50 -n 20000 -d 1024 --csv")
        rc = bench.wait(60)
        check(rc == 0, f"exit code {rc}")
        rows = re.findall(r'^"(SET|GET)","([\d.]+)"', bench.out, re.M)
        check([name for name, _ in rows] == ["SET", "GET"] and all(float(rate) > 0 for _, rate in rows), f"its figures are {rows}")


class Killed(Valkey):
    """The server forgets its connections, and serves others."""

    flags = "50 clients are killed while they work"

    def clients(self):
        return int(re.search(r"^connected_clients:(\d+)", self.ask("info clients"), re.M)[1])

    def work(self):
        for _ in range(3):
            bench = self.client("valkey-benchmark", "-t set,get -c 50 -n 100000000 -d 4096")
            check(wait_until(lambda: self.clients() > 50 or bench.poll() is not None, START), "they do not connect")
            check(bench.poll() is None, "the clients ended")
            bench.kill()
            bench.wait(5)
            check(wait_until(lambda: self.clients() == 1, START), "the server keeps dead clients")
        check(self.ask("ping") == "PONG", "no PONG")


CASES = [Data(), Benchmark(), Killed()]
