# SPDX-License-Identifier: BSD-3-Clause
"""The project's own applications (doc/apps.md): the very files that run over uwarp run over the kernel's siw and rxe in a VM,
against each other, and over siw against uwarp. Each has its oracle with it."""

import collections
import itertools
import json
import os
import re
import shlex
import shutil
import subprocess
import time

import capture
from ends import Broken

NAMES = ("kv", "btree", "seq", "rate")
# Where the VM sees what is put into the rig's folder `share`.
SHARED = "/share/apps"
# Seconds that a client may take on an emulated CPU; that a server may take to say that it is ready.
LIMIT, READY = 90, 60
PORT = "7471"
# What a client says when nothing came for 10 s.
STALLED = "the server has not answered"
# Lines that are shown of a failed connection; what siw's kernel says of one.
RECORDED = 20
DMESG = "dmesg | grep -iE 'siw:|rxe|bug:|warning:' | grep -v taint | tail -n 5"
# Operations of each client.
FEW, MANY = 300, 3000

KV = "kv", "--memory 48Mi --buckets 256 --value-max 64Ki"
BTREE = "btree", "--page 1024 --keys 2000"
SEQ = "seq", "--entries 64Ki"
RATE = "rate", ""
# Server, client. The first of each program are those of a quick run.
QUICK = [
    (*KV, "run {ip} --load --verify --mix A --deletes 8 --keys 40 --value 32-6000 --get hybrid"),
    (*BTREE, "run {ip} --keys 2000 --by reads --cache 64 --mix A --scans 10 --deletes 4 --verify"),
    (*SEQ, "take {ip} --mode rpc"),
    (*RATE, "run {ip} --op write --post-list 8 --verify"),
]
MORE = [
    (*KV, "run {ip} --load --verify --mix B --keys 200 --value 1000 --get reads"),
    (*BTREE, "run {ip} --keys 2000 --by send --mix D --verify"),
    (*RATE, "run {ip} --op read --post-list 8 --verify"),
    (*RATE, "run {ip} --op send --post-list 8 --verify"),
]
# With what siw does not have: atomics and immediate data.
QUICK_RICHER = [(*SEQ, "take {ip} --mode faa --verify")]
RICHER = [
    (*KV, "run {ip} --load --verify --mix A --keys 200 --value 1000 --put imm"),
    (*SEQ, "take {ip} --mode rpc --batch 4 --verify"),
    (*RATE, "run {ip} --op faa --verify"),
    (*RATE, "run {ip} --op cas --verify"),
]
RXE = "rdma link delete siw0; rmmod siw; modprobe crc32_generic; modprobe rdma_rxe; rdma link add rxe0 type rxe netdev eth0"
NO_RXE = "rdma link delete rxe0; rmmod rdma_rxe"


def put_into_share(rig, build):
    """The programs, and the libraries that the VM does not have."""
    folder = os.path.join(rig.state, "share", "apps")
    shutil.rmtree(folder, ignore_errors=True)
    os.makedirs(folder)
    for name in NAMES:
        program = os.path.join(build, "apps", name, f"uwarp-{name}")
        if not os.access(program, os.X_OK):
            raise Broken(f"{program} is not built")
        subprocess.run(["strip", "-o", os.path.join(folder, f"uwarp-{name}"), program], check=True)
        said = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        for library in re.findall(r"libjansson\S+ => (\S+)", said):
            shutil.copy(library, folder)


class VmApp:
    """A program of ours in a VM."""

    def __init__(self, rig, vm, name, words):
        self.rig, self.vm, self.name = rig, vm, name
        command = ["env", f"LD_LIBRARY_PATH={SHARED}", "timeout", "-k", "2", str(LIMIT), *words]
        status, said = self._do(f"job {name} {shlex.join(command)}")
        if status:
            raise Broken(f"the VM does not start {words[0]}: {said}")

    def _do(self, command, limit=30):
        return self.rig.vm(command, limit, self.vm)

    def is_ready(self):
        end = time.monotonic() + READY
        while time.monotonic() < end:
            if "ready on port" in self._do(f"job -l {self.name}")[1]:
                return True
            time.sleep(0.2)
        return False

    def finish(self, seconds):
        return self._do(f"job -w {self.name} {int(seconds)}", int(seconds) + 10)

    def end(self):
        self._do(f"job -k {self.name}")


class VmEnd:
    """A VM whose device is siw or rxe."""

    # Of all ends: server and client may be in the same VM, and a job that took another's name could not be ended any more.
    numbers = itertools.count()

    def __init__(self, rig, name, vm, ip, path):
        self.rig, self.name, self.vm, self.ip, self.capture = rig, name, vm, ip, path

    def start(self, app, text):
        return VmApp(self.rig, self.vm, f"app{next(self.numbers)}", [f"{SHARED}/uwarp-{app}", *text.split()])

    def serve(self, app, text):
        program = self.start(app, text)
        return program, None if program.is_ready() else "does not get ready"

    def last_words(self):
        return [f"VM {self.vm}: {line}" for line in self.rig.vm(DMESG, 30, self.vm)[1].strip().splitlines()]


