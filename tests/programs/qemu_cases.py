# SPDX-License-Identifier: BSD-3-Clause
"""QEMU moves a virtual machine to another process over RDMA. The machine does not run, so what its memory held before it moved
is what it must hold afterwards."""

import json
import os
import secrets
import socket
import time

from harness import START, Failed, check, wait_until

OCTETS, AT = 16 << 20, 0x1000000
MACHINE = "qemu-system-x86_64 -M pc -m 64 -accel tcg -display none -nodefaults -S -qmp unix:{{folder}}/{role}.qmp,server=on,wait=off"


class Monitor:
    """QEMU's control socket."""

    def __init__(self, path, program):
        self.socket = socket.socket(socket.AF_UNIX)
        if not wait_until(lambda: self.reach(path) or program.poll() is not None, START) or program.poll() is not None:
            raise Failed(f"{program.role} has no control socket")
        self.socket.settimeout(30)
        self.file = self.socket.makefile("rw")
        self.file.readline()  # its greeting
        self.ask("qmp_capabilities")

    def reach(self, path):
        try:
            self.socket.connect(path)
        except OSError:
            return False
        return True

    def ask(self, command, **arguments):
        self.file.write(json.dumps({"execute": command, "arguments": arguments}) + "\n")
        self.file.flush()
        while True:
            answer = json.loads(self.file.readline())
            check("error" not in answer, f"{command}: {answer.get('error')}")
            if "return" in answer:
                return answer["return"]


class Migration:
    program, needs = "qemu-system-x86_64", ["qemu-system-x86_64"]

    def __init__(self, pinned):
        self.pinned = pinned
        self.flags = f"migrate rdma:{', rdma-pin-all' if pinned else ''}, 16 MiB compared"

    def machine(self, stage, role, flags):
        program = stage.start(role, f"{MACHINE.format(role=role)} {flags}")
        monitor = Monitor(os.path.join(stage.folder, f"{role}.qmp"), program)
        pin = {"capability": "rdma-pin-all", "state": self.pinned}
        monitor.ask("migrate-set-capabilities", capabilities=[pin])
        return program, monitor

    def __call__(self, stage):
        content = secrets.token_bytes(OCTETS)
        with open(os.path.join(stage.folder, "content"), "wb") as f:
            f.write(content)
        uri = f"rdma:{stage.address('server')}:7878"
        to, to_monitor = self.machine(stage, "server", "-incoming defer")
        to_monitor.ask("migrate-incoming", uri=uri)
        source, monitor = self.machine(stage, "client", f"-device loader,file={{folder}}/content,addr={AT},force-raw=on")
        monitor.ask("migrate", uri=uri)
        end = time.monotonic() + 60
        state = "no word"
        while state not in ("completed", "failed") and time.monotonic() < end:
            time.sleep(0.05)
            state = monitor.ask("query-migrate").get("status")
        check(state == "completed", f"the migration: {state}")
        moved = os.path.join(stage.folder, "moved")
        to_monitor.ask("pmemsave", val=AT, size=OCTETS, filename=moved)
        with open(moved, "rb") as f:
            check(f.read() == content, "the memory is not what it was")
        for program, its in ((to, to_monitor), (source, monitor)):
            its.ask("quit")
            check(program.wait(20) == 0, f"{program.role} ended with an error")


CASES = [Migration(False), Migration(True)]
