#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Collectives over mpi4py, from 8 octets to 4 MiB, all compared; for MPICH's wheel (mpich, mpi4py, numpy)."""

import numpy as np
from mpi4py import MPI

world = MPI.COMM_WORLD
me, n = world.rank, world.size
for size in (1, 1000, 65536, 1 << 19):
    mine = np.arange(size, dtype=np.int64) * (me + 1)
    whole = np.empty_like(mine)
    world.Allreduce(mine, whole)
    assert (whole == np.arange(size, dtype=np.int64) * (n * (n + 1) // 2)).all()
    data = mine.copy() if me == 0 else np.zeros_like(mine)
    world.Bcast(data)
    assert (data == np.arange(size)).all()
    everyone = np.empty((n, size), dtype=np.int64)
    world.Allgather(mine, everyone)
    assert all((everyone[i] == np.arange(size) * (i + 1)).all() for i in range(n))
    there, back = (me + 1) % n, (me - 1) % n
    world.Sendrecv(mine, there, recvbuf=data, source=back)
    assert (data == np.arange(size) * (back + 1)).all()
window = MPI.Win.Allocate(4096, comm=world)
window.Fence()
window.Put(bytes([me]) * 16, (me + 1) % n, target=(0, 16))
window.Fence()
assert bytes(window.tomemory()[:16]) == bytes([(me - 1) % n]) * 16
window.Free()
print(f"{me}: all came right\n", end="", flush=True)
