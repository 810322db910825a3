#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A pair over the stock librpma (persistent memory's library over RDMA): rpma.py server|client ADDRESS [FILE]

The server offers a region; the client writes into it, flushes, reads it back and compares, writes 8 octets
atomically, and sends a message that tells the server to look for itself. With a FILE the region is the server's
mapping of it and the flush is to persistence: then nothing of what was written may be dirty when the message
comes, and the file must have it. librpma has such a flush from 1.3 on, over rdma-core 45."""

import ctypes
import mmap
import os
import random
import re
import sys

PORT, SIZE, HALF = b"7204", 1 << 20, 1 << 19
GET_LOCAL, GET_REMOTE = 0, 1
ALL_USES, PERSISTENCE = 0b11011111, 0b100000  # every RPMA_MR_USAGE but flush to persistence; that one
ALWAYS, PERSISTENT, VISIBLE = 3, 0, 1  # RPMA_F_COMPLETION_ALWAYS, RPMA_FLUSH_TYPE_...
ESTABLISHED, CLOSED = 0, 1
MARK = b"8 octets"
# Behind the flush came the atomic write and the message; and registering tries whether the last page can be written.
DIRTY_LATER = 3 * mmap.PAGESIZE
DATA = random.Random(7).randbytes(HALF)

rpma = ctypes.CDLL("librpma.so.0")
rpma.rpma_err_2str.restype = ctypes.c_char_p


class PrivateData(ctypes.Structure):
    _fields_ = [("ptr", ctypes.c_void_p), ("len", ctypes.c_uint8)]


class Completion(ctypes.Structure):
    """The head of struct ibv_wc; the rest is of no interest."""

    _fields_ = [("wr_id", ctypes.c_uint64), ("status", ctypes.c_int), ("opcode", ctypes.c_int), ("rest", ctypes.c_uint8 * 48)]


def do(name, *args):
    """Call rpma_NAME; a plain int is a size_t or narrower."""
    args = [ctypes.c_size_t(a) if isinstance(a, int) else a for a in args]
    rc = getattr(rpma, f"rpma_{name}")(*args)
    if rc:
        sys.exit(f"rpma_{name}: {rpma.rpma_err_2str(rc).decode()}")


def make(name, *args):
    """Call rpma_NAME, whose last argument is where it puts what it makes."""
    made = ctypes.c_void_p()
    do(name, *args, ctypes.byref(made))
    return made


def make_peer(address, which):
    return make("peer_new", make("utils_get_ibv_context", address, which))


def expect_event(conn, wanted):
    event = ctypes.c_int(-1)
    do("conn_next_event", conn, ctypes.byref(event))
    if event.value != wanted:
        sys.exit(f"connection event {event.value} instead of {wanted}")


def complete(cq):
    """One completion, which must be good."""
    wc = Completion()
    do("cq_wait", cq)
    do("cq_get_wc", cq, 1, ctypes.byref(wc), None)
    if wc.status:
        sys.exit(f"completion with status {wc.status}")


def map_file(path):
    with open(path, "w+b") as f:
        f.truncate(SIZE)
        return mmap.mmap(f.fileno(), SIZE, mmap.MAP_SHARED)


def dirty_octets(address):
    """What of the mapping at the address has not been written back."""
    with open("/proc/self/smaps", encoding="utf-8") as f:
        of_mapping = re.search(rf"^{address:08x}-.*?^VmFlags", f.read(), re.M | re.S)
    return sum(1024 * int(n) for n in re.findall(r"^(?:Shared|Private)_Dirty: +(\d+) kB", of_mapping[0], re.M))


def end(conn, mr, peer):
    do("conn_delete", ctypes.byref(conn))
    do("mr_dereg", ctypes.byref(mr))
    do("peer_delete", ctypes.byref(peer))


def check_file(path, buffer):
    dirty = dirty_octets(ctypes.addressof(buffer))
    if dirty > DIRTY_LATER:
        sys.exit(f"{dirty} octets of the mapping are dirty after a flush to persistence")
    with open(path, "rb") as f:
        if f.read(HALF) != MARK + DATA[8:]:
            sys.exit("other octets than the client's are in the file")


def serve(address, path):
    peer = make_peer(address, GET_LOCAL)
    buffer = (ctypes.c_char * SIZE).from_buffer(map_file(path)) if path else ctypes.create_string_buffer(SIZE)
    mr = make("mr_reg", peer, buffer, SIZE, ALL_USES | (PERSISTENCE if path else 0))
    size = ctypes.c_size_t()
    do("mr_get_descriptor_size", mr, ctypes.byref(size))
    descriptor = ctypes.create_string_buffer(size.value)
    do("mr_get_descriptor", mr, descriptor)
    listener = make("ep_listen", peer, address, PORT)
    request = make("ep_next_conn_req", listener, None)
    do("conn_req_recv", request, mr, HALF, 64, None)
    offer = PrivateData(ctypes.cast(descriptor, ctypes.c_void_p), size.value)
    conn = make("conn_req_connect", ctypes.byref(request), ctypes.byref(offer))
    expect_event(conn, ESTABLISHED)
    complete(make("conn_get_cq", conn))
    if path:
        check_file(path, buffer)
    if buffer.raw[:HALF] != MARK + DATA[8:] or not buffer.raw[HALF:].startswith(b"look"):
        sys.exit("other octets than the client's are here")
    print("all is there")
    do("conn_disconnect", conn)
    expect_event(conn, CLOSED)
    do("ep_shutdown", ctypes.byref(listener))
    end(conn, mr, peer)


def believe_in_persistence(conn):
    """librpma flushes to persistence where it was told that the peer's writes reach its memory."""
    config = make("peer_cfg_new")
    do("peer_cfg_set_direct_write_to_pmem", config, ctypes.c_bool(True))
    do("conn_apply_remote_peer_cfg", conn, config)
    do("peer_cfg_delete", ctypes.byref(config))


def ask(address, path):
    peer = make_peer(address, GET_REMOTE)
    buffer = ctypes.create_string_buffer(SIZE)
    mr = make("mr_reg", peer, buffer, SIZE, ALL_USES)
    request = make("conn_req_new", peer, address, PORT, None)
    conn = make("conn_req_connect", ctypes.byref(request), None)
    expect_event(conn, ESTABLISHED)
    offer = PrivateData()
    do("conn_get_private_data", conn, ctypes.byref(offer))
    remote = make("mr_remote_from_descriptor", ctypes.c_void_p(offer.ptr), offer.len)
    cq = make("conn_get_cq", conn)
    buffer[:HALF] = DATA
    do("write", conn, remote, 0, mr, 0, HALF, 1, None)
    if path:
        believe_in_persistence(conn)
    do("flush", conn, remote, 0, HALF, PERSISTENT if path else VISIBLE, ALWAYS, None)
    complete(cq)
    do("read", conn, mr, HALF, remote, 0, HALF, ALWAYS, None)
    complete(cq)
    if buffer.raw[HALF:] != DATA:
        sys.exit("other octets than those written came back")
    do("atomic_write", conn, remote, 0, MARK, ALWAYS, None)
    complete(cq)
    buffer[:4] = b"look"
    do("send", conn, mr, 0, 64, ALWAYS, None)
    complete(cq)
    expect_event(conn, CLOSED)
    do("conn_disconnect", conn)
    do("mr_remote_delete", ctypes.byref(remote))
    end(conn, mr, peer)
    print("all came back")


if __name__ == "__main__":
    {"server": serve, "client": ask}[sys.argv[1]](sys.argv[2].encode(), sys.argv[3] if len(sys.argv) > 3 else None)
