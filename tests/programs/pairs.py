# SPDX-License-Identifier: BSD-3-Clause
"""A server and a client, both stock programs: both must end with exit code 0, and what they print
must say that the work was done."""

import os
import re
import time

import impairment
from harness import Failed, NoFigures, Program, check, read_bytes

REFUSED = "nothing listens on that port"
# A client that comes before its server listens is started again, as a user would do.
PATIENCE = 10.0
PING = b"ping data: "
PERFTEST_ALL = [1 << n for n in range(1, 24)]
PERFTEST_DEFAULTS = {"atomic": 8, "lat": 2, "bw": 65536}


def until_connected(stage, server, command, seconds, env=None):
    """Run the client to its end."""
    deadline = time.monotonic() + seconds
    while True:
        client = stage.start("client", command, env=env)
        rc = client.wait(max(0.1, deadline - time.monotonic()))
        late = REFUSED in client.err and server.poll() is None and server.seconds() < PATIENCE
        if rc == 0 or not late:
            return client
        stage.forget(client)


def run_pair(stage, server_command, client_command, seconds, env=None, ready=Program.until_link_up):
    """Both programs after they have ended well. env: role -> additional variables; ready waits until the
    server can be reached."""
    env = env or {}
    deadline = time.monotonic() + seconds
    server = stage.start("server", server_command, env=env.get("server"))
    ready(server)
    client = until_connected(stage, server, client_command, seconds, env.get("client"))
    check(client.popen.returncode == 0, f"the client ended with exit code {client.popen.returncode}")
    rc = server.wait(max(1, deadline - time.monotonic()))
    check(rc == 0, f"the server ended with exit code {rc}")
    for program in (server, client):
        check(not program.our_lines(), f"the {program.role} complains: {program.our_lines()}")
    return server, client


# ---- what the programs print when all is well ---------------------------------------------------


def option(command, name, default=None):
    words = command.split()
    return words[words.index(name) + 1] if name in words else default


def judge_rping(_stage, _server, client, command):
    """-V made the client compare what came back; -v shows it, one line for each ping."""
    if "-v" not in command.split():
        return
    pings, size = int(option(command, "-C")), int(option(command, "-S", "64"))
    lines = read_bytes(client.out_path).splitlines()
    check(len(lines) == pings, f"{len(lines)} pings instead of {pings}")
    for n, line in enumerate(lines):
        good = line.startswith(PING + b"rdma-ping-%d: " % n) and len(line) == len(PING) + size - 1
        check(good, f"ping {n} shows other data: {line[:60]!r}")


def judge_perftest(_stage, _server, client, command):
    """One row of figures for each message size."""
    words = command.split()
    rows = [row.split() for row in client.out.splitlines() if re.match(r"\s*\d+\s+\d+\s+\S", row)]
    odd = [" ".join(row) for row in rows if not re.fullmatch(r"\d+\.\d+", row[2])]
    check(not odd, f"rows without figures: {odd}", NoFigures)
    sizes = [int(row[0]) for row in rows]
    default = next(size for name, size in PERFTEST_DEFAULTS.items() if name in words[0])
    wanted = PERFTEST_ALL if "-a" in words else [int(option(command, "-s", default))]
    check(sizes == wanted, f"figures for the sizes {sizes} instead of {wanted}", NoFigures)
    # columns of both kinds of table: the third but one is a maximum or a peak, the next an average
    # (for two octets a rate may be rounded to 0.00 where the machine is busy)
    check(all(float(row[3]) > 0 for row in rows if int(row[0]) > 1024), "a row of figures has a zero in it", NoFigures)


def says(role_text):
    """Each program of the pair has printed its text."""

    def judge(_stage, server, client, _command):
        for program, text in zip((server, client), role_text):
            check(text in program.out, f"the {program.role} does not say '{text}'")

    return judge


def judge_rcopy(stage, _server, _client, _command):
    same = read_bytes(os.path.join(stage.folder, "original")) == read_bytes(os.path.join(stage.folder, "copy"))
    check(same, "the copy differs from the original")


def judge_rstream(_stage, _server, client, command):
    """With -T v a stream that brings other data ends in an error line."""
    check("verification failed" not in client.out + client.err, "data came wrong")
    wanted = 1 if "-S" in command.split() else 8
    rows = re.findall(r"^(?:custom|\w+_(?:lat|bw))\s", client.out, re.M)
    check(len(rows) == wanted, f"{len(rows)} tests were done instead of {wanted}")


def judge_netpipe(_stage, _server, client, _command):
    """-i: it compares what came."""
    lines = re.findall(r"bytes +\d+ times -->.*", client.out + client.err)
    check(len(lines) >= 20, f"{len(lines)} sizes instead of 20 at least")
    check(all("check passed" in line for line in lines), "data came wrong")


def judge_qperf(_stage, _server, client, command):
    """The name of the test and a figure."""
    test = command.split()[-1]
    figure = r"(bw|latency|msg_rate) += +\d"
    check(re.search(rf"^{test}:\n +{figure}", client.out, re.M), f"no figure for {test}")


