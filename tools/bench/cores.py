# SPDX-License-Identifier: BSD-3-Clause
"""Thread models on fewer cores than threads: two processes on all cores, both on one, and each with
half a core by cgroup, as containers have. What is asked for is that the default model is the best one
or close to it everywhere."""

import contextlib
import errno
import os
import shlex
import tempfile

from . import qperf
from .goals import LEAST, MOST, Goal
from .process import Failed, Group, Unavailable, need, wait_until
from .rig import HERE, THERE
from .rounds import probe
from .settings import THREADS

MODELS = ("adaptive", "c1", "c2", "c3")
DEFAULT = MODELS[0]
CLOSE = 1.1
# (name, qperf's test, octets, more options, unit)
TESTS = (
    ("rc_lat", "rc_lat", 64, [], "us"),
    ("rc_lat, polling", "rc_lat", 64, ["-cp", "1"], "us"),
    ("rc_rdma_write_bw", "rc_rdma_write_bw", 65_536, [], "Gb/s"),
)  # fmt: skip
PERIOD_US = 100_000
CGROUPS = "/sys/fs/cgroup"


@contextlib.contextmanager
def everywhere():
    yield []


@contextlib.contextmanager
def one_core():
    yield [need("taskset"), "-c", str(min(os.sched_getaffinity(0)))]


def controller():
    """Where a cgroup with a quota can be made, and the files to write: version 2 or 1."""
    quota = PERIOD_US // 2
    if os.path.exists(os.path.join(CGROUPS, "cgroup.controllers")):
        return CGROUPS, {"cpu.max": f"{quota} {PERIOD_US}"}
    return os.path.join(CGROUPS, "cpu"), {"cpu.cfs_period_us": str(PERIOD_US), "cpu.cfs_quota_us": str(quota)}


def is_removed(path):
    """What was killed is in its cgroup for a moment longer."""
    try:
        os.rmdir(path)
    except OSError as e:
        if e.errno != errno.EBUSY:
            raise
        return False
    return True


@contextlib.contextmanager
def half_a_core():
    """For one process: what runs there may use half of a core's time."""
    folder, files = controller()
    path = None
    try:
        path = tempfile.mkdtemp(prefix="uwb-", dir=folder)
        for name, text in files.items():
            with open(os.path.join(path, name), "w", encoding="ascii") as f:
                f.write(text)
    except OSError as e:
        if path:
            os.rmdir(path)
        raise Unavailable(f"no cgroup with a quota can be made (as root, with the controller cpu): {e.strerror}") from None
    try:
        yield ["sh", "-c", f'echo $$ > {shlex.quote(path)}/cgroup.procs && exec "$@"', "sh"]
    finally:
        if not wait_until(lambda: is_removed(path), 5):
            raise Failed(f"processes are left in the cgroup {path}")


PLACES = {"all cores": everywhere, "one core": one_core, "half a core each": half_a_core}


def once(rig, place, model, test):
    _, name, size, more, _ = test
    port = rig.new_port()
    how = {"env": {**rig.env, THREADS: model}, "cwd": rig.folder}
    with place() as server, place() as client, Group() as group:
        group.start([*server, *rig.uwarp(THERE, [need("qperf"), "-lp", port])], **how)
        words = qperf.client_words(port, THERE, name, size, ["-cm", "1", *more])
        return {"value": qperf.value(group.start([*client, *rig.uwarp(HERE, words)], **how).wait(rig.limit))}


def rows(rig):
    for where, place in PLACES.items():
        for test in TESTS:
            for model in MODELS:
                yield probe("cores", f"model {model}", f"{test[0]}, {where}", test[2], test[4], lambda p=place, m=model, t=test: once(rig, p, m, t))


def key(model, test, where):
    return f"cores/model {model}/{test[0]}, {where}/{test[2]}"


def goals():
    for where in PLACES:
        for test in TESTS:
            bound, limit = (MOST, CLOSE) if test[4] == "us" else (LEAST, 1 / CLOSE)
            for model in MODELS[1:]:
                yield Goal(f"{test[0]}, {where}: {DEFAULT} / {model}", key(DEFAULT, test, where), key(model, test, where), bound, limit)
