#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Take the ELF kernel out of a bzImage, so that QEMU can enter it through its PVH note: unpacking
itself costs the kernel seconds under emulation.

usage: extract_vmlinux.py BZIMAGE VMLINUX"""

import lzma
import struct
import sys
import zlib

SETUP_MAGIC, SETUP_SECTORS, PAYLOAD = 0x202, 0x1F1, 0x248  # offsets in the boot protocol's header


def unpack(data):
    if data[:6] == b"\xfd7zXZ\x00":
        return lzma.LZMADecompressor(format=lzma.FORMAT_XZ).decompress(data)
    if data[:2] == b"\x1f\x8b":
        return zlib.decompressobj(31).decompress(data)
    sys.exit(f"extract_vmlinux: unknown compression, begins with {data[:6].hex()}")


def main():
    with open(sys.argv[1], "rb") as f:
        image = f.read()
    if image[SETUP_MAGIC : SETUP_MAGIC + 4] != b"HdrS":
        sys.exit(f"extract_vmlinux: {sys.argv[1]} is not a bzImage")
    offset, length = struct.unpack_from("<II", image, PAYLOAD)
    start = ((image[SETUP_SECTORS] or 4) + 1) * 512 + offset
    kernel = unpack(image[start : start + length])
    if kernel[:4] != b"\x7fELF":
        sys.exit("extract_vmlinux: the kernel in it is not an ELF file")
    with open(sys.argv[2], "wb") as f:
        f.write(kernel)


if __name__ == "__main__":
    main()
