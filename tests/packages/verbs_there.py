#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""verbs_there.py LIBIBVERBS: opens uwarp0 by that library, registers memory and makes a QP, with nothing but Python."""

import ctypes
import socket
import sys


class Init(ctypes.Structure):  # struct ibv_qp_init_attr
    _fields_ = [(n, ctypes.c_void_p) for n in ("context", "send_cq", "recv_cq", "srq")]
    _fields_ += [("cap", ctypes.c_uint32 * 5), ("kind", ctypes.c_int), ("all", ctypes.c_int)]


def main():
    verbs = ctypes.CDLL(sys.argv[1], use_errno=True)
    for name in "get_device_list", "get_device_name", "open_device", "alloc_pd", "reg_mr", "create_cq", "create_qp":
        getattr(verbs, "ibv_" + name).restype = ctypes.c_void_p
    verbs.ibv_get_device_name.restype = ctypes.c_char_p

    def call(name, *args):
        got = getattr(verbs, "ibv_" + name)(*args)
        assert got, f"{name}: errno {ctypes.get_errno()}"
        return got

    devices = ctypes.cast(call("get_device_list", None), ctypes.POINTER(ctypes.c_void_p))
    assert devices[0], "no device"
    name = call("get_device_name", ctypes.c_void_p(devices[0]))
    assert name == b"uwarp0", name
    context = ctypes.c_void_p(call("open_device", ctypes.c_void_p(devices[0])))
    pd = ctypes.c_void_p(call("alloc_pd", context))
    gid = ctypes.create_string_buffer(16)
    assert verbs.ibv_query_gid(context, 1, 0, gid) == 0
    memory = ctypes.create_string_buffer(1 << 20)
    call("reg_mr", pd, memory, ctypes.c_size_t(len(memory)), 7)
    cq = call("create_cq", context, 16, None, None, 0)
    init = Init(None, cq, cq, None, (ctypes.c_uint32 * 5)(4, 4, 1, 1, 0), 2, 1)
    call("create_qp", pd, ctypes.byref(init))
    print(f"{name.decode()} at {socket.inet_ntoa(gid.raw[12:])}: memory and a QP")


if __name__ == "__main__":
    main()
