# SPDX-License-Identifier: BSD-3-Clause
"""uwarp-stat beside programs that run, that are stopped and that are killed; and the record that is left of a
connection whose QP failed."""

import json
import os
import re
import signal
import subprocess

from harness import ROOT, UWARP_RUN, Skipped, check, wait_until
from lifecycle import until_busy_client
from pairs import sweep

TOOL = os.path.join(ROOT, "tools", "uwarp-stat")
SAMPLE = re.compile(r'^[a-z_0-9]+\{([a-z]+="[^"\\]*",?)+\} \d+$')


def ask(stage, *options):
    r = subprocess.run([TOOL, *options], env=stage.env, capture_output=True, text=True, timeout=30)
    return r.returncode, r.stdout, r.stderr


def told(stage, *options):
    rc, out, err = ask(stage, *options)
    check(rc == 0 and not err, f"uwarp-stat {' '.join(options)}: exit code {rc}: {err}")
    return out


class Seen:
    """A pair at work, seen in each of the formats."""

    program, flags = "ib_write_bw", "-R, seen by uwarp-stat"

    def __call__(self, stage):
        rc, out, err = ask(stage)
        check((rc, out) == (0, "") and "no uwarp process" in err, f"without processes: {rc}, {out}, {err}")
        server = stage.start("server", "ib_write_bw -R -D 20")
        server.until_link_up()
        client = until_busy_client(stage, server, "ib_write_bw -R -D 20 {server}")
        self.look(stage, server, client)
        for program in (client, server):
            program.kill()
            program.wait(5)
        sweep(stage)

    def look(self, stage, server, client):
        pids = sorted((server.pid, client.pid))
        both = json.loads(told(stage, "--json"))
        check([a["pid"] for a in both] == pids, f"--json shows {[a['pid'] for a in both]}, not {pids}")
        busy = [a for a in both if a["pid"] == client.pid][0]
        flows = [c for c in busy["connections"] if c["state"] == "streaming"]
        check(flows and flows[0]["remote"]["address"] == stage.address("server"), f"its connections: {flows}")
        check(all(c["qpn"] and c["tcp"]["mss"] for c in flows), f"its connections: {flows}")
        if stage.link.name != "memif":  # processes of one machine measure no round trip
            check(max(c["tcp"]["rtt_us"] for c in flows) > 0, f"no round-trip time: {flows}")
            check(flows[0]["tcp"]["control"] == "cubic", f"its control: {flows[0]['tcp']['control']}")
        lines = told(stage, "--list").splitlines()
        check([int(x.split()[0]) for x in lines[1:]] == pids, f"--list: {lines}")
        check(f"{stage.address('server')}:" in told(stage), "the text does not name the server")
        check("payload_tx_bytes/s:" in told(stage, "-i", "0.3", "-n", "1", str(client.pid)), "-i shows no rate")
        for line in told(stage, "--prometheus").splitlines():
            check(line.startswith("# TYPE uwarp_") or SAMPLE.match(line), f"--prometheus: {line}")
        rc, out, err = ask(stage, "1")
        check(rc == 1 and "no uwarp process 1 in" in err, f"of a process that is none: {rc}, {err}")


class Stopped:
    """A process that is stopped keeps uwarp-stat for a bounded time, and is named."""

    program, flags = "rping", "-s, stopped"

    def __call__(self, stage):
        first = stage.start("server", "rping -s -a {server} -p 7001")
        second = stage.start("third", "rping -s -a {third} -p 7002")
        for program in (first, second):
            program.until_link_up()
        check(wait_until(lambda: len(json.loads(told(stage, "--json"))) == 2, 5), "not both are seen")
        first.kill(signal.SIGSTOP)
        rc, out, err = ask(stage, "--json")
        check([a["pid"] for a in json.loads(out)] == [second.pid], f"not the other one alone: {out}")
        check(f"process {first.pid} does not answer" in err, f"it says {err}")
        first.kill(signal.SIGCONT)
        check(len(json.loads(told(stage, "--json"))) == 2, "the continued one is not seen")
        for program in (first, second):
            program.kill()
            program.wait(5)
        check(told(stage, "--list").count("\n") == 1, "dead processes are listed")
        check(not os.listdir(os.path.join(stage.run_dir, "stat")), "a dead process's socket is left")
        sweep(stage)


class Recorded:
    """The server is killed: the client's record ends in what happened."""

    program, flags = "ib_send_bw", "-R; server killed; --record"

    def __init__(self, sentence):
        self.sentence = sentence

    def __call__(self, stage):
        path = os.path.join(stage.folder, "record")
        server = stage.start("server", "ib_send_bw -R -D 30")
        server.until_link_up()
        options = [*stage.link.options("client"), "--record", path]
        client = stage.start("client", "ib_send_bw -R -D 30 {server}", options=options)
        client.until_busy()
        server.kill()
        server.wait(5)
        client.wait(30)
        with open(path, encoding="utf-8") as f:
            text = f.read()
        check(re.search(self.sentence, text), f"the record says: {text}")
        check(" failed: " in text and " state streaming" in text, f"the record says: {text}")


# All but 100 octets of a tmpfs that ends with the program. It has pages, the least is one.
PAGE = os.sysconf("SC_PAGESIZE")
FULL = f'mount -t tmpfs -o size={PAGE} none "$1"; head -c {PAGE - 100} /dev/zero >"$1/record"; shift; exec "$@"'


class RecordedToFull:
    """The disk is full in the middle of the first of four records: one line, and the program goes on to its own end."""

    program, flags = "ib_send_bw", "-R -q 4; server killed; --record onto a full disk"

    def __call__(self, stage):
        if os.getuid():
            raise Skipped("only root can mount a small disk")
        alone = subprocess.run(["unshare", "--mount", "true"], stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if alone.returncode:  # in a chroot
            raise Skipped(f"no mount for one process alone: {alone.stderr.strip()}")
        disk = os.path.join(stage.folder, "disk")
        os.mkdir(disk)
        server = stage.start("server", "ib_send_bw -R -q 4 -D 30")
        server.until_link_up()
        run = [UWARP_RUN, "--quiet", *stage.link.options("client"), "--record", os.path.join(disk, "record"), "--"]
        words = ["unshare", "--mount", "sh", "-ec", FULL, "sh", disk, *run, *stage.fill_in("ib_send_bw -R -q 4 -D 30 {server}")]
        client = stage.start_plain("client", words)
        client.until_link_up()
        client.until_busy()
        server.kill()
        server.wait(5)
        rc = client.wait(30)
        check(rc > 0, f"the client's exit code is {rc}")
        full = f"uwarp: UWARP_RECORD={disk}/record: No space left on device"
        check(client.our_lines() == [full], f"it says {client.our_lines()}")


MEMIF = [Seen(), Stopped(), RecordedToFull(), Recorded(r"what happened: the process of peer 127\.0\.0\.2:\d+ has ended\.\n")]
PACKET = [Seen(), Recorded(r"what happened: peer 10\.77\.0\.1:\d+ (sent no ACK for|sent nothing for|reset the TCP)")]
