#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The main job of tools/quickstart: build, run stock programs over uwarp, compare with the
kernel's TCP. Called by tools/quickstart, which has installed what is needed."""

import fcntl
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import house  # noqa: E402
from house import ROOT, UWARP_RUN, Failed, say  # noqa: E402

sys.path.insert(1, house.TOOLS)
from run import ending  # noqa: E402

LAT_SIZE, BW_SIZE = 64, 65536
PINGS, PING_SIZE = 100, 1000
READY_TIMEOUT, RUN_TIMEOUT = 20, 60
PORT = 18515


class Process:
    """A program whose output is kept, and which ends with this one."""

    def __init__(self, command, env=None):
        self.command, self.log = command, tempfile.TemporaryFile()
        self.p = subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT, start_new_session=True
        )

    def output(self):
        self.log.seek(0)
        return self.log.read().decode(errors="replace")

    def stop(self):
        try:
            os.killpg(self.p.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.p.wait()
        self.log.close()

    def report(self, who):
        code = self.p.poll()
        state = "still running" if code is None else f"exit code {code}"
        return f"--- {who} ({state}): {shlex.join(self.command)}\n{self.output()}"


def stop(*processes):
    for p in filter(None, processes):
        p.stop()


def listens(run_dir, port):
    """Does a uwarp process hold the port? (stack/io/rendezvous keeps a locked file for it.)"""
    try:
        with open(os.path.join(run_dir, "port", str(port))) as f:
            fcntl.flock(f, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except BlockingIOError:
        return True
    return False


def wait_until(ready, server, what):
    deadline = time.monotonic() + READY_TIMEOUT
    while not ready():
        if server.p.poll() is not None:
            raise Failed(f"the server ended before it listened\n{server.report('server')}")
        if time.monotonic() > deadline:
            raise Failed(f"the server did not {what} within {READY_TIMEOUT} s\n{server.report('server')}")
        time.sleep(0.01)


def finish(*processes):
    deadline = time.monotonic() + RUN_TIMEOUT
    for who, p in processes:
        try:
            p.p.wait(max(0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            break
    if any(p.p.poll() != 0 for _, p in processes):
        text = "\n".join(p.report(who) for who, p in processes)
        raise Failed(f"the exchange failed or took more than {RUN_TIMEOUT} s\n{text}")


def over_uwarp(server_args, client_args):
    """Run a server and its client as two uwarp processes; returns the client's output."""
    run_dir = tempfile.mkdtemp(prefix="uwarp-qs-", dir="/tmp")
    env = {**os.environ, "UWARPD": "", "UWARP_DIR": run_dir}
    server = client = None
    try:
        server = Process([UWARP_RUN, "--", *server_args], env)
        wait_until(lambda: listens(run_dir, PORT), server, f"listen on port {PORT}")
        client = Process([UWARP_RUN, "--", *client_args], env)
        finish(("client", client), ("server", server))
        return client.output()
    finally:
        stop(client, server)
        shutil.rmtree(run_dir, ignore_errors=True)


def over_kernel_tcp(test, size):
    """qperf's own TCP test over the loopback interface; returns its number in base units."""
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = str(s.getsockname()[1])
    server = client = None
    try:
        server = Process(["qperf", "-lp", port])
        client = Process(["qperf", "-lp", port, "-ws", "10", "-uu", "-t", "1", "-m", str(size), "127.0.0.1", test])
        finish(("client", client))
        found = re.search(r"=\s*([\d.,]+) (?:ns|bytes/sec)", client.output())
        if not found:
            raise Failed(f"qperf printed no result\n{client.report('client')}")
        return float(found[1].replace(",", ""))
    finally:
        stop(client, server)


def perftest_row(output):
    """The numbers of the first row below perftest's '#bytes' heading."""
    _, heading, rest = output.partition("#bytes")
    for line in rest.splitlines()[1:] if heading else []:
        words = line.split()
        if words and re.fullmatch(r"\d+", words[0]):
            return [float(w) for w in words]
    raise Failed(f"found no result in the output\n{output}")


def perftest(program, *args):
    common = [program, "-R", "-F", "-p", str(PORT), *args]
    return perftest_row(over_uwarp(common, [*common, "127.0.0.1"]))


def ping():
    common = ["-C", str(PINGS), "-S", str(PING_SIZE), "-V", "-p", str(PORT)]
    over_uwarp(["rping", "-s", *common], ["rping", "-c", "-a", "127.0.0.1", *common])
    return "ok"


def uwarp_latency():
    return f"{perftest('ib_write_lat', '-s', str(LAT_SIZE), '-n', '5000')[4]:.1f} us"


def uwarp_bandwidth():
    return f"{perftest('ib_send_bw', '-s', str(BW_SIZE), '-D', '2', '--report_gbits')[3]:.1f} Gb/s"


def tcp_latency():
    return f"{over_kernel_tcp('tcp_lat', LAT_SIZE) / 1e3:.1f} us"


def tcp_bandwidth():
    return f"{over_kernel_tcp('tcp_bw', BW_SIZE) * 8 / 1e9:.1f} Gb/s"


# (what, program over uwarp, how; the same over kernel TCP, how)
EXCHANGES = [
    (f"{PINGS} pings of {PING_SIZE} B, data checked", "rping", ping, None, None),
    (f"latency, {LAT_SIZE} B (half round trip)", "ib_write_lat", uwarp_latency, "qperf tcp_lat", tcp_latency),
    (f"bandwidth, {BW_SIZE // 1024} KiB messages", "ib_send_bw", uwarp_bandwidth, "qperf tcp_bw", tcp_bandwidth),
]


def attempt(what, program, measure):
    """The result to show, and whether it worked."""
    say(f"{what}: {program}")
    try:
        return f"{measure()} ({program})", True
    except Failed as f:
        say(f"{program} FAILED: {f}")
        return f"FAILED ({program})", False


def loopback_mtu():
    try:
        with open("/sys/class/net/lo/mtu") as f:
            return f.read().strip()
    except OSError:
        return "unknown"


def main():
    house.clean_up_on_signals()
    build = os.path.join(ROOT, "build")
    house.configure(build)
    house.build(build)
    rows, good = [], True
    for what, program, measure, tcp_program, tcp_measure in EXCHANGES:
        ours, worked = attempt(what + " over uwarp", program, measure)
        theirs, tcp_worked = attempt(what + " over kernel TCP", tcp_program, tcp_measure) if tcp_measure else ("-", True)
        rows.append((what, ours, theirs))
        good = good and worked and tcp_worked
    print()
    for row in [("exchange", "uwarp over memif", "kernel TCP over lo"), *rows]:
        print(f"{row[0]:<36}{row[1]:<30}{row[2]}")
    print(f"(kernel TCP: blocking sockets over the loopback interface, MTU {loopback_mtu()}, no checksums)\n")
    print("quickstart: " + ("PASS" if good else "FAIL"), flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    try:
        sys.exit(ending.ended("quickstart", main))
    except Failed as f:
        say(str(f))
        sys.exit("quickstart: FAIL")