class UwarpApps:
    """The same over uwarp, beside the VM."""

    def __init__(self, end, build, path):
        self.end, self.build, self.name, self.ip, self.capture = end, build, end.name, end.ip, path
        self.record = os.path.join(end.run_dir, "record")
        end.env = {**end.env, "UWARP_RECORD": self.record}

    def _words(self, app, text):
        return [os.path.join(self.build, "apps", app, f"uwarp-{app}"), *text.split()]

    def start(self, app, text):
        return self.end.start(self._words(app, text), LIMIT)

    def serve(self, app, text):
        return self.end.serve(self._words(app, text), PORT, LIMIT)

    def last_words(self):
        if not os.path.exists(self.record):
            return ["uwarp recorded no connection that failed"]
        with open(self.record, encoding="utf-8", errors="replace") as f:
            return [f"uwarp: {line}" for line in f.read().splitlines()[-RECORDED:]]


def complaint(status, said, wanted):
    if status:
        return f"the client failed with {status}" if status != 124 else "the client took too long"
    lines = [line for line in said.splitlines() if line.startswith("{")]
    if not lines:
        return "the client printed no result"
    got = json.loads(lines[-1])
    done = got.get("operations", got.get("tickets", 0))
    if got.get("wrong") or done < wanted:
        return f"{done} of {wanted} operations, {got.get('wrong', 0)} wrong answers"
    return None


def show(lines):
    for line in lines:
        print(f"       {line}", flush=True)


def who_ended_it(*ends):
    """What uwarp recorded of the connection that failed last, what siw's kernel said, and what was last on the bridge."""
    words = list(dict.fromkeys(line for end in ends for line in end.last_words()))
    return words + [f"bridge: {line}" for line in capture.last_frames(ends[0].capture, PORT, RECORDED)]


def attempt(case, client, server, n):
    """Server and client of one program: (what is wrong or None, the client's words, the server)."""
    app, serve, run = case
    said = ""
    s, problem = server.serve(app, f"serve --events -p {PORT} {serve}")
    if not problem:
        c = client.start(app, f"{run.format(ip=server.ip)} -n {n} -p {PORT} -w 8 --events --json --quiet")
        status, said = c.finish(LIMIT + 5)
        problem = complaint(status, said, n)
    s.end()
    return problem, said, s


def siw_is_stalled(said, *ends):
    """siw at both ends: FPDUs that come soon after its Reply are acknowledged and stay unread, and no more come (README.md)."""
    return STALLED in said and all(end.name == "siw" for end in ends)


def way(client, server):
    return f"{client} -> {server}"


def title(case):
    """What a row says about its case."""
    app, _serve, run = case
    words = " ".join(word for word in run.split()[2:] if word not in ("--verify", "--load"))
    return f"{app} {words[:60]}"


def one(score, row, case, client, server, n):
    start, note = time.monotonic(), "judged" if "verify" in case[2] else "counted"
    problem, said, s = attempt(case, client, server, n)
    if siw_is_stalled(said, client, server):
        problem, said, s = attempt(case, client, server, n)
        note += ", at try 2: siw did not read what came first"
    score.row(row, way(client.name, server.name), title(case), time.monotonic() - start, problem, note)
    if problem:
        show(said.strip().splitlines()[-6:] + s.finish(1)[1].strip().splitlines()[-6:] + who_ended_it(client, server))


class Row:
    """What a line of the score begins with."""

    name = "applications"


def to_each(rig, vms, command):
    for vm, _ip in vms:
        status, said = rig.vm(command, 30, vm)
        if status:
            raise Broken(f"'{command}' fails in the VM: {said}")


# capture: the file into which goes what the bridge carries meanwhile.
Setup = collections.namedtuple("Setup", "rig uwarp build capture")


def over_siw(quick):
    """(case, client, server) of each row, by the names of the ends."""
    for case in QUICK + ([] if quick else MORE):
        for client, server in (("siw", "siw"), ("uwarp", "siw"), ("siw", "uwarp")):
            yield case, client, server


def over_rxe(quick):
    for case in QUICK + QUICK_RICHER + ([] if quick else MORE + RICHER):
        yield case, "rxe", "rxe"


def chosen(rows, only):
    """Those whose text, as the score prints it, contains one of the texts `only`; without any: all."""
    return [row for row in rows if not only or any(text in f"{way(*row[1:])} {title(row[0])}" for text in only)]


def run(setup, score, options, vms):
    """options: quick, only. vms: (name, address) of one or two of them; with one, its device talks to itself."""
    rig, path, n = setup.rig, setup.capture, FEW if options.quick else MANY
    put_into_share(rig, setup.build)
    uwarp = UwarpApps(setup.uwarp, setup.build, path)
    (client, server), (rxe_client, rxe_server) = ([VmEnd(rig, name, vm, ip, path) for vm, ip in (vms[0], vms[-1])] for name in ("siw", "rxe"))
    # siw talks to siw from the first VM to the last, and to uwarp in the first.
    ends = {("siw", "siw"): (client, server), ("uwarp", "siw"): (uwarp, client), ("siw", "uwarp"): (client, uwarp), ("rxe", "rxe"): (rxe_client, rxe_server)}
    for case, *names in chosen(over_siw(options.quick), options.only):
        one(score, Row, case, *ends[tuple(names)], n)
    rows = chosen(over_rxe(options.quick), options.only)
    if not rows:
        return
    to_each(rig, vms, RXE)
    for case, *names in rows:
        one(score, Row, case, *ends[tuple(names)], n)
    to_each(rig, vms, NO_RXE)
