#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""tensorpipe_pair.py RANK: PyTorch's remote calls from its wheel (torch), over TensorPipe's transport "ibv" and no other:
tensors of up to 4 MiB go to the other process and come back, one added, all compared."""

import sys

import torch
from torch.distributed import rpc

AT = "tcp://127.0.0.1:18113"


def main():
    rank = int(sys.argv[1])
    options = rpc.TensorPipeRpcBackendOptions(_transports=["ibv"], _channels=["basic"], init_method=AT)
    rpc.init_rpc(f"end{rank}", rank=rank, world_size=2, rpc_backend_options=options)
    if rank:
        for n in (10, 1000, 1 << 20):
            sent = torch.arange(n, dtype=torch.float32)
            assert torch.equal(rpc.rpc_sync("end0", torch.add, args=(sent, 1)), sent + 1)
    rpc.shutdown()
    print(f"{rank}: all came right", flush=True)


main()