def judge_pingpong(_stage, _server, client, command):
    """One row for each size; with -c it compares what came."""
    rows = re.findall(r"^\S+ +\d+ +=\d+ ", client.out, re.M)
    wanted = 1 if "-S" in command.split() else 6
    check(len(rows) == wanted, f"{len(rows)} sizes instead of {wanted}")


def judge_fio(_stage, server, client, command):
    """All of it was carried; what the other side asks of its memory it does not count."""
    for program in (server, client) if "send" in command else (client,):
        check(re.search(r"^ +(READ|WRITE): .* io=16.0MiB", program.out, re.M), f"the {program.role} has no 16 MiB")


JUDGES = {
    "rping": judge_rping,
    "ucmatose": says(["return status 0", "return status 0"]),
    "udaddy": says(["data transfers complete\ntest complete\nreturn status 0"] * 2),
    "mckey": says(["data transfers complete\ntest complete\nreturn status 0"] * 2),
    "rdma_client": says(["rdma_server: end 0", "rdma_client: end 0"]),
    "rdma_xclient": says(["rdma_xserver: end 0", "rdma_xclient: end 0"]),
    "rstream": judge_rstream,
    "riostream": judge_rstream,
    "rcopy": judge_rcopy,
    "iperf": says(["connected with", "MBytes"]),
    "NPtcp": judge_netpipe,
    "qperf": judge_qperf,
    "fi_pingpong": judge_pingpong,
    "fio": judge_fio,
    "rpma.py": says(["all is there", "all came back"]),
    "dtest": says(["DAPL Test Complete. PASSED"] * 2),
    "dtestcm": says(["TOTAL: "] * 2),
    "dtestsrq": says(["ALL 4 CONNECTED on server!\n\n DAPL RC SRQ Test Complete.", "ALL 4 CONNECTED on client!\n\n DAPL RC SRQ Test Complete."]),
    "dapltest": says(["Service Point Ready", "Total WQE"]),
}


def judge(stage, server, client, command):
    name = os.path.basename(command.split()[0])
    JUDGES.get(name, judge_perftest)(stage, server, client, command)


# ---- cases --------------------------------------------------------------------------------------


class Pair:
    """server and client: commands, or only the client's flags if both take the same ones."""

    ready = staticmethod(Program.until_link_up)

    def __init__(self, program, flags, server, client, seconds=30):
        self.program, self.flags, self.seconds = program, flags, seconds
        self.server, self.client = server, client
        self.env = {}

    def with_env(self, **env):
        """Both programs get these variables."""
        self.env = {"server": env, "client": env}
        return self

    def __call__(self, stage):
        server, client = run_pair(stage, self.server, self.client, self.seconds, self.env, self.ready)
        judge(stage, server, client, self.client)


class Impaired(Pair):
    """Over a bad network (uwarp-impair(1)), which the flags name, and which both ends say that they had."""

    def __init__(self, impair, program, server, client):
        super().__init__(program, impair, f"{program} {server}", f"{program} {client}", 60)
        self.with_env(UWARP_IMPAIR=f"{impair},seed=3", UWARP_VERBOSE="1")

    def __call__(self, stage):
        super().__call__(stage)
        missing = impairment.missing(self.flags, [p.err for p in stage.programs])
        check(not missing, missing)


class Endless(Pair):
    """The server goes on for ever; after the client's success it is told to end, and the next
    process removes what it had in the run directory."""

    def __call__(self, stage):
        server = stage.start("server", self.server, env=self.env.get("server"))
        self.ready(server)
        client = until_connected(stage, server, self.client, self.seconds, self.env.get("client"))
        self.ended(client)
        if self.program in JUDGES:
            judge(stage, server, client, self.client)
        server.stop()
        sweep(stage)

    def ended(self, client):
        check(client.popen.returncode == 0, f"the client ended with exit code {client.popen.returncode}")


class ConnectionTimes(Endless):
    """cmtime. After its connections that of rdma-core 56 makes others with the numbers of QPs that
    do not exist, which no iWARP device does: the kernel's refuse it with the same EINVAL."""

    def ended(self, client):
        count = self.flags.split()[-1]
        check("CONNECT_ERROR" not in client.out and "UNREACHABLE" not in client.out, "not every connection was made")
        rows = re.findall(rf"^qp_conn\s+{count}$", client.out, re.M)
        if rows and "no QPs" in client.out:
            check(client.popen.returncode == 1 and "rdma_connect: Invalid argument" in client.err, "it ended otherwise")
        else:
            super().ended(client)
            check("destroy" in client.out, "it shows no times")


class Copy(Endless):
    """rcopy of some megabytes."""

    size = (1 << 24) + 3

    def __call__(self, stage):
        with open(os.path.join(stage.folder, "original"), "wb") as f:
            f.write(os.urandom(self.size))
        super().__call__(stage)


def sweep(stage):
    """What a killed process had in the run directory goes with the next process that comes. This
    one finds nobody to talk to and ends at once."""
    if not stage.files():
        return
    program = stage.run("third", "rping -c -a 127.0.0.99 -C 1", 15)
    if stage.files():
        raise Failed(f"left of a killed process: {', '.join(stage.files())}")
    stage.forget(program)
