# SPDX-License-Identifier: BSD-3-Clause
"""RC without rdma_cm at addresses that processes share with the kernel and with each other (doc/adr/0048)."""

import json
import subprocess

from cmless import CmLess, Ucp, until_listening
from harness import START, check, wait_until
from stat_cases import TOOL


def streams(stage, program):
    run_dir = getattr(stage.link, "run_dir", None)
    env = {**stage.env, **({"UWARP_DIR": run_dir(program.role)} if run_dir else {})}
    out = subprocess.run([TOOL, "--json"], env=env, capture_output=True, text=True, timeout=30, check=True).stdout
    found = [p for p in json.loads(out) if p["pid"] == program.pid]
    return any(c["state"] == "streaming" for p in found for c in p["connections"])


class Beside(CmLess):
    """While another pair of the same addresses is at work. TCP port 4791 of each address is that pair's, and these
    processes have ports of their own, for which the other end has to ask."""

    def __init__(self, *args):
        super().__init__(*args)
        self.flags += ", beside a pair"

    def __call__(self, stage):
        first = CmLess("ib_write_lat", "-x 0 -D 600", "roce")
        first.port = self.port + 1
        server_command, client_command = first.commands()
        server = first.start(stage, "server", server_command)
        until_listening(server)
        client = first.start(stage, "client", client_command)
        check(wait_until(lambda: streams(stage, server) and streams(stage, client), START), "the first pair has no connection")
        del stage.programs[:]
        try:
            super().__call__(stage)
            check(streams(stage, server) and streams(stage, client), "the first pair has ended")
        finally:
            stage.programs += [server, client]
            for program in (client, server):
                program.stop()


PINGPONG = CmLess("ibv_rc_pingpong", "-g 0 -c -s 65536 -n 200")
CASES = [PINGPONG, CmLess("ib_write_bw", "-x 0 -n 500", "roce"), Beside("ibv_rc_pingpong", "-g 0 -n 200"),
         Beside("ib_send_bw", "-x 0 -n 500 -q 4", "roce"), Ucp("ib"), Ucp(None)]  # fmt: skip
LOCAL = [PINGPONG, Beside("ibv_rc_pingpong", "-g 0 -n 200"), Ucp("ib")]
# By the LID of the port, which a uwarpd's clients do not know before they have joined.
UWARPD = [PINGPONG, CmLess("ibv_rc_pingpong", "-n 500"), CmLess("ibv_rc_pingpong", "-n 500", "ib"), Beside("ibv_rc_pingpong", "-g 0 -n 200")]
