# SPDX-License-Identifier: BSD-3-Clause
"""Where things are, and the surroundings that programs are started in."""

import contextlib
import itertools
import os
import re
import shutil
import tempfile

from run.place import absolute

from . import process
from .process import Failed, Group, Unavailable, wait_until

TOOLS = os.path.dirname(os.path.dirname(os.path.realpath(__file__)))
TOP = os.path.dirname(TOOLS)
PREFIX = os.path.dirname(TOP)  # where installed: this is PREFIX/share/uwarp/bench
START = 20.0  # seconds until a program has its link up, on a busy machine
LIMIT = 20.0  # seconds that one measurement may take
HERE, THERE = "127.0.0.3", "127.0.0.2"


def build_dir():
    return absolute(os.environ.get("UWARP_BUILD_DIR") or os.path.join(TOP, "build"))


def helper(name):
    """One of our own small programs."""
    for place in (os.path.join(build_dir(), "tests", "perf"), os.path.join(PREFIX, "libexec", "uwarp")):
        path = os.path.join(place, name)
        if os.access(path, os.X_OK):
            return path
    raise Unavailable(f"{name} is not built; run ninja -C {build_dir()}")


def tool(name):
    """Another of our tools: beside this one in a tree, in PREFIX/bin where installed."""
    for place in (TOOLS, os.path.join(PREFIX, "bin")):
        path = os.path.join(place, name)
        if os.path.isfile(path):
            return path
    raise Unavailable(f"{name} is missing")


def uwarp_run():
    return tool("uwarp-run")


def echoes(size):
    """So many round trips that measuring them takes some tenths of a second."""
    return max(200, min(5000, 20_000_000 // (size + 4000)))


class Rig:
    """A run directory of its own, so that nobody else's processes are met, and namespaces that are
    made when they are first asked for."""

    def __init__(self, options):
        self.options = options
        self.folder = tempfile.mkdtemp(prefix="uwb-")
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("UWARP_", "RDMAV_", "IBV_"))}
        self.env.update(UWARPD="", UWARP_DIR=os.path.join(self.folder, "run"), PATH=process.PATH)
        if "UWARP_BUILD_DIR" in os.environ:
            self.env["UWARP_BUILD_DIR"] = os.environ["UWARP_BUILD_DIR"]
        self.limit = getattr(options, "limit", LIMIT)
        self.ports = itertools.count(20000 + os.getpid() % 20000)
        self.closing = contextlib.ExitStack()
        self.made = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closing.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def new_port(self):
        return str(next(self.ports))

    def at_peer(self, seconds):
        """What comes before a command for the device's other host."""
        return [*self.options.remote, "timeout", str(round(seconds))]

    def once(self, name, make):
        """What make() gives, made once; a failure is remembered as well."""
        if name not in self.made:
            try:
                self.made[name] = make()
            except Unavailable as e:
                self.made[name] = e
        if isinstance(self.made[name], Unavailable):
            raise self.made[name]
        return self.made[name]

    def uwarp(self, ip, words, mtu=None, rate=None):
        argv = [uwarp_run(), "--quiet", "--ip", ip]
        argv += ["--mtu", str(mtu)] if mtu else []
        argv += ["--rate", rate] if rate else []
        return [*argv, "--", *words]

    def start_uwarp(self, group, ip, words, mtu=None, env=None):
        """uwarp-run passes on no rate that it was not asked for."""
        env = dict(env or {})
        return group.start(self.uwarp(ip, words, mtu, env.pop("UWARP_LINK_RATE", None)), env={**self.env, **env}, cwd=self.folder)


def until_up(program):
    """Its stack's thread runs: what it was asked for comes within the next moments."""
    up = wait_until(lambda: program.has_thread("uwarp-rx") or not program.running(), START)
    if not up or not program.running():
        raise Failed(f"{program.name()} has not brought its link up{program.last_words()}")


def uwarp_pair(rig, server_words, client_words, mtu=None, env=None):
    """A server and a client over uwarp: what the client printed, and both programs' CPU seconds."""
    with Group() as group:
        server = rig.start_uwarp(group, THERE, server_words, mtu, env)
        until_up(server)
        client = rig.start_uwarp(group, HERE, client_words, mtu, env)
        out = client.wait(rig.limit)
        wait_until(lambda: not server.running(), 2)
        return out, client.cpu + server.cpu_seconds()


def uwarp_pair_at(rig, where, words, env):
    """The same over the kernel's network at a place of peers.py: words at both ends, and the client's say where
    the server is."""
    env = {**rig.env, **env}
    with Group() as group:
        server = group.start([*where.at("server"), *rig.uwarp(where.server, words)], env=env, cwd=rig.folder)
        until_up(server)
        client = group.start([*where.at("client"), *rig.uwarp(where.client, [*words, where.server])], env=env, cwd=rig.folder)
        out = client.wait(rig.limit)
        wait_until(lambda: not server.running(), 2)
        return out, client.cpu + server.cpu_seconds()


def last_row(text, columns):
    """The last line that is nothing but numbers, at least so many. (Perftest's deviation may be -nan.)"""
    for line in reversed(text.splitlines()):
        words = line.split()
        if len(words) >= columns and all(re.fullmatch(r"-?(\d+(\.\d+)?|nan)", w) for w in words):
            return [float(w) for w in words]
    if re.search(r"\binf\b", text):
        raise Failed("printed infinite times: perftest could not tell the CPU's clock rate")
    raise Failed("printed no figures")

