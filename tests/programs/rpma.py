#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""A pair over the stock librpma (persistent memory's library over RDMA): rpma.py server|client ADDRESS

The server offers a region; the client writes into it, flushes, reads it back and compares, writes 8 octets
atomically, and sends a message that tells the server to look for itself."""

import ctypes
import random
import sys

PORT, SIZE, HALF = b"7204", 1 << 20, 1 << 19
GET_LOCAL, GET_REMOTE = 0, 1
ALL_USES = 0b11011111  # every RPMA_MR_USAGE but flush to persistence
ALWAYS, VISIBLE = 3, 1  # RPMA_F_COMPLETION_ALWAYS, RPMA_FLUSH_TYPE_VISIBILITY
ESTABLISHED, CLOSED = 0, 1
MARK = b"8 octets"
DATA = random.Random(7).randbytes(HALF)

rpma = ctypes.CDLL("librpma.so.0")
rpma.rpma_err_2str.restype = ctypes.c_char_p
buffer = ctypes.create_string_buffer(SIZE)


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


def end(conn, mr, peer):
    do("conn_delete", ctypes.byref(conn))
    do("mr_dereg", ctypes.byref(mr))
    do("peer_delete", ctypes.byref(peer))


def serve(address):
    peer = make_peer(address, GET_LOCAL)
    mr = make("mr_reg", peer, buffer, SIZE, ALL_USES)
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
    if buffer.raw[:HALF] != MARK + DATA[8:] or not buffer.raw[HALF:].startswith(b"look"):
        sys.exit("other octets than the client's are here")
    print("all is there")
    do("conn_disconnect", conn)
    expect_event(conn, CLOSED)
    do("ep_shutdown", ctypes.byref(listener))
    end(conn, mr, peer)


def ask(address):
    peer = make_peer(address, GET_REMOTE)
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
    do("flush", conn, remote, 0, HALF, VISIBLE, ALWAYS, None)
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
    {"server": serve, "client": ask}[sys.argv[1]](sys.argv[2].encode())
